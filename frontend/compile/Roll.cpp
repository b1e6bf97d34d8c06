// Cutting a recording at its loops. What stands between parts is done by the driver: views that only loops read, and
// ops over lists of the steps' values (the `cat` of a stack), so that no part depends on the number of steps.
#include "frontend/compile/Roll.h"
#include "frontend/compile/Hoist.h"
#include "runtime/op/Ops.h"
#include <map>
#include <unordered_map>

namespace dlc {
namespace {

/// A straight part of more ops is cut: compiling it takes longer than it will ever save.
constexpr size_t kMaxPart = 50000;

Dims rowMajorStrides(const TensorMeta &m) { return contiguousStrides(m.sizes); }

bool sameStrides(const TensorMeta &m, const Dims &a, const Dims &b) {
  for (size_t i = 0; i < m.sizes.size(); ++i)
    if (m.sizes[i].value() > 1 && a[i].value() != b[i].value())
      return false;
  return true;
}

/// The layout that a part gives a result: the recorded one if it is dense.
Dims denseStrides(const TensorMeta &m, const Dims &strides) {
  SmallVec<size_t> order;
  for (size_t i = 0; i < m.sizes.size(); ++i)
    if (m.sizes[i].value() != 1)
      order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a].value() < strides[b].value(); });
  int64_t expected = 1;
  for (size_t i : order) {
    if (strides[i].value() != expected)
      return rowMajorStrides(m);
    expected *= m.sizes[i].value();
  }
  return sameStrides(m, strides, rowMajorStrides(m)) ? rowMajorStrides(m) : strides;
}

/// What a node is part of.
struct Place {
  int32_t part = -1; // -1: the driver makes it
  uint32_t step = 0;
  bool operator==(const Place &o) const { return part == o.part && step == o.step; }
};

class Roller {
public:
  /// `graph`: the piece's, or what stands for it.
  Roller(const trace::Piece &piece, const Graph &graph, const Producers &producers, const std::vector<Run> &runs)
      : piece_(piece), g_(graph), from_(producers), runs_(runs), places_(g_.nodes.size()), runOf_(g_.nodes.size(), -1),
        used_(g_.values.size()), strides_(g_.values.size(), nullptr) {}

  /// `lists`: nodes over values of many steps, beside those that are found. `alone`: nodes that are a part each.
  RolledGraph roll(const std::vector<size_t> &lists, const std::vector<size_t> &alone) {
    isAlone_.assign(g_.nodes.size(), false);
    for (size_t n : alone)
      isAlone_[n] = true;
    out_.numValues = g_.values.size();
    out_.inputs = g_.inputs;
    out_.outputs = g_.outputs;
    out_.viewOf.assign(g_.values.size(), -1);
    for (size_t r = 0; r < runs_.size(); ++r)
      std::fill(runOf_.begin() + runs_[r].start, runOf_.begin() + runs_[r].end(), static_cast<int32_t>(r));
    findLists();
    for (size_t n : lists)
      isList_[n] = true;
    findViews();
    cut();
    findUses();
    layOut();
    for (const Cut &c : cuts_)
      build(c);
    writeInLastPart();
    findLastUses();
    out_.placeLoops();
    return std::move(out_);
  }

private:
  /// A part before it is built.
  struct Cut {
    std::vector<size_t> nodes; // of the first step
    size_t steps = 1, period = 0;
    bool eager = false, dimsVary = false;
    std::vector<size_t> scatters;                   // nodes of the first step that the driver does after it
    std::vector<std::pair<size_t, size_t>> results; // node in the step, result: outputs of the part
  };

  bool driverMakes(size_t n) const { return out_.viewOf[g_.nodes[n].results[0]] >= 0; }

  //===--- Who does what ---===//

