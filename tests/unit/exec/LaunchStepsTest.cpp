// Plans run for many steps in a row, and which work may leave its thread: values, allocations and cuts are counted.
#include "runtime/core/Allocator.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/exec/LaunchPlan.h"
#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>

using namespace dlc;

namespace {
std::atomic<int64_t> heapAllocations{0};
}
void *operator new(size_t n) {
  heapAllocations.fetch_add(1, std::memory_order_relaxed);
  if (void *p = std::malloc(n))
    return p;
  throw std::bad_alloc();
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }

namespace {

constexpr int64_t kWidth = 5;

/// out = before + x; sum = before * 2
void addKernel(void *const *bufs, const int64_t *ints) {
  auto at = [&](int k) { return static_cast<float *>(bufs[k]); };
  for (int64_t i = ints[0]; i < ints[1]; ++i) {
    at(2)[i] = at(0)[i] + at(1)[i];
    at(3)[i] = at(0)[i] * 2;
  }
}

/// The same as a call, over tensors.
class AddCall : public PlanCall {
public:
  void run(Span<Tensor> t, Ints) const override {
    void *bufs[4] = {t[0].data(), t[1].data(), t[2].data(), t[3].data()};
    int64_t range[2] = {0, kWidth};
    addKernel(bufs, range);
  }
};

void divideKernel(void *const *bufs, const int64_t *) {
  if (*static_cast<float *>(bufs[0]) == 3)
    *static_cast<int64_t *>(bufs[4]) = 1;
}

StepInfo named(const char *name) {
  StepInfo i;
  i.name = name;
  i.readBytes = i.writtenBytes = kWidth * 4;
  return i;
}

std::shared_ptr<LaunchPlan> adder(bool call, int donated = -1) {
  LaunchPlanBuilder b;
  Dims sizes{kWidth}, strides{1};
  uint32_t state = b.addInput(DType::F32, sizes, strides), x = b.addInput(DType::F32, sizes, strides);
  uint32_t out = b.addOutput(DType::F32, sizes, strides, donated), twice = b.addOutput(DType::F32, sizes, strides);
  if (call)
    b.addCall(std::make_unique<AddCall>(), {state, x, out, twice}, {}, named("add"));
  else
    b.addKernel(addKernel, {state, x, out, twice}, {}, kWidth, kWidth * 16, named("add"));
  return b.finish();
}

Tensor filled(int64_t n, float first, float step) {
  Tensor t = Tensor::empty({n}, DType::F32);
  for (int64_t i = 0; i < n; ++i)
    t.dataAs<float>()[i] = first + step * static_cast<float>(i);
  return t;
}

/// A running sum: the state goes through a ring of two, x is walked, the other result has a slot a step.
struct Loop {
  explicit Loop(size_t n)
      : steps(n), x(filled(static_cast<int64_t>(n) * kWidth, 0, 1)), start(filled(kWidth, 1, 0)),
        ring(filled(2 * kWidth, -1, 0)), all(filled(static_cast<int64_t>(n) * kWidth, -1, 0)) {
    for (size_t k = 0; k < n; ++k) {
      int64_t at = static_cast<int64_t>(k) * kWidth, slot = static_cast<int64_t>(k % 2) * kWidth;
      places.push_back(k ? PlanPlace{&ring.storage(), kWidth - slot} : PlanPlace{&start.storage(), 0});
      places.push_back({&x.storage(), at});
      places.push_back({&ring.storage(), slot});
      places.push_back({&all.storage(), at});
    }
    inputs = {start, view(x)};
    outputs = {view(ring), view(all)};
  }
  static Tensor view(const Tensor &t) { return Tensor::viewOf(t.storageRef(), {kWidth}, {1}, 0, DType::F32); }
  PlanSteps get() const { return {steps, inputs, outputs, places}; }
  void check() const {
    for (int64_t i = 0; i < kWidth; ++i) {
      float sum = 1;
      for (size_t k = 0; k < steps; ++k) {
        EXPECT_EQ(all.dataAs<float>()[static_cast<int64_t>(k) * kWidth + i], 2 * sum) << k;
        sum += static_cast<float>(static_cast<int64_t>(k) * kWidth + i);
      }
      EXPECT_EQ(ring.dataAs<float>()[static_cast<int64_t>((steps - 1) % 2) * kWidth + i], sum);
    }
  }

