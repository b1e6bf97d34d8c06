// Stages of a group: reductions, outputs, values that several stages need, and what is constant along a row. Everything
// else is inlined where it is used.
#include "compiler/fusion/EmitKernel.h"
#include "compiler/fusion/Accesses.h"
#include "compiler/fusion/Pick.h"
#include "compiler/fusion/ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

namespace {

class Emitter {
public:
  Emitter(const Graph &graph, const FusedGroup &group, OpBuilder &builder, StringRef name)
      : graph_(graph), group_(group), k_(builder, graph.node(group.members.back()).op->getLoc(), name),
        context_(builder.getContext()), dims_(loopDims(graph, group)) {}

  EmittedKernel run() {
    for (uint32_t m : group_.members)
      hasContract_ |= graph_.node(m).kind == NodeKind::Contract;
    for (LoopDim &d : dims_) {
      // Tiles and blocks of a contraction follow from its sizes.
      if (hasContract_ && d.size.isConst()) {
        k_.dim(d.name, d.size.value());
        continue;
      }
      k_.dim(d.name, k_.index());
      out_.ints.push_back(d.size);
    }
    planStages();
    for (uint32_t m : group_.members)
      if (isStage_.contains(m))
        emitStage(m);
    for (uint32_t m : group_.shape.outputs)
      emitOutput(m);
    for (uint32_t m : group_.members)
      out_.mayFail |= graph_.node(m).mayFail;
    findInplace();
    out_.func = k_.finish();
    return std::move(out_);
  }

private:
  //===--- Stages ---===//

  bool inside(Value v) const { return isInside(graph_, group_.shape, v); }

  void planStages() {
    DenseMap<uint32_t, int64_t> cost;
    for (uint32_t m : group_.members) {
      const Node &n = graph_.node(m);
      cost[m] = n.cost;
      out_.cost += n.cost;
      for (uint32_t p : graph_.operands(m))
        if (isMember(p) && !graph_.node(p).combines())
          cost[m] += cost[p];
    }
    DenseMap<uint32_t, SmallVector<uint32_t>> stagesUsing;
    for (size_t i = group_.members.size(); i-- > 0;) {
      uint32_t m = group_.members[i];
      SmallVector<uint32_t> &users = stagesUsing[m];
      size_t leaves = group_.shape.leavesOf(graph_.node(m).result()).size();
      bool wider = false;
      for (uint32_t u : graph_.users(m)) {
        if (!isMember(u))
          continue;
        wider |= spanOf(u) > leaves;
        SmallVector<uint32_t> through = isStage_.contains(u) ? SmallVector<uint32_t>{u} : stagesUsing[u];
        for (uint32_t s : through)
          if (!llvm::is_contained(users, s))
            users.push_back(s);
      }
      bool output = llvm::is_contained(group_.shape.outputs, m);
      if (graph_.node(m).combines() || output || (users.size() > 1 && cost[m] > 3) || (wider && cost[m] >= 4))
        isStage_.insert(m);
    }
  }

  bool isMember(uint32_t i) const { return std::binary_search(group_.members.begin(), group_.members.end(), i); }

  size_t spanOf(uint32_t m) const {
    const Node &n = graph_.node(m);
    size_t span = group_.shape.leavesOf(n.result()).size();
    if (n.combines())
      span += group_.shape.axes.leaves(group_.shape.reduceAxes.lookup(n.op)).size();
    return span;
  }

  /// Names of the loops that a set of leaves spans, in loop order.
  SmallVector<StringRef> loopsOf(const AxisList &leaves) {
    SmallVector<StringRef> names;
    for (LoopDim &d : dims_)
      if (llvm::is_contained(leaves, d.leaves.front()))
        names.push_back(d.name);
    return names;
  }

