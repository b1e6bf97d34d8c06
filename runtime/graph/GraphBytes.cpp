// Every field that the importer reads, in a fixed order. Used as the key of compiled graphs in the persistent cache.
#include "runtime/graph/GraphBytes.h"
#include "runtime/core/Archive.h"

namespace dlc {

namespace {

class GraphWriter {
public:
  archive::Writer out;

  void meta(const TensorMeta &m) {
    out.pod(m.dtype);
    out.pod(m.defined);
    out.pod(m.wrapped);
    dims(Span<const Dim>(m.sizes));
    dims(Span<const Dim>(m.strides));
    out.dim(m.offset);
  }

  void dims(Span<const Dim> list) {
    out.list(list, [&](const Dim &d) { out.dim(d); });
  }

  template <class C> void plain(const C &list) {
    out.list(list, [&](const auto &v) { out.pod(v); });
  }

  void node(const GraphNode &n) {
    out.text(n.op->name);
    out.list(n.results, [&](int32_t r) { out.pod(r); });
    Span<const Arg<GVal>> args = n.args.args();
    out.list(args, [&](const Arg<GVal> &a) { arg(a); });
  }

  void arg(const Arg<GVal> &a) {
    out.pod(a.tag);
    switch (a.tag) {
    case ArgTag::None:
      break;
    case ArgTag::Value:
    case ArgTag::ValueList:
      plain(a.values());
      break;
    case ArgTag::Num:
      number(a.num);
      break;
    case ArgTag::Rng:
      number(a.num);
      out.dim(a.dim);
      break;
    case ArgTag::Dim:
      out.dim(a.dim);
      break;
    case ArgTag::DimList:
      dims(a.dimList());
      break;
    case ArgTag::Int:
    case ArgTag::Bool:
    case ArgTag::Float:
      out.pod(a.i);
      break;
    case ArgTag::IntList:
      plain(a.intList());
      break;
    case ArgTag::Str:
      out.text(std::string(a.str()));
      break;
    case ArgTag::DType:
      out.pod(a.dtype);
      break;
    }
  }

  void number(const Number &n) {
    out.pod(n.category());
    out.pod(numberIndex(n));
    if (!n.ref())
      out.pod(n.rawBits());
  }
};

} // namespace

std::string graphBytes(const Graph &g) {
  GraphWriter w;
  w.out.list(g.values, [&](const TensorMeta &m) { w.meta(m); });
  w.plain(g.inputs);
  w.out.list(g.nodes, [&](const GraphNode &n) { w.node(n); });
  w.out.list(g.outputs, [&](const GraphOutput &o) {
    w.out.pod(o.value);
    w.dims(Span<const Dim>(o.strides));
    w.out.pod(o.writeBack);
  });
  w.out.list(g.numbers, [&](const Number &n) { w.out.pod(n.category()); });
  w.plain(g.symbols);
  return std::move(w.out.bytes);
}

} // namespace dlc
