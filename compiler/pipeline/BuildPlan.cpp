// Buffers and steps of a fused function.
#include "compiler/pipeline/BuildPlan.h"
#include "compiler/cpu/CpuCompiler.h"
#include "compiler/fusion/FusePass.h"
#include "compiler/graph/StatePart.h"
#include "runtime/exec/OpCall.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

class PlanMaker {
public:
  PlanMaker(func::FuncOp func, const llvm::StringMap<CompiledKernel> &kernels, ExecutableStats &stats)
      : func_(func), kernels_(kernels), stats_(stats), symbols_(func), layouts_(symbols_) {}

  std::shared_ptr<LaunchPlan> run() {
    setFunctionLayouts(func_, layouts_);
    addInputs();
    findLastUses();
    planResults();
    for (Operation &op : func_.getBody().front())
      addOp(&op);
    copyResults();
    std::shared_ptr<LaunchPlan> plan = b_.finish();
    for (auto &code : code_)
      plan->retain(std::const_pointer_cast<void>(code));
    return plan;
  }

private:
  //===--- Buffers ---===//

  void addInputs() {
    for (BlockArgument arg : func_.getArguments()) {
      if (!isa<RankedTensorType>(arg.getType())) {
        if (!arg.getType().isIndex())
          numberOf_[arg] = static_cast<int32_t>(numberOf_.size());
        continue;
      }
      const Layout &l = layouts_.of(arg);
      if (isDerived(func_, arg)) {
        addDerived(arg);
        continue;
      }
      buffers_[arg] = b_.addInput(dtypeOf(arg), l.sizes, l.strides);
      inputs_.push_back(arg);
    }
  }

  void addDerived(BlockArgument arg) {
    auto name = func_.getArgAttrOfType<FlatSymbolRefAttr>(arg.getArgNumber(), kDerivedAttr);
    auto maker = func_->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(name.getAttr());
    DLC_CHECK(maker, "no function ", name.getValue().str());
    DerivedSpec spec;
    ExecutableStats stats;
    spec.key = keyOf(maker);
    spec.maker = PlanMaker(maker, kernels_, stats).run();
    stats_.stateSteps += stats.kernels + stats.libraryCalls + stats.otherSteps + stats.memorySteps;
    for (int64_t f : func_.getArgAttrOfType<DenseI64ArrayAttr>(arg.getArgNumber(), kFromAttr).asArrayRef())
      spec.from.push_back(static_cast<int32_t>(f));
    spec.needed = !arg.use_empty();
    buffers_[arg] = b_.addDerived(dtypeOf(arg), layouts_.of(arg).sizes, std::move(spec));
  }