  void emitStage(uint32_t m) {
    const Node &n = graph_.node(m);
    AxisList leaves = group_.shape.leavesOf(n.result());
    if (n.kind == NodeKind::Reduce)
      emitReduce(m, n, leaves);
    else if (n.kind == NodeKind::Contract)
      emitContract(m, n, leaves);
    else
      values_[m] = k_.map(loopsOf(leaves), [&](StageBuilder &s) {
        Region region(*this, s, loopsOf(leaves));
        s.yield({region.compute(m).value});
      })[0];
  }

  void emitContract(uint32_t m, const Node &n, const AxisList &leaves) {
    AxisList by = group_.shape.axes.leaves(group_.shape.reduceAxes.lookup(n.op)), all = leaves;
    all.append(by.begin(), by.end());
    auto operand = [&](unsigned use) {
      return [this, use, &n, &all](StageBuilder &s) {
        Region region(*this, s, loopsOf(all));
        bool packed = group_.packed.value && group_.packed.use == use;
        Scalar x = packed ? region.readPacked(n, group_.packed) : region.read(n, n.uses[use]);
        s.yield({convertScalar(s, x, dtypeOf(n.result())).value});
      };
    };
    values_[m] =
        k_.contract(loopsOf(all), loopsOf(by), memoryType(dtypeOf(n.result()), context_), operand(0), operand(1));
  }

  /// The element that a sum over a one-hot mask chooses, 0 if there is none. The addition makes 0 of -0, as a sum does.
  void emitPick(uint32_t m, const Node &n, const AxisList &leaves, const Pick &pick) {
    AxisId by = group_.shape.axes.leaves(group_.shape.reduceAxes.lookup(n.op))[0];
    LoopDim &loop = *llvm::find_if(dims_, [&](LoopDim &d) { return llvm::is_contained(d.leaves, by); });
    values_[m] = k_.map(loopsOf(leaves), [&](StageBuilder &s) {
      Region region(*this, s, loopsOf(leaves));
      Scalar at = convertScalar(s, region.read(*pick.comparison, *pick.index), DType::I64);
      Scalar zero = constantScalar(s, DType::I64, 0);
      Scalar inside =
          primScalar(s, "logical_and",
                     {primScalar(s, "ge", {at, zero}), primScalar(s, "lt", {at, {size(loop.size), DType::I64}})});
      region.fix(loop, primScalar(s, "select", {inside, at, zero}).value);
      DType t = dtypeOf(n.result()), compute = t == DType::F16 || t == DType::BF16 ? DType::F32 : t;
      Scalar x = convertScalar(s, region.readOperand(*pick.choice, pick.value), compute),
             none = constantScalar(s, compute, 0);
      x = primScalar(s, "add", {primScalar(s, "select", {inside, x, none}), none});
      s.yield({convertScalar(s, x, t).value});
    })[0];
  }

  void emitReduce(uint32_t m, const Node &n, const AxisList &leaves) {
    if (std::optional<Pick> pick = findPick(graph_, group_, n))
      return emitPick(m, n, leaves, *pick);
    AxisList by = group_.shape.axes.leaves(group_.shape.reduceAxes.lookup(n.op)), all = leaves;
    all.append(by.begin(), by.end());
    ReduceForm form = *reduceForm(*n.info);
    DType result = dtypeOf(n.result()), operand = dtypeOf(n.uses[0].value);
    bool arg = form.combine == ReduceForm::ArgMax || form.combine == ReduceForm::ArgMin;
    DType accumulate = arg ? operand : result;
    if (arg && (operand == DType::U8 || operand == DType::Bool))
      accumulate = DType::I16; // positions are found by signed comparison
    if (accumulate == DType::F16 || accumulate == DType::BF16)
      accumulate = DType::F32;
    bool isFinal = (arg || accumulate == result) && !form.dividesByCount && !by.empty();
    Value stage;
    auto element = [&](StageBuilder &s, ArrayRef<StringRef> loops) {
      Region region(*this, s, loops);
      return convertScalar(s, region.read(n, n.uses[0]), accumulate);
    };
    if (!by.empty()) {
      stage = k_.reduce(loopsOf(all), loopsOf(by), {combineOf(form.combine, accumulate)},
                        [&](StageBuilder &s) { s.yield({element(s, loopsOf(all)).value}); })[0];
      if (isFinal) {
        values_[m] = stage;
        return;
      }
    }
    // What follows the combination: the mean's division, rounding of a half, or nothing was combined at all.
    values_[m] = k_.map(loopsOf(leaves), [&](StageBuilder &s) {
      Scalar x = stage ? Scalar{s.use(stage), accumulate} : element(s, loopsOf(leaves));
      if (arg)
        x = constantScalar(s, DType::I64, 0);
      if (form.dividesByCount)
        x = primScalar(s, "div", {x, convertScalar(s, {count(n), DType::I64}, accumulate)});
      s.yield({convertScalar(s, x, result).value});
    })[0];
  }

