// The executable form of a compiled graph: a flat list of steps over buffers whose sizes are expressions of the
// graph's symbols. Built once by the compiler; running it interprets no IR and allocates nothing but results.
#pragma once
#include "runtime/core/ForkSafe.h"
#include "runtime/core/Tensor.h"
#include "runtime/exec/DerivedValues.h"
#include "runtime/exec/MemoryPlan.h"
#include "runtime/exec/PlanSteps.h"
#include <memory>
#include <string>
#include <vector>

namespace dlc {

/// A compiled kernel: one pointer for each buffer, the error slot last; sizes, strides and scalars, and as the last
/// two the begin and end of the parallel range.
using CompiledKernel = void (*)(void *const *bufs, const int64_t *ints);

/// What a call step runs: an eager kernel or a library function on tensors over the plan's memory.
class PlanCall {
public:
  virtual ~PlanCall() = default;
  /// `tensors` and `ints` in the order in which they were given to addCall.
  virtual void run(Span<Tensor> tensors, Ints ints) const = 0;
};

/// A value of a step's integer list: an expression of the symbols, or a number operand of the graph.
struct PlanInt {
  Dim dim;
  int32_t number = -1;               ///< number operand, or -1
  Category category = Category::Int; ///< what the operand is converted to; floats travel bit-cast
  static PlanInt of(Dim d) { return {d, -1, Category::Int}; }
  static PlanInt ofFloat(double v);
  /// The expression's value as a double.
  static PlanInt ofFloatDim(Dim d) { return {d, -1, Category::Float}; }
  static PlanInt ofNumber(int32_t number, Category c) { return {Dim(0), number, c}; }
};

enum class StepKind : uint8_t { Kernel, Call, Copy, Fill, Check };

/// One step as it is executed.
struct PlanStep {
  const void *fn; ///< CompiledKernel or PlanCall
  uint32_t slot0; ///< first pointer (Kernel), tensor (Call) or buffer (Copy, Fill)
  uint32_t int0;  ///< first integer
  uint16_t numSlots;
  uint16_t numInts;
  StepKind kind;
  uint8_t mayFail;  ///< can set the error slot or throw
  uint16_t isFloat; ///< Fill: the value is a bit-cast double
  uint32_t info;    ///< index in infos()
  uint32_t extra;   ///< index of the parallel range (Kernel), source buffer (Copy)
};
static_assert(sizeof(PlanStep) == 32, "two steps fill a cache line");

/// Which part of a plan a step counts as.
enum class StepClass : uint8_t { Kernel, Library, Other, Memory };

/// What `explain`, statistics and the graph picture show of a step.
struct StepInfo {
  std::string name;
  StepClass stepClass = StepClass::Other;
  std::vector<std::string> ops;
  Dim readBytes, writtenBytes;         ///< by the sizes of the compiled recording
  Dim flops;                           ///< floating-point operations; 0 if not known
  std::vector<uint32_t> reads, writes; ///< root buffers
  bool mayFail = false;
};

enum class BufferKind : uint8_t { Input, Temp, Output, Constant };

/// A view of a root buffer; a root is a view of itself.
struct PlanBuffer {
  BufferKind kind;
  DType dtype;
  bool isView;
  uint32_t root;  ///< index of the root buffer, itself for roots
  uint32_t index; ///< of the root: which input, output, constant
  Dims sizes, strides;
  Dim offset; ///< in elements from the root's first element
};

class LaunchPlan {
public:
  ~LaunchPlan();
  /// Runs all steps. `numbers`: the graph's number operands in order; `symbols`: the values of its symbols. On return
  /// outputs[k] is a new tensor, or the donated input's handle. Throws what a failing step reports; then no donated
  /// input has been written. Any number of threads may run one plan.
  /// With `seconds`, the time of the steps of infos()[i] is added to (*seconds)[i].
  void run(Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outputs,
           std::vector<double> *seconds = nullptr) const;
  /// Runs the plan once for each row of `places`, one after the other: nothing is looked up or allocated between them.
  /// Throws as run() does, in the step that fails. False, and nothing is done, if it writes to donated inputs or keeps
  /// what follows from an input that moves.
  bool runSteps(const PlanSteps &steps, Span<const Number> numbers, Ints symbols) const;

  size_t numInputs() const { return inputs_.size(); }
  size_t numOutputs() const { return outputs_.size(); }
  Span<const PlanStep> steps() const { return {steps_.data(), steps_.size()}; }
  Span<const StepInfo> infos() const { return {infos_.data(), infos_.size()}; }
  Span<const PlanBuffer> buffers() const { return {buffers_.data(), buffers_.size()}; }
  /// The arena of this shape in bytes.
  size_t arenaBytes(Ints symbols) const;
  /// Arenas and tables kept for later calls.
  size_t keptContexts() const;
  void dropContexts() const;
  /// What the plan derives from its state inputs; null if nothing.
  const DerivedValues *derived() const { return derived_.get(); }
  /// Keeps `code` (what the step functions live in) alive as long as the plan.
  void retain(std::shared_ptr<void> code) { retained_.push_back(std::move(code)); }

private:
  friend class LaunchPlanBuilder;
  friend class PlanArchive;
  struct Shape;
  struct Context;
  struct Moving;
  struct Output {
    uint32_t buffer;
    int32_t donatedInput;
  };
  struct Range {
    Dim extent, cost; ///< points of the parallel range; sixteenths of a nanosecond of the whole step
    int64_t multiple; ///< pieces of the range begin at multiples of this
  };
  struct NumberPatch {
    uint32_t at;
    int32_t number;
    Category category;
  };

