// Finding repetition: equal keys at equal distances, then a comparison of the steps one by one.
#include "frontend/compile/Runs.h"
#include "runtime/op/Ops.h"
#include <unordered_map>
#include <utility>

namespace dlc {

namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  __uint128_t m = static_cast<__uint128_t>(h ^ v ^ 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
  return static_cast<uint64_t>(m) ^ static_cast<uint64_t>(m >> 64);
}

bool sameType(const TensorMeta &a, const TensorMeta &b) {
  if (a.dtype != b.dtype || a.sizes.size() != b.sizes.size())
    return false;
  for (size_t i = 0; i < a.sizes.size(); ++i)
    if (a.sizes[i].value() != b.sizes[i].value())
      return false;
  return true;
}

/// Per value, the first one of its dtype and sizes, and a hash of these.
void findTypes(const Graph &g, std::vector<int32_t> &type, std::vector<uint64_t> &hashes) {
  type.resize(g.values.size());
  hashes.resize(g.values.size());
  std::unordered_map<uint64_t, int32_t> known;
  for (size_t v = 0; v < g.values.size(); ++v) {
    const TensorMeta &m = g.values[v];
    uint64_t h = static_cast<uint64_t>(m.dtype);
    for (const Dim &d : m.sizes)
      h = mix(h, d.value());
    hashes[v] = h;
    int32_t first = known.try_emplace(h, static_cast<int32_t>(v)).first->second;
    type[v] = sameType(g.values[first], m) ? first : static_cast<int32_t>(v);
  }
}

} // namespace

Producers::Producers(const Graph &g) : node(g.values.size(), -1), result(g.values.size(), 0) {
  findTypes(g, type, typeHash);
  operands.reserve(3 * g.nodes.size());
  first.reserve(g.nodes.size() + 1);
  kind.reserve(g.nodes.size());
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    prefetchArgs(g, n);
    Span<const GVal> read = g.nodes[n].args.values();
    first.push_back(static_cast<uint32_t>(operands.size()));
    operands.insert(operands.end(), read.begin(), read.end());
    kind.push_back(g.nodes[n].op->kind);
    for (size_t r = 0; r < g.nodes[n].results.size(); ++r) {
      node[g.nodes[n].results[r]] = static_cast<int32_t>(n);
      result[g.nodes[n].results[r]] = static_cast<uint8_t>(r);
    }
  }
  first.push_back(static_cast<uint32_t>(operands.size()));
}

