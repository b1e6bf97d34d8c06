// A capture session: what one run of a function's twin read of the state at entry, what it did and what it changed, as
// a replay program in the making. The hooks (Hooks*.cpp) perform every operation plainly and then tell the session;
// the recorder tells it about pieces. Whatever is not understood ends the session with a reason: the call itself
// goes on and is right, and nothing is learnt from it.
//
// Objects are either *known* (reached from the state at entry through loads; they have a register), scalars (guarded
// by value where they are read, so that they are constants afterwards), or *fresh* (made during the call). Sound as
// long as every object of the state at entry reaches the program through read().
#pragma once
#include "python/capture/session/Numbers.h"
#include "python/capture/program/Program.h"
#include <functional>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace dlc::py {

/// How a session ended.
struct Captured {
  bool ok = false;
  Path path;
  std::string why, loc; ///< why not
};

class Session final : public trace::Observer {
public:
  /// `varying`: sources (Instr::source) whose numbers are to be symbols.
  Session(PyObject *callee, Py_ssize_t nargs, PyObject *kwnames, const std::set<std::string> &varying);
  ~Session() override;
  /// The session of this thread if there is one and it still learns; else null.
  static Session *current();

  // --- ending
  /// Gives up: `why` completes "runs in the trace tier because ...". Hooks become plain from here on.
  void fail(const std::string &why);
  bool failed() const { return failed_; }
  const std::string &failure() const { return why_; }
  /// The function returned `result` (before the recorder's last flush). Emits the making of results and effects.
  /// Returns what the caller gets: `result` with plain numbers in place of symbolic ones.
  Obj beforeExit(PyObject *result);
  /// What is stored or given to C after this thread's session has failed: plain numbers in its containers.
  static void settle(PyObject *value);
  /// After the last flush.
  Captured finish();

  // --- values
  /// The register of a known object; kNoReg: fresh (or a scalar).
  Reg regOf(PyObject *o) const;
  bool isKnown(PyObject *o) const { return regOf(o) != kNoReg; }
  /// None, bool, int, float, complex, str, bytes, Ellipsis, NotImplemented: no identity, guarded by value.
  static bool isScalar(PyObject *o);
  /// The program read `value` of the state at entry through `load` (its dst is filled in here). Emits the load and
  /// what identifies the value: value of a scalar, type of an object, code of a function, properties of a tensor,
  /// identity of classes, modules and C functions. Returns what the program is to see: `value`, or a symbolic number.
  /// `source` names it for people and for `varying`: "arg 0", "global lr", "self.scale".
  Obj read(PyObject *value, Instr load, std::string source);
  /// As read() for a value that is not guarded itself (only its presence): it gets a register.
  Reg load(PyObject *value, Instr load, std::string source);
  /// The name that read() was given for a known object ("self.layers"), or "".
  std::string sourceOf(PyObject *o) const;
  /// A register of a constant that this session may keep alive: types, modules, C functions, code, scalars.
  Reg constant(PyObject *o);
  /// Makes a known object of one that other known things determine (a bound method's function, a closure cell).
  void know(PyObject *o, Reg reg, std::string source);
  /// A condition on the state at entry. Equal guards are emitted once.
  void guard(Instr instr);
  /// From how many places of the state at entry this very object was read.
  size_t timesRead(PyObject *o) const;
  /// Two known objects of one type are different ones, and the program depends on it.
  void requireDistinct(PyObject *a, PyObject *b);
  /// Guards that what `type` finds for `name` through its MRO is what it finds now.
  void guardTypeAttr(PyTypeObject *type, PyObject *name);

  // --- reading known containers; nothing is emitted for fresh ones or for what this call wrote itself
  /// len() of a list, tuple, dict, set, str...: a plain or symbolic int.
  Obj length(PyObject *container);
  /// Item i (>= 0) of a known list or tuple.
  Obj item(PyObject *sequence, Py_ssize_t i);
  /// The value at `key` of a known dict, null (no error set) if absent; guards either.
  Obj dictGet(PyObject *dict, PyObject *key);
  /// Guards the keys and their order; returns them as a tuple.
  Obj dictKeys(PyObject *dict);
  /// All of one level: list, tuple, dict (values too), set, frozenset. After it every element is known or a scalar.
  /// False (and failed) if there are more than 1000 or the container is of an unknown kind.
  bool readAll(PyObject *container);
  /// readAll() of nested builtin containers down to scalars and tensors; false (and failed) if something else is there.
  bool readDeep(PyObject *o);

  // --- the state changed by this call: later reads of it are not reads of the state at entry
  /// Key kinds: attributes of an object, items of a dict, everything of a list or set.
  enum class Slot : uint8_t { Attr, Item, Whole };
  bool wroteTo(PyObject *o, Slot slot, PyObject *key) const;
  /// What this call stored there (symbolic number included); null: deleted or unknown.
  PyObject *written(PyObject *o, Slot slot, PyObject *key) const;
  /// Before the first structural change of a known list, dict, set...: remembers its state at entry.
  void beforeChange(PyObject *container);
  void noteWrite(PyObject *o, Slot slot, PyObject *key, PyObject *value);

