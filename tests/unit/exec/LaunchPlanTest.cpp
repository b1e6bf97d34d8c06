// The launch plan: arena placement, symbolic sizes, binding of inputs and numbers, donation, failures, threads.
#include "runtime/core/Allocator.h"
#include "runtime/exec/LaunchPlan.h"
#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

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

// y[i] = x[i * stride] * scale for i in [begin, end); ints: stride, scale (f64).
void scaleKernel(void *const *bufs, const int64_t *ints) {
  const float *x = static_cast<const float *>(bufs[0]);
  float *y = static_cast<float *>(bufs[1]);
  double scale = Number::fromRaw(Category::Float, ints[1]).toDouble();
  for (int64_t i = ints[2]; i < ints[3]; ++i)
    y[i] = x[i * ints[0]] * static_cast<float>(scale);
}

void faultKernel(void *const *bufs, const int64_t *) { *static_cast<int64_t *>(bufs[1]) = 1; }

class AddOneCall : public PlanCall {
public:
  void run(Span<Tensor> t, Ints ints) const override {
    const float *x = t[0].dataAs<float>();
    float *y = t[1].dataAs<float>();
    for (int64_t i = 0; i < t[1].numel(); ++i)
      y[i] = x[i * t[0].strides().back()] + static_cast<float>(ints[0]);
  }
};

Tensor iota(Ints sizes) {
  Tensor t = Tensor::empty(sizes, DType::F32);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.dataAs<float>()[i] = static_cast<float>(i);
  return t;
}

StepInfo named(const char *name, bool mayFail = false) {
  StepInfo i;
  i.name = name;
  i.mayFail = mayFail;
  return i;
}

TEST(MemoryPlan, RandomLifetimesAreDisjoint) {
  std::mt19937 rng(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaInterval> v(1 + rng() % 40);
    for (ArenaInterval &i : v) {
      i.first = static_cast<int64_t>(rng() % 30);
      i.last = i.first + static_cast<int64_t>(rng() % 10);
      i.bytes = rng() % 5 == 0 ? 0 : rng() % 5000;
    }
    std::vector<int64_t> at(v.size());
    size_t total = planArena(Span<const ArenaInterval>(v), Span<int64_t>(at));
    size_t sum = 0;
    for (size_t a = 0; a < v.size(); ++a) {
      EXPECT_EQ(at[a] % 64, 0);
      EXPECT_LE(at[a] + v[a].bytes, total);
      sum += (v[a].bytes + 63) / 64 * 64;
      for (size_t b = 0; b < a; ++b) {
        bool inTime = v[a].first <= v[b].last && v[b].first <= v[a].last;
        bool inMemory =
            at[a] < at[b] + static_cast<int64_t>(v[b].bytes) && at[b] < at[a] + static_cast<int64_t>(v[a].bytes);
        EXPECT_FALSE(inTime && inMemory) << a << " and " << b;
      }
    }
    EXPECT_LE(total, sum);
  }
}

TEST(MemoryPlan, ReusesFreedMemory) {
  std::vector<ArenaInterval> chain;
  for (int64_t i = 0; i < 10; ++i)
    chain.push_back({i, i + 1, 1024});
  std::vector<int64_t> at(chain.size());
  EXPECT_EQ(planArena(Span<const ArenaInterval>(chain), Span<int64_t>(at)), 2048u);
}

/// out = scale * (x + 1) with a symbolic length; the call reads every second element through a view.
std::shared_ptr<LaunchPlan> everySecond() {
  LaunchPlanBuilder b;
  Dim n = Dim::symbol(0, 4);
  uint32_t x = b.addInput(DType::F32, {n * 2}, {1});
  uint32_t view = b.addView(x, {n}, {2}, 1);
  uint32_t t = b.addTemp(DType::F32, {n});
  uint32_t out = b.addOutput(DType::F32, {n}, {1});
  PlanInt one = PlanInt::of(1);
  b.addCall(std::make_unique<AddOneCall>(), {view, t}, Span<const PlanInt>(&one, 1), named("add_one"));
  PlanInt ints[] = {PlanInt::of(1), PlanInt::ofNumber(0, Category::Float)};
  b.addKernel(scaleKernel, {t, out}, Span<const PlanInt>(ints, 2), n, n * 16, named("scale"));
  return b.finish();
}

