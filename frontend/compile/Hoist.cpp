// Finds the products to move in each loop, then writes the nodes anew.
#include "frontend/compile/Hoist.h"
#include "runtime/op/Ops.h"
#include <algorithm>
#include <unordered_map>

namespace dlc {
namespace {

/// So many rows make a good product alone.
constexpr int64_t kMostRows = 128;
constexpr size_t kMostKnown = 64;
/// Elements of all joined rows and of their product: memory that the loop did not need.
constexpr int64_t kMostElements = int64_t(1) << 23;

/// Where an operand of a step comes from.
enum class Origin : uint8_t {
  Fixed,  ///< the same before the loop for all steps, or a view of such
  Walked, ///< from before the loop, another one in each step
  Made,   ///< by the step
  Carried ///< by another step
};

/// What happens to a node of the body.
enum class Move : uint8_t { No, Before, After, Sum, SumAdd };

struct Plan {
  std::vector<Move> moves;   // per position
  std::vector<size_t> adder; // of a Sum: the position of the add that collects it
  bool any = false;
};

class Hoister {
public:
  Hoister(const Graph &g, const Producers &from, const std::vector<Run> &runs, KnownBodies &known)
      : g_(g), from_(from), runs_(runs), known_(known) {}

  std::optional<Hoisting> run() {
    readers();
    bool any = false;
    for (const Run &r : runs_) {
      plans_.push_back(planOf(r));
      any |= plans_.back().any;
    }
    if (!any)
      return std::nullopt;
    write();
    return std::move(out_);
  }

private:
  //===--- What can move ---===//

  static bool isRowProduct(const GraphNode &n) {
    if (n.op->kind != OpKind::Contraction || !n.op->has(kRowWise) || n.results.size() != 1)
      return false;
    Span<const Arg<GVal>> args = n.args.args();
    return std::none_of(args.begin(), args.end(), [](const Arg<GVal> &a) {
      return a.tag == ArgTag::ValueList || (a.tag == ArgTag::Num && a.num.ref());
    });
  }

  /// Per value: its last reader and how many there are; outputs of the graph count.
  void readers() {
    count_.assign(g_.values.size(), 0);
    reader_.assign(g_.values.size(), -1);
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      for (const GVal &v : from_.of(n))
        if (v.id >= 0) {
          ++count_[v.id];
          reader_[v.id] = static_cast<int64_t>(n);
        }
    for (const GraphOutput &o : g_.outputs) {
      ++count_[o.value];
      reader_[o.value] = static_cast<int64_t>(g_.nodes.size());
    }
  }

  int32_t operand(const Run &r, size_t step, size_t j, size_t e) const {
    return from_.of(r.start + step * r.period + j)[e].id;
  }

  Origin originOf(const Run &r, size_t j, size_t e) const {
    int32_t first = operand(r, 0, j, e);
    if (first < 0)
      return Origin::Carried;
    int64_t at = from_.node[first] - static_cast<int64_t>(r.start);
    if (at >= 0) { // of the same step in all of them
      if (from_.kind[r.start + at] != OpKind::View)
        return Origin::Made;
      Origin o = originOf(r, static_cast<size_t>(at), 0);
      bool moves = r.hoisted[at] != Hoisted::No;
      return o == Origin::Fixed && moves ? Origin::Walked : o;
    }
    bool fixed = true;
    for (size_t k = 1; k < r.steps; ++k) {
      int32_t v = operand(r, k, j, e);
      if (from_.node[v] >= static_cast<int64_t>(r.start))
        return Origin::Carried;
      fixed &= v == first;
    }
    return fixed ? Origin::Fixed : Origin::Walked;
  }

  int64_t size(int32_t v, size_t d) const { return g_.values[v].sizes[d].value(); }

  /// One dimension that the rows don't run along.
  bool isForAllRows(int32_t v) const { return g_.values[v].sizes.size() == 1; }

