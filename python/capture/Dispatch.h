// A call of a compiled function: replay a program that fits, else run Python and perhaps learn a program from it.
#pragma once
#include "frontend/compile/Compile.h"
#include "python/capture/program/Tree.h"
#include <set>

namespace dlc::py {

/// Counters since start or the last reset.
struct ReplayStats {
  int64_t replays = 0;  ///< calls served without Python
  int64_t captures = 0; ///< programs learnt
  int64_t traced = 0;   ///< calls that ran Python under the recorder
};
ReplayStats replayStats();
void resetReplayStats();

/// What a compiled callable knows of its calls.
class ReplayCache {
public:
  Tree tree;
  /// Why the function runs in the trace tier, "" if nothing is known against it; with file:line.
  std::string why() const;
  /// Text for explain(): programs, guards, or why there are none.
  std::string explain() const;
  void clear();
  void forgetStale();

private:
  friend class ReplayCall;
  std::set<std::string> varying_; ///< sources whose numbers changed between calls
  int failures_ = 0;              ///< captures in a row that taught nothing
  int64_t waiting_ = 0;           ///< calls to trace before the next capture is tried
  uint64_t resets_ = compilerResets();
  std::string why_, loc_;
};

/// Calls `function` (the wrapped callable of `compiled`). As PyObject_Vectorcall.
PyObject *callCompiledFunction(ReplayCache &cache, const Ref<CompiledFunction> &compiled, PyObject *function,
                               PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

} // namespace dlc::py
