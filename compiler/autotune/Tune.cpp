// Kernels are tuned in the order of the time they take in a run; each gets a share of the budget by that time. What is
// left undecided keeps the default and has no entry, so that a later run goes on there.
#include "compiler/autotune/Tune.h"
#include "compiler/autotune/Candidates.h"
#include "compiler/autotune/KernelBench.h"
#include "compiler/autotune/Progress.h"
#include "compiler/autotune/TuningStore.h"
#include "compiler/cpu/CpuCompiler.h"
#include "compiler/graph/Layouts.h"
#include "compiler/lower/KernelPlan.h"
#include "compiler/lower/Schedule.h"
#include "runtime/core/Knobs.h"
#include "runtime/core/PhaseTimes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"

#include <chrono>

using namespace mlir;

namespace dlc::compiler {

namespace {

using ir::Symbols;
using ir::kernel::ScheduleAttr;
using Kernel = ir::kernel::FuncOp;

constexpr size_t kMeasured = 8;        ///< candidates that are compiled and raced, beside the default
constexpr double kWorthTuning = 0.005; ///< of the time of all kernels

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// 1, 2, 3-4, 5-8, ...
int64_t shapeClass(int64_t n) {
  int64_t c = 1;
  while (c < n)
    c *= 2;
  return c;
}

std::string textOf(ScheduleAttr schedule) {
  std::string text;
  llvm::raw_string_ostream(text) << schedule;
  return text;
}

std::vector<int64_t> domainOf(Kernel kernel, const std::vector<int64_t> &ints) {
  std::vector<int64_t> dims;
  for (unsigned d = 0; d < kernel.getNumDims(); ++d)
    dims.push_back(kernel.isStaticDim(d) ? kernel.getDimSizes()[d]
                                         : ints[kernel.getIntIndex(kernel.getSizeArg(d).getArgNumber())]);
  return dims;
}

/// One kernel of a graph with its largest launch.
struct Task {
  Kernel kernel;
  KernelProblem problem;
  std::vector<int64_t> dims;
  std::string key;
  double points = 0, launches = 0; ///< launches of this size that all of them are worth
  double seconds = -1;             ///< of the default, all launches; negative: not measured
};

/// Finds out what launches give to kernels.
class Launches {
public:
  explicit Launches(func::FuncOp main) : main_(main), symbols_(main), layouts_(symbols_) {
    setFunctionLayouts(main, layouts_);
    for (BlockArgument arg : main.getArguments())
      if (isa<RankedTensorType>(arg.getType()))
        streamBytes_ += span(arg) * static_cast<int64_t>(itemSize(ir::dtypeOf(arg)));
  }

  std::vector<Task> tasks(ArrayRef<Kernel> kernels) {
    std::vector<Task> tasks;
    llvm::StringMap<size_t> taskOf;
    for (Kernel kernel : kernels) {
      taskOf[kernel.getSymName()] = tasks.size();
      tasks.emplace_back().kernel = kernel;
    }
    for (Operation &op : main_.getBody().front())
      if (auto name = op.getAttrOfType<FlatSymbolRefAttr>("kernel"))
        if (auto it = taskOf.find(name.getValue()); it != taskOf.end())
          add(tasks[it->second], &op);
    // Functions beside main make what follows from parameters: they run once.
    llvm::erase_if(tasks, [](const Task &task) { return task.problem.buffers.empty(); });
    for (Task &task : tasks) {
      task.problem.streamBytes = streamBytes_;
      task.launches = task.points > 0 ? total_[task.kernel] / task.points : 0;
      task.key = tuningKey(task.kernel, task.dims);
    }
    return tasks;
  }

private:
  int64_t at(const Dim &d) const { return evaluate(d, symbols_.hints()); }

  int64_t span(Value v) {
    const Layout &l = layouts_.of(v);
    int64_t dense = 1, strided = 1;
    for (size_t i = 0; i < l.sizes.size(); ++i) {
      dense *= at(l.sizes[i]);
      strided += (at(l.sizes[i]) - 1) * at(l.strides[i]);
    }
    return dense == 0 ? 0 : std::max(dense, strided);
  }

  /// What a result that goes to an input's memory may have as its span: that of the input.
  int64_t spanOfResult(Value v) {
    int64_t elements = span(v);
    for (OpOperand &use : v.getUses())
      if (use.getOwner()->hasTrait<OpTrait::IsTerminator>())
        if (auto donated = main_.getResultAttrOfType<IntegerAttr>(use.getOperandNumber(), "dlc.write_back"))
          elements = std::max(elements, span(tensorInput(donated.getInt())));
    return elements;
  }