  Plan planOf(const Run &r) {
    Plan p;
    p.moves.assign(r.period, Move::No);
    p.adder.assign(r.period, 0);
    auto known = known_.moves.find(r.hash);
    if (r.pointwise || (r.steps == 1 && (known == known_.moves.end() || known->second.size() != r.period)))
      return p;
    for (size_t j = 0; j < r.period; ++j) {
      if (!isRowProduct(g_.nodes[r.start + j]))
        continue;
      Move m = moveOf(r, j, p.adder[j]);
      if (r.steps == 1 && m != static_cast<Move>(known->second[j]))
        continue;
      p.moves[j] = m;
      p.any |= m != Move::No;
      if (m == Move::Sum)
        p.moves[p.adder[j]] = Move::SumAdd;
    }
    if (r.steps > 1) {
      if (known_.moves.size() >= kMostKnown)
        known_.moves.clear();
      std::vector<uint8_t> &moves = known_.moves[r.hash];
      moves.clear();
      for (Move m : p.moves)
        moves.push_back(static_cast<uint8_t>(m));
    }
    return p;
  }

  Move moveOf(const Run &r, size_t j, size_t &adder) const {
    Span<const GVal> in = from_.of(r.start + j);
    size_t left = in.size() - 2, right = in.size() - 1;
    for (size_t e = 0; e < left; ++e)
      if (originOf(r, j, e) != Origin::Fixed || !isForAllRows(in[e].id))
        return Move::No;
    Origin rows = originOf(r, j, left), matrix = originOf(r, j, right);
    int64_t m = size(in[left].id, 0), k = size(in[left].id, 1), n = size(in[right].id, 1);
    int64_t steps = static_cast<int64_t>(r.steps);
    if (m == 0 || n == 0 || k == 0)
      return Move::No;
    bool fits = m <= kMostRows && steps * m * (n + k) <= kMostElements && matrix == Origin::Fixed;
    // What a single step reads looks the same in all steps.
    auto walked = [&](Origin o) { return o == Origin::Walked || (o == Origin::Fixed && steps == 1); };
    if (fits && walked(rows))
      return Move::Before;
    if (in.size() == 2 && k <= kMostRows && steps * k * (m + n) <= kMostElements &&
        (walked(rows) || rows == Origin::Made) && (walked(matrix) || matrix == Origin::Made) &&
        collected(r, j, adder) && !(steps == 1 && isKnown(r, j, Move::After)))
      return Move::Sum;
    return fits && rows == Origin::Made && !readInLoop(r, j) ? Move::After : Move::No;
  }

  bool isKnown(const Run &r, size_t j, Move m) const {
    auto known = known_.moves.find(r.hash);
    return known != known_.moves.end() && known->second[j] == static_cast<uint8_t>(m);
  }

  /// Some step reads what position `j` made.
  bool readInLoop(const Run &r, size_t j) const {
    std::vector<bool> made(g_.values.size());
    for (size_t k = 0; k < r.steps; ++k)
      made[g_.nodes[r.start + k * r.period + j].results[0]] = true;
    for (size_t n = r.start; n < r.end(); ++n)
      for (const GVal &v : from_.of(n))
        if (v.id >= 0 && made[v.id])
          return true;
    return false;
  }

  /// The product is added to what the step before made of it, and nothing else sees the sums but the last.
  bool collected(const Run &r, size_t j, size_t &adder) const {
    int32_t product = g_.nodes[r.start + j].results[0];
    int64_t at = reader_[product] - static_cast<int64_t>(r.start);
    if (count_[product] != 1 || at <= static_cast<int64_t>(j) || at >= static_cast<int64_t>(r.period))
      return false;
    const GraphNode &add = g_.nodes[r.start + at];
    if (add.op != &opInfo(OpId::Add) || from_.of(r.start + at).size() != 2 || scaled(add))
      return false;
    size_t other = from_.of(r.start + at)[0].id == product ? 1 : 0;
    const TensorMeta &sum = g_.values[add.results[0]], &part = g_.values[product];
    int32_t start = operand(r, 0, at, other);
    if (start < 0 || from_.type[add.results[0]] != from_.type[product] || from_.type[start] != from_.type[product] ||
        sum.dtype != part.dtype)
      return false;
    for (size_t k = 0; k < r.steps; ++k) {
      size_t base = r.start + k * r.period;
      if (count_[g_.nodes[base + j].results[0]] != 1)
        return false;
      if (k && operand(r, k, at, other) != g_.nodes[base - r.period + at].results[0])
        return false;
      if (k + 1 < r.steps && count_[g_.nodes[base + at].results[0]] != 1)
        return false;
    }
    adder = static_cast<size_t>(at);
    return true;
  }