  LaunchPlan() = default;
  std::shared_ptr<const Shape> shapeFor(Ints symbols) const;
  std::shared_ptr<const Shape> makeShape(Ints symbols) const;
  std::unique_ptr<Context> acquire(Ints symbols) const;
  void release(std::unique_ptr<Context> context) const;
  std::unique_ptr<Context> makeContext(std::shared_ptr<const Shape> shape) const;
  void checkInput(size_t k, const Tensor &t, const Shape &shape) const;
  void bind(Context &c, Span<const Tensor> inputs, Span<const Number> numbers, std::vector<Tensor> &outputs) const;
  void bindInputs(Context &c, Span<const Tensor> inputs) const;
  void bindOutput(Context &c, size_t k, const Tensor &t) const;
  void bindNumbers(Context &c, Span<const Number> numbers) const;
  void bindSlots(Context &c) const;
  void findMoving(const Context &c, Span<const uint32_t> slots, Span<const uint32_t> buffers, Span<const uint8_t> moves,
                  std::vector<Moving> &out) const;
  bool canRunSteps(Span<const uint8_t> moves) const;
  void execute(Context &c, int64_t times) const;
  int64_t estimate(Ints symbols) const;
  void executeMeasured(Context &c, class StepTuner &tuner) const;
  void executeTimed(Context &c, std::vector<double> &seconds) const;
  void step(const PlanStep &s, Context &c, const StepInfo *&failing) const;
  void runKernel(const PlanStep &s, Context &c) const;
  void runMemory(const PlanStep &s, Context &c) const;

  std::vector<PlanStep> steps_;
  std::vector<StepInfo> infos_;
  std::vector<PlanBuffer> buffers_;
  std::vector<uint32_t> inputs_;
  std::shared_ptr<DerivedValues> derived_;
  std::vector<std::pair<uint32_t, uint32_t>> derivedBuffers_; // buffer, derived value
  std::vector<Output> outputs_;
  std::vector<Tensor> constants_;
  std::vector<uint32_t> slots_;               // buffer of each pointer
  std::vector<uint32_t> tensorSlots_;         // buffer of each tensor of a call
  std::vector<uint32_t> ioSlots_, ioTensors_; // those bound on every call
  std::vector<PlanInt> ints_;
  std::vector<NumberPatch> numberPatches_;
  std::vector<Range> ranges_;
  std::vector<std::pair<uint32_t, ArenaInterval>> temps_; // root buffer, lifetime in steps
  std::vector<std::unique_ptr<PlanCall>> calls_;
  std::vector<std::shared_ptr<void>> retained_;

  mutable ForkMutex mutex_;
  mutable std::vector<std::shared_ptr<const Shape>> shapes_; // most recently used first
  mutable std::vector<std::unique_ptr<Context>> free_;       // most recently used last
};

/// Collects buffers and steps in execution order.
class LaunchPlanBuilder {
public:
  LaunchPlanBuilder();
  ~LaunchPlanBuilder();
  uint32_t addInput(DType dtype, Dims sizes, Dims strides);
  /// A row-major value that follows from state inputs alone. `spec.from` may name derived values added before; unless
  /// `spec.needed`, steps may not use the buffer.
  uint32_t addDerived(DType dtype, Dims sizes, DerivedSpec spec);
  /// A temporary in the arena, row-major.
  uint32_t addTemp(DType dtype, Dims sizes);
  uint32_t addConstant(Tensor value);
  /// The next output. With `donatedInput` >= 0 it is written to that input's memory (and has its strides): the caller
  /// answers for steps that still read the old value, and no step that may fail may follow the first such write.
  uint32_t addOutput(DType dtype, Dims sizes, Dims strides, int32_t donatedInput = -1);
  /// Another layout of the memory of `of`; `offset` counts elements from the first element of `of`.
  uint32_t addView(uint32_t of, Dims sizes, Dims strides, Dim offset);
  const PlanBuffer &buffer(uint32_t id) const;

  /// `extent`: points of the parallel range; `cost`: estimated sixteenths of a nanosecond of the whole step;
  /// `multiple`: of points, where pieces of the range should begin.
  void addKernel(CompiledKernel fn, Span<const uint32_t> buffers, Span<const PlanInt> ints, Dim extent, Dim cost,
                 StepInfo info, int64_t multiple = 1);
  void addCall(std::unique_ptr<PlanCall> call, Span<const uint32_t> buffers, Span<const PlanInt> ints, StepInfo info);
  void addCopy(uint32_t to, uint32_t from, StepInfo info);
  void addFill(uint32_t to, const Number &value, StepInfo info);
  size_t numSteps() const;
  std::shared_ptr<LaunchPlan> finish();

private:
  void pushStep(StepKind kind, const void *fn, uint32_t slot0, size_t numSlots, Span<const PlanInt> ints,
                StepInfo info);
  uint32_t pushBuffer(PlanBuffer b);
  void insertCheck();
  void computeLifetimes();
  std::shared_ptr<LaunchPlan> plan_;
  std::vector<DerivedSpec> derived_;
};

/// Throws the error that a kernel reported through its error slot (never called with 0).
[[noreturn]] void throwKernelFault(int64_t fault, const std::string &step);

} // namespace dlc
