// The form of programs that runs: a tree of nodes with flat arrays of 64-byte steps, and the registers of one call.
// Made from Paths by Assemble.cpp, run by Execute.cpp, Run.cpp and Commit.cpp.
#pragma once
#include "python/capture/program/Program.h"
#include <deque>
#include <functional>

namespace dlc::py::replay {

using InstrPtr = std::shared_ptr<const Instr>;

/// A load may check the type of what it loaded; a Tensor guard may also deliver the tensor.
struct Step {
  Do op;
  uint8_t kind = 0;
  bool flag = false; ///< Tensor: all sizes and strides are fixed. View: inputs have been written already
  Reg dst = kNoReg, a = kNoReg, b = kNoReg;
  int64_t imm = 0;
  PyObject *object = nullptr; ///< loads and Tensor: the exact type wanted, if any
  PyObject *key = nullptr;
  uint64_t version = 0;       ///< of the dictionary or type looked at last; see Compat.h
  PyObject *cached = nullptr; ///< what was found there
  const void *data = nullptr;
};
static_assert(sizeof(Step) == 64);

/// The instructions that a step does: itself, the type check, the tensor load.
struct Origin {
  const Instr *self = nullptr, *type = nullptr;
};

/// Registers that must hold references of their own while a step lets others run.
struct Keep {
  std::vector<Reg> objs, tens;
};

/// Whether inputs are written without a copy, since nothing that may miss follows.
struct Direct {
  bool on = false;
  std::vector<Dim> needs; ///< expressions evaluated later, to be tried before anything is written
};

struct SegmentStep {
  const SegmentCall *call;
  Keep keep;
  Direct direct;
};
struct EagerStep {
  const EagerCall *call;
  Keep keep;
  Direct direct;
};
struct AliasStep {
  const AliasGuard *guard;
  std::vector<uint32_t> first;                          ///< the first tensor of each group
  std::vector<std::pair<uint32_t, uint32_t>> followers; ///< (tensor, first of its group)
  // The storages of `first` when they were last compared with each other, and a hash table of them.
  std::vector<const void *> seen;
  std::vector<uint32_t> table; ///< index in `seen` + 1, 0: empty
};

/// One program's end.
struct Leaf {
  std::vector<Step> make, effects; ///< what can be made before any effect; the rest in program order
  std::vector<Origin> makeOrigins, effectOrigins;
  Keep keep;
  bool afterDirect = false; ///< inputs have been written already: signals were looked at before that
  Reg result = kNoReg;
  int64_t *lastUsed = nullptr, *hits = nullptr;
};

struct Node {
  std::vector<Step> steps;
  std::vector<Origin> origins;
  std::deque<SegmentStep> segments;
  std::deque<EagerStep> eagers;
  std::deque<AliasStep> aliases;
  std::vector<InstrPtr> body, commit;
  std::vector<std::unique_ptr<Node>> children;
  size_t lastHit = 0; ///< the child tried first
  std::unique_ptr<Leaf> leaf;
  uint32_t depth = 0; ///< position of the first instruction on the path
};

struct Shape {
  Py_ssize_t nargs;
  Obj kwnames;
  std::unique_ptr<Node> node;
};

/// A program as it was inserted.
struct Program {
  std::vector<InstrPtr> body, commit;
  int32_t objs, tens, syms, nums;
  Py_ssize_t nargs;
  Obj kwnames;
  int64_t lastUsed = 0, hits = 0;
};

/// All programs, ready to run; never changed but for caches. Counted under the GIL.
struct Code {
  std::vector<const TensorGuard *> tensorGuards; ///< the first of those that are equal stands for all
  std::vector<Shape> shapes;
  std::vector<std::shared_ptr<Program>> programs;
  int32_t objs = 0, tens = 0, syms = 0, nums = 0;
  int64_t uses = 0;
};
class CodeRef {
public:
  CodeRef() = default;
  explicit CodeRef(Code *c) : c_(c) {
    if (c_)
      ++c_->uses;
  }
  CodeRef(const CodeRef &o) : CodeRef(o.c_) {}
  CodeRef &operator=(CodeRef o) noexcept {
    std::swap(c_, o.c_);
    return *this;
  }
  ~CodeRef() {
    if (c_ && --c_->uses == 0)
      delete c_;
  }
  Code *operator->() const { return c_; }
  Code *get() const { return c_; }
  explicit operator bool() const { return c_ != nullptr; }

private:
  Code *c_ = nullptr;
};

/// Newest program first. Throws (Internal) for a program that reads registers before they are written.
CodeRef assemble(std::vector<std::shared_ptr<Program>> programs);

/// Memory that a segment or op wrote before it was sure that the call succeeds.
struct Undo {
  dlc::Ref<Storage> storage, copy;
};
struct Drawn {
  Generator *generator;
  uint64_t blocks;
};

/// A guard that failed; of a tensor guard that failed by sizes alone, which ones (bit d).
struct Failure {
  const Instr *instr;
  uint64_t sizes = 0;
};

/// The registers of one call.
struct Frame {
  std::vector<PyObject *> objs;
  std::vector<TensorImpl *> tens;
  std::vector<int64_t> syms;
  std::vector<Number> nums;
  PyObject *callee = nullptr;
  PyObject *const *args = nullptr;
  size_t numArgs = 0;