  Value count(const Node &n) {
    Dim total(1);
    Dims sizes = graph_.symbols().sizes(n.uses[0].value);
    for (int64_t d : n.reduced)
      total *= sizes[d];
    return size(total);
  }

  static Combine combineOf(ReduceForm::Combine c, DType t) {
    switch (c) {
    case ReduceForm::Add:
      return Combine::add;
    case ReduceForm::Mul:
      return Combine::mul;
    case ReduceForm::Max:
      return t == DType::U8 ? Combine::maxu : t == DType::Bool ? Combine::ori : Combine::max;
    case ReduceForm::Min:
      return t == DType::U8 ? Combine::minu : t == DType::Bool ? Combine::andi : Combine::min;
    case ReduceForm::And:
      return Combine::andi;
    case ReduceForm::Or:
      return Combine::ori;
    case ReduceForm::ArgMax:
      return Combine::argmax;
    case ReduceForm::ArgMin:
      return Combine::argmin;
    }
    return Combine::add;
  }

  //===--- Buffers and scalars ---===//

  /// A memref argument for an access; `loops` of the strides that are not zero, in order.
  struct Buffer {
    Value memref;
    SmallVector<std::string> loops;
  };

  SmallVector<int64_t> stridesOf(const Access &a, SmallVector<std::string> &loops, Dims &dynamic) {
    SmallVector<int64_t> strides;
    auto add = [&](const Dim &stride) {
      bool known = stride.same(Dim(1)) || (hasContract_ && stride.isConst());
      strides.push_back(known ? stride.value() : ShapedType::kDynamic);
      if (!known)
        dynamic.push_back(stride);
    };
    if (a.rowStride)
      add(*a.rowStride);
    for (LoopDim &d : dims_) {
      Dim stride = a.strideOf(d.leaves.back());
      if (stride.same(Dim(0)))
        continue;
      loops.push_back(d.name);
      add(stride);
    }
    return strides;
  }

  static bool sameAccess(const Access &a, const Access &b) {
    return a.root == b.root && a.offset.same(b.offset) && a.rowStride.has_value() == b.rowStride.has_value() &&
           (!a.rowStride || a.rowStride->same(*b.rowStride));
  }

  Buffer &inputFor(const Access &a) {
    for (auto &[known, buffer] : inputs_)
      if (sameAccess(known, a) && sameStrides(known, a))
        return buffer;
    Buffer b;
    Dims dynamic;
    SmallVector<int64_t> strides = stridesOf(a, b.loops, dynamic);
    b.memref = k_.buffer(memoryType(dtypeOf(a.root), context_), strides);
    out_.ints.append(dynamic.begin(), dynamic.end());
    out_.inputs.push_back(a.root);
    out_.offsets.push_back(a.offset);
    inputs_.push_back({a, b});
    return inputs_.back().second;
  }

  Value packedInput(Value root, const Dims &strides) {
    SmallVector<int64_t> values;
    for (const Dim &d : strides)
      values.push_back(d.value());
    out_.inputs.push_back(root);
    out_.offsets.push_back(Dim(0));
    inputs_.push_back({Access{root, Dim(-1), {}, {}, {}}, {}}); // like no other
    return k_.buffer(memoryType(dtypeOf(root), context_), values);
  }