  Value tensorInput(int64_t k) {
    for (BlockArgument arg : main_.getArguments())
      if (isa<RankedTensorType>(arg.getType()) && k-- == 0)
        return arg;
    return {};
  }

  void add(Task &task, Operation *launch) {
    KernelProblem p;
    Dims offsets = symbols_.dims(launch->getAttrOfType<AffineMapAttr>("offsets").getValue());
    auto addBuffer = [&](Value v, int64_t elements) {
      int64_t first = at(offsets[p.buffers.size()]);
      p.buffers.push_back({ir::dtypeOf(v), elements + std::abs(first), std::max<int64_t>(first, 0)});
    };
    SmallVector<Value> numbers;
    for (Value v : launch->getOperands())
      isa<RankedTensorType>(v.getType()) ? addBuffer(v, span(v)) : numbers.push_back(v);
    for (Value v : launch->getResults()) {
      int64_t elements = spanOfResult(v);
      addBuffer(v, elements);
      streamBytes_ += elements * static_cast<int64_t>(itemSize(ir::dtypeOf(v)));
    }
    for (const Dim &d : symbols_.dims(launch->getAttrOfType<AffineMapAttr>("ints").getValue()))
      p.ints.push_back(at(d));
    auto positions = launch->getAttrOfType<DenseI64ArrayAttr>("number_at");
    for (size_t i = 0; i < numbers.size(); ++i) {
      double half = 0.5;
      int64_t bits = 1;
      if (isa<FloatType>(numbers[i].getType()))
        std::memcpy(&bits, &half, sizeof(bits));
      p.ints[positions[static_cast<int64_t>(i)]] = bits;
    }
    std::vector<int64_t> dims = domainOf(task.kernel, p.ints);
    double points = 1;
    for (int64_t d : dims)
      points *= static_cast<double>(d);
    total_[task.kernel] += points;
    if (task.problem.buffers.empty() || points > task.points) {
      task.problem = std::move(p);
      task.dims = std::move(dims);
      task.points = points;
    }
  }