  // --- effects (already performed by the hook with plain numbers; these make the replay perform them)
  void effectSetAttr(PyObject *o, PyObject *name, PyObject *value); ///< value null: deleted
  void dropGrad(PyObject *tensor, PyObject *name);
  void effectSetItem(PyObject *container, PyObject *key, PyObject *value);
  void effectSetCell(PyObject *cell, PyObject *value);
  void effectSetGlobal(PyObject *dict, PyObject *name, PyObject *value);
  /// A call of the C function `callable` (known or constant) that changes known objects: list.append(known, x).
  void effectCall(PyObject *callable, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
  /// The same with arguments as they are now (print): containers are copied.
  void effectDeferred(PyObject *callable, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

  // --- data
  /// Python looked at the value of a tensor: bool(t), int(t), t.item(). `plain` is what it saw; returns what the
  /// program is to see: a bool (its outcome is a guard), or a symbolic number.
  Obj readBool(const Tensor &t, PyObject *plain);
  Obj readNumber(const Tensor &t, PyObject *plain);
  /// t.shape of a tensor as a Size, with symbolic numbers where sizes are symbols. null: all are plain.
  Obj symbolicSizes(const Tensor &t);
  /// Tensors from outside that share the memory of `t` lie where they lie now.
  void guardPlaces(const dlc::Tensor &t);

  // --- numbers
  /// The expression of a Python int (symbolic or plain), for hooks that compute.
  Obj makeInt(const Dim &d) { return wrapDim(d); }
  /// Guards the value of a symbolic number and returns the plain one; others are returned as they are.
  Obj concretize(PyObject *o);
  /// concretize() of all symbolic numbers inside nested fresh builtin containers (in place where mutable).
  bool containsSymbolic(PyObject *o) const;
  NumberNode *newNumber(Instr op, Number value);
  /// Emits the facts that comparisons have collected since the last time.
  void drainFacts();

  // --- functions
  /// Cells of a known function are known.
  void knowCells(PyObject *function);
  Reg cellReg(PyObject *cell) const;
  /// Set while a hook calls into C code that may call back into Python: reads there are not seen.
  int depth = 0;
  /// How deep a hook is in containers of containers.
  int nesting = 0;
  /// Set while a hook reads the value of a tensor that it will tell about.
  int reads = 0;
  /// Twins entered, by their function: {function, twin}.
  std::unordered_map<PyObject *, std::pair<Obj, Obj>> twins;
  /// Objects whose id() was asked for.
  std::vector<Obj> identities;
  /// Known instance dictionaries: whose they are.
  std::unordered_map<PyObject *, Obj> dictOwners;

  // --- Observer
  bool symbolic() const override { return true; }
  void inputMeta(const Tensor &tensor, TensorMeta &meta) override;
  void pieceRan(trace::PieceRecord record) override;
  void opRan(const OpInfo &op, Span<const Arg<dlc::Tensor>> args, Span<const dlc::Tensor> outs, CallForm form) override;
  void numberRead(const void *ref) override;
  void gradStored(const dlc::Tensor &leaf, const dlc::Tensor &grad, bool addedInPlace) override;
  void notReplayable(const std::string &why) override { fail(why); }

  struct State;

private:
  static const Session *failedOne();
  void identify(PyObject *value, Reg dst, const std::string &source);
  void pinStrides(TensorMeta &meta, const std::function<Dim(int64_t d, int64_t now)> &symbol);
  void identifyTensor(PyObject *value, Reg dst, const std::string &source);
  void settleStores(PyObject *container);
  bool readEntry(PyObject *container);
  void readSet(PyObject *o, PyObject *content);
  Obj readDictItem(PyObject *dict, PyObject *key, PyObject *value);
  Obj readObjectKeys(PyObject *dict, const Obj &keys);
  void dictLacks(PyObject *dict, PyObject *key);
  void noteChanged(PyObject *o);
  Reg tensOf(const dlc::Tensor &t);
  Reg storageReg(const dlc::Tensor &t);
  void aliasInput(const dlc::Tensor &t);
  Reg copyOf(const dlc::Tensor &t, Reg reg);
  void checkAliases();
  bool inputsShareMemory();
  void drawRandom(const trace::PieceRecord &record);
  Reg tensLoad(Instr instr);
  void rememberMeta(const dlc::Tensor &t);
  void knowResult(const dlc::Tensor &t, Reg reg);
  void pinNumber(const NumberNode &n);
  void addFacts(std::vector<Fact> facts);
  void constantCallable(PyObject *callable);
  void resolveLeaving();
  void guardDistinct();
  void attachTape();
  void orderBody();
  friend class Emitter;

  std::unique_ptr<State> s_;
  bool failed_ = false;
  std::string why_, failLoc_;
};

} // namespace dlc::py
