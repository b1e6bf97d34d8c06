// What running compiled code costs beside its kernels: a step of a plan, a call, a step of a loop, handing work to
// another thread, memory. Minimum and median of many samples on the wall clock. Usage: bench-overheads [rounds]
#include "runtime/core/Allocator.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/exec/LaunchPlan.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace dlc;

namespace {

using Clock = std::chrono::steady_clock;

struct Times {
  double least, median; ///< nanoseconds
};

/// `prepare` is not timed.
template <class P, class F> Times measure(int rounds, int repeats, P prepare, F f) {
  std::vector<double> ns;
  for (int r = 0; r < rounds; ++r) {
    prepare();
    auto start = Clock::now();
    for (int k = 0; k < repeats; ++k)
      f();
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / repeats);
  }
  std::sort(ns.begin(), ns.end());
  return {ns[0], ns[ns.size() / 2]};
}

void print(const char *what, Times t, double divisor = 1) {
  std::printf("%-52s %10.1f %10.1f\n", what, t.least / divisor, t.median / divisor);
  std::fflush(stdout);
}

Times minus(Times a, Times b) { return {a.least - b.least, a.median - b.median}; }

void nothing(void *const *, const int64_t *) {}

/// `steps` kernels that do nothing, over two temporaries, an input and an output.
std::shared_ptr<LaunchPlan> planOf(int steps) {
  LaunchPlanBuilder b;
  Dims sizes{16}, strides{1};
  uint32_t in = b.addInput(DType::F32, sizes, strides), out = b.addOutput(DType::F32, sizes, strides);
  uint32_t t = b.addTemp(DType::F32, sizes), u = b.addTemp(DType::F32, sizes);
  PlanInt ints[] = {PlanInt::of(16), PlanInt::of(1)};
  for (int k = 0; k < steps; ++k)
    b.addKernel(nothing, {k ? t : in, u, t, k + 1 < steps ? t : out}, Span<const PlanInt>(ints, 2), 16, 16, {});
  return b.finish();
}

void plans(int rounds) {
  Tensor x = Tensor::empty({16}, DType::F32);
  std::vector<Tensor> outs;
  auto few = planOf(10), many = planOf(110), loop = planOf(2);
  auto call = [&](LaunchPlan &p) {
    return measure(rounds, 200, [] {}, [&] { p.run(Span<const Tensor>(&x, 1), {}, {}, outs); });
  };
  Times ten = call(*few);
  print("a step of a plan", minus(call(*many), ten), 100);
  print("a call of a plan of one step", call(*planOf(1)));
  constexpr size_t kSteps = 1000;
  Tensor slots = Tensor::empty({32}, DType::F32);
  Tensor first = Tensor::viewOf(slots.storageRef(), {16}, {1}, 0, DType::F32);
  std::vector<PlanPlace> places;
  for (size_t k = 0; k < kSteps; ++k) {
    places.push_back({&slots.storage(), k % 2 ? 0 : 16});
    places.push_back({&slots.storage(), k % 2 ? 16 : 0});
  }
  Span<const Tensor> operand(&first, 1);
  print("a step of a loop over a plan of two steps",
        measure(rounds, 2, [] {}, [&] { loop->runSteps({kSteps, operand, operand, places}, {}, {}); }), kSteps);
}

void threads(int rounds) {
  auto fork = [] { parallelFor(2, 1, [](int64_t, int64_t) {}); };
  auto busy = [](int64_t begin, int64_t end) {
    for (; begin < end; ++begin)
      for (auto until = Clock::now() + std::chrono::microseconds(20); Clock::now() < until;) {
      }
  };
  auto rest = [](int us) {
    for (auto until = Clock::now() + std::chrono::microseconds(us); Clock::now() < until;) {
    }
  };
  std::printf("%d threads\n", getNumThreads());
  print("fork and join, no work, one after the other", measure(rounds, 200, [] {}, fork));
  print("fork and join, no work, after 20 us of other work", measure(rounds, 1, [&] { fork(), rest(20); }, fork));
  print("fork and join, no work, workers asleep",
        measure(rounds, 1, [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }, fork));
  Times both = measure(rounds, 20, fork, [&] { parallelFor(2, 1, busy); });
  print("two tasks of 20 us, beyond the 20 us of one", {both.least - 20000, both.median - 20000});
}

void memory(int rounds) {
  for (size_t bytes : {size_t(4096), size_t(1) << 20, size_t(64) << 20}) {
    char name[64];
    std::snprintf(name, sizeof name, "a block of %zu KB taken and given back", bytes >> 10);
    print(name, measure(rounds, 100, [] {}, [&] { freeBytes(allocateBytes(bytes), bytes); }));
  }
}

} // namespace

int main(int argc, char **argv) {
  int rounds = std::max(1, argc > 1 ? std::atoi(argv[1]) : 200);
  std::printf("%-52s %10s %10s\n", "nanoseconds", "least", "median");
  plans(rounds);
  threads(rounds);
  memory(rounds);
}