namespace {

constexpr size_t kMaxPeriod = 20000;
constexpr size_t kMaxKnown = 32;
/// Ops of a body that is nothing but elementwise, and of the shortest such loop.
constexpr size_t kPointwiseBody = 64, kPointwiseLoop = 400;
/// A body of more ops is searched for loops inside.
constexpr size_t kMaxBody = 400;
/// Attempts to roll one stretch at different starts.
constexpr int kMaxRefusals = 4;
/// A body of this size is rolled for two steps beside a loop, and known again.
constexpr size_t kLongBody = 8;
/// Steps that make a loop of inputs that differ in each step (layers of a network) worth rolling.
constexpr size_t kManySteps = 64;

/// Everything about a node that doesn't depend on where its operands come from or which place of them it reads.
uint64_t keyOf(const Producers &from, const GraphNode &n) {
  uint64_t h = mix(n.op->id, n.loc);
  for (const Arg<GVal> &a : n.args.args()) {
    h = mix(h, static_cast<uint64_t>(a.tag));
    switch (a.tag) {
    case ArgTag::Value:
    case ArgTag::ValueList:
      h = mix(h, a.values().size());
      break;
    case ArgTag::Num:
      h = mix(h, static_cast<uint64_t>(a.num.category()) ^ (a.num.ref() ? 0 : a.num.rawBits() + 1));
      break;
    case ArgTag::DimList:
      h = mix(h, a.size);
      break;
    case ArgTag::Int:
    case ArgTag::Bool:
    case ArgTag::Float:
      h = mix(h, a.i);
      break;
    case ArgTag::IntList:
      for (int64_t v : a.intList())
        h = mix(h, v);
      break;
    case ArgTag::Str:
      for (char c : a.str())
        h = mix(h, c);
      break;
    case ArgTag::DType:
      h = mix(h, static_cast<uint64_t>(a.dtype));
      break;
    default:
      break;
    }
  }
  for (int32_t v : n.results)
    h = mix(h, from.typeHash[v]);
  return h;
}

/// The arguments agree but for values, Dims and the values of number operands.
bool sameStatics(const Arg<GVal> &a, const Arg<GVal> &b) {
  if (a.tag != b.tag)
    return false;
  switch (a.tag) {
  case ArgTag::Value:
  case ArgTag::ValueList:
    return a.values().size() == b.values().size();
  case ArgTag::Num:
    return a.num.category() == b.num.category() && !a.num.ref() == !b.num.ref() &&
           (a.num.ref() || a.num.rawBits() == b.num.rawBits());
  case ArgTag::DimList:
    return a.size == b.size;
  case ArgTag::Int:
  case ArgTag::Bool:
  case ArgTag::Float:
    return a.i == b.i;
  case ArgTag::IntList:
    return equal(a.intList(), b.intList());
  case ArgTag::Str:
    return a.str() == b.str();
  case ArgTag::DType:
    return a.dtype == b.dtype;
  default:
    return true;
  }
}

bool sameDims(const Arg<GVal> &a, const Arg<GVal> &b) {
  if (a.tag == ArgTag::Dim)
    return a.dim.value() == b.dim.value();
  if (a.tag == ArgTag::DimList)
    for (size_t i = 0; i < a.size; ++i)
      if (a.dims[i].value() != b.dims[i].value())
        return false;
  return true;
}

/// A group of equal steps as it grows.
struct Group {
  size_t first = 0, steps = 1; // steps of the run
  std::vector<bool> dimsVary;  // per position
  std::vector<bool> varies;    // per operand from outside, in order of occurrence
  std::vector<bool> walked;    // per operand from outside: an input in every step
  std::vector<bool> carried;   // per operand from outside: made by the step before, but for the first
};

class RunFinder {
public:
  RunFinder(const Graph &g, const Producers &producers, KnownBodies &known, bool mayLift)
      : g_(g), from_(producers), known_(known), mayLift_(mayLift), keys_(g.nodes.size()), prefix_(g.nodes.size() + 1),
        next_(g.nodes.size(), -1) {
    std::unordered_map<uint64_t, int32_t> last;
    for (size_t n = 0; n < g.nodes.size(); ++n) {
      prefetchArgs(g, n);
      keys_[n] = keyOf(producers, g.nodes[n]);
      prefix_[n + 1] = prefix_[n] * kBase + keys_[n];
      auto [it, fresh] = last.try_emplace(keys_[n], static_cast<int32_t>(n));
      if (!fresh) {
        next_[it->second] = static_cast<int32_t>(n);
        it->second = static_cast<int32_t>(n);
      }
    }
  }

  std::vector<Run> find() {
    scan(0, g_.nodes.size(), false);
    if (runs_.empty())
      return {};
    // Beside a loop, others of about as many steps are its companions, however small.
    std::vector<Run> strong = std::move(runs_);
    findOrigins(strong);
    runs_.clear();
    size_t at = 0;
    for (Run &r : strong) {
      scan(at, r.start, true);
      at = r.end();
      runs_.push_back(std::move(r));
    }
    scan(at, g_.nodes.size(), true);
    for (Run &r : runs_) {
      r.hash = windowHash(r.start, r.period);
      if (r.period >= kLongBody && !r.pointwise)
        remember(r);
    }
    return std::move(runs_);
  }

private:
  static constexpr uint64_t kBase = 0x9e3779b97f4a7c15ull | 1;

  uint64_t windowHash(size_t at, size_t period) const {
    uint64_t power = 1, base = kBase;
    for (size_t e = period; e; e >>= 1, base *= base)
      if (e & 1)
        power *= base;
    return prefix_[at + period] - prefix_[at] * power;
  }

  void remember(const Run &r) {
    uint64_t hash = windowHash(r.start, r.period);
    for (const KnownBodies::Body &b : known_.bodies)
      if (b.period == r.period && b.hash == hash)
        return;
    if (known_.bodies.size() >= kMaxKnown)
      known_.bodies.erase(known_.bodies.begin());
    known_.bodies.push_back({r.period, hash, r.hoisted});
  }

  /// Runs in [from, to). With `weak`, those that only pay beside others.
  void scan(size_t from, size_t to, bool weak) {
    ends_.clear();
    for (size_t i = from; i < to;) {
      size_t end = knownAt(i, to);
      if (end == i)
        end = best(i, to, weak);
      i = std::max(end, i + 1);
    }
  }

