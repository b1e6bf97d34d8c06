// Encoding recordings, and generalising from two of them.
#include "frontend/compile/Skeleton.h"
#include <cstring>
#include <map>

namespace dlc {
namespace {

class Encoder {
public:
  Skeleton out;
  template <class T> void put(T v) {
    if (used_ + sizeof v > out.bytes.size())
      out.bytes.resize(2 * out.bytes.size() + sizeof v);
    std::memcpy(&out.bytes[used_], &v, sizeof v);
    used_ += sizeof v;
  }
  void text(Str s) {
    put(static_cast<uint32_t>(s.size()));
    for (char c : s)
      put(c);
  }
  void finish() { out.bytes.resize(used_); }
  void number(const Dim &d) { out.numbers.push_back(d.value()); }

  /// What the graph leaves open about its gradient.
  void gradients(const trace::GradLog &log) {
    auto list = [&](Span<const int32_t> values) {
      put(static_cast<uint32_t>(values.size()));
      for (int32_t v : values)
        put(v);
    };
    list(log.roots);
    list(log.inputs);
    put(static_cast<uint32_t>(log.calls.size()));
    for (const trace::GradCall &c : log.calls) {
      put(c.op->id);
      list(c.results);
      put(c.copiesSelf);
      for (bool w : c.wanted)
        put(w);
      for (const GVal &v : c.args.values())
        put(v.id);
    }
  }

  void arg(const Arg<GVal> &a) {
    put(a.tag);
    switch (a.tag) {
    case ArgTag::None:
      break;
    case ArgTag::Value:
    case ArgTag::ValueList:
      put(static_cast<uint32_t>(a.values().size()));
      for (const GVal &v : a.values())
        put(v.id);
      break;
    case ArgTag::Num:
      put(a.num.category());
      if (!a.num.ref()) // a constant is part of the program
        put(a.num.rawBits());
      break;
    case ArgTag::Dim:
      number(a.dim);
      break;
    case ArgTag::DimList:
      put(static_cast<uint32_t>(a.size));
      for (const Dim &d : a.dimList())
        number(d);
      break;
    case ArgTag::Int:
    case ArgTag::Bool:
    case ArgTag::Float:
      put(a.i);
      break;
    case ArgTag::IntList:
      put(static_cast<uint32_t>(a.size));
      for (int64_t v : a.intList())
        put(v);
      break;
    case ArgTag::Str:
      text(a.str());
      break;
    case ArgTag::DType:
      put(a.dtype);
      break;
    case ArgTag::Rng:
      put(numberIndex(a.num));
      break;
    }
  }

private:
  size_t used_ = 0;
};

uint64_t hashBytes(const std::string &s) {
  uint64_t h = 0x9e3779b97f4a7c15ull ^ s.size();
  const char *p = s.data();
  size_t n = s.size();
  auto mix = [&](uint64_t v) {
    __uint128_t m = static_cast<__uint128_t>(h ^ v) * 0xd6e8feb86659fd93ull;
    h = static_cast<uint64_t>(m) ^ static_cast<uint64_t>(m >> 64);
  };
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t v;
    std::memcpy(&v, p, 8);
    mix(v);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, p, n);
  mix(tail + 1);
  return h;
}

bool isRowMajor(const TensorMeta &m) { return m.strides == contiguousStrides(m.sizes); }

/// One column: the values a position took in all samples.
using Column = std::vector<int64_t>;

/// A column as an expression of the symbols' columns, if some simple one fits every sample.
class Fitter {
public:
  explicit Fitter(size_t samples) : samples_(samples) {}