  func::FuncOp main_;
  Symbols symbols_;
  Layouts layouts_;
  DenseMap<Operation *, double> total_;
  int64_t streamBytes_ = 0;
};

/// Gives `kernel` the schedule of an entry; false if it is none that can be lowered here.
bool applyEntry(Kernel kernel, const TuningEntry &entry, CpuCompiler &compiler) {
  if (entry.schedule.empty())
    return true;
  ScopedDiagnosticHandler quiet(kernel.getContext(), [](Diagnostic &) { return success(); });
  auto schedule = dyn_cast_or_null<ScheduleAttr>(parseAttribute(entry.schedule, kernel.getContext()));
  ScheduleAttr before = kernel.getScheduleAttr();
  if (!schedule)
    return false;
  kernel.setScheduleAttr(schedule);
  ScheduleAttr completed = completeSchedule(kernel, compiler.target().vectorBits);
  if (completed) {
    kernel.setScheduleAttr(completed);
    if (succeeded(planKernel(kernel)))
      return true;
  }
  kernel.setScheduleAttr(before);
  return false;
}

/// `kernel` with each of the schedules, compiled side by side.
std::vector<CompiledKernel> compileAll(Kernel kernel, ArrayRef<ScheduleAttr> schedules, CpuCompiler &compiler) {
  std::vector<Kernel> copies;
  for (ScheduleAttr schedule : schedules) {
    copies.push_back(cast<Kernel>(kernel->clone()));
    copies.back().setScheduleAttr(schedule);
  }
  auto compiled = compiler.compile(copies);
  for (Kernel copy : copies)
    copy->erase();
  if (!compiled) {
    llvm::consumeError(compiled.takeError());
    return {};
  }
  return std::move(*compiled);
}

/// Times the defaults, so that the budget goes where the time goes.
void timeDefaults(MutableArrayRef<Task> tasks, CpuCompiler &compiler, double deadline) {
  for (Task &task : tasks) {
    if (now() >= deadline)
      return;
    std::vector<CompiledKernel> one = compileAll(task.kernel, task.kernel.getScheduleAttr(), compiler);
    if (one.empty())
      continue;
    KernelBench bench(task.problem);
    bench.sample(one[0]);
    task.seconds = bench.sample(one[0]) * task.launches;
  }
}

} // namespace

std::string tuningKey(Kernel kernel, const std::vector<int64_t> &dims) {
  std::string text = tuningHost() + "sizes";
  for (unsigned d = 0; d < kernel.getNumDims(); ++d)
    if (!kernel.isStaticDim(d))
      text += " " + std::to_string(shapeClass(dims[d]));
  Kernel copy = cast<Kernel>(kernel->clone());
  copy.setSymName("kernel");
  copy.removeScheduleAttr();
  llvm::raw_string_ostream os(text);
  os << '\n';
  copy->print(os, OpPrintingFlags().useLocalScope());
  copy->erase();
  return text;
}

bool tuneKernel(Kernel kernel, const KernelProblem &problem, CpuCompiler &compiler, double deadline,
                double (&seconds)[2], const RaceRules &rules) {
  TuningSizes sizes{domainOf(kernel, problem.ints), compiler.target().vectorBits};
  std::vector<ScheduleAttr> schedules = candidateSchedules(kernel, sizes, kMeasured);
  std::vector<CompiledKernel> compiled = compileAll(kernel, schedules, compiler);
  if (compiled.empty())
    return false;
  KernelBench bench(problem);
  Race race([&](size_t i) { return bench.sample(compiled[i]); }, now, canarySeconds, rules);
  RaceResult result = race.run(compiled.size(), deadline);
  countPhase("candidates measured", static_cast<int64_t>(compiled.size()));
  if (!knobs().logs.empty() && logEnabled("tuning"))
    for (size_t i = 0; i < compiled.size(); ++i)
      logLine("tuning", str(kernel.getSymName().str(), i == result.winner && result.decided ? " * " : "   ",
                            1e6 * result.best[i], " us ", textOf(schedules[i])));
  if (!result.decided)
    return false;
  kernel.setScheduleAttr(schedules[result.winner]);
  if (compiled.size() == 1)
    result.best[0] = bench.sample(compiled[0]);
  seconds[0] = result.best[0];
  seconds[1] = result.best[result.winner];
  return true;
}

TuningReport tuneKernels(func::FuncOp main, ArrayRef<Kernel> kernels, const CompileOptions &options, TuningStore &store,
                         CpuCompiler &compiler) {
  PhaseTimer timer("tuning");
  TuningReport report;
  std::vector<Task> open;
  for (Task &task : Launches(main).tasks(kernels)) {
    ScheduleAttr before = task.kernel.getScheduleAttr();
    std::optional<TuningEntry> entry = store.find(task.key);
    if (entry && applyEntry(task.kernel, *entry, compiler)) {
      ++report.known;
      report.changed += task.kernel.getScheduleAttr() != before;
    } else if (task.points > 0) {
      open.push_back(std::move(task));
    }
  }
  if (options.tuningSeconds <= 0 || open.empty()) {
    report.open = static_cast<int64_t>(open.size());
    return report;
  }
  double end = now() + options.tuningSeconds;
  timeDefaults(open, compiler, end);
  std::sort(open.begin(), open.end(), [](const Task &a, const Task &b) { return a.seconds > b.seconds; });
  double left = 0;
  for (const Task &task : open)
    left += std::max(0.0, task.seconds);
  double worth = left * kWorthTuning;
  TuningProgress progress(options, open.size());
  for (Task &task : open) {
    double start = now(), time = std::max(0.0, task.seconds), share = left > 0 ? time / left : 1;
    left -= time;
    double seconds[2] = {time / std::max(1.0, task.launches), time / std::max(1.0, task.launches)};
    ScheduleAttr before = task.kernel.getScheduleAttr();
    // Twice its share: the small ones at the end need less than they are worth.
    bool decided = (task.seconds >= 0 && task.seconds < worth) ||
                   (start < end && tuneKernel(task.kernel, task.problem, compiler,
                                              start + std::min(1.0, 2 * share) * (end - start), seconds));
    if (!decided) {
      ++report.open;
    } else {
      ++report.tuned;
      bool differs = task.kernel.getScheduleAttr() != before;
      report.changed += differs;
      store.put(task.key, {differs ? textOf(task.kernel.getScheduleAttr()) : "", seconds[0], seconds[1]});
    }
    report.before += seconds[0] * task.launches;
    report.after += seconds[1] * task.launches;
    auto gain = [](double before, double after) { return after > 0 ? before / after : 1; };
    progress.step(task.kernel.getSymName().str(), gain(seconds[0], seconds[1]), decided,
                  gain(report.before, report.after));
  }
  progress.end(report.tuned, report.changed, report.open);
  return report;
}

} // namespace dlc::compiler
