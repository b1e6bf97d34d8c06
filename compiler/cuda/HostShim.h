// Runs printed CUDA kernels on the CPU: include this before the text and compile with clang++ -ffp-contract=off. For
// tests only. Blocks run one after another; the threads of a block are fibers, and barriers and shuffles yield to the
// others. A barrier that some thread never reaches ends the program with a message.
#ifndef DLC_COMPILER_CUDA_HOSTSHIM_H
#define DLC_COMPILER_CUDA_HOSTSHIM_H

#define DLC_HOST_SHIM 1

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads)
// Blocks run one at a time, so a block's shared memory is a static variable.
#define __shared__ static

struct DlcIndex {
  unsigned x = 0, y = 0, z = 0;
};
// External linkage: a fiber switch changes them, which the compiler must assume of any call.
inline DlcIndex threadIdx, blockIdx, blockDim, gridDim;

namespace dlc_shim {

constexpr size_t kStackBytes = 64 * 1024;

/// Threads that meet: a warp, or the block.
struct Barrier {
  unsigned expected = 0, arrived = 0;
  uint64_t generation = 0;
};

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  bool done = false;
};

/// The state of the running block.
struct Block {
  ucontext_t scheduler;
  std::vector<Fiber> fibers;
  std::vector<Barrier> warps;
  Barrier all;
  std::vector<uint64_t> slots;
  unsigned current = 0;
  uint64_t progress = 0;
  const std::function<void()> *body = nullptr;
};
inline Block block;

inline void yield() { swapcontext(&block.fibers[block.current].context, &block.scheduler); }

inline void wait(Barrier &barrier) {
  uint64_t mine = barrier.generation;
  if (++barrier.arrived == barrier.expected) {
    barrier.arrived = 0;
    ++barrier.generation;
    ++block.progress;
    return;
  }
  while (barrier.generation == mine)
    yield();
}

inline void enter() {
  (*block.body)();
  block.fibers[block.current].done = true;
  ++block.progress;
  yield();
}

/// Runs all threads of one block to their end.
inline void runBlock() {
  unsigned count = blockDim.x * blockDim.y;
  block.fibers.resize(count);
  block.slots.assign(count, 0);
  block.all = {count, 0, 0};
  block.warps.assign((count + 31) / 32, {});
  for (unsigned i = 0; i < count; ++i) {
    Fiber &fiber = block.fibers[i];
    ++block.warps[i / 32].expected;
    fiber.done = false;
    fiber.stack.resize(kStackBytes);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
  }
  for (unsigned left = count; left > 0;) {
    uint64_t before = block.progress;
    left = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (block.fibers[i].done)
        continue;
      block.current = i;
      threadIdx = {i % blockDim.x, i / blockDim.x, 0};
      swapcontext(&block.scheduler, &block.fibers[i].context);
      left += !block.fibers[i].done;
    }
    if (left > 0 && block.progress == before) {
      std::fprintf(stderr, "host shim: %u threads wait at a barrier that others never reach\n", left);
      std::abort();
    }
  }
}

inline void launch(unsigned grid, unsigned x, unsigned y, const std::function<void()> &body) {
  gridDim = {grid, 1, 1};
  blockDim = {x, y, 1};
  block.body = &body;
  for (unsigned b = 0; b < grid; ++b) {
    blockIdx = {b, 0, 0};
    runBlock();
  }
}

template <class P> P parameter(size_t i, size_t bufs, void *const *buffers, const long long *ints) {
  if constexpr (std::is_pointer_v<P>)
    return reinterpret_cast<P>(buffers[i]);
  else
    return static_cast<P>(ints[i - bufs]);
}

template <class... P, size_t... I>
void call(void (*kernel)(P...), std::index_sequence<I...>, void *const *buffers, const long long *ints) {
  constexpr size_t kBufs = (size_t(std::is_pointer_v<P>) + ... + 0);
  kernel(parameter<P>(I, kBufs, buffers, ints)...);
}

/// Launches a printed kernel with the binary interface's `bufs` and `ints`.
template <class... P>
void launchKernel(void (*kernel)(P...), unsigned grid, unsigned x, unsigned y, void *const *buffers,
                  const long long *ints) {
  launch(grid, x, y, [=] { call(kernel, std::index_sequence_for<P...>(), buffers, ints); });
}

template <class To, class From> To bitCast(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &x, sizeof result);
  return result;
}

} // namespace dlc_shim

/// Exports `name`_host(bufs, ints, grid) for a printed kernel, and `name`_entry(bufs, ints) with a fixed grid.
#define DLC_HOST_KERNEL(name, x, y, fixed)                                                                             \
  extern "C" __attribute__((visibility("default"))) void name##_host(void *const *dlc_bufs, const long long *dlc_ints, \
                                                                     unsigned dlc_grid) {                              \
    dlc_shim::launchKernel(name, dlc_grid, x, y, dlc_bufs, dlc_ints);                                                  \
  }                                                                                                                    \
  extern "C"                                                                                                           \
      __attribute__((visibility("default"))) void name##_entry(void *const *dlc_bufs, const long long *dlc_ints) {     \
    name##_host(dlc_bufs, dlc_ints, fixed);                                                                            \
  }

inline void __syncthreads() { dlc_shim::wait(dlc_shim::block.all); }

template <class T> T __shfl_xor_sync(unsigned, T value, int mask) {
  using namespace dlc_shim;
  static_assert(sizeof(T) <= 8);
  unsigned self = block.current, other = (self & ~31u) | ((self ^ unsigned(mask)) & 31u);
  Barrier &warp = block.warps[self / 32];
  std::memcpy(&block.slots[self], &value, sizeof value);
  wait(warp);
  T result;
  std::memcpy(&result, &block.slots[other], sizeof result);
  wait(warp);
  return result;
}

inline long long atomicMax(long long *slot, long long value) {
  long long old = *slot;
  *slot = old > value ? old : value;
  return old;
}

inline int __float_as_int(float x) { return dlc_shim::bitCast<int>(x); }
inline float __int_as_float(int x) { return dlc_shim::bitCast<float>(x); }
inline long long __double_as_longlong(double x) { return dlc_shim::bitCast<long long>(x); }
inline double __longlong_as_double(long long x) { return dlc_shim::bitCast<double>(x); }
inline float dlc_shim_from_f16(unsigned short bits) { return float(dlc_shim::bitCast<_Float16>(bits)); }
inline unsigned short dlc_shim_to_f16(float x) { return dlc_shim::bitCast<unsigned short>(_Float16(x)); }

#endif // DLC_COMPILER_CUDA_HOSTSHIM_H
