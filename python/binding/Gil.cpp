// Taking and giving the GIL, with an end: CPython ends a daemon thread that asks for the GIL of a finalizing
// interpreter by unwinding its stack, which C++ frames do not survive. From the moment the interpreter begins to exit,
// threads that want into Python through dlc wait for ever instead; the process's end takes them along.
#include "frontend/compile/Background.h"
#include "python/binding/Binding.h"
#include "runtime/core/ForkSafe.h"
#include "runtime/core/Knobs.h"
#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>

namespace dlc::py {
namespace {

std::atomic<bool> exiting{false};
std::atomic<int> entering{0}; // threads between their look at `exiting` and having the GIL
std::thread::id finalizer;

/// In scope while this thread waits for the GIL.
struct Entering {
  Entering() {
    entering++;
    if (exiting && std::this_thread::get_id() != finalizer) {
      entering--;
      hangThread();
    }
  }
  ~Entering() { entering--; }
};

/// Warnings of threads that may not wait for the GIL, shown by the main thread when it runs Python next.
struct Pending {
  ForkMutex mutex;
  std::vector<std::string> texts;
};
Pending &pending() {
  static auto *p = new Pending;
  return *p;
}

void show(const std::string &text) {
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0)
    PyErr_Clear();
}

int showPending(void *) {
  std::vector<std::string> texts;
  {
    std::lock_guard<ForkMutex> lock(pending().mutex);
    texts.swap(pending().texts);
  }
  for (const std::string &text : texts)
    show(text);
  return 0;
}

/// _prepare_exit(): registered with atexit, so that it runs before the interpreter finalizes.
PyObject *prepareExit(PyObject *, PyObject *) {
  finalizer = std::this_thread::get_id();
  exiting = true;
  PyThreadState *state = PyEval_SaveThread();
  stopBackground();
  ForkGate::closeForExit();
  while (entering > 0)
    usleep(100);
  PyEval_RestoreThread(state);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_prepare_exit", prepareExit, METH_NOARGS, nullptr}, {}};

} // namespace

void hangThread() {
  for (;;)
    pause();
}

void restoreThread(PyThreadState *state) {
  Entering scope;
  PyEval_RestoreThread(state);
}

PyGILState_STATE ensureGil() {
  Entering scope;
  return PyGILState_Ensure();
}

bool mayWaitForGil() { return PyGILState_Check() || (!ForkGate::inside() && PyGILState_GetThisThreadState()); }

void warn(const std::string &text) {
  if (!Py_IsInitialized() || exiting)
    return logLine("warning", text);
  if (mayWaitForGil()) {
    HoldGil hold;
    return show(text);
  }
  {
    std::lock_guard<ForkMutex> lock(pending().mutex);
    pending().texts.push_back(text);
  }
  Py_AddPendingCall(showPending, nullptr);
}

PyObject *callPython(PyObject *function, PyObject *const *args, size_t nargs, PyObject *kwnames) {
  return noUnwind([&] { return PyObject_Vectorcall(function, args, nargs, kwnames); });
}

void initGil(PyObject *module) {
  if (PyModule_AddFunctions(module, functions) < 0)
    throw PythonError{};
  setWarningSink(warn);
  Obj atexit = Obj::check(PyImport_ImportModule("atexit"));
  Obj hook = Obj::check(PyObject_GetAttrString(module, "_prepare_exit"));
  Obj::check(PyObject_CallMethod(atexit.get(), "register", "O", hook.get()));
}

} // namespace dlc::py
