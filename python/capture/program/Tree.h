// All programs of one compiled function, and running them. Needs the GIL.
#pragma once
#include "python/capture/program/Program.h"
#include <functional>

namespace dlc::py {

namespace replay {
class CodeRef;
struct Frame;
} // namespace replay

/// The state a failed or successful replay leaves for the caller.
struct ReplayResult {
  enum class Kind : uint8_t {
    Hit,   ///< `value` is the function's result (a new reference)
    Miss,  ///< nothing fits: run Python. Everything is as it was before the call
    Raised ///< an effect raised: the Python error is set (effects before it have happened, as in Python)
  } kind;
  PyObject *value = nullptr;
};

struct TreeStats {
  int64_t hits = 0, misses = 0, rollbacks = 0, paths = 0;
};

class Tree {
public:
  /// Programs share their guards up to where they differ, so one more costs little; a loop has one for each number of
  /// steps.
  static constexpr int kMaxPaths = 64;
  Tree();
  ~Tree();
  /// Tries the programs, most recently used first. `callee` is the wrapped callable.
  ReplayResult run(PyObject *callee, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
  bool empty() const;
  /// Adds a program: grafts it where it leaves a known one. Over kMaxPaths the least recently used goes; the first time
  /// `onLimit` is told which source keeps changing.
  void insert(Path path);
  /// Sources (Instr::source) of the guards that failed in the last run that missed.
  std::vector<std::string> failedSources() const;
  /// The guard that failed last, for messages: its text and user location.
  std::string lastMiss() const;
  TreeStats stats() const;
  /// All programs, guards first, one line each with the user's line.
  std::string explain() const;
  /// Each guard as {text, loc}.
  std::vector<std::pair<std::string, std::string>> guards() const;
  void clear();
  int traverse(visitproc visit, void *arg) const;

  /// Told once, when kMaxPaths is reached, which source keeps changing. Default: a line of the log "recompiles".
  std::function<void(const std::string &source)> onLimit;

  /// For previews (Audit.h): run() in a frame that says what to do instead of the effects. Returns what keeps the
  /// programs alive.
  replay::CodeRef tryOut(replay::Frame &frame, PyObject *callee, PyObject *const *args, Py_ssize_t nargs,
                         PyObject *kwnames);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace dlc::py