  bool sameStrides(const Access &a, const Access &b) {
    for (LoopDim &d : dims_)
      if (!a.strideOf(d.leaves.back()).same(b.strideOf(d.leaves.back())))
        return false;
    return true;
  }

  void emitOutput(uint32_t m) {
    const Node &n = graph_.node(m);
    Access a = accessOfResult(graph_, group_, n);
    SmallVector<std::string> loops;
    Dims dynamic;
    SmallVector<int64_t> strides;
    // Every loop of the value gets its own index of the output, whatever its stride.
    SmallVector<StringRef> valueLoops = loopsOf(group_.shape.leavesOf(n.result()));
    for (LoopDim &d : dims_) {
      if (!llvm::is_contained(valueLoops, StringRef(d.name)))
        continue;
      Dim stride = a.strideOf(d.leaves.back());
      bool known = stride.same(Dim(1)) || (hasContract_ && stride.isConst());
      strides.push_back(known ? stride.value() : ShapedType::kDynamic);
      if (!known)
        dynamic.push_back(stride);
    }
    Value buffer = k_.output(memoryType(dtypeOf(n.result()), context_), strides);
    out_.ints.append(dynamic.begin(), dynamic.end());
    out_.offsets.push_back(a.offset);
    out_.outputs.push_back(m);
    outputs_.push_back(a);
    k_.write(values_[m], buffer, AffineMap::getMultiDimIdentityMap(static_cast<unsigned>(strides.size()), context_));
  }

  /// A value may be written over an input that is read at the same point only, and not along reduced dims.
  void findInplace() {
    for (size_t o = 0; o < outputs_.size(); ++o)
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const Access &in = inputs_[i].first, &result = outputs_[o];
        bool once = llvm::count_if(inputs_, [&](auto &x) { return x.first.root == in.root; }) == 1;
        bool alongReduced =
            llvm::any_of(dims_, [&](LoopDim &d) { return d.reduced && !in.strideOf(d.leaves.back()).same(Dim(0)); });
        if (once && !alongReduced && !in.rowStride && sameStrides(in, result) && in.offset.same(Dim(0)) &&
            result.offset.same(Dim(0)) &&
            memoryType(dtypeOf(in.root), context_) == memoryType(dtypeOf(result.root), context_) &&
            same(graph_.symbols().sizes(in.root), graph_.symbols().sizes(result.root)))
          out_.inplace.append({static_cast<int64_t>(i), static_cast<int64_t>(o)});
      }
  }

  Value number(Value v) {
    Value &arg = numbers_[v];
    if (!arg) {
      bool isFloating = isa<FloatType>(v.getType());
      arg = k_.scalar(isFloating ? Type(Float64Type::get(context_)) : Type(IntegerType::get(context_, 64)));
      out_.numberAt.push_back(static_cast<int64_t>(out_.ints.size()));
      out_.numbers.push_back(v);
      out_.ints.push_back(Dim(0));
    }
    return arg;
  }

  /// An expression of the symbols as an i64 scalar.
  Value size(Dim d) {
    for (auto &[known, arg] : sizes_)
      if (known.same(d))
        return arg;
    Value arg = k_.scalar(IntegerType::get(context_, 64));
    out_.ints.push_back(d);
    sizes_.push_back({d, arg});
    return arg;
  }

  Value indexArg(Dim d) {
    for (auto &[known, arg] : indices_)
      if (known.same(d))
        return arg;
    Value arg = k_.index();
    out_.ints.push_back(d);
    indices_.push_back({d, arg});
    return arg;
  }

  //===--- Code at a point ---===//

  /// The region of one stage; values already computed in it are kept.
  class Region {
  public:
    Region(Emitter &e, StageBuilder &s, ArrayRef<StringRef> loops) : e_(e), s_(s) {
      for (StringRef l : loops)
        loops_.push_back(l.str());
    }

