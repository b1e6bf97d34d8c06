// Checking the replay tier against Python: what a hit would do is worked out without doing it, Python runs, and both
// are compared. Python's run is what counts, so that an audited program behaves as if nothing were replayed.
#pragma once
#include "python/capture/program/Tree.h"

namespace dlc::py {

/// What a hit would have done. Needs the GIL.
class Preview {
public:
  ~Preview();
  /// Compares with the state after Python's run of the same call, which returned `result`. One line a difference;
  /// empty: none. Tensors may differ by rounding, Python and the program being free to run other kernels.
  std::string compare(PyObject *result);

  struct State;
  explicit Preview(std::unique_ptr<State> state);

private:
  std::unique_ptr<State> state_;
};

/// Works out what Tree::run would do. Null: it would miss, or raise. Changes nothing.
std::unique_ptr<Preview> preview(Tree &tree, PyObject *callee, PyObject *const *args, Py_ssize_t nargs,
                                 PyObject *kwnames);

} // namespace dlc::py
