// Running a plan: bind the call's tensors and numbers to a context of its shape, then walk the steps.
#include "runtime/exec/LaunchPlan.h"
#include "runtime/core/SerialScope.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/exec/PlanShape.h"
#include "runtime/exec/Profile.h"
#include <chrono>
#include <cstring>

namespace dlc {

namespace {
constexpr size_t kKeptContexts = 4;
constexpr size_t kKeptShapes = 64;
/// A task of the pool should be worth this much, in sixteenths of a nanosecond: little, for what does not pay is found
/// by measuring (StepTuner).
constexpr int64_t kTaskCost = 1000 * 16;
/// A call that takes less is not measured, and stays on its thread.
constexpr int64_t kSmallCall = 10000;
/// Of one core that does well.
constexpr int64_t kFlopsPerNs = 100, kBytesPerNs = 16;

/// Copies elements of `item` bytes between two layouts of the same sizes.
void copyStrided(char *to, const int64_t *toStrides, const char *from, const int64_t *fromStrides, const int64_t *sizes,
                 size_t rank, size_t item) {
  if (rank == 0) {
    std::memcpy(to, from, item);
    return;
  }
  int64_t n = sizes[0], ts = toStrides[0] * static_cast<int64_t>(item),
          fs = fromStrides[0] * static_cast<int64_t>(item);
  if (rank == 1 && toStrides[0] == 1 && fromStrides[0] == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * item);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    copyStrided(to + i * ts, toStrides + 1, from + i * fs, fromStrides + 1, sizes + 1, rank - 1, item);
}

bool isRowMajor(Ints sizes, Ints strides) {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected)
      return false;
    expected *= sizes[i];
  }
  return true;
}

int64_t product(Ints v) {
  int64_t n = 1;
  for (int64_t x : v)
    n *= x;
  return n;
}
} // namespace

PlanInt PlanInt::ofFloat(double v) {
  int64_t raw;
  std::memcpy(&raw, &v, sizeof raw);
  return of(Dim(raw));
}

void throwKernelFault(int64_t fault, const std::string &step) {
  if (fault == 1)
    fail(ErrorKind::Runtime, "ZeroDivisionError: integer division or remainder by zero in ", step,
         "\nCheck the divisor for zeros, or divide floating-point tensors.");
  fail(ErrorKind::Index, "index out of range in ", step,
       "\nEvery index must be at least 0 and less than the size of the indexed dimension.");
}

LaunchPlan::~LaunchPlan() = default;

size_t LaunchPlan::keptContexts() const {
  std::lock_guard<ForkMutex> lock(mutex_);
  return free_.size();
}

void LaunchPlan::dropContexts() const {
  std::vector<std::unique_ptr<Context>> dropped; // destroyed without the lock
  std::lock_guard<ForkMutex> lock(mutex_);
  dropped.swap(free_);
}

size_t LaunchPlan::arenaBytes(Ints symbols) const { return shapeFor(symbols)->arenaBytes; }

//===--- Shapes and contexts ---===//

std::shared_ptr<const LaunchPlan::Shape> LaunchPlan::shapeFor(Ints symbols) const {
  {
    std::lock_guard<ForkMutex> lock(mutex_);
    for (size_t i = 0; i < shapes_.size(); ++i)
      if (equal(Ints(shapes_[i]->symbols), symbols)) {
        std::rotate(shapes_.begin(), shapes_.begin() + i, shapes_.begin() + i + 1);
        return shapes_.front();
      }
  }
  std::shared_ptr<const Shape> made = makeShape(symbols);
  std::lock_guard<ForkMutex> lock(mutex_);
  shapes_.insert(shapes_.begin(), made);
  if (shapes_.size() > kKeptShapes)
    shapes_.pop_back();
  return made;
}

