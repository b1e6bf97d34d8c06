// Floats are random in [-1, 1); integers are 0, which is a valid index of everything that is not empty.
#include "compiler/autotune/KernelBench.h"
#include "runtime/core/Half.h"
#include "runtime/core/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

namespace dlc::compiler {

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr double kSampleSeconds = 50e-6;
constexpr int64_t kMostCopies = 16, kMostBytes = int64_t(256) << 20, kCacheBytes = int64_t(2) << 20;

int64_t bytesOf(const KernelProblem &p) {
  int64_t bytes = 0;
  for (const auto &b : p.buffers)
    bytes += b.elements * static_cast<int64_t>(itemSize(b.dtype));
  return bytes;
}

/// A launch finds its operands in the caches unless the graph went through much else since.
int64_t numCopies(const KernelProblem &p) {
  int64_t bytes = std::max<int64_t>(1, bytesOf(p));
  if (p.streamBytes <= kCacheBytes || bytes >= p.streamBytes)
    return 1;
  return std::clamp<int64_t>(std::min(p.streamBytes, kMostBytes) / bytes, 1, kMostCopies);
}

void fill(char *to, const KernelProblem::Buffer &b) {
  uint64_t state = 0x9e3779b97f4a7c15ull;
  auto real = [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<float>(static_cast<int32_t>(state >> 32)) * 0x1p-31f;
  };
  visitDType(b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T *at = reinterpret_cast<T *>(to);
    if constexpr (std::is_integral_v<T>)
      std::fill_n(at, b.elements, T(0));
    else
      for (int64_t i = 0; i < b.elements; ++i)
        at[i] = T(real());
  });
}

} // namespace

struct KernelBench::Copy {
  std::vector<void *> pointers;
  std::vector<char *> memory;
  int64_t fault = 0;

  explicit Copy(const KernelProblem &p) {
    for (const auto &b : p.buffers) {
      size_t item = itemSize(b.dtype), bytes = static_cast<size_t>(b.elements) * item;
      char *at = static_cast<char *>(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
      if (!at)
        throw std::bad_alloc();
      memory.push_back(at);
      fill(at, b);
      pointers.push_back(at + static_cast<size_t>(b.first) * item);
    }
    pointers.push_back(&fault);
  }
  ~Copy() {
    for (char *at : memory)
      std::free(at);
  }
};

KernelBench::KernelBench(const KernelProblem &problem) : problem_(problem) {
  problem_.ints.resize(problem_.ints.size() + 2); // the parallel range
  for (int64_t i = 0, n = numCopies(problem); i < n; ++i)
    copies_.push_back(std::make_unique<Copy>(problem));
}

KernelBench::~KernelBench() = default;

/// As a plan does it (LaunchPlan::runKernel).
void KernelBench::run(const CompiledKernel &kernel) {
  Copy &copy = *copies_[next_];
  next_ = (next_ + 1) % copies_.size();
  auto product = [&](const std::vector<SizeRef> &dims) {
    int64_t n = 1;
    for (const SizeRef &d : dims)
      n *= d.index >= 0 ? problem_.ints[d.index] : d.constant;
    return n;
  };
  constexpr double kTaskNs = 3000;
  int64_t extent = product(kernel.info.parallelDims), multiple = std::max<int64_t>(1, kernel.info.rangeMultiple);
  int64_t units = (extent + multiple - 1) / multiple;
  double tasks = std::max(1.0, static_cast<double>(product(kernel.info.domainDims)) * kernel.info.nsPerPoint / kTaskNs);
  int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(units) / tasks));
  size_t numInts = problem_.ints.size();
  auto piece = [&](int64_t begin, int64_t end) {
    std::vector<int64_t> ints = problem_.ints;
    ints[numInts - 2] = begin * multiple;
    ints[numInts - 1] = std::min(end * multiple, extent);
    kernel.fn(copy.pointers.data(), ints.data());
  };
  if (extent > 0)
    parallelFor(units, grain, piece);
  ++runs_;
}

double KernelBench::sample(const CompiledKernel &kernel) {
  Clock::time_point start = Clock::now();
  int64_t runs = 0;
  double seconds;
  do {
    run(kernel);
    seconds = since(start);
    ++runs;
  } while (seconds < kSampleSeconds);
  return seconds / static_cast<double>(runs);
}

double canarySeconds() {
  double best = 1;
  for (int run = 0; run < 3; ++run) { // an interrupt hits one of them
    Clock::time_point start = Clock::now();
    float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int i = 0; i < 2000; ++i)
      for (float &v : a)
        v = v * 0.999f + 0.5f;
    volatile float sink = a[0] + a[7];
    (void)sink;
    best = std::min(best, since(start));
  }
  return best;
}

} // namespace dlc::compiler