  size_t knownAt(size_t i, size_t to) {
    for (const KnownBodies::Body &b : known_.bodies) {
      size_t steps = 0;
      while (i + (steps + 1) * b.period <= to && windowHash(i + steps * b.period, b.period) == b.hash)
        ++steps;
      if (steps)
        if (size_t end = accept(i, b.period, steps, &b, false); end > i)
          return end;
    }
    return i;
  }

  /// A body as long as this is mostly loops, if it has any: they are rolled, and it is not. The end of the body, or
  /// `i`.
  size_t insideOut(size_t i, size_t period, bool weak) {
    std::unordered_map<size_t, Match> outer = std::exchange(ends_, {});
    size_t known = runs_.size(), covered = 0;
    scan(i, i + period, weak);
    ends_ = std::move(outer);
    for (size_t r = known; r < runs_.size(); ++r)
      covered += runs_[r].end() - runs_[r].start;
    if (covered >= period / 2)
      return i + period;
    runs_.resize(known);
    return i;
  }

  /// How far the keys from `i` repeat at distance `period`.
  size_t matched(size_t i, size_t period, size_t to) {
    Match &m = ends_[period];
    if (m.end > i)
      return m.end - i;
    size_t j = i;
    while (j + period < to && keys_[j] == keys_[j + period])
      ++j;
    m = {j, 0};
    return j - i;
  }

  size_t best(size_t i, size_t to, bool weak) {
    size_t period = 0, steps = 0;
    int tries = 0;
    for (int32_t k = next_[i]; k >= 0 && static_cast<size_t>(k) < to && tries < 24; k = next_[k], ++tries) {
      size_t p = static_cast<size_t>(k) - i;
      if (p > kMaxPeriod)
        break;
      size_t n = matched(i, p, to) / p + 1;
      if (ends_[p].refused >= kMaxRefusals && ends_[p].end > i)
        continue;
      if (n < 2 || (!weak && n < 3 && p < kLongBody) || 2 * n * p <= 3 * steps * period)
        continue;
      period = p;
      steps = n;
    }
    if (!steps)
      return i;
    if (period > kMaxBody)
      if (size_t end = insideOut(i, period, weak); end > i)
        return end;
    size_t end = accept(i, period, steps, nullptr, weak);
    ends_[period].refused += end == i;
    return end;
  }

  /// Compares the steps in full; takes the groups of equal ones that are worth it. Returns the end of the last group
  /// taken, or `start`.
  size_t accept(size_t start, size_t period, size_t steps, const KnownBodies::Body *known, bool weak) {
    size_t end = start;
    for (size_t k = 0; k < steps;) {
      Group group;
      group.first = k;
      group.dimsVary.assign(period, false);
      while (k + group.steps < steps && joins(group, start, period, k + group.steps))
        ++group.steps;
      Run r{start + k * period, period, group.steps, std::vector<Hoisted>(period, Hoisted::No)};
      hoist(r, group, known);
      if (pays(r, group, known, weak)) {
        end = r.end();
        take(std::move(r));
      }
      k += group.steps;
    }
    return end;
  }

  /// Elementwise steps are one kernel, which reads and writes the memory of all that is carried: several steps make a
  /// body, and those that are left over a loop of single ones.
  void take(Run r) {
    size_t together = r.pointwise ? (kPointwiseBody + r.period - 1) / r.period : 1;
    if (together < 2 || r.steps < 3 * together) {
      runs_.push_back(std::move(r));
      return;
    }
    Run many{r.start, r.period * together, r.steps / together, {}};
    Run rest{many.end(), r.period, r.steps % together, r.hoisted};
    rest.pointwise = many.pointwise = true;
    many.dimsVary = rest.dimsVary = r.dimsVary;
    for (size_t k = 0; k < together; ++k)
      many.hoisted.insert(many.hoisted.end(), r.hoisted.begin(), r.hoisted.end());
    for (size_t j = 0; j < many.period; ++j)
      if (many.hoisted[j] != Hoisted::No && inner(from_.of(r.start + j)[0].id, r.start) >= 0) {
        runs_.push_back(std::move(r)); // moves through something that the step before makes
        return;
      }
    runs_.push_back(std::move(many));
    if (rest.steps)
      runs_.push_back(std::move(rest));
  }