    /// The value of a member at this point, from its stage if it has one.
    Scalar value(uint32_t m) {
      auto known = scalars_.find(m);
      if (known != scalars_.end())
        return known->second;
      auto stage = e_.values_.find(m);
      bool isStage = stage != e_.values_.end() && !(fixed_ && isAlongFixed(m));
      Scalar x = isStage ? Scalar{s_.use(stage->second), dtypeOf(e_.graph_.node(m).result())} : compute(m);
      return scalars_[m] = x;
    }

    /// From now on everything is computed at position `at` of a loop that the region does not go along.
    void fix(const LoopDim &loop, Value at) {
      fixed_ = &loop;
      at_ = at;
    }

    Scalar compute(uint32_t m) {
      const Node &n = e_.graph_.node(m);
      if (n.uses.size() == 2 && n.uses[0].needsBuffer)
        return gather(n);
      auto read = [&](Value v) { return readOperand(n, v); };
      auto number = [&](Value v) { return e_.number(v); };
      auto index = [&](unsigned d) { return indexOf(n, d); };
      auto size = [&](Dim d) { return e_.size(d); };
      ScalarContext c{s_, e_.graph_.symbols(), read, number, index, size};
      return emitScalar(n.op, *n.info, c);
    }

    Scalar read(const Node &n, const OperandUse &use) {
      if (e_.inside(use.value))
        return value(static_cast<uint32_t>(e_.graph_.producer(use.value)));
      Access a = accessOf(e_.graph_, e_.group_, n, use);
      return load(e_.inputFor(a), dtypeOf(use.value), {});
    }

    /// The operand of a contraction from its panels; the column is the last dim of the result (rows if it is lhs).
    Scalar readPacked(const Node &n, const PackedOperand &p) {
      const Layout &layout = e_.graph_.layouts().of(p.value);
      AxisList result = e_.group_.shape.valueAxes.lookup(n.result());
      AffineExpr column = loopIndex(result[result.size() - (p.use == 1 ? 1 : 2)]);
      AffineExpr k = loopIndex(e_.group_.shape.reduceAxes.lookup(n.op)[0]);
      Value memref = e_.packedInput(p.value, layout.strides);
      AffineMap map = AffineMap::get(static_cast<unsigned>(loops_.size()), 0,
                                     {column.floorDiv(p.columns), k, column % p.columns}, e_.context_);
      DType t = dtypeOf(p.value);
      return {s_.read(memref, map, {}, scalarType(t, e_.context_)), t};
    }

    Scalar readOperand(const Node &n, Value v) {
      for (const OperandUse &use : n.uses)
        if (use.value == v)
          return read(n, use);
      fail(ErrorKind::Internal, n.info->name, " reads an operand that fusion does not know");
    }

  private:
    /// The index of the loop that an axis of one leaf is; 0 of an axis of size 1.
    AffineExpr loopIndex(AxisId axis) {
      AxisList leaves = e_.group_.shape.axes.leaves(axis);
      if (leaves.empty())
        return getAffineConstantExpr(0, e_.context_);
      LoopDim &d = *llvm::find_if(e_.dims_, [&](LoopDim &d) { return llvm::is_contained(d.leaves, leaves[0]); });
      return getAffineDimExpr(static_cast<unsigned>(llvm::find(loops_, d.name) - loops_.begin()), e_.context_);
    }

    Scalar gather(const Node &n) {
      Scalar row = convertScalar(s_, read(n, n.uses[1]), DType::I64);
      Access a = accessOf(e_.graph_, e_.group_, n, n.uses[0]);
      Value rows = e_.indexArg(*a.rows);
      return load(e_.inputFor(a), dtypeOf(n.uses[0].value), {row.value}, rows);
    }