  uint32_t addSymbol(const Column &c) {
    columns_.push_back(c);
    uint32_t k = static_cast<uint32_t>(columns_.size()) - 1;
    exprs_.push_back(Dim::symbol(k, c.back()));
    byColumn_.emplace(c, k);
    return k;
  }
  bool equalSymbol(const Column &c, Dim &out) const {
    auto it = byColumn_.find(c);
    if (it == byColumn_.end())
      return false;
    out = exprs_[it->second];
    return true;
  }
  /// A symbol or the product of two: what a size that was seen with one value only may be.
  bool exact(const Column &c, Dim &out) const {
    if (equalSymbol(c, out))
      return true;
    for (size_t i = 0; i < columns_.size(); ++i)
      for (size_t j = i; j < columns_.size(); ++j)
        if (c == product(i, j)) {
          out = exprs_[i] * exprs_[j];
          return true;
        }
    return false;
  }
  bool fit(const Column &c, Dim &out) const {
    if (equalSymbol(c, out))
      return true;
    for (size_t k = 0; k < columns_.size(); ++k)
      if (scaled(c, columns_[k], exprs_[k], out))
        return true;
    for (size_t i = 0; i < columns_.size(); ++i)
      for (size_t j = i; j < columns_.size(); ++j) {
        Column both = product(i, j);
        if (c == both) {
          out = exprs_[i] * exprs_[j];
          return true;
        }
        if (scaled(c, both, exprs_[i] * exprs_[j], out))
          return true;
      }
    for (size_t k = 0; k < columns_.size(); ++k)
      if (shifted(c, columns_[k], exprs_[k], out))
        return true;
    return false;
  }

private:
  Column product(size_t i, size_t j) const {
    Column both(samples_);
    for (size_t s = 0; s < samples_; ++s)
      both[s] = columns_[i][s] * columns_[j][s];
    return both;
  }
  bool scaled(const Column &c, const Column &base, const Dim &expr, Dim &out) const {
    if (base[0] == 0 || c[0] == 0 || c[0] % base[0] != 0)
      return false;
    int64_t f = c[0] / base[0];
    for (size_t s = 0; s < samples_; ++s)
      if (c[s] != f * base[s])
        return false;
    out = expr * Dim(f);
    return true;
  }
  bool shifted(const Column &c, const Column &base, const Dim &expr, Dim &out) const {
    int64_t d = c[0] - base[0];
    for (size_t s = 0; s < samples_; ++s)
      if (c[s] - base[s] != d)
        return false;
    out = expr + Dim(d);
    return true;
  }
  size_t samples_;
  std::vector<Column> columns_;
  std::vector<Dim> exprs_;
  std::map<Column, uint32_t> byColumn_;
};

} // namespace

Skeleton skeletonOf(const trace::Piece &piece) {
  const Graph &g = piece.graph;
  Encoder e;
  e.out.bytes.resize(64 + g.nodes.size() * 64);
  e.put(static_cast<uint32_t>(g.inputs.size()));
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    const TensorMeta &m = g.values[g.inputs[i]];
    bool rowMajor = isRowMajor(m);
    e.put(m.dtype);
    e.put(static_cast<uint8_t>(m.dim()));
    e.put(static_cast<uint8_t>(rowMajor | (piece.sharedInput[i] ? 2 : 0) | (piece.isState(i) ? 4 : 0)));
    for (const Dim &d : m.sizes)
      e.number(d);
    if (!rowMajor)
      for (const Dim &d : m.strides)
        e.number(d);
  }
  e.out.inputNumbers = e.out.numbers.size();
  for (const GraphNode &n : g.nodes) {
    e.put(n.op->id);
    for (const Arg<GVal> &a : n.args.args())
      e.arg(a);
    e.put(static_cast<uint8_t>(n.results.size()));
  }
  for (const GraphOutput &o : g.outputs) {
    e.put(o.value);
    e.put(o.writeBack);
    bool rowMajor = o.strides == contiguousStrides(g.values[o.value].sizes);
    e.put(rowMajor);
    if (!rowMajor) // an in-place result keeps its tensor's layout, whatever its op would give
      for (const Dim &d : o.strides)
        e.number(d);
  }
  if (!piece.gradients.roots.empty())
    e.gradients(piece.gradients);
  e.finish();
  e.out.hash = hashBytes(e.out.bytes);
  return std::move(e.out);
}

std::vector<Dim> symbolicNumbers(const Graph &g, std::vector<Fact> &facts) {
  std::vector<Dim> out;
  FactSink sink;
  auto concrete = [](const Dims &dims) {
    Dims c;
    for (const Dim &d : dims)
      c.push_back(Dim(d.value()));
    return c;
  };
  auto addStrides = [&](const Dims &strides, const Dims &sizes) {
    if (concrete(strides) == contiguousStrides(concrete(sizes)))
      (void)(strides == contiguousStrides(sizes));
    else
      out.insert(out.end(), strides.begin(), strides.end());
  };
  for (int32_t v : g.inputs) {
    const TensorMeta &m = g.values[v];
    out.insert(out.end(), m.sizes.begin(), m.sizes.end());
    addStrides(m.strides, m.sizes);
  }
  for (const GraphNode &n : g.nodes)
    for (const Arg<GVal> &a : n.args.args()) {
      if (a.tag == ArgTag::Dim)
        out.push_back(a.dim);
      else if (a.tag == ArgTag::DimList)
        out.insert(out.end(), a.dimList().begin(), a.dimList().end());
    }
  for (const GraphOutput &o : g.outputs)
    addStrides(o.strides, g.values[o.value].sizes);
  for (const Fact &f : sink.take())
    facts.push_back(f);
  return out;
}

std::vector<int64_t> Lifting::symbols(const std::vector<int64_t> &numbers) const {
  std::vector<int64_t> s;
  for (uint32_t p : positions)
    s.push_back(numbers[p]);
  return s;
}

bool Lifting::matches(const std::vector<int64_t> &numbers, Ints symbols) const {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (evaluate(forms[i], symbols) != numbers[i])
      return false;
  return true;
}