  /// Where an operand comes from: position and result inside the step, or -1.
  int64_t inner(int32_t v, size_t stepStart) const {
    int64_t at = from_.node[v] - static_cast<int64_t>(stepStart);
    return at < 0 ? -1 : at * 256 + from_.result[v];
  }

  bool joins(Group &group, size_t start, size_t period, size_t step) {
    size_t a = start + group.first * period, b = start + step * period, e = 0;
    for (size_t j = 0; j < period; ++j)
      if (!sameNode(group, a, b, j, e))
        return false;
    return true;
  }

  bool sameNode(Group &group, size_t a, size_t b, size_t j, size_t &e) {
    prefetchArgs(g_, b + j);
    const GraphNode &x = g_.nodes[a + j], &y = g_.nodes[b + j];
    Span<const Arg<GVal>> p = x.args.args(), q = y.args.args();
    if (x.op != y.op || p.size() != q.size() || x.results.size() != y.results.size())
      return false;
    for (size_t i = 0; i < p.size(); ++i) {
      if (!sameStatics(p[i], q[i]))
        return false;
      if (!sameDims(p[i], q[i]))
        group.dimsVary[j] = true;
    }
    Span<const GVal> v = from_.of(a + j), w = from_.of(b + j);
    for (size_t k = 0; k < v.size(); ++k)
      if (!sameOperand(group, a, b, v[k].id, w[k].id, e))
        return false;
    for (size_t r = 0; r < x.results.size(); ++r)
      if (from_.type[x.results[r]] != from_.type[y.results[r]])
        return false;
    return true;
  }

  bool sameOperand(Group &group, size_t a, size_t b, int32_t v, int32_t w, size_t &e) {
    if (v < 0 || w < 0)
      return v == w;
    int64_t from = inner(v, a);
    if (from != inner(w, b))
      return false;
    if (from >= 0)
      return true;
    if (e == group.varies.size()) {
      group.varies.push_back(false);
      group.walked.push_back(from_.node[v] < 0);
      group.carried.push_back(true);
    }
    group.varies[e] = group.varies[e] || v != w;
    group.walked[e] = group.walked[e] && from_.node[w] < 0;
    group.carried[e] = group.carried[e] && from_.node[w] >= static_cast<int64_t>(b - (b - a) / group.steps);
    ++e;
    return from_.type[v] == from_.type[w];
  }

  /// Decides what the driver does between steps. What varies in other ways becomes a symbol of the step's code.
  void hoist(Run &r, const Group &group, const KnownBodies::Body *known) const {
    for (size_t j = 0; j < r.period; ++j) {
      if (!group.dimsVary[j] && !(known && known->hoisted[j] != Hoisted::No))
        continue;
      const GraphNode &n = g_.nodes[r.start + j];
      bool free = from_.of(r.start + j).size() && outside(r, from_.of(r.start + j)[0].id);
      if (free && n.op->kind == OpKind::View && n.op != &opInfo(OpId::AsStrided))
        r.hoisted[j] = Hoisted::View;
      else if (free && n.op == &opInfo(OpId::AsStridedScatter) && !readInStep(r, j))
        r.hoisted[j] = Hoisted::Scatter;
      else
        r.dimsVary = true;
    }
  }

  bool readInStep(const Run &r, size_t j) const {
    int32_t v = g_.nodes[r.start + j].results[0];
    for (size_t k = j + 1; k < r.period; ++k)
      for (const GVal &w : from_.of(r.start + k))
        if (w.id == v)
          return true;
    return false;
  }

  /// Not computed by the compiled step of the run's first step.
  bool outside(const Run &r, int32_t v) const {
    int64_t from = v < 0 ? -1 : inner(v, r.start);
    return from < 0 || r.hoisted[from / 256] == Hoisted::View;
  }