  std::vector<PyObject *> owned;      ///< references to drop at the end
  std::vector<dlc::Tensor> ownedTens; ///< likewise
  std::vector<Undo> undo;
  size_t undoMark = 0; ///< where the undo log of the node being tried begins
  std::vector<Drawn> drawn;
  std::vector<std::pair<Storage *, uint32_t>> bumps;
  std::vector<Failure> failed;
  bool ranAny = false;
  bool dry = false;             ///< a preview: nothing is written without a copy, no effect is applied, all is put back
  std::vector<Storage *> fresh; ///< of a preview: made by the program, nothing that Python has
  std::function<void(const Leaf &)> finish; ///< of a preview: looks at what would have been done
  // Scratch of segments.
  std::vector<TensorImpl *> inputs;
  std::vector<dlc::Tensor> outs;
  std::vector<Number> numbers;
  std::vector<int64_t> symbols;
  // Scratch of alias guards.
  std::vector<const void *> storages;
  std::vector<uint32_t> changed;

  Ints symbolValues() const { return {syms.data(), syms.size()}; }
  /// A tensor register as a handle that owns nothing.
  const dlc::Tensor &tensor(Reg r) const { return handles(tens.data())[r]; }
  static const dlc::Tensor *handles(TensorImpl *const *p) {
    static_assert(sizeof(dlc::Tensor) == sizeof(TensorImpl *));
    return reinterpret_cast<const dlc::Tensor *>(p);
  }
  void keep(const Keep &k);
  void own(dlc::Tensor t, Reg r);
  void own(PyObject *o, Reg r) {
    owned.push_back(o);
    objs[static_cast<size_t>(r)] = o;
  }
};

/// What happened in a node or step. Other exceptions than out of memory and Ctrl-C never leave these functions.
bool runSegment(const SegmentStep &s, Frame &f);
bool runEagerStep(const EagerStep &s, Frame &f);
bool makeView(const Step &s, Frame &f);
bool readTensor(const Step &s, Frame &f);
bool numberOp(const Step &s, Frame &f);
bool numberTest(const Step &s, const Frame &f);
bool numberIs(const Step &s, const Frame &f);
bool aliasesHold(AliasStep &s, Frame &f);
/// Runs the steps; false: one failed (added to f.failed).
bool execute(Node &n, Frame &f);
/// Makes results and applies effects. Miss: nothing has happened.
enum class Commit : uint8_t { Done, Miss, Raised };
Commit commit(const Leaf &l, Frame &f, PyObject *&result);
/// Puts back what was written since `mark`.
void rollBack(Frame &f, size_t undoMark);
int64_t lengthOf(PyObject *o); ///< -1: it has none

/// A register of one kind: 'o'bject, 't'ensor, 's'ymbol or 'n'umber.
struct Use {
  char kind;
  Reg reg;
};
/// All that an instruction reads.
void usesOf(const Instr &i, std::vector<Use> &uses);
/// The kind of register that an instruction writes with dst.
char writtenKind(Do op);

} // namespace dlc::py::replay