  /// Nodes that read the values of many steps in a list.
  void findLists() {
    std::vector<int32_t> loop(g_.values.size(), -1), step(g_.values.size(), -1);
    isList_.assign(g_.nodes.size(), false);
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      const GraphNode &node = g_.nodes[n];
      if (runOf_[n] >= 0) {
        const Run &r = runs_[runOf_[n]];
        for (int32_t v : node.results) {
          loop[v] = runOf_[n];
          step[v] = static_cast<int32_t>((n - r.start) / r.period);
        }
      } else if (from_.kind[n] == OpKind::View) {
        int32_t of = from_.of(n)[0].id;
        loop[node.results[0]] = loop[of];
        step[node.results[0]] = step[of];
      } else {
        isList_[n] = eagerList(node, loop, step);
      }
    }
  }

  bool eagerList(const GraphNode &n, const std::vector<int32_t> &loop, const std::vector<int32_t> &step) const {
    bool many = false;
    for (const Arg<GVal> &a : n.args.args()) {
      if (a.tag == ArgTag::Rng || (a.tag == ArgTag::Num && a.num.ref()))
        return false;
      int32_t first = -1;
      if (a.tag == ArgTag::ValueList)
        for (const GVal &v : a.values()) {
          if (v.id < 0)
            return false;
          if (loop[v.id] < 0)
            continue;
          many |= first >= 0 && (loop[first] != loop[v.id] || step[first] != step[v.id]);
          first = v.id;
        }
    }
    return many && n.op->kernel && !n.op->has(kMutates) && n.results.size() == 1;
  }

  /// Views of loop bodies that the driver makes, and views outside of loops that only loops and lists read.
  void findViews() {
    std::vector<bool> read(g_.values.size()), byPart(g_.values.size());
    for (const GraphOutput &o : g_.outputs)
      byPart[o.value] = true;
    std::vector<bool> view(g_.nodes.size());
    for (size_t n = g_.nodes.size(); n-- > 0;) {
      const GraphNode &node = g_.nodes[n];
      bool inLoop = runOf_[n] >= 0;
      if (inLoop) {
        const Run &r = runs_[runOf_[n]];
        view[n] = r.hoisted[(n - r.start) % r.period] != Hoisted::No;
      } else if (from_.kind[n] == OpKind::View && node.op != &opInfo(OpId::AsStrided)) {
        view[n] = read[node.results[0]] && !byPart[node.results[0]];
      }
      for (const GVal &v : from_.of(n))
        if (v.id >= 0) {
          read[v.id] = true;
          byPart[v.id] = byPart[v.id] || !(inLoop || isList_[n] || view[n]);
        }
    }
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      if (view[n]) {
        out_.viewOf[g_.nodes[n].results[0]] = static_cast<int32_t>(out_.views.size());
        bool scatter = g_.nodes[n].op == &opInfo(OpId::AsStridedScatter);
        Span<const GVal> operands = from_.of(n);
        out_.views.push_back({g_.nodes[n].results[0], operands[0].id, scatter ? operands[1].id : -1, {}, {}, 0});
      }
  }

  void cut() {
    bool open = false; // the last part takes more straight nodes
    for (size_t n = 0; n < g_.nodes.size();) {
      if (runOf_[n] >= 0) {
        cutLoop(runs_[runOf_[n]]);
        n = runs_[runOf_[n]].end();
        open = false;
        continue;
      }
      if (!driverMakes(n)) {
        if (!open || isList_[n] || isAlone_[n] || cuts_.back().nodes.size() >= kMaxPart)
          cuts_.emplace_back();
        open = !isList_[n] && !isAlone_[n];
        cuts_.back().eager = isList_[n];
        cuts_.back().nodes.push_back(n);
        places_[n] = {static_cast<int32_t>(cuts_.size()) - 1, 0};
      }
      ++n;
    }
  }

  void cutLoop(const Run &r) {
    Cut c;
    c.steps = r.steps;
    c.period = r.period;
    c.dimsVary = r.dimsVary;
    for (size_t j = 0; j < r.period; ++j) {
      if (r.hoisted[j] == Hoisted::Scatter)
        c.scatters.push_back(r.start + j);
      if (r.hoisted[j] != Hoisted::No)
        continue;
      c.nodes.push_back(r.start + j);
      for (size_t k = 0; k < r.steps; ++k)
        places_[r.start + k * r.period + j] = {static_cast<int32_t>(cuts_.size()), static_cast<uint32_t>(k)};
    }
    cuts_.push_back(std::move(c));
  }

  //===--- What crosses between parts, and how it lies in memory ---===//

  void findUses() {
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      for (const GVal &v : from_.of(n))
        if (v.id >= 0 && from_.node[v.id] >= 0 && (places_[n].part < 0 || !(places_[from_.node[v.id]] == places_[n])))
          used_[v.id] = true;
    for (const GraphOutput &o : g_.outputs)
      used_[o.value] = true;
    for (Cut &c : cuts_)
      for (size_t i = 0; i < c.nodes.size(); ++i)
        for (size_t r = 0; r < g_.nodes[c.nodes[i]].results.size(); ++r) {
          bool any = false;
          for (size_t k = 0; k < c.steps && !any; ++k)
            any = used_[g_.nodes[c.nodes[i] + k * c.period].results[r]];
          if (any)
            c.results.push_back({i, r});
        }
  }

  const Dims &stridesOf(int32_t v) const { return strides_[v] ? *strides_[v] : g_.values[v].strides; }
  void setStrides(int32_t v, const Dims &s) {
    kept_.push_back(std::make_unique<Dims>(s));
    strides_[v] = kept_.back().get();
  }

  /// Layouts of what parts make and of the driver's views.
  void layOut() {
    for (const Cut &c : cuts_)
      for (auto [i, r] : c.results) {
        size_t last = c.nodes[i] + (c.steps - 1) * c.period;
        int32_t ref = g_.nodes[last].results[r];
        Dims strides = denseStrides(g_.values[ref], g_.values[ref].strides);
        for (size_t k = 0; k < c.steps; ++k) {
          int32_t v = g_.nodes[c.nodes[i] + k * c.period].results[r];
          if (strides != g_.values[v].strides)
            setStrides(v, strides);
        }
      }
    for (RolledView &v : out_.views)
      v.source >= 0 ? layOutScatter(v) : layOutView(v);
  }

  void layOutView(RolledView &v) {
    const GraphNode &n = g_.nodes[from_.node[v.value]];
    TensorMeta self = g_.values[v.base];
    self.strides = stridesOf(v.base);
    self.offset = 0;
    SmallVec<Arg<TensorMeta>, 12> args;
    for (const Arg<GVal> &a : n.args.args()) {
      Arg<TensorMeta> m;
      m.tag = a.tag;
      m.dtype = a.dtype;
      m.size = a.size;
      m.i = a.i;
      m.num = a.num;
      m.dim = a.dim;
      if (a.tag == ArgTag::Value)
        m.value = &self;
      args.push_back(m);
    }
    MetaResult result;
    n.op->meta(Span<const Arg<TensorMeta>>(args.data(), args.size()), result);
    const TensorMeta &m = result.outs[0];
    for (size_t d = 0; d < m.sizes.size(); ++d) {
      v.sizes.push_back(m.sizes[d].value());
      v.strides.push_back(m.strides[d].value());
    }
    v.offset = m.offset.value();
    if (m.strides != g_.values[v.value].strides)
      setStrides(v.value, m.strides);
  }

  void layOutScatter(RolledView &v) {
    Span<const Arg<GVal>> args = g_.nodes[from_.node[v.value]].args.args();
    for (const Dim &d : args[2].dimList())
      v.sizes.push_back(d.value());
    for (const Dim &d : args[3].dimList())
      v.strides.push_back(d.value());
    v.offset = args[4].isNone() ? 0 : args[4].dim.value();
    setStrides(v.value, rowMajorStrides(g_.values[v.value]));
  }

  //===--- Building a part ---===//

  /// The operands from outside, step by step in order of occurrence, become inputs: equal columns share one.
  struct Columns {
    std::vector<int32_t> values; // steps x width
    size_t width = 0;
    std::vector<uint32_t> inputOf; // per column
    std::vector<uint32_t> firsts;  // per input: a column of it
  };

  bool isInner(size_t n, int32_t v) const {
    return v >= 0 && from_.node[v] >= 0 && places_[from_.node[v]] == places_[n];
  }

  Columns columnsOf(const Cut &c) const {
    Columns out;
    for (size_t k = 0; k < c.steps; ++k)
      for (size_t n : c.nodes)
        for (const GVal &v : from_.of(n + k * c.period))
          if (v.id >= 0 && !isInner(n + k * c.period, v.id))
            out.values.push_back(v.id);
    out.width = out.values.size() / c.steps;
    std::map<std::vector<int32_t>, uint32_t> known;
    std::vector<int32_t> column(c.steps);
    for (size_t e = 0; e < out.width; ++e) {
      for (size_t k = 0; k < c.steps; ++k)
        column[k] = out.values[k * out.width + e];
      auto [it, fresh] = known.try_emplace(column, static_cast<uint32_t>(out.firsts.size()));
      if (fresh)
        out.firsts.push_back(static_cast<uint32_t>(e));
      out.inputOf.push_back(it->second);
    }
    return out;
  }

  void build(const Cut &c) {
    if (c.results.empty() && c.scatters.empty())
      return;
    out_.parts.emplace_back();
    RolledPart &part = out_.parts.back();
    part.kind = c.eager ? RolledPart::Kind::Eager : RolledPart::Kind::Piece;
    part.steps = c.steps;
    Columns columns = columnsOf(c);
    Graph &graph = part.piece.graph;
    bool changed = addInputs(part, columns);
    std::unordered_map<int32_t, int32_t> local; // values of the last step
    size_t e = 0;
    for (size_t n : c.nodes)
      addNode(graph, g_.nodes[n + (c.steps - 1) * c.period], local, columns, e, changed);
    for (auto [i, r] : c.results) {
      int32_t v = g_.nodes[c.nodes[i] + (c.steps - 1) * c.period].results[r];
      graph.outputs.push_back({local.at(v), stridesOf(v), -1});
    }
    for (size_t k = 0; k < c.steps; ++k) {
      for (auto [i, r] : c.results)
        part.out.push_back(g_.nodes[c.nodes[i] + k * c.period].results[r]);
      for (size_t n : c.nodes)
        addNumbers(part, g_.nodes[n + k * c.period]);
      if (c.dimsVary)
        for (size_t n : c.nodes)
          addDims(part, g_.nodes[n + k * c.period]);
      for (size_t n : c.scatters)
        part.scattered.push_back(g_.nodes[n + k * c.period].results[0]);
    }
    part.numScattered = c.scatters.size();
    if (c.eager)
      listInputs(part, columns);
  }

  /// A straight last part writes its results to the inputs itself: nothing runs after it that could fail or read them.
  void writeInLastPart() {
    if (out_.parts.empty() || out_.parts.back().steps > 1 || out_.parts.back().kind != RolledPart::Kind::Piece)
      return;
    RolledPart &part = out_.parts.back();
    Graph &graph = part.piece.graph;
    for (const GraphOutput &o : g_.outputs) {
      auto made = std::find(part.out.begin(), part.out.end(), o.value);
      if (o.writeBack < 0 || made == part.out.end())
        continue;
      GraphOutput &mine = graph.outputs[made - part.out.begin()];
      if (mine.writeBack >= 0)
        continue;
      int32_t target = g_.inputs[o.writeBack];
      auto at = std::find(part.in.begin(), part.in.end(), target);
      mine.writeBack = static_cast<int32_t>(at - part.in.begin());
      mine.strides = o.strides;
      out_.lastWrites = true;
      if (at == part.in.end()) {
        graph.inputs.push_back(graph.addValue(g_.values[target]));
        part.in.push_back(target);
        part.dense.push_back(false);
        if (!piece_.marks.empty())
          part.piece.marks.push_back(marksOf(target));
      }
    }
    if (!out_.lastWrites)
      return;
    std::unordered_map<int32_t, int> readers; // of the same memory
    for (int32_t v : part.in)
      ++readers[rootOf(v)];
    part.piece.sharedInput.clear();
    for (int32_t v : part.in) {
      auto input = std::find(g_.inputs.begin(), g_.inputs.end(), rootOf(v)) - g_.inputs.begin();
      bool shared = static_cast<size_t>(input) < g_.inputs.size() && piece_.sharedInput[input];
      part.piece.sharedInput.push_back(shared || readers[rootOf(v)] > 1);
    }
  }

  int32_t rootOf(int32_t v) const {
    while (out_.viewOf[v] >= 0)
      v = out_.views[out_.viewOf[v]].base;
    return v;
  }

  /// True if an input lies in memory in another way than it did in the recording.
  bool addInputs(RolledPart &part, const Columns &columns) {
    Graph &graph = part.piece.graph;
    bool changed = false;
    size_t steps = part.steps, numIn = columns.firsts.size();
    part.in.resize(steps * numIn);
    for (size_t s = 0; s < numIn; ++s) {
      uint32_t e = columns.firsts[s];
      int32_t ref = columns.values[(steps - 1) * columns.width + e], before = ref;
      bool agree = true;
      for (size_t k = 0; k < steps; ++k) {
        int32_t v = columns.values[k * columns.width + e];
        part.in[k * numIn + s] = v;
        agree = agree && (v == before || sameStrides(g_.values[v], stridesOf(v), stridesOf(ref)));
        before = v;
      }
      TensorMeta m = g_.values[ref];
      Dims rowMajor = rowMajorStrides(m);
      m.strides = !agree || sameStrides(m, stridesOf(ref), rowMajor) ? rowMajor : stridesOf(ref);
      changed |= m.strides != g_.values[ref].strides;
      part.dense.push_back(!agree);
      graph.inputs.push_back(graph.addValue(m));
      if (!piece_.marks.empty())
        part.piece.marks.push_back(marksOf(ref));
      bool state = agree;
      for (size_t k = 0; state && k < steps; ++k)
        state = isState(part.in[k * numIn + s]);
      part.piece.stateInput.push_back(state);
    }
    part.piece.sharedInput.assign(numIn, false);
    return changed;
  }

  /// An input that belongs to the program, or a view of one.
  bool isState(int32_t v) const {
    auto it = std::find(g_.inputs.begin(), g_.inputs.end(), rootOf(v));
    return it != g_.inputs.end() && piece_.isState(static_cast<size_t>(it - g_.inputs.begin()));
  }

  /// What the user said of an input; of views of it, that it is a parameter.
  trace::DimMarks marksOf(int32_t v) const {
    int32_t root = rootOf(v);
    auto it = std::find(g_.inputs.begin(), g_.inputs.end(), root);
    if (it == g_.inputs.end())
      return {};
    trace::DimMarks marks = piece_.marks[it - g_.inputs.begin()];
    return root == v ? marks : trace::DimMarks{0, 0, marks.parameter};
  }

  void addNode(Graph &graph, const GraphNode &from, std::unordered_map<int32_t, int32_t> &local, const Columns &columns,
               size_t &e, bool infer) {
    GraphNode n;
    n.op = from.op;
    n.loc = from.loc;
    SmallVec<Arg<GVal>, 12> args;
    for (Arg<GVal> a : from.args.args()) {
      if (a.tag == ArgTag::Num && a.num.ref())
        a.num = graph.addNumber(g_.numbers[numberIndex(a.num)]);
      if (a.tag == ArgTag::Rng) {
        Number seed = g_.numbers[numberIndex(a.num)], offset = g_.numbers[a.dim.value()];
        a.num = graph.addNumber(seed);
        a.dim = Dim(numberIndex(graph.addNumber(offset)));
      }
      args.push_back(a);
    }
    n.args = OwnedArgs<GVal>(Span<const Arg<GVal>>(args.data(), args.size()));
    for (GVal &v : n.args.values())
      if (v.id >= 0) {
        auto it = local.find(v.id);
        v.id = it != local.end() ? it->second : graph.inputs[columns.inputOf[e++]];
      }
    SmallVec<TensorMeta, 3> metas;
    if (infer)
      inferNode(graph, *n.op, n.args.args(), metas);
    else
      for (int32_t v : from.results)
        metas.push_back(g_.values[v]);
    for (size_t r = 0; r < from.results.size(); ++r) {
      n.results.push_back(graph.addValue(metas[r]));
      local.emplace(from.results[r], n.results.back());
    }
    graph.nodes.push_back(std::move(n));
  }

  static void addNumbers(RolledPart &part, const GraphNode &n) {
    for (const Arg<GVal> &a : n.args.args())
      if ((a.tag == ArgTag::Num && a.num.ref()) || a.tag == ArgTag::Rng) {
        part.numbers.push_back(static_cast<int32_t>(numberIndex(a.num)));
        if (a.tag == ArgTag::Rng)
          part.numbers.push_back(static_cast<int32_t>(a.dim.value()));
      }
  }

  static void addDims(RolledPart &part, const GraphNode &n) {
    for (const Arg<GVal> &a : n.args.args()) {
      if (a.tag == ArgTag::Dim)
        part.dims.push_back(a.dim.value());
      if (a.tag == ArgTag::DimList)
        for (const Dim &d : a.dimList())
          part.dims.push_back(d.value());
    }
  }

  /// A list op is given its operands in order, whatever occurs twice.
  static void listInputs(RolledPart &part, const Columns &columns) {
    Graph &g = part.piece.graph;
    std::vector<int32_t> inputs;
    for (uint32_t s : columns.inputOf)
      inputs.push_back(g.inputs[s]);
    g.inputs = std::move(inputs);
    part.in = columns.values;
    part.dense.assign(columns.width, false);
    part.piece.sharedInput.assign(columns.width, false);
  }

  //===--- Lifetimes ---===//

  void findLastUses() {
    std::vector<int64_t> last(g_.values.size(), -1);
    constexpr int64_t kAlways = INT64_MAX;
    auto use = [&](int32_t v, int64_t slot) {
      for (;; v = out_.views[out_.viewOf[v]].base) {
        last[v] = std::max(last[v], slot);
        if (out_.viewOf[v] < 0 || out_.views[out_.viewOf[v]].source >= 0)
          break;
      }
    };
    int64_t slots = 0;
    for (const RolledPart &p : out_.parts)
      for (size_t k = 0; k < p.steps; ++k, slots += 2) {
        for (size_t i = 0; i < p.numInputs(); ++i)
          use(p.in[k * p.numInputs() + i], slots);
        for (size_t i = 0; i < p.numOutputs(); ++i)
          use(p.out[k * p.numOutputs() + i], slots);
        for (size_t i = 0; i < p.numScattered; ++i) {
          const RolledView &v = out_.views[out_.viewOf[p.scattered[k * p.numScattered + i]]];
          use(v.base, slots + 1);
          use(v.source, slots + 1);
          use(v.value, slots + 1);
        }
      }
    for (const GraphOutput &o : g_.outputs)
      use(o.value, kAlways);
    out_.deadAt.assign(slots + 1, 0);
    for (int64_t t : last)
      if (t >= 0 && t != kAlways)
        ++out_.deadAt[t + 1];
    for (int64_t t = 0; t < slots; ++t)
      out_.deadAt[t + 1] += out_.deadAt[t];
    out_.dead.resize(out_.deadAt[slots]);
    std::vector<uint32_t> at(out_.deadAt.begin(), out_.deadAt.end());
    for (size_t v = 0; v < last.size(); ++v)
      if (last[v] >= 0 && last[v] != kAlways)
        out_.dead[at[last[v]]++] = static_cast<int32_t>(v);
  }

  const trace::Piece &piece_;
  const Graph &g_;
  const Producers &from_;
  const std::vector<Run> &runs_;
  std::vector<Place> places_; // per node
  std::vector<int32_t> runOf_;
  std::vector<bool> isList_, isAlone_;
  std::vector<bool> used_; // per value: outside of its part or step
  std::vector<const Dims *> strides_;
  std::vector<std::unique_ptr<Dims>> kept_;
  std::vector<Cut> cuts_;
  RolledGraph out_;
};

} // namespace

std::optional<RolledGraph> roll(const trace::Piece &piece, KnownBodies &known, bool mayLift) {
  Producers producers(piece.graph);
  std::vector<Run> runs = findRuns(piece.graph, producers, known, mayLift);
  if (runs.empty() && piece.graph.nodes.size() <= kMaxPart)
    return std::nullopt;
  try {
    if (std::optional<Hoisting> moved = hoistProducts(piece.graph, producers, runs, known))
      return Roller(piece, moved->graph, Producers(moved->graph), moved->runs).roll(moved->lists, moved->alone);
    return Roller(piece, piece.graph, producers, runs).roll({}, {});
  } catch (const Error &) { // a view that the layout of a part's result does not allow
    return std::nullopt;
  }
}

} // namespace dlc
