// The three ways of a call: replay, capture, trace.
#include "python/capture/Dispatch.h"
#include "python/capture/program/Audit.h"
#include "python/capture/hooks/Hooks.h"
#include "python/capture/session/Session.h"
#include "runtime/core/PhaseTimes.h"
#include "runtime/core/Knobs.h"

namespace dlc::py {
namespace {

ReplayStats stats; // under the GIL

/// Keeps the current Python error aside while a region ends.
class SavedError {
public:
  SavedError() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~SavedError() { PyErr_Restore(type_, value_, trace_); }

private:
  PyObject *type_, *value_, *trace_;
};

/// A debugger, profiler or coverage tool watches: Python must really run.
bool watched() {
  PyThreadState *state = PyThreadState_Get();
  return state->c_tracefunc || state->c_profilefunc;
}

/// Runs Python under the recorder.
PyObject *trace(const Ref<CompiledFunction> &compiled, PyObject *function, PyObject *const *args, Py_ssize_t nargs,
                PyObject *kwnames) {
  CompiledCall region(compiled);
  ++stats.traced;
  Obj result(callPython(function, args, static_cast<size_t>(nargs), kwnames));
  std::optional<SavedError> keep;
  if (!result) // an op recorded before the exception that fails now would have raised first, had it run at once
    keep.emplace();
  {
    ReleaseGil release;
    region.finish();
  }
  return result.release();
}

std::string argumentName(PyObject *function, Py_ssize_t i) {
  PyObject *f = PyMethod_Check(function) ? PyMethod_GET_FUNCTION(function) : function;
  if (PyFunction_Check(f)) {
    auto *code = reinterpret_cast<PyCodeObject *>(PyFunction_GET_CODE(f));
    Py_ssize_t k = i + PyMethod_Check(function);
    if (k < code->co_argcount) {
      Obj names(PyObject_GetAttrString(PyFunction_GET_CODE(f), "co_varnames"));
      const char *name = names ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(names.get(), k)) : nullptr;
      if (name)
        return name;
      PyErr_Clear();
    }
  }
  return str("argument ", i);
}

} // namespace

ReplayStats replayStats() { return stats; }
void resetReplayStats() { stats = ReplayStats(); }

std::string ReplayCache::why() const { return why_.empty() ? "" : str(loc_, loc_.empty() ? "" : ": ", why_); }

std::string ReplayCache::explain() const {
  std::string text = tree.explain();
  if (!why_.empty())
    text += str(tree.empty() ? "calls run Python" : "some calls run Python", loc_.empty() ? "" : " because at ", loc_,
                loc_.empty() ? " because " : ": ", why_, "\n");
  return text;
}

void ReplayCache::clear() {
  tree.clear();
  varying_.clear();
  failures_ = 0;
  waiting_ = 0;
  why_.clear();
  loc_.clear();
}

/// dlc.compiler.reset() dropped the code that programs run.
void ReplayCache::forgetStale() {
  if (uint64_t now = compilerResets(); now != resets_) {
    clear();
    resets_ = now;
  }
}

/// One call with its session.
class ReplayCall {
public:
  ReplayCall(ReplayCache &cache, const Ref<CompiledFunction> &compiled, PyObject *function, PyObject *const *args,
             Py_ssize_t nargs, PyObject *kwnames)
      : cache_(cache), compiled_(compiled), function_(function), args_(args), nargs_(nargs), kwnames_(kwnames) {}

  bool wantsCapture() {
    if (cache_.waiting_ > 0) {
      --cache_.waiting_;
      return false;
    }
    return true;
  }

  void missed() {
    for (std::string &source : cache_.tree.failedSources())
      cache_.varying_.insert(std::move(source));
    if (logEnabled("guards"))
      logLine("guards", str(compiled_->name(), ": no program fits: ", cache_.tree.lastMiss()));
  }

  PyObject *capture();

private:
  std::vector<Obj> readArguments(Session &session);
  void learn(Captured captured);

  ReplayCache &cache_;
  const Ref<CompiledFunction> &compiled_;
  PyObject *function_;
  PyObject *const *args_;
  Py_ssize_t nargs_;
  PyObject *kwnames_;
};

std::vector<Obj> ReplayCall::readArguments(Session &session) {
  std::vector<Obj> seen;
  Py_ssize_t keywords = kwnames_ ? PyTuple_GET_SIZE(kwnames_) : 0;
  for (Py_ssize_t k = 0; k < nargs_ + keywords; ++k) {
    Instr load;
    load.op = Do::Arg;
    load.imm = k;
    const char *keyword = k < nargs_ ? nullptr : PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames_, k - nargs_));
    seen.push_back(session.read(args_[k], std::move(load), keyword ? keyword : argumentName(function_, k)));
  }
  return seen;
}