    Scalar load(const Buffer &buffer, DType t, ValueRange row, Value rows = {}) {
      SmallVector<AffineExpr> indices;
      if (!row.empty())
        indices.push_back(getAffineSymbolExpr(0, e_.context_));
      if (fixed_ && llvm::is_contained(buffer.loops, fixed_->name))
        return loadFixed(buffer, t);
      for (const std::string &loop : buffer.loops)
        indices.push_back(
            getAffineDimExpr(static_cast<unsigned>(llvm::find(loops_, loop) - loops_.begin()), e_.context_));
      AffineMap map = AffineMap::get(static_cast<unsigned>(loops_.size()), row.empty() ? 0 : 1, indices, e_.context_);
      Type as = scalarType(t, e_.context_);
      if (row.empty())
        return {s_.read(buffer.memref, map, {}, as), t};
      return {s_.read(buffer.memref, map, row, Bound::check, {0}, {rows}, {}, as), t};
    }

    /// At the fixed position; of a loop without points it reads nothing.
    Scalar loadFixed(const Buffer &buffer, DType t) {
      SmallVector<AffineExpr> indices;
      int64_t position = llvm::find(buffer.loops, fixed_->name) - buffer.loops.begin();
      for (const std::string &loop : buffer.loops)
        indices.push_back(
            loop == fixed_->name
                ? getAffineSymbolExpr(0, e_.context_)
                : getAffineDimExpr(static_cast<unsigned>(llvm::find(loops_, loop) - loops_.begin()), e_.context_));
      AffineMap map = AffineMap::get(static_cast<unsigned>(loops_.size()), 1, indices, e_.context_);
      Type as = scalarType(t, e_.context_);
      Value none = constantScalar(s_, t, 0).value;
      return {s_.read(buffer.memref, map, at_, Bound::pad, {position}, {e_.indexArg(fixed_->size)}, none, as), t};
    }

    bool isAlongFixed(uint32_t m) const {
      return llvm::any_of(e_.group_.shape.leavesOf(e_.graph_.node(m).result()),
                          [&](AxisId a) { return llvm::is_contained(fixed_->leaves, a); });
    }

    /// Index along a dim of the node's result: its digits joined.
    Value indexOf(const Node &n, unsigned dim) {
      AxisList leaves = e_.group_.shape.axes.leaves(e_.group_.shape.valueAxes.lookup(n.result())[dim]);
      Scalar index{};
      for (AxisId leaf : leaves) {
        LoopDim &d = *llvm::find_if(e_.dims_, [&](LoopDim &d) { return llvm::is_contained(d.leaves, leaf); });
        Scalar digit{&d == fixed_ ? at_ : s_.index(d.name), DType::I64};
        index = !index.value
                    ? digit
                    : primScalar(s_, "add", {primScalar(s_, "mul", {index, {e_.size(d.size), DType::I64}}), digit});
      }
      return index.value ? index.value : constantScalar(s_, DType::I64, 0).value;
    }

    Emitter &e_;
    StageBuilder &s_;
    SmallVector<std::string> loops_;
    DenseMap<uint32_t, Scalar> scalars_;
    const LoopDim *fixed_ = nullptr;
    Value at_;
  };

  const Graph &graph_;
  const FusedGroup &group_;
  KernelBuilder k_;
  MLIRContext *context_;
  std::vector<LoopDim> dims_;
  bool hasContract_ = false;
  DenseSet<uint32_t> isStage_;
  DenseMap<uint32_t, Value> values_; // of members that are stages
  std::vector<std::pair<Access, Buffer>> inputs_;
  std::vector<Access> outputs_;
  DenseMap<Value, Value> numbers_;
  std::vector<std::pair<Dim, Value>> sizes_, indices_;
  EmittedKernel out_;
};

} // namespace

EmittedKernel emitKernel(const Graph &graph, const FusedGroup &group, OpBuilder &builder, StringRef name) {
  return Emitter(graph, group, builder, name).run();
}

} // namespace dlc::compiler
