// Inference and printing of graphs.
#include "runtime/graph/Graph.h"

namespace dlc {
namespace {

TensorMeta wrappedMeta(const Number &n) {
  TensorMeta m;
  m.dtype = n.isFloat() ? DType::F64 : n.dtype();
  m.defined = true;
  m.wrapped = true;
  return m;
}

void printArg(std::ostream &os, const Arg<GVal> &a) {
  switch (a.tag) {
  case ArgTag::None:
    os << "None";
    break;
  case ArgTag::Value:
    os << "%" << a.value->id;
    break;
  case ArgTag::ValueList: {
    os << "[";
    for (size_t i = 0; i < a.size; ++i)
      os << (i ? ", " : "") << "%" << a.value[i].id;
    os << "]";
    break;
  }
  case ArgTag::Num:
    if (a.num.ref())
      os << "n" << numberIndex(a.num) << "=";
    os << a.num;
    break;
  case ArgTag::Dim:
    os << a.dim;
    break;
  case ArgTag::DimList:
    os << listStr(a.dimList());
    break;
  case ArgTag::Int:
    os << a.i;
    break;
  case ArgTag::IntList:
    os << listStr(a.intList());
    break;
  case ArgTag::Bool:
    os << (a.b() ? "True" : "False");
    break;
  case ArgTag::Float:
    os << a.f;
    break;
  case ArgTag::Str:
    os << '"' << a.str() << '"';
    break;
  case ArgTag::DType:
    os << a.dtype;
    break;
  case ArgTag::Rng:
    os << "rng(n" << numberIndex(a.num) << ", n" << a.dim.value() << ")";
    break;
  }
}

} // namespace

void setLocator(Locator l) { currentLocator = l; }
std::string locText(uint32_t loc) {
  return loc && currentLocator.describe ? currentLocator.describe(loc) : std::string();
}

std::string print(const Graph &g) {
  std::ostringstream os;
  os << "graph(";
  for (size_t i = 0; i < g.inputs.size(); ++i)
    os << (i ? ", " : "") << "%" << g.inputs[i] << ": " << describe(g.values[g.inputs[i]]);
  os << ")\n";
  for (const GraphNode &n : g.nodes) {
    os << "  ";
    for (size_t i = 0; i < n.results.size(); ++i)
      os << (i ? ", " : "") << "%" << n.results[i];
    os << " = " << n.op->name << "(";
    Span<const Arg<GVal>> args = n.args.args();
    for (size_t i = 0; i < args.size(); ++i) {
      os << (i ? ", " : "") << n.op->params[i].name << "=";
      printArg(os, args[i]);
    }
    os << ") : ";
    for (size_t i = 0; i < n.results.size(); ++i)
      os << (i ? ", " : "") << describe(g.values[n.results[i]]);
    if (n.loc)
      os << "  # " << locText(n.loc);
    os << "\n";
  }
  os << "  return ";
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    os << (i ? ", " : "") << "%" << g.outputs[i].value;
    if (g.outputs[i].writeBack >= 0)
      os << " -> input " << g.outputs[i].writeBack;
  }
  os << "\n";
  return os.str();
}

size_t countMutated(const OpInfo &op, Span<const Arg<GVal>> args) {
  size_t n = 0;
  if (op.has(kMutates))
    for (size_t i = 0; i < args.size(); ++i)
      if (isMutatedKind(op.params[i].kind))
        n += args[i].values().size();
  return n;
}

static const TensorMeta absent{};

void inferNode(const Graph &g, const OpInfo &op, Span<const Arg<GVal>> args, SmallVec<TensorMeta, 3> &results) {
  SmallVec<Arg<TensorMeta>, 12> metaArgs;
  SmallVec<TensorMeta, 1> metas; // of lists and numbers; single values are read where they are
  size_t count = 0;
  for (const Arg<GVal> &a : args)
    count += a.tag == ArgTag::Num ? 1 : a.tag == ArgTag::ValueList ? a.size : 0;
  metas.reserve(count);
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg<GVal> &a = args[i];
    Arg<TensorMeta> m;
    m.tag = a.tag;
    m.dtype = a.dtype;
    m.size = a.size;
    m.i = a.i;
    m.num = a.num;
    m.dim = a.dim;
    if (a.tag == ArgTag::Value) {
      m.value = a.value->id < 0 ? &absent : &g.values[a.value->id];
    } else if (a.tag == ArgTag::Num && isTensorKind(op.params[i].kind)) {
      m.tag = ArgTag::Value;
      m.value = metas.data() + metas.size();
      metas.push_back(wrappedMeta(a.num));
    } else if (a.tag == ArgTag::ValueList) {
      m.value = metas.data() + metas.size();
      for (const GVal &v : a.values())
        metas.push_back(v.id < 0 ? TensorMeta() : g.values[v.id]);
    }
    metaArgs.push_back(m);
  }
  MetaResult r;
  op.meta(metaArgs, r);
  results = std::move(r.outs);
  for (TensorMeta &m : results)
    m.offset = 0;
  if (op.has(kMutates))
    for (size_t i = 0; i < args.size(); ++i)
      if (isMutatedKind(op.params[i].kind))
        for (const GVal &v : args[i].values())
          results.push_back(TensorMeta::contiguous(g.values[v.id].dtype, g.values[v.id].sizes));
}

Graph retype(const Graph &g, Span<const TensorMeta> inputMetas, Span<const Dim> dims, Span<const int64_t> symbolHints) {
  Graph out = g;
  out.symbols = symbolHints.vec();
  for (size_t i = 0; i < g.inputs.size(); ++i)
    out.values[g.inputs[i]] = inputMetas[i];
  size_t k = 0;
  for (GraphNode &n : out.nodes) {
    forEachDim(n.args, [&](Dim &d) { d = dims[k++]; });
    SmallVec<TensorMeta, 3> metas;
    inferNode(out, *n.op, n.args.args(), metas);
    DLC_CHECK(metas.size() == n.results.size(), n.op->name, ": ", metas.size(), " results inferred, ", n.results.size(),
              " recorded");
    for (size_t i = 0; i < metas.size(); ++i)
      out.values[n.results[i]] = metas[i];
  }
  for (GraphOutput &o : out.outputs) {
    if (o.strides == contiguousStrides(g.values[o.value].sizes))
      o.strides = contiguousStrides(out.values[o.value].sizes);
    else
      for (Dim &d : o.strides)
        d = dims[k++];
  }
  DLC_CHECK(k == dims.size(), k, " sizes in the graph, ", dims.size(), " given");
  return out;
}

} // namespace dlc