PyObject *ReplayCall::capture() {
  PhaseTimer timer("capture");
  ++stats.traced;
  Session session(function_, nargs_, kwnames_, cache_.varying_);
  CompiledCall region(compiled_, &session);
  if (!region.active())
    session.fail("another compiled call is recording");
  std::vector<Obj> seen = readArguments(session);
  std::vector<PyObject *> raw;
  for (const Obj &o : seen)
    raw.push_back(o.get());
  Obj result(hookCall(function_, raw.data(), nargs_, kwnames_));
  if (!result) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    session.fail("the call raised an exception");
    session.beforeExit(value ? value : Py_None);
    PyErr_Restore(type, value, trace);
    SavedError keep;
    region.finish();
    learn(session.finish());
    return nullptr;
  }
  Obj plain = session.beforeExit(result.get());
  result = Obj();
  region.finish(); // with the GIL: the session is told
  learn(session.finish());
  return plain.release();
}

void ReplayCall::learn(Captured captured) {
  if (captured.ok) {
    if (logEnabled("guards"))
      for (const Instr &i : captured.path.body)
        logLine("guards", str(compiled_->name(), ": ", text(i)));
    try {
      cache_.tree.insert(std::move(captured.path));
    } catch (const Error &e) { // the call has its result; what can't be replayed is traced
      captured.ok = false;
      captured.why = e.what();
    }
  }
  if (captured.ok) {
    ++stats.captures;
    cache_.failures_ = 0;
    cache_.why_.clear();
    cache_.loc_.clear();
    // Over the budget learning goes on, but ever more rarely.
    if (cache_.tree.stats().paths >= Tree::kMaxPaths)
      cache_.waiting_ = 64;
    return;
  }
  cache_.why_ = captured.why;
  cache_.loc_ = captured.loc;
  ++cache_.failures_;
  cache_.waiting_ = cache_.failures_ < 3 ? 0 : int64_t(1) << std::min(cache_.failures_, 20);
  if (logEnabled("guards"))
    logLine("guards", str(compiled_->name(), " is traced at each call", captured.loc.empty() ? "" : " because at ",
                          captured.loc, captured.loc.empty() ? " because " : ": ", captured.why));
}

namespace {

/// DLC_AUDIT: Python runs though a program fits, and both are compared. Null and no error: no program fits.
PyObject *audited(ReplayCache &cache, const Ref<CompiledFunction> &compiled, PyObject *function, PyObject *const *args,
                  Py_ssize_t nargs, PyObject *kwnames) {
  std::unique_ptr<Preview> expected = preview(cache.tree, function, args, nargs, kwnames);
  if (!expected)
    return nullptr;
  Obj result = Obj::check(trace(compiled, function, args, nargs, kwnames));
  std::string differences = expected->compare(result.get());
  DLC_REQUIRE(differences.empty(), Runtime, "audit: the replay of `", compiled->name(), "` differs from Python:\n",
              differences, "please report this; config.replay = False turns replays off");
  return result.release();
}

} // namespace

PyObject *callCompiledFunction(ReplayCache &cache, const Ref<CompiledFunction> &compiled, PyObject *function,
                               PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    if (Session *session = Session::current())
      session->fail("a compiled function is called by code that is not followed");
    cache.forgetStale();
    if (currentInterceptor() || watched() || !knobs().replay || knobs().mode == "eager" || isCompilingDisabled() ||
        compiled->lacksCode())
      return trace(compiled, function, args, nargs, kwnames);
    static int64_t calls = 0; // under the GIL
    if (knobs().audit > 0 && !cache.tree.empty() && ++calls % knobs().audit == 0)
      if (PyObject *result = audited(cache, compiled, function, args, nargs, kwnames))
        return result;
    if (!cache.tree.empty()) {
      ReplayResult r = cache.tree.run(function, args, nargs, kwnames);
      if (r.kind != ReplayResult::Kind::Miss) {
        ++stats.replays;
        return r.value;
      }
    }
    ReplayCall call(cache, compiled, function, args, nargs, kwnames);
    if (!cache.tree.empty())
      call.missed();
    return call.wantsCapture() ? call.capture() : trace(compiled, function, args, nargs, kwnames);
  });
}

} // namespace dlc::py