  size_t steps;
  Tensor x, start, ring, all;
  std::vector<PlanPlace> places;
  std::vector<Tensor> inputs, outputs;
};

TEST(LaunchSteps, OperandsMoveBetweenSteps) {
  for (bool call : {false, true})
    for (size_t n : {1, 2, 3, 7, 100}) {
      auto plan = adder(call);
      Loop loop(n);
      for (int round = 0; round < 2; ++round) {
        ASSERT_TRUE(plan->runSteps(loop.get(), {}, {}));
        loop.check();
      }
      EXPECT_EQ(loop.x.storage().refCount(), 2u) << "a plan must not keep its inputs"; // x and its view
      EXPECT_EQ(loop.inputs[1].offset(), 0) << "the caller's tensors stay where they are";
    }
}

TEST(LaunchSteps, NothingIsAllocatedForAStep) {
  for (bool call : {false, true}) {
    auto plan = adder(call);
    auto allocations = [&](size_t n) {
      Loop loop(n);
      EXPECT_TRUE(plan->runSteps(loop.get(), {}, {}));
      int64_t heap = heapAllocations, blocks = memoryStats().allocations;
      EXPECT_TRUE(plan->runSteps(loop.get(), {}, {}));
      EXPECT_EQ(memoryStats().allocations, blocks);
      return heapAllocations - heap;
    };
    EXPECT_EQ(allocations(10), allocations(1000));
  }
}

TEST(LaunchSteps, DonatedInputsAreRefused) {
  auto plan = adder(false, 0);
  Loop loop(4);
  EXPECT_FALSE(plan->runSteps(loop.get(), {}, {}));
  for (int64_t i = 0; i < kWidth; ++i)
    EXPECT_EQ(loop.start.dataAs<float>()[i], 1);
}

TEST(LaunchSteps, AFailingStepThrows) {
  LaunchPlanBuilder b;
  uint32_t x = b.addInput(DType::F32, {kWidth}, {1}), y = b.addInput(DType::F32, {kWidth}, {1});
  uint32_t out = b.addOutput(DType::F32, {kWidth}, {1}), other = b.addOutput(DType::F32, {kWidth}, {1});
  StepInfo info = named("divide");
  info.mayFail = true;
  b.addKernel(divideKernel, {y, x, out, other}, {}, 1, 1, info);
  auto plan = b.finish();
  Loop loop(4);
  loop.x.dataAs<float>()[2 * kWidth] = 3;
  EXPECT_THROW(plan->runSteps(loop.get(), {}, {}), Error);
  loop.x.dataAs<float>()[2 * kWidth] = 4;
  EXPECT_TRUE(plan->runSteps(loop.get(), {}, {}));
}

std::atomic<int> pieces{0};
void countKernel(void *const *, const int64_t *) { pieces.fetch_add(1); }

/// A kernel of 64 points that says it takes `ns`.
std::shared_ptr<LaunchPlan> counter(int64_t ns) {
  LaunchPlanBuilder b;
  uint32_t out = b.addOutput(DType::F32, {kWidth}, {1});
  b.addKernel(countKernel, {out}, {}, 64, ns * 16, named("count"));
  return b.finish();
}

TEST(LaunchPlanThreads, SmallCallsStayOnTheirThread) {
  int before = getNumThreads();
  setNumThreads(2);
  std::vector<Tensor> outs;
  auto small = counter(9000), large = counter(100000);
  pieces = 0;
  for (int k = 0; k < 50; ++k)
    small->run({}, {}, {}, outs);
  EXPECT_EQ(pieces, 50);
  pieces = 0;
  large->run({}, {}, {}, outs);
  EXPECT_GE(pieces, 2);
  setNumThreads(1);
  pieces = 0;
  large->run({}, {}, {}, outs);
  EXPECT_EQ(pieces, 1);
  setNumThreads(before);
}

} // namespace