  /// add's alpha is not 1.
  static bool scaled(const GraphNode &add) {
    for (const Arg<GVal> &a : add.args.args())
      if (a.tag == ArgTag::Num && (a.num.ref() || a.num.toDouble() != 1))
        return true;
    return false;
  }

  //===--- The new graph ---===//

  void write() {
    out_.graph.values = g_.values;
    out_.graph.inputs = g_.inputs;
    out_.graph.outputs = g_.outputs;
    out_.graph.numbers = g_.numbers;
    out_.graph.symbols = g_.symbols;
    out_.graph.nodes.reserve(g_.nodes.size() + 64);
    size_t n = 0;
    for (size_t k = 0; k < runs_.size(); ++k) {
      for (; n < runs_[k].start; ++n)
        out_.graph.nodes.push_back(g_.nodes[n]);
      writeLoop(runs_[k], plans_[k]);
      n = runs_[k].end();
    }
    for (; n < g_.nodes.size(); ++n)
      out_.graph.nodes.push_back(g_.nodes[n]);
  }

  void writeLoop(const Run &r, const Plan &p) {
    clones_.clear();
    std::vector<int32_t> products(r.period, -1);
    for (size_t j = 0; j < r.period; ++j)
      if (p.moves[j] == Move::Before)
        products[j] = writeProduct(r, j);
    Run now = r;
    now.start = out_.graph.nodes.size();
    now.hoisted.clear();
    for (size_t j = 0; j < r.period; ++j)
      if (p.moves[j] == Move::No || p.moves[j] == Move::Before)
        now.hoisted.push_back(p.moves[j] == Move::Before ? Hoisted::View : r.hoisted[j]);
    now.period = now.hoisted.size();
    for (size_t k = 0; k < r.steps; ++k)
      for (size_t j = 0; j < r.period; ++j) {
        const GraphNode &n = g_.nodes[r.start + k * r.period + j];
        if (p.moves[j] == Move::No)
          out_.graph.nodes.push_back(n);
        else if (p.moves[j] == Move::Before)
          writeRows(n, products[j], k);
      }
    out_.runs.push_back(std::move(now));
    clones_.clear();
    for (size_t j = 0; j < r.period; ++j)
      if (p.moves[j] == Move::After)
        writeAfter(r, j);
      else if (p.moves[j] == Move::Sum)
        writeSum(r, j, p.adder[j]);
  }

  int32_t push(const OpInfo &op, Span<const Arg<GVal>> args, uint32_t loc, int32_t result = -1) {
    GraphNode n;
    n.op = &op;
    n.loc = loc;
    n.args = OwnedArgs<GVal>(args);
    if (result < 0) {
      SmallVec<TensorMeta, 3> metas;
      inferNode(out_.graph, op, n.args.args(), metas);
      result = out_.graph.addValue(metas[0]);
    }
    n.results.push_back(result);
    out_.graph.nodes.push_back(std::move(n));
    return result;
  }

  /// A value of step `k` outside of the loop: what views of the step make is made again there.
  int32_t outside(const Run &r, size_t k, int32_t v) {
    int64_t n = from_.node[v];
    if (n < static_cast<int64_t>(r.start + k * r.period) || from_.kind[n] != OpKind::View)
      return v;
    if (auto it = clones_.find(v); it != clones_.end())
      return it->second;
    int32_t base = outside(r, k, from_.of(n)[0].id);
    GraphNode copy = g_.nodes[n];
    copy.args.values()[0].id = base;
    int32_t fresh = out_.graph.addValue(g_.values[v]);
    copy.results[0] = fresh;
    out_.graph.nodes.push_back(std::move(copy));
    clones_.emplace(v, fresh);
    return fresh;
  }