std::shared_ptr<const LaunchPlan::Shape> LaunchPlan::makeShape(Ints symbols) const {
  auto s = std::make_shared<Shape>();
  s->symbols = symbols.vec();
  auto evalAll = [&](const Dims &dims) {
    Sizes v;
    for (const Dim &d : dims)
      v.push_back(evaluate(d, symbols));
    return v;
  };
  for (const PlanBuffer &b : buffers_)
    s->layouts.push_back({evalAll(b.sizes), evalAll(b.strides), evaluate(b.offset, symbols)});
  for (const PlanInt &i : ints_) {
    int64_t value = i.number >= 0 ? 0 : evaluate(i.dim, symbols);
    s->ints.push_back(i.number < 0 && i.category == Category::Float ? Number(static_cast<double>(value)).rawBits()
                                                                    : value);
  }
  for (const Range &r : ranges_) {
    int64_t extent = evaluate(r.extent, symbols), cost = evaluate(r.cost, symbols);
    int64_t tasks = std::max<int64_t>(1, cost / kTaskCost);
    int64_t units = (extent + r.multiple - 1) / r.multiple;
    s->splits.push_back({extent, units, r.multiple, std::max<int64_t>(1, (units + tasks - 1) / tasks)});
  }
  s->nanoseconds = estimate(symbols);
  std::vector<ArenaInterval> intervals;
  for (auto &[buffer, interval] : temps_) {
    intervals.push_back(interval);
    intervals.back().bytes = static_cast<size_t>(product(s->layouts[buffer].sizes)) * itemSize(buffers_[buffer].dtype);
  }
  std::vector<int64_t> offsets(intervals.size());
  s->arenaBytes = planArena(Span<const ArenaInterval>(intervals), Span<int64_t>(offsets));
  s->tuner = std::make_unique<StepTuner>(steps_.size());
  s->arenaOffsets.assign(buffers_.size(), 0);
  for (size_t i = 0; i < temps_.size(); ++i)
    s->arenaOffsets[temps_[i].first] = offsets[i];
  return s;
}

/// What a run takes on one thread, at least.
int64_t LaunchPlan::estimate(Ints symbols) const {
  int64_t ns = 0;
  for (const PlanStep &s : steps_) {
    if (s.kind == StepKind::Check)
      continue;
    const StepInfo &info = infos_[s.info];
    int64_t bytes = evaluate(info.readBytes, symbols) + evaluate(info.writtenBytes, symbols);
    ns += s.kind == StepKind::Kernel ? evaluate(ranges_[s.extra].cost, symbols) / 16
          : info.stepClass == StepClass::Library
              ? std::max(evaluate(info.flops, symbols) / kFlopsPerNs, bytes / kBytesPerNs)
              : bytes; // of what ops do with an element nothing is known
  }
  return ns;
}

std::unique_ptr<LaunchPlan::Context> LaunchPlan::acquire(Ints symbols) const {
  {
    std::lock_guard<ForkMutex> lock(mutex_);
    for (size_t i = free_.size(); i-- > 0;)
      if (equal(Ints(free_[i]->shape->symbols), symbols)) {
        std::unique_ptr<Context> c = std::move(free_[i]);
        free_.erase(free_.begin() + i);
        return c;
      }
  }
  return makeContext(shapeFor(symbols));
}

void LaunchPlan::release(std::unique_ptr<Context> c) const {
  for (uint32_t t : ioTensors_) {
    const PlanBuffer &b = buffers_[tensorSlots_[t]];
    if (b.isView)
      c->tensors[t].impl()->storage = nullptr;
    else
      c->tensors[t] = Tensor();
  }
  for (uint32_t b : inputs_)
    c->roots[b] = Tensor();
  for (auto [buffer, value] : derivedBuffers_)
    c->roots[buffer] = Tensor();
  c->derived.reset();
  for (const Output &o : outputs_)
    c->roots[o.buffer] = Tensor();
  std::unique_ptr<Context> oldest;
  std::lock_guard<ForkMutex> lock(mutex_);
  free_.push_back(std::move(c));
  if (free_.size() > kKeptContexts) {
    oldest = std::move(free_.front());
    free_.erase(free_.begin());
  }
}

