// The one thread pool: short fork-join loops for kernels and plan steps, without allocation on the path.
#pragma once
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

namespace dlc {

template <class Sig> class FunctionRef;
/// A callable that somebody else owns: two words, valid for the length of the call it is passed to.
template <class R, class... A> class FunctionRef<R(A...)> {
public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F &&f)
      : object_(const_cast<void *>(static_cast<const void *>(&f))), call_([](void *o, A... a) -> R {
          return (*static_cast<std::remove_reference_t<F> *>(o))(std::forward<A>(a)...);
        }) {}
  R operator()(A... a) const { return call_(object_, std::forward<A>(a)...); }

private:
  void *object_;
  R (*call_)(void *, A...);
};

/// Thrown out of parallelFor when the interrupt check said stop.
class Interrupted : public std::exception {
public:
  const char *what() const noexcept override { return "interrupted"; }
};

/// A range task: `f(context, begin, end)`.
using RangeFn = void (*)(void *context, int64_t begin, int64_t end);

/// Runs `f` over [0, n) in disjoint ranges of at least `grain` (but for the last) on the caller and the workers, and
/// returns when all are done. Nested calls, and calls while another thread uses the pool, run in the caller alone.
/// The first exception of a task is rethrown here. Results must not depend on how the range is cut.
void parallelFor(int64_t n, int64_t grain, RangeFn f, void *context);
inline void parallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> f) {
  parallelFor(
      n, grain,
      [](void *c, int64_t begin, int64_t end) {
        (*static_cast<const FunctionRef<void(int64_t, int64_t)> *>(c))(begin, end);
      },
      const_cast<void *>(static_cast<const void *>(&f)));
}

/// How many ways parallelFor may cut this loop: 1 means that it would run in the caller alone.
int parallelShares(int64_t n, int64_t grain);

/// Threads in use, the caller included. At first: DLC_NUM_THREADS, else what affinity mask and cgroup quota allow.
int getNumThreads();
/// Throws ValueError unless 1 <= n <= 256. Waits for running loops.
void setNumThreads(int n);

/// True inside a task of parallelFor.
bool inParallelRegion();

/// `check` is called by the thread that entered parallelFor, every 20 ms or so of a long loop; if it returns true the
/// loop stops early and throws Interrupted. Null: none.
void setInterruptCheck(bool (*check)());

} // namespace dlc