  /// The values of operand `e` of position `j` in all steps, one below the other.
  int32_t join(const Run &r, size_t j, size_t e, int64_t dim) {
    std::vector<GVal> values;
    for (size_t k = 0; k < r.steps; ++k)
      values.push_back({outside(r, k, operand(r, k, j, e))});
    return joined(values, dim, g_.nodes[r.start + j].loc);
  }

  int32_t joined(const std::vector<GVal> &values, int64_t dim, uint32_t loc) {
    Arg<GVal> args[2] = {Arg<GVal>::list(Span<const GVal>(values)), Arg<GVal>::ofInt(dim)};
    out_.lists.push_back(out_.graph.nodes.size());
    return push(opInfo(OpId::Cat), args, loc);
  }

  /// The product of position `j` for the rows of all steps.
  int32_t writeProduct(const Run &r, size_t j) {
    size_t left = from_.of(r.start + j).size() - 2;
    int32_t rows = join(r, j, left, 0);
    GraphNode n = g_.nodes[r.start + j];
    for (size_t e = 0; e < n.args.values().size(); ++e)
      n.args.values()[e].id = e == left ? rows : outside(r, 0, n.args.values()[e].id);
    out_.alone.push_back(out_.graph.nodes.size());
    return push(*n.op, n.args.args(), n.loc);
  }

  /// Step `k`'s rows of a product of all, as the value that `n` made.
  void writeRows(const GraphNode &n, int32_t product, size_t k) {
    int64_t rows = size(n.results[0], 0), step = static_cast<int64_t>(k);
    GVal from{product};
    Arg<GVal> args[5] = {Arg<GVal>::of(from), Arg<GVal>::ofInt(0), Arg<GVal>::ofDim(Dim(step * rows)),
                         Arg<GVal>::ofDim(Dim((step + 1) * rows)), Arg<GVal>::ofDim(Dim(1))};
    push(opInfo(OpId::Slice), args, n.loc, n.results[0]);
  }

  void writeAfter(const Run &r, size_t j) {
    int32_t product = writeProduct(r, j);
    for (size_t k = 0; k < r.steps; ++k)
      writeRows(g_.nodes[r.start + k * r.period + j], product, k);
  }

  /// The left operands side by side. Transposed views are taken from what they show, whose rows join without copies.
  int32_t joinColumns(const Run &r, size_t j) {
    int32_t first = operand(r, 0, j, 0);
    int64_t at = from_.node[first] - static_cast<int64_t>(r.start);
    uint32_t loc = g_.nodes[r.start + j].loc;
    if (at < 0 || g_.nodes[r.start + at].op != &opInfo(OpId::Transpose))
      return join(r, j, 0, 1);
    GVal rows{join(r, static_cast<size_t>(at), 0, 0)};
    Arg<GVal> args[3] = {Arg<GVal>::of(rows), Arg<GVal>::ofInt(0), Arg<GVal>::ofInt(1)};
    return push(opInfo(OpId::Transpose), args, loc);
  }

  void writeSum(const Run &r, size_t j, size_t adder) {
    const GraphNode &n = g_.nodes[r.start + j], &first = g_.nodes[r.start + adder];
    GVal left{joinColumns(r, j)}, right{join(r, j, 1, 0)};
    Arg<GVal> args[2] = {Arg<GVal>::of(left), Arg<GVal>::of(right)};
    out_.alone.push_back(out_.graph.nodes.size());
    int32_t product = push(*n.op, args, n.loc);
    GraphNode add = first;
    for (GVal &v : add.args.values())
      v.id = v.id == n.results[0] ? product : v.id;
    push(*add.op, add.args.args(), add.loc, g_.nodes[r.end() - r.period + adder].results[0]);
  }

  const Graph &g_;
  const Producers &from_;
  const std::vector<Run> &runs_;
  KnownBodies &known_;
  std::vector<Plan> plans_;
  std::vector<int32_t> count_;
  std::vector<int64_t> reader_;
  std::unordered_map<int32_t, int32_t> clones_;
  Hoisting out_;
};

} // namespace

std::optional<Hoisting> hoistProducts(const Graph &g, const Producers &producers, const std::vector<Run> &runs,
                                      KnownBodies &known) {
  return Hoister(g, producers, runs, known).run();
}

} // namespace dlc