std::unique_ptr<LaunchPlan::Context> LaunchPlan::makeContext(std::shared_ptr<const Shape> shape) const {
  auto c = std::make_unique<Context>();
  c->shape = shape;
  c->ints = shape->ints;
  c->arena = Storage::allocate(shape->arenaBytes);
  c->bases.assign(buffers_.size(), nullptr);
  c->roots.resize(buffers_.size());
  char *arena = static_cast<char *>(c->arena->data());
  for (uint32_t i = 0; i < buffers_.size(); ++i) {
    const PlanBuffer &b = buffers_[i];
    if (b.isView)
      continue;
    if (b.kind == BufferKind::Temp)
      c->bases[i] = arena ? arena + shape->arenaOffsets[i] : nullptr;
    else if (b.kind == BufferKind::Constant) {
      c->roots[i] = constants_[b.index];
      c->bases[i] = constants_[b.index].dataAs<char>();
    }
  }
  for (uint32_t buffer : slots_) {
    if (buffer == kErrorSlot) {
      c->pointers.push_back(&c->error);
      continue;
    }
    const PlanBuffer &b = buffers_[buffer];
    char *base = c->bases[b.root];
    int64_t bytes = shape->layouts[buffer].offset * static_cast<int64_t>(itemSize(b.dtype));
    c->pointers.push_back(base ? base + bytes : nullptr);
  }
  for (uint32_t buffer : tensorSlots_) {
    const PlanBuffer &b = buffers_[buffer];
    const Shape::Layout &l = shape->layouts[buffer];
    if (b.kind == BufferKind::Temp) {
      int64_t at = shape->arenaOffsets[b.root] / static_cast<int64_t>(itemSize(b.dtype));
      c->tensors.push_back(Tensor::viewOf(c->arena, Ints(l.sizes), Ints(l.strides), at + l.offset, b.dtype));
    } else if (b.kind == BufferKind::Constant) {
      const Tensor &t = constants_[b.index];
      c->tensors.push_back(
          Tensor::viewOf(t.storageRef(), Ints(l.sizes), Ints(l.strides), t.offset() + l.offset, b.dtype));
    } else if (b.isView) {
      c->tensors.push_back(Tensor::viewOf(c->arena, Ints(l.sizes), Ints(l.strides), 0, b.dtype));
    } else {
      c->tensors.push_back(Tensor());
    }
  }
  return c;
}

//===--- A call ---===//

void LaunchPlan::checkInput(size_t k, const Tensor &t, const Shape &shape) const {
  const PlanBuffer &b = buffers_[inputs_[k]];
  const Shape::Layout &l = shape.layouts[inputs_[k]];
  bool ok = t.defined() && t.dtype() == b.dtype && t.sizes() == l.sizes;
  for (size_t d = 0; ok && d < l.sizes.size(); ++d)
    ok = l.sizes[d] <= 1 || t.strides()[d] == l.strides[d] || t.numel() == 0;
  DLC_CHECK(ok, "compiled graph: input ", k, " is ", t.defined() ? describe(t) : std::string("undefined"),
            " with strides ", t.defined() ? listStr(t.strides()) : std::string("-"), ", compiled for ", nameOf(b.dtype),
            listStr(l.sizes), " with strides ", listStr(l.strides));
}

void LaunchPlan::bindInputs(Context &c, Span<const Tensor> inputs) const {
  DLC_CHECK(inputs.size() == inputs_.size(), "compiled graph: ", inputs.size(), " inputs for ", inputs_.size());
  for (size_t k = 0; k < inputs_.size(); ++k) {
    checkInput(k, inputs[k], *c.shape);
    c.roots[inputs_[k]] = inputs[k];
    c.bases[inputs_[k]] = inputs[k].dataAs<char>();
  }
  if (derived_) {
    c.derived = derived_->get(inputs);
    for (auto [buffer, value] : derivedBuffers_) {
      c.roots[buffer] = c.derived->values[value]->value;
      c.bases[buffer] = c.roots[buffer].dataAs<char>();
    }
  }
}

void LaunchPlan::bindOutput(Context &c, size_t k, const Tensor &t) const {
  uint32_t buffer = outputs_[k].buffer;
  c.roots[buffer] = t;
  c.bases[buffer] = t.dataAs<char>();
}