Lifting staticLifting(const std::vector<int64_t> &numbers) {
  Lifting l;
  l.forms.assign(numbers.begin(), numbers.end());
  return l;
}

int64_t symbolFixedBy(const Fact &fact) {
  if (fact.kind != Fact::Kind::EqZero)
    return -1;
  int64_t symbol = -1;
  for (const DimTerm &t : fact.expr->terms) {
    if (t.factors.empty())
      continue;
    if (symbol >= 0 || t.factors.size() != 1 || t.factors[0]->kind != DimAtom::Kind::Symbol)
      return -1;
    symbol = t.factors[0]->symbol;
  }
  return symbol;
}

Lifting antiUnify(const std::vector<std::vector<int64_t>> &samples, size_t inputNumbers,
                  const std::vector<std::vector<int64_t>> &pinned, const std::vector<LiftHint> &hints) {
  const std::vector<int64_t> &current = samples.back();
  Lifting l;
  Fitter fitter(samples.size());
  l.forms.resize(current.size());
  auto column = [&](size_t i) {
    Column c;
    for (const auto &s : samples)
      c.push_back(s[i]);
    return c;
  };
  auto isPinned = [&](const Column &c) { return std::find(pinned.begin(), pinned.end(), c) != pinned.end(); };
  auto addSymbol = [&](size_t i, const Column &c) {
    l.forms[i] = Dim::symbol(fitter.addSymbol(c), current[i]);
    l.positions.push_back(static_cast<uint32_t>(i));
  };
  bool forced = false;
  for (size_t i = 0; i < hints.size(); ++i) {
    Column c = column(i);
    Dim form(current[i]);
    if (hints[i] != LiftHint::Lift || current[i] < 2 || isPinned(c))
      continue;
    forced = true;
    if (fitter.equalSymbol(c, form))
      l.forms[i] = form;
    else
      addSymbol(i, c);
  }
  for (size_t i = 0; i < current.size(); ++i) {
    LiftHint hint = i < hints.size() ? hints[i] : LiftHint::Auto;
    if (hint == LiftHint::Lift && !l.forms[i].isConst())
      continue;
    Column c = column(i);
    bool agree = std::all_of(c.begin(), c.end(), [&](int64_t v) { return v == c[0]; });
    Dim form(current[i]);
    bool found = hint == LiftHint::Fix || isPinned(c);
    if (!found && agree) {
      if (forced && current[i] > 1)
        fitter.exact(c, form);
      found = true;
    }
    // Inputs' sizes are causes, not consequences: a coincidence between two of them must not become an expression.
    if (!found)
      found = i < inputNumbers ? fitter.equalSymbol(c, form) : fitter.fit(c, form);
    if (found)
      l.forms[i] = form;
    else
      addSymbol(i, c);
  }
  return l;
}

std::vector<LiftHint> liftHints(const trace::Piece &piece, bool all) {
  std::vector<LiftHint> hints;
  bool any = false;
  for (size_t i = 0; i < piece.marks.size(); ++i) {
    const TensorMeta &m = piece.graph.values[piece.graph.inputs[i]];
    const trace::DimMarks &marks = piece.marks[i];
    for (size_t d = 0; d < m.sizes.size(); ++d) {
      bool fix = d < 32 && (marks.fixed >> d & 1), lift = d < 32 && (marks.dynamic >> d & 1);
      fix |= marks.parameter && !lift;
      hints.push_back(fix ? LiftHint::Fix : lift || all ? LiftHint::Lift : LiftHint::Auto);
      any |= hints.back() != LiftHint::Auto && !marks.parameter;
    }
    if (!isRowMajor(m))
      hints.insert(hints.end(), m.sizes.size(), marks.parameter ? LiftHint::Fix : LiftHint::Auto);
  }
  if (!any)
    hints.clear();
  return hints;
}

Graph liftGraph(const trace::Piece &piece, const Lifting &lifting, std::vector<Fact> &facts) {
  const Graph &g = piece.graph;
  std::vector<TensorMeta> metas;
  size_t at = 0;
  for (int32_t v : g.inputs) {
    TensorMeta m = g.values[v];
    bool rowMajor = isRowMajor(m);
    for (Dim &d : m.sizes)
      d = lifting.forms[at++];
    if (rowMajor)
      m.strides = contiguousStrides(m.sizes);
    else
      for (Dim &d : m.strides)
        d = lifting.forms[at++];
    metas.push_back(std::move(m));
  }
  std::vector<Dim> dims(lifting.forms.begin() + at, lifting.forms.end());
  std::vector<int64_t> hints;
  for (uint32_t p : lifting.positions)
    hints.push_back(lifting.forms[p].value());
  FactSink sink;
  Graph out = retype(g, metas, dims, hints);
  facts = sink.take();
  return out;
}

} // namespace dlc