TEST(LaunchPlan, SymbolicSizesViewsAndNumbers) {
  auto plan = everySecond();
  std::vector<Tensor> outs;
  for (int64_t n : {4, 7, 4, 0, 1}) {
    Tensor x = iota({2 * n});
    plan->run(Span<const Tensor>(&x, 1), {Number(int64_t(n))}, {n}, outs);
    ASSERT_EQ(outs.size(), 1u);
    ASSERT_EQ(outs[0].size(0), n);
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(outs[0].dataAs<float>()[i], static_cast<float>((2 * i + 1 + 1) * n));
  }
  EXPECT_EQ(plan->arenaBytes({100}), 448u);
}

TEST(LaunchPlan, WarmCallsAllocateOnlyTheResult) {
  auto plan = everySecond();
  std::vector<Tensor> outs;
  Tensor x = iota({8});
  auto once = [&] { plan->run(Span<const Tensor>(&x, 1), {Number(2.0)}, {4}, outs); };
  once();
  once();
  int64_t before = heapAllocations;
  Tensor probe = Tensor::empty({4}, DType::F32);
  int64_t perTensor = heapAllocations - before;
  before = heapAllocations;
  once();
  EXPECT_EQ(heapAllocations - before, perTensor);
}

TEST(LaunchPlan, WrongInputIsRefused) {
  auto plan = everySecond();
  std::vector<Tensor> outs;
  Tensor x = iota({9});
  EXPECT_THROW(plan->run(Span<const Tensor>(&x, 1), {Number(2.0)}, {4}, outs), Error);
  Tensor y = iota({8});
  plan->run(Span<const Tensor>(&y, 1), {Number(2.0)}, {4}, outs);
  EXPECT_EQ(y.storage().refCount(), 1u) << "a plan must not keep its inputs";
}

TEST(LaunchPlan, DonatedInputIsWrittenInPlace) {
  LaunchPlanBuilder b;
  uint32_t x = b.addInput(DType::F32, {3, 2}, {1, 3}); // a transposed tensor
  uint32_t t = b.addTemp(DType::F32, {3, 2});
  b.addCopy(t, x, named("save"));
  uint32_t out = b.addOutput(DType::F32, {3, 2}, {1, 3}, 0);
  PlanInt ints[] = {PlanInt::of(1), PlanInt::ofFloat(10)};
  b.addKernel(scaleKernel, {t, t}, Span<const PlanInt>(ints, 2), 6, 100, named("scale"));
  b.addCopy(out, t, named("write back"));
  auto plan = b.finish();
  Tensor base = iota({2, 3});
  Tensor x0 = Tensor::viewOf(base.storageRef(), {3, 2}, {1, 3}, 0, DType::F32);
  std::vector<Tensor> outs;
  plan->run(Span<const Tensor>(&x0, 1), {}, {}, outs);
  EXPECT_TRUE(outs[0].is(x0));
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(base.dataAs<float>()[i], 10.f * static_cast<float>(i));
}

TEST(LaunchPlan, FailureComesBeforeAnyCommit) {
  LaunchPlanBuilder b;
  uint32_t x = b.addInput(DType::F32, {4}, {1});
  uint32_t out = b.addOutput(DType::F32, {4}, {1}, 0);
  PlanInt ints[] = {PlanInt::of(1), PlanInt::ofFloat(10)};
  b.addKernel(faultKernel, {x}, {}, 1, 1, named("divide", true));
  StepInfo write = named("write");
  write.writes = {out};
  b.addKernel(scaleKernel, {x, out}, Span<const PlanInt>(ints, 2), 4, 4, write);
  auto plan = b.finish();
  Tensor t = iota({4});
  std::vector<Tensor> outs;
  for (int i = 0; i < 2; ++i) {
    try {
      plan->run(Span<const Tensor>(&t, 1), {}, {}, outs);
      FAIL() << "must throw";
    } catch (const Error &e) {
      EXPECT_EQ(e.kind(), ErrorKind::Runtime);
      EXPECT_NE(std::string(e.what()).find("divide"), std::string::npos);
    }
    EXPECT_EQ(t.dataAs<float>()[3], 3.f);
  }
}

TEST(LaunchPlan, ManyThreadsRunOnePlan) {
  auto plan = everySecond();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int id = 0; id < 4; ++id)
    threads.emplace_back([&, id] {
      std::vector<Tensor> outs;
      for (int round = 0; round < 200; ++round) {
        int64_t n = 1 + (id + round) % 6;
        Tensor x = iota({2 * n});
        plan->run(Span<const Tensor>(&x, 1), {Number(double(id))}, {n}, outs);
        for (int64_t i = 0; i < n; ++i)
          wrong += outs[0].dataAs<float>()[i] != static_cast<float>((2 * i + 2) * id);
      }
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(plan->keptContexts(), 4u);
}

} // namespace