  /// Whether rolling is worth what it costs: steps are not fused with each other and their results go through memory.
  bool pays(Run &r, const Group &group, bool isKnown, bool weak) const {
    bool work = false, sameMatrix = false;
    std::vector<bool> fixed(r.period); // a view of something that no step changes
    size_t e = 0, walked = 0;
    for (size_t j = 0; j < r.period; ++j) {
      OpKind kind = from_.kind[r.start + j];
      bool anyFixed = false;
      for (const GVal &v : from_.of(r.start + j)) {
        if (v.id < 0)
          continue;
        int64_t from = inner(v.id, r.start);
        if (from >= 0) {
          anyFixed |= fixed[from / 256];
        } else if (r.steps > 1) {
          anyFixed |= !group.varies[e];
          walked += group.varies[e] && group.walked[e];
          ++e;
        }
      }
      fixed[j] = anyFixed && kind == OpKind::View;
      work |= kind != OpKind::View && kind != OpKind::Elementwise && kind != OpKind::Creation;
      sameMatrix |= anyFixed && kind == OpKind::Contraction;
    }
    r.pointwise = !work;
    if (writtenBackEarly(r) || allViews(r) || (r.dimsVary && !mayLift_))
      return false;
    if (isKnown)
      return true;
    if (weak)
      return r.steps >= (r.period >= kLongBody ? 2 : 3) && walksLoop(r);
    size_t saved = (r.steps - 1) * r.period;
    bool recurrent = std::find(group.carried.begin(), group.carried.end(), true) != group.carried.end();
    if (r.steps == 2)
      return sameMatrix && recurrent && r.period >= kLongBody;
    if (r.steps < 2 || (walked > 1 && !sameMatrix && r.steps < kManySteps))
      return false;
    return saved >= (sameMatrix ? 10 : work ? 60 : kPointwiseLoop);
  }

  /// Which step of which run a value comes from, through views.
  void findOrigins(const std::vector<Run> &runs) {
    origin_.assign(g_.values.size(), {-1, -1});
    for (size_t k = 0; k < runs.size(); ++k)
      for (size_t n = runs[k].start; n < runs[k].end(); ++n)
        for (int32_t v : g_.nodes[n].results)
          origin_[v] = {static_cast<int32_t>(k), static_cast<int32_t>((n - runs[k].start) / runs[k].period)};
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      if (from_.kind[n] == OpKind::View && origin_[g_.nodes[n].results[0]].run < 0)
        origin_[g_.nodes[n].results[0]] = origin_[from_.of(n)[0].id];
  }

  /// Each step reads what one step of a loop made, the next or the one before at the next step.
  bool walksLoop(const Run &r) const {
    for (size_t j = 0; j < r.period; ++j)
      for (size_t a = 0; a < from_.of(r.start + j).size(); ++a) {
        int64_t stride = 0;
        bool walks = true;
        for (size_t k = 0; k + 1 < r.steps && walks; ++k) {
          int32_t v = from_.of(r.start + j + k * r.period)[a].id;
          int32_t w = from_.of(r.start + j + (k + 1) * r.period)[a].id;
          if (v < 0 || w < 0 || origin_[v].run < 0 || origin_[v].run != origin_[w].run)
            walks = false;
          else
            stride = k == 0 ? origin_[w].step - origin_[v].step : stride;
          walks = walks && origin_[w].step - origin_[v].step == stride && (stride == 1 || stride == -1);
        }
        if (walks)
          return true;
      }
    return false;
  }

  bool allViews(const Run &r) const {
    for (size_t j = 0; j < r.period; ++j)
      if (from_.kind[r.start + j] != OpKind::View)
        return false;
    return true;
  }

  /// A step before the last makes the new value of an input: a loop over the parameters of an optimizer.
  bool writtenBackEarly(const Run &r) const {
    for (const GraphOutput &o : g_.outputs)
      if (int64_t n = from_.node[o.value];
          o.writeBack >= 0 && n >= static_cast<int64_t>(r.start) && n < static_cast<int64_t>(r.end() - r.period))
        return true;
    return false;
  }

  const Graph &g_;
  const Producers &from_;
  KnownBodies &known_;
  bool mayLift_;
  std::vector<uint64_t> keys_, prefix_;
  std::vector<int32_t> next_; // the next node of the same key
  /// Nodes in front of `end` match at a distance; how often a run of them was not worth rolling.
  struct Match {
    size_t end = 0;
    int refused = 0;
  };
  std::unordered_map<size_t, Match> ends_; // by distance
  struct Origin {
    int32_t run, step;
  };
  std::vector<Origin> origin_; // per value
  std::vector<Run> runs_;
};

} // namespace

std::vector<Run> findRuns(const Graph &g, const Producers &producers, KnownBodies &known, bool mayLift) {

  return RunFinder(g, producers, known, mayLift).find();
}

} // namespace dlc