/// The pointers of kernels and the tensors of calls that differ in each run.
void LaunchPlan::bindSlots(Context &c) const {
  const Shape &shape = *c.shape;
  for (uint32_t s : ioSlots_) {
    const PlanBuffer &b = buffers_[slots_[s]];
    char *base = c.bases[b.root];
    c.pointers[s] = base ? base + shape.layouts[slots_[s]].offset * static_cast<int64_t>(itemSize(b.dtype)) : nullptr;
  }
  for (uint32_t t : ioTensors_) {
    const PlanBuffer &b = buffers_[tensorSlots_[t]];
    const Tensor &root = c.roots[b.root];
    if (!b.isView) {
      c.tensors[t] = root;
      continue;
    }
    c.tensors[t].impl()->storage = root.storageRef();
    c.tensors[t].impl()->offset = root.offset() + shape.layouts[tensorSlots_[t]].offset;
  }
}

void LaunchPlan::bindNumbers(Context &c, Span<const Number> numbers) const {
  for (const NumberPatch &p : numberPatches_) {
    DLC_CHECK(static_cast<size_t>(p.number) < numbers.size(), "compiled graph: number operand ", p.number,
              " is missing");
    const Number &n = numbers[p.number];
    c.ints[p.at] = p.category == Category::Float ? Number(n.toDouble()).rawBits() : n.toInt();
  }
  c.error = 0;
}

void LaunchPlan::bind(Context &c, Span<const Tensor> inputs, Span<const Number> numbers,
                      std::vector<Tensor> &outputs) const {
  bindInputs(c, inputs);
  outputs.clear();
  outputs.reserve(outputs_.size());
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Output &o = outputs_[k];
    const Shape::Layout &l = c.shape->layouts[o.buffer];
    outputs.push_back(o.donatedInput >= 0
                          ? inputs[o.donatedInput]
                          : Tensor::emptyStrided(Ints(l.sizes), Ints(l.strides), buffers_[o.buffer].dtype));
    bindOutput(c, k, outputs.back());
  }
  bindSlots(c);
  bindNumbers(c, numbers);
}

void LaunchPlan::run(Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outputs,
                     std::vector<double> *seconds) const {
  std::unique_ptr<Context> c = acquire(symbols);
  struct Return {
    const LaunchPlan &plan;
    std::unique_ptr<Context> &context;
    ~Return() { plan.release(std::move(context)); }
  } giveBack{*this, c};
  bind(*c, inputs, numbers, outputs);
  if (__builtin_expect(isProfiling() && !seconds, 0)) {
    std::vector<double> times;
    executeTimed(*c, times);
    return addToProfile(*this, symbols, times);
  }
  seconds ? executeTimed(*c, *seconds) : execute(*c, 1);
  for (const Output &o : outputs_)
    if (o.donatedInput >= 0) // what others derived from the old bytes is stale, whenever the version says so
      StorageWatch::wrote(inputs[o.donatedInput].storage());
}

void LaunchPlan::runKernel(const PlanStep &s, Context &c) const {
  auto fn = reinterpret_cast<CompiledKernel>(const_cast<void *>(s.fn));
  void *const *pointers = c.pointers.data() + s.slot0;
  int64_t *ints = c.ints.data() + s.int0;
  Shape::Split split = c.shape->splits[s.extra];
  if (split.extent <= 0)
    return;
  if (parallelShares(split.units, split.grain) <= 1) {
    ints[s.numInts] = 0;
    ints[s.numInts + 1] = split.extent;
    fn(pointers, ints);
    return;
  }
  parallelFor(split.units, split.grain, [&](int64_t begin, int64_t end) {
    int64_t local[256];
    std::memcpy(local, ints, s.numInts * sizeof(int64_t));
    local[s.numInts] = begin * split.unit;
    local[s.numInts + 1] = std::min(split.extent, end * split.unit);
    fn(pointers, local);
  });
}