  /// Equal texts: the same function. Kernels are named by their code.
  std::string keyOf(func::FuncOp maker) {
    std::string key;
    llvm::raw_string_ostream os(key);
    OwningOpRef<Operation *> copy = maker->clone();
    copy->setAttr(SymbolTable::getSymbolAttrName(), StringAttr::get(maker.getContext(), "state"));
    copy->walk([&](Operation *op) {
      op->removeAttr("ops");
      if (!isLaunch(op))
        return;
      auto kernel = op->getAttrOfType<FlatSymbolRefAttr>("kernel");
      os << CpuCompiler::objectOf(kernels_.find(kernel.getValue())->second).key << ' ';
      op->setAttr("kernel", FlatSymbolRefAttr::get(maker.getContext(), "k"));
    });
    copy->print(os, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
    return key;
  }

  /// The position of the last op that touches each root.
  void findLastUses() {
    int64_t position = 0;
    for (Operation &op : func_.getBody().front()) {
      positions_[&op] = position;
      for (Value v : op.getOperands())
        if (isa<RankedTensorType>(v.getType()) && !layouts_.isFreeView(&op))
          lastUse_[layouts_.of(v).root] = position;
      ++position;
    }
  }

  /// Results are computed in their own memory where that is possible; else they are copied at the end.
  void planResults() {
    Operation *ret = func_.getBody().front().getTerminator();
    int64_t lastFailing = -1;
    for (Operation &op : func_.getBody().front())
      if (mayFail(&op))
        lastFailing = positions_[&op];
    for (OpOperand &operand : ret->getOpOperands()) {
      unsigned k = operand.getOperandNumber();
      Value v = operand.get();
      auto donated = func_.getResultAttrOfType<IntegerAttr>(k, "dlc.write_back");
      Result r{v, donated ? static_cast<int32_t>(donated.getInt()) : -1, 0, false};
      const Layout &layout = layouts_.of(v);
      Operation *def = v.getDefiningOp();
      r.direct =
          def && layout.root == v && !buffers_.count(v) && (r.donated < 0 || mayWriteEarly(v, r.donated, lastFailing));
      if (r.donated >= 0) {
        const Layout &input = layouts_.of(inputs_[r.donated]);
        r.buffer = b_.addOutput(dtypeOf(v), input.sizes, input.strides, r.donated);
        if (r.direct && !isRowMajor(input.sizes, input.strides))
          layouts_.setRoot(v, input.strides);
      } else {
        Dims sizes = symbols_.sizes(v), strides = contiguousStrides(sizes);
        if (auto wanted = func_.getResultAttrOfType<AffineMapAttr>(k, "dlc.strides"))
          strides = symbols_.dims(wanted.getValue());
        r.direct = r.direct && same(strides, layout.strides);
        r.buffer = b_.addOutput(dtypeOf(v), sizes, strides);
      }
      if (r.direct)
        buffers_[v] = r.buffer;
      results_.push_back(r);
    }
  }

  /// Whether `v` may be computed right in the memory of an input: nobody reads the old value afterwards, the step
  /// itself only at the point it writes, and nothing can fail any more.
  bool mayWriteEarly(Value v, int32_t donated, int64_t lastFailing) {
    BlockArgument input = cast<BlockArgument>(inputs_[donated]);
    if (func_.getArgAttr(input.getArgNumber(), "dlc.shared"))
      return false;
    const Layout &in = layouts_.of(input), &out = layouts_.of(v);
    if (!same(in.strides, out.strides) || !same(in.sizes, out.sizes) || dtypeOf(input) != dtypeOf(v))
      return false;
    Operation *def = v.getDefiningOp();
    int64_t at = positions_[def];
    if (lastFailing >= at)
      return false;
    auto last = lastUse_.find(input);
    if (last == lastUse_.end() || last->second < at)
      return true;
    return last->second == at && sharesInplace(def, input, v);
  }

  static bool isLaunch(Operation *op) { return op->getName().getStringRef() == "dlc.launch"; }

  bool mayFail(Operation *op) {
    if (isLaunch(op))
      return op->hasAttr("may_fail");
    // Eager kernels that look at their operands' values: indices, probabilities, integer divisors.
    const OpInfo *info = infoOf(op);
    return info && (info->kind == OpKind::Index || info->kind == OpKind::Random || info->kind == OpKind::Elementwise);
  }

  /// Whether `op` only writes to some elements of its first operand, from another buffer.
  bool replacesPart(Operation *op) {
    const OpInfo *info = infoOf(op);
    return info && info->kind == OpKind::Structured && info->has(kIdempotent) &&
           layouts_.of(op->getOperand(0)).root != layouts_.of(op->getOperand(1)).root;
  }

  /// Whether a step may write `result` over its operand `v`.
  bool sharesInplace(Operation *op, Value v, Value result) {
    if (replacesPart(op))
      return op->getOperand(0) == v;
    auto pairs = op->getAttrOfType<DenseI64ArrayAttr>("inplace");
    if (!isLaunch(op) || !pairs)
      return false;
    const KernelInfo &info = kernels_.find(op->getAttrOfType<FlatSymbolRefAttr>("kernel").getValue())->second.info;
    uint32_t numInputs = info.numBufs - 1 - op->getNumResults();
    for (int64_t i = 0; i + 1 < pairs.size(); i += 2) {
      // Fusion knows that layouts agree, lowering that the loops allow it.
      std::pair<uint32_t, uint32_t> buffers(pairs[i], numInputs + pairs[i + 1]);
      if (op->getOperand(static_cast<unsigned>(pairs[i])) == v &&
          op->getResult(static_cast<unsigned>(pairs[i + 1])) == result && llvm::is_contained(info.mayShare, buffers))
        return true;
    }
    return false;
  }

  uint32_t bufferOf(Value v) {
    auto it = buffers_.find(v);
    if (it != buffers_.end())
      return it->second;
    const Layout &l = layouts_.of(v);
    DLC_CHECK(l.root != v, "a value is used before a step makes it");
    uint32_t id = b_.addView(bufferOf(l.root), l.sizes, l.strides, l.offset);
    return buffers_[v] = id;
  }

  /// Memory for a result: an output's, a dying operand's, or new.
  uint32_t makeBuffer(Value v) {
    auto it = buffers_.find(v);
    if (it != buffers_.end())
      return it->second;
    Operation *op = v.getDefiningOp();
    if (isLaunch(op) || replacesPart(op))
      for (Value operand : op->getOperands())
        if (canReuse(op, operand, v)) {
          taken_.insert(operand);
          // The memory is shared, the order of dims need not be: a transposed square has the same sizes.
          const Layout &from = layouts_.of(operand), &to = layouts_.of(v);
          bool alike = same(from.sizes, to.sizes) && same(from.strides, to.strides);
          return buffers_[v] = alike ? buffers_[operand] : b_.addView(buffers_[operand], to.sizes, to.strides, Dim(0));
        }
    return buffers_[v] = addTempFor(v);
  }

  /// New memory in the layout of `v`, which fusion takes from the result it becomes.
  uint32_t addTempFor(Value v) {
    const Layout &layout = layouts_.of(v);
    if (isRowMajor(layout.sizes, layout.strides))
      return b_.addTemp(dtypeOf(v), layout.sizes);
    Dim span(1);
    for (size_t i = 0; i < layout.sizes.size(); ++i)
      span = layout.sizes[i].value() == 0 ? Dim(0) : span + (layout.sizes[i] - Dim(1)) * layout.strides[i];
    return b_.addView(b_.addTemp(dtypeOf(v), Dims{span}), layout.sizes, layout.strides, Dim(0));
  }

  bool canReuse(Operation *op, Value operand, Value result) {
    if (!isa<RankedTensorType>(operand.getType()) || taken_.contains(operand) || !buffers_.count(operand) ||
        b_.buffer(buffers_[operand]).kind != BufferKind::Temp || dtypeOf(operand) != dtypeOf(result))
      return false;
    auto last = lastUse_.find(operand);
    return last != lastUse_.end() && last->second == positions_[op] && sharesInplace(op, operand, result);
  }

  //===--- Steps ---===//

  void addOp(Operation *op) {
    if (isLaunch(op))
      return addLaunch(op);
    const OpInfo *info = infoOf(op);
    if (!info || layouts_.isFreeView(op))
      return; // constants, arithmetic on sizes, holes of lists, and views
    addCall(op, *info);
  }

  Dim bytesOf(Value v) { return Dim(static_cast<int64_t>(itemSize(dtypeOf(v)))) * elements(v); }

  StepInfo infoFor(Operation *op, std::string name) {
    StepInfo info;
    info.name = std::move(name);
    info.mayFail = mayFail(op);
    for (Value v : op->getOperands())
      if (isa<RankedTensorType>(v.getType())) {
        info.reads.push_back(b_.buffer(bufferOf(v)).root);
        info.readBytes += bytesOf(v);
      }
    for (Value v : op->getResults())
      info.writtenBytes += bytesOf(v);
    return info;
  }

  /// A number operand of a step: constant, operand of the graph, or expression of its symbols.
  PlanInt planNumber(Value v, Category c) {
    Number n = numberOf(v);
    if (!n.ref())
      return c == Category::Float ? PlanInt::ofFloat(n.toDouble()) : PlanInt::of(Dim(n.toInt()));
    auto arg = numberOf_.find(v);
    if (arg != numberOf_.end())
      return PlanInt::ofNumber(arg->second, c);
    // A size as a float: sitofp of an index expression.
    Operation *def = v.getDefiningOp();
    bool converted = def && def->getName().getStringRef() == "arith.sitofp";
    std::optional<Dim> d = symbols_.dim(converted ? def->getOperand(0) : v);
    DLC_CHECK(d && converted == (c == Category::Float), "a number is neither constant nor operand");
    return converted ? PlanInt::ofFloatDim(*d) : PlanInt::of(*d);
  }

  void addLaunch(Operation *op) {
    StringRef name = op->getAttrOfType<FlatSymbolRefAttr>("kernel").getValue();
    auto it = kernels_.find(name);
    DLC_CHECK(it != kernels_.end(), "no code for kernel ", name.str());
    const CompiledKernel &kernel = it->second;
    Dims offsets = symbols_.dims(op->getAttrOfType<AffineMapAttr>("offsets").getValue());
    Dims values = symbols_.dims(op->getAttrOfType<AffineMapAttr>("ints").getValue());
    StepInfo info = infoFor(op, name.str());
    for (Attribute a : op->getAttrOfType<ArrayAttr>("ops"))
      info.ops.push_back(cast<StringAttr>(a).getValue().str());
    std::vector<uint32_t> buffers;
    SmallVector<Value> numbers;
    for (Value v : op->getOperands()) {
      if (isa<RankedTensorType>(v.getType()))
        buffers.push_back(at(bufferOf(v), offsets[buffers.size()]));
      else
        numbers.push_back(v);
    }
    for (Value v : op->getResults()) {
      uint32_t id = makeBuffer(v);
      info.writes.push_back(b_.buffer(id).root);
      buffers.push_back(at(id, offsets[buffers.size()]));
    }
    std::vector<PlanInt> ints;
    for (const Dim &d : values)
      ints.push_back(PlanInt::of(d));
    auto positions = op->getAttrOfType<DenseI64ArrayAttr>("number_at");
    for (size_t i = 0; i < numbers.size(); ++i)
      ints[positions[static_cast<int64_t>(i)]] =
          planNumber(numbers[i], isa<FloatType>(numbers[i].getType()) ? Category::Float : Category::Int);
    DLC_CHECK(kernel.info.numBufs == buffers.size() + 1 && kernel.info.numInts == ints.size(), name.str(), " takes ",
              kernel.info.numBufs, " buffers and ", kernel.info.numInts, " integers, the launch has ", buffers.size(),
              " and ", ints.size());
    Dim extent = productOf(kernel.info.parallelDims, values), points = productOf(kernel.info.domainDims, values);
    for (const KernelInfo::Work &w : kernel.info.work)
      info.flops += productOf(w.dims, values) * Dim(w.flops);
    int64_t perPoint = std::max<int64_t>(1, static_cast<int64_t>(kernel.info.nsPerPoint * 16));
    b_.addKernel(kernel.fn, Span<const uint32_t>(buffers), Span<const PlanInt>(ints), extent, points * Dim(perPoint),
                 std::move(info), kernel.info.rangeMultiple);
    if (launched_.insert(name).second) {
      ++stats_.distinctKernels;
      code_.push_back(kernel.code);
    }
    ++stats_.kernels;
  }

  uint32_t at(uint32_t buffer, const Dim &offset) {
    if (offset.same(Dim(0)))
      return buffer;
    const PlanBuffer &b = b_.buffer(buffer);
    Dims sizes = b.sizes, strides = b.strides;
    return b_.addView(buffer, sizes, strides, offset);
  }

  static Dim productOf(const std::vector<SizeRef> &dims, const Dims &ints) {
    Dim product(1);
    for (const SizeRef &d : dims)
      product *= d.index >= 0 ? ints[d.index] : Dim(d.constant);
    return product;
  }

  static bool isLibrary(const OpInfo &info) {
    return info.kind == OpKind::Contraction || StringRef(info.name).starts_with("conv");
  }

  void addCall(Operation *op, const OpInfo &info) {
    OperandRanges ranges(op, info);
    StepInfo step = infoFor(op, info.name);
    step.ops = {info.name};
    bool library = isLibrary(info);
    step.stepClass = library ? StepClass::Library : StepClass::Other;
    step.flops = flopsOf(op, info, ranges);
    std::vector<uint32_t> tensors;
    std::vector<PlanInt> ints;
    std::vector<PlanInt> numbers;
    DenseMap<Value, uint32_t> mutatedTo = copyMutated(op, info, ranges, step);
    auto slot = [&](Value v) {
      CallSlot s;
      if (isa<RankedTensorType>(v.getType())) {
        s.tensor = static_cast<int32_t>(tensors.size());
        auto copy = mutatedTo.find(v);
        tensors.push_back(copy != mutatedTo.end() ? copy->second : bufferOf(v));
        return s;
      }
      Number n = numberOf(v);
      s.category = n.category();
      s.number = static_cast<int32_t>(numbers.size());
      numbers.push_back(planNumber(v, n.category()));
      return s;
    };
    auto number = [&](Value v) {
      Number n = numberOf(v);
      if (!n.ref())
        return n;
      numbers.push_back(planNumber(v, n.category()));
      return OpCall::numberSlot(n.category(), static_cast<uint32_t>(numbers.size() - 1));
    };
    BoxedOp<CallSlot> boxed(op, info, {slot, number, symbols_});
    uint32_t rngAt = static_cast<uint32_t>(numbers.size());
    for (size_t p = 0; p < info.params.size(); ++p)
      if (info.params[p].kind == ParamKind::Rng)
        for (Value v : ranges[p])
          numbers.push_back(planNumber(v, Category::Int));
    uint32_t dimsAt = static_cast<uint32_t>(numbers.size());
    for (const Arg<CallSlot> &a : boxed.args()) {
      if (a.tag == ArgTag::Dim)
        numbers.push_back(PlanInt::of(a.dim));
      else if (a.tag == ArgTag::DimList)
        for (const Dim &d : a.dimList())
          numbers.push_back(PlanInt::of(d));
    }
    uint32_t firstOut = static_cast<uint32_t>(tensors.size());
    SmallVector<std::pair<uint32_t, uint32_t>> afterwards;
    for (size_t r = 0; r < info.results.size() && r < op->getNumResults(); ++r)
      tensors.push_back(outBuffer(op->getResult(static_cast<unsigned>(r)), step, afterwards));
    b_.addCall(std::make_unique<OpCall>(info, boxed.args(), dimsAt, rngAt, firstOut), Span<const uint32_t>(tensors),
               Span<const PlanInt>(numbers), step);
    for (auto [to, from] : afterwards)
      addCopy(to, from, std::string("layout of ") + info.name);
    ++(library ? stats_.libraryCalls : stats_.otherSteps);
  }

  Dim elements(Value v) {
    Dim n(1);
    for (const Dim &d : symbols_.sizes(v))
      n *= d;
    return n;
  }

  /// Twice the multiplications of a matrix product, convolution or attention (masked pairs too), or of the gradients of
  /// both; 0 for other ops.
  Dim flopsOf(Operation *op, const OpInfo &info, const OperandRanges &ranges) {
    if (info.kind != OpKind::Contraction && info.kind != OpKind::Structured)
      return Dim(0);
    llvm::StringMap<Value> named;
    Value last;
    for (size_t p = 0; p < info.params.size(); ++p)
      for (Value v : ranges[p])
        if (isa<RankedTensorType>(v.getType()))
          named[info.params[p].name] = last = v;
    auto orResult = [&](StringRef name) { return named.contains(name) ? named[name] : op->getResult(0); };
    if (info.kind == OpKind::Contraction) {
      Dims right = symbols_.sizes(last);
      return Dim(2) * elements(op->getResult(0)) * (right.size() > 1 ? right[right.size() - 2] : right[0]);
    }
    if (named.contains("query")) { // two products; the gradient has five, the scores again among them
      Dims keys = symbols_.sizes(named["key"]);
      return Dim(named.contains("grad") ? 10 : 4) * elements(named["query"]) * keys[keys.size() - 2];
    }
    if (!isLibrary(info))
      return Dim(0);
    if (!named.contains("input") && !named.contains("grad")) // packing
      return Dim(0);
    if (auto weight = op->getAttrOfType<DenseI64ArrayAttr>("weight_sizes")) {
      ArrayRef<int64_t> w = weight.asArrayRef();
      return Dim(2) * elements(op->getResult(0)) * Dim(w[1] * w[2] * w[3]);
    }
    Dim n = Dim(2) * elements(orResult("grad"));
    Dims sizes = symbols_.sizes(orResult("weight"));
    for (size_t i = 1; i < sizes.size(); ++i)
      n *= sizes[i];
    return n;
  }

  /// Eager kernels fill row-major results, and channels-last ones where the op says so; another layout is a copy.
  uint32_t outBuffer(Value v, StepInfo &step, SmallVectorImpl<std::pair<uint32_t, uint32_t>> &afterwards) {
    uint32_t id = makeBuffer(v);
    const PlanBuffer &b = b_.buffer(id);
    if (!isRowMajor(b.sizes, b.strides) && !isChannelsLast(v)) {
      afterwards.push_back({id, b_.addTemp(dtypeOf(v), symbols_.sizes(v))});
      id = afterwards.back().second;
    }
    step.writes.push_back(b_.buffer(id).root);
    return id;
  }

  /// The new value of a mutated operand starts as a copy of the old one.
  DenseMap<Value, uint32_t> copyMutated(Operation *op, const OpInfo &info, const OperandRanges &ranges,
                                        StepInfo &step) {
    DenseMap<Value, uint32_t> to;
    unsigned next = static_cast<unsigned>(info.results.size());
    for (size_t p = 0; p < info.params.size(); ++p)
      if (isMutatedKind(info.params[p].kind))
        for (Value v : ranges[p]) {
          uint32_t id = makeBuffer(op->getResult(next++));
          if (b_.buffer(id).root != b_.buffer(bufferOf(v)).root)
            addCopy(id, bufferOf(v), std::string("operand of ") + info.name);
          step.writes.push_back(b_.buffer(id).root);
          to[v] = id;
        }
    return to;
  }

  void addCopy(uint32_t to, uint32_t from, std::string name) {
    StepInfo info;
    info.name = std::move(name);
    b_.addCopy(to, from, std::move(info));
    ++stats_.memorySteps;
  }

  /// Fresh results first, then what is written back to inputs; inputs that are both are saved before.
  void copyResults() {
    for (Result &r : results_)
      if (!r.direct && r.donated < 0)
        addCopy(r.buffer, bufferOf(r.value), "result");
    SmallVector<std::pair<uint32_t, uint32_t>> copies;
    for (Result &r : results_) {
      if (r.direct || r.donated < 0)
        continue;
      uint32_t from = bufferOf(r.value);
      if (b_.buffer(from).kind == BufferKind::Input) {
        uint32_t saved = b_.addTemp(dtypeOf(r.value), symbols_.sizes(r.value));
        addCopy(saved, from, "old value");
        from = saved;
      }
      copies.push_back({r.buffer, from});
    }
    for (auto [to, from] : copies)
      addCopy(to, from, "write back");
  }

  struct Result {
    Value value;
    int32_t donated;
    uint32_t buffer;
    bool direct;
  };
  func::FuncOp func_;
  const llvm::StringMap<CompiledKernel> &kernels_;
  ExecutableStats &stats_;
  Symbols symbols_;
  Layouts layouts_;
  LaunchPlanBuilder b_;
  std::vector<Value> inputs_;
  DenseMap<Value, uint32_t> buffers_;
  DenseMap<Value, int32_t> numberOf_;
  DenseMap<Value, int64_t> lastUse_;
  DenseMap<Operation *, int64_t> positions_;
  DenseSet<Value> taken_;
  std::vector<Result> results_;
  llvm::StringSet<> launched_;
  std::vector<std::shared_ptr<const void>> code_;
};

} // namespace

std::shared_ptr<LaunchPlan> buildPlan(func::FuncOp func, const llvm::StringMap<CompiledKernel> &kernels,
                                      ExecutableStats &stats) {
  return PlanMaker(func, kernels, stats).run();
}

} // namespace dlc::compiler