void LaunchPlan::runMemory(const PlanStep &s, Context &c) const {
  const Shape::Layout &to = c.shape->layouts[s.slot0];
  const PlanBuffer &b = buffers_[s.slot0];
  size_t item = itemSize(b.dtype);
  char *dst = c.bases[b.root] + to.offset * static_cast<int64_t>(item);
  int64_t n = product(to.sizes);
  if (n == 0)
    return;
  if (s.kind == StepKind::Fill) {
    DLC_CHECK(isRowMajor(Ints(to.sizes), Ints(to.strides)), "fill of a strided buffer");
    Number value = Number::fromRaw(s.isFloat ? Category::Float : Category::Int, c.ints[s.int0]);
    visitDType(b.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::fill_n(reinterpret_cast<T *>(dst), n, value.as<T>());
    });
    return;
  }
  uint32_t source = s.extra;
  const Shape::Layout &from = c.shape->layouts[source];
  char *src = c.bases[buffers_[source].root] + from.offset * static_cast<int64_t>(item);
  if (isRowMajor(Ints(to.sizes), Ints(to.strides)) && isRowMajor(Ints(from.sizes), Ints(from.strides)))
    std::memcpy(dst, src, static_cast<size_t>(n) * item);
  else
    copyStrided(dst, to.strides.data(), src, from.strides.data(), to.sizes.data(), to.sizes.size(), item);
}

inline void LaunchPlan::step(const PlanStep &s, Context &c, const StepInfo *&failing) const {
  switch (s.kind) {
  case StepKind::Kernel:
    runKernel(s, c);
    if (s.mayFail && __builtin_expect(c.error != 0, 0) && !failing)
      failing = &infos_[s.info];
    break;
  case StepKind::Call:
    if (failing)
      throwKernelFault(c.error, failing->name); // a kernel's result may be garbage that a call would trip over
    static_cast<const PlanCall *>(s.fn)->run(Span<Tensor>(c.tensors.data() + s.slot0, s.numSlots),
                                             Ints(c.ints.data() + s.int0, s.numInts));
    break;
  case StepKind::Copy:
  case StepKind::Fill:
    runMemory(s, c);
    break;
  case StepKind::Check:
    if (failing)
      throwKernelFault(c.error, failing->name);
    break;
  }
}

/// `times`: how often this is done in a row.
void LaunchPlan::execute(Context &c, int64_t times) const {
  const StepInfo *failing = nullptr;
  if (c.shape->nanoseconds * times < kSmallCall) {
    SerialScope alone(true);
    for (const PlanStep &s : steps_)
      step(s, c, failing);
    return;
  }
  FineScope fine(true);
  StepTuner &tuner = *c.shape->tuner;
  int threads = getNumThreads();
  if (threads > 1 && !inParallelRegion() && !tuner.done(threads) && tuner.begin(threads))
    return executeMeasured(c, tuner);
  for (size_t i = 0; i < steps_.size(); ++i) {
    SerialScope alone(tuner.serial(i));
    step(steps_[i], c, failing);
  }
}

void LaunchPlan::executeMeasured(Context &c, StepTuner &tuner) const {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
  struct Finish {
    StepTuner &tuner;
    double seconds = -1;
    ~Finish() { tuner.finish(seconds); }
  } finish{tuner};
  const StepInfo *failing = nullptr;
  Clock::time_point start = Clock::now();
  for (size_t i = 0; i < steps_.size(); ++i) {
    SerialScope alone(tuner.runSerial(i));
    Clock::time_point before = tuner.timesSteps() ? Clock::now() : start;
    step(steps_[i], c, failing);
    if (tuner.timesSteps())
      tuner.stepTook(i, since(before));
  }
  finish.seconds = since(start);
}

void LaunchPlan::executeTimed(Context &c, std::vector<double> &seconds) const {
  using Clock = std::chrono::steady_clock;
  const StepInfo *failing = nullptr;
  seconds.resize(infos_.size());
  FineScope fine(true);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const PlanStep &s = steps_[i];
    SerialScope alone(c.shape->tuner->serial(i));
    Clock::time_point start = Clock::now();
    step(s, c, failing);
    if (s.kind != StepKind::Check)
      seconds[s.info] += std::chrono::duration<double>(Clock::now() - start).count();
  }
}

} // namespace dlc
