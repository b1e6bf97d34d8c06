// The replay program: what a call of a compiled function did, as straight-line code over registers that C++ runs
// without Python. A program reads the state at entry, checks it (guards), runs compiled pieces, and at its end makes
// results and applies effects. Programs of one function share prefixes: they form a tree (Tree.h).
//
// Registers: `objs` (Python objects), `tens` (tensors), `syms` (int64 symbols, the values of the session's Dim symbols)
// and `nums` (Numbers). An instruction writes at most one register; a register is written once on a path.
#pragma once
#include "frontend/trace/Observer.h"
#include "python/binding/Internal.h"
#include <memory>
#include <vector>

namespace dlc::py {

using Reg = int32_t;
constexpr Reg kNoReg = -1;

enum class Do : uint8_t {
  // --- loads of the state at entry; a load that finds nothing is a miss. `a` is a register of objs.
  Arg,     ///< objs[dst] = argument imm of the call: positional ones, then keyword values in the order of the call
  Callee,  ///< objs[dst] = the wrapped callable itself
  Const,   ///< objs[dst] = object
  DictGet, ///< objs[dst] = a[key]; a is a dict (or a subclass with dict's own storage); the key is objs[b], or `key` if
           ///< b is kNoReg
  AttrGet, ///< objs[dst] = the entry `key` of the instance dictionary of a
  TypeGet, ///< objs[dst] = the entry `key` found through the MRO of the type object in a, not bound
  SlotGet, ///< objs[dst] = the object at byte offset imm of a (a __slots__ member)
  Item,    ///< objs[dst] = item imm of the list or tuple a
  Cell,    ///< objs[dst] = content of closure cell imm of the function a
  CellObject,  ///< objs[dst] = closure cell imm of the function a
  FunctionGet, ///< objs[dst] = field imm (FunctionField) of the function a; one that is not set is None
  MethodSelf,  ///< objs[dst] = __self__ of the bound method a
  MethodFunc,  ///< objs[dst] = __func__ of the bound method a
  GetAttr,     ///< objs[dst] = getattr(a, key), for C getters that run no Python code
  TensorOf,    ///< tens[dst] = the tensor of the object a
  // --- guards
  IsType,     ///< type(a) is object
  Is,         ///< a is object
  Same,       ///< objs a and b are one object
  NotSame,    ///< they are not
  Distinct,   ///< objs regs are all different objects
  Equals,     ///< a has the exact type of the scalar, str or bytes `object` and its value (floats: the bits)
  Length,     ///< len(a) == imm for a list, tuple, dict, set, deque (exact or subclass with the base's own len)
  DictKeyAt,  ///< objs[dst] = key imm of dict a, in order
  DictKeys,   ///< the keys of dict a in order are those of the tuple `object`
  SetItems,   ///< iterating the set a gives the items of the tuple `object`, in that order
  DictLacks,  ///< key (or objs b) not in dict a
  AttrLacks,  ///< the instance dictionary of a has no `key` (or there is none)
  TypeAttrIs, ///< what type `object` finds for `key` through its MRO is `extra` (null: nothing)
  CodeIs,     ///< a is a Python function whose __code__ is object
  Tensor,     ///< the tensor object a has the properties in `data` (TensorGuard)
  Aliases,    ///< which tensors share memory is as in `data` (AliasGuard)
  Mode,       ///< the thread's mode word (modeWord()) is imm
  Facts,      ///< the facts in `data` (FactGuard) hold for syms
  NumTest,    ///< comparing nums a with b by Python operator `kind` (Py_LT, ...) gave imm
  NumIs,      ///< nums a is the float `object`, by its bits
  // --- numbers
  SymInt,    ///< syms[dst] = the exact int a; one that does not fit 64 bits is a miss
  SymLength, ///< syms[dst] = len(a)
  SymSize,   ///< syms[dst] = size imm of the tensor object a
  SymStride, ///< syms[dst] = stride imm of the tensor object a
  NumFloat,  ///< nums[dst] = the exact float a
  NumDim,    ///< nums[dst] = the expression `data` (DimValue) as an int
  NumOp,     ///< nums[dst] = a kind b (NumKind); float arithmetic as Python does it
  // --- running
  Segment,  ///< runs a piece: `data` (SegmentCall)
  Eager,    ///< runs one op eagerly: `data` (EagerCall)
  View,     ///< tens[dst] = view of the storage of tens a: `data` (ViewOf)
  ReadBool, ///< syms[dst] = bool(tens a)
  ReadInt,  ///< syms[dst] = int value of tens a (an integer tensor)
  ReadNum,  ///< nums[dst] = the element of tens a as Python sees it
  SizeOf,   ///< syms[dst] = size imm of tens a (results of ops with data-dependent sizes)
  // --- making results (only in `commit`)
  MakeTensor,   ///< objs[dst] = new Python tensor of type `object` around tens a; imm: a leaf that requires a gradient
  MakeInt,      ///< objs[dst] = the expression `data` (DimValue)
  MakeNumber,   ///< objs[dst] = nums a
  MakeSequence, ///< objs[dst] = new list, tuple, set, frozenset (object: the type) of objs regs; tuple subclasses made
                ///< by tuple.__new__ (namedtuple), Size, structseq and deque (of at most imm items, 0: any) too
  MakeDict,     ///< objs[dst] = new dict or OrderedDict (object: type) with keys regs[0], regs[2].. and values
  MakeObject,   ///< objs[dst] = object.__new__(object) with instance dictionary key[i] = regs[i] (key: tuple of names)
  MakeFunction, ///< objs[dst] = function of code `object`: regs = globals, name, defaults, kwdefaults, closure, dict
  MakeCell,     ///< objs[dst] = new cell with content a (or empty)
  MakeMethod,   ///< objs[dst] = bound method of function a and self b
  MakeSlice,    ///< objs[dst] = slice(regs...)
  MakeText,     ///< objs[dst] = the texts objs regs joined
  Format,       ///< objs[dst] = format(a, spec = key) after conversion imm (as in f-strings); a is a scalar or tensor
  Fill,         ///< mutable container a made before gets its items regs (cycles): list, dict (pairs), set, object dict
  // --- effects, in program order (only in `commit`)
  Call,      ///< calls the C callable a with objs regs, keyword names `key`; dst (if any) = its result
  SetAttr,   ///< a.key = b by object.__setattr__ (C only); b == kNoReg: delete
  SetItem,   ///< a[b] = regs[0] for exact dict, list, OrderedDict...; no regs: delete
  SetCell,   ///< closure cell object a gets the content b (kNoReg: empty)
  SetGlobal, ///< dict a: key = b (kNoReg: delete)
  Grad,      ///< leaf tensor object a: .grad = the tensor object b (kNoReg: None)
  RngTake,   ///< generator of `data` (RngEffect) advances: what Segments and Eager ops drew, they leave it alone
  Tape,      ///< an effect defined elsewhere, such as giving results their histories: `data` (TapeEffect)
  Return     ///< the result is objs a
};

enum class FunctionField : uint8_t { Code, Globals, Defaults, KwDefaults, Closure, Dict };
enum class NumKind : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Pow,
  Neg,
  Abs,
  Min,
  Max,
  ToFloat,
  Sqrt,
  Exp,
  Log,
  Sin,
  Cos,
  Tanh
};

/// What an instruction needs beyond the common fields. Compared when programs are merged.
class Data {
public:
  virtual ~Data() = default;
  virtual bool equals(const Data &other) const = 0;
  virtual std::string text() const = 0;
  /// Python objects held, for the garbage collector.
  virtual int traverse(visitproc, void *) const { return 0; }
};

struct Instr {
  Do op = Do::Return;
  uint8_t kind = 0;
  Reg dst = kNoReg, a = kNoReg, b = kNoReg;
  int64_t imm = 0;
  Obj object, key, extra;
  std::vector<Reg> regs;
  std::shared_ptr<const Data> data;
  uint32_t loc = 0; ///< the user's statement that needed it (locText)
  /// Loads and guards of numbers and sizes: where the value comes from ("arg 0", "global lr", "size 0 of arg 1"). A
  /// guard that fails on it makes the next capture treat the source as a symbol.
  std::string source;
};
bool sameInstr(const Instr &a, const Instr &b); ///< ignoring loc and source
/// One object, or two of one exact built-in scalar type with one value (floats: the bits); tuples of such.
bool sameScalar(PyObject *a, PyObject *b);

/// dtype, sizes... of a tensor object. A size of -1 is free (read by SymSize), as are its strides.
struct TensorGuard final : Data {
  PyTypeObject *type = nullptr; ///< exact Python type (checked by IsType before)
  DType dtype = DType::F32;
  bool requiresGrad = false, leaf = true, wrapped = false, foreign = false, hooked = false;
  Sizes sizes, strides; ///< -1: free; strides of a contiguous tensor with free sizes: `contiguous`
  bool contiguous = true;
  int64_t offset = -1, bytes = -1; ///< in its storage, and of that; -1: any
  bool equals(const Data &) const override;
  std::string text() const override;
};

/// Tensors (registers of objs) by storage: `group[i]` is equal for those that share one. Of those that do, offsets
/// relative to the first are equal to `offsets`.
struct AliasGuard final : Data {
  std::vector<Reg> tensors;
  std::vector<int32_t> group;
  std::vector<int64_t> offsets;
  bool equals(const Data &) const override;
  std::string text() const override;
};

struct FactGuard final : Data {
  std::vector<Fact> facts;
  bool equals(const Data &) const override;
  std::string text() const override;
};

struct DimValue final : Data {
  Dim dim;
  bool equals(const Data &) const override;
  std::string text() const override;
};

/// A view of the storage of a tensor register, with sizes as expressions of syms.
struct ViewOf final : Data {
  Dims sizes, strides;
  Dim offset; ///< from the first element of that tensor
  DType dtype = DType::F32;
  bool equals(const Data &) const override;
  std::string text() const override;
};

/// A number operand of a piece or op.
struct NumberOperand {
  trace::NumberSource source;
  Reg num = kNoReg; ///< Session: register of nums, or
  Dim dim;          ///< (num == kNoReg) expression of syms
};

struct SegmentCall final : Data {
  using Number_ = NumberOperand;
  std::shared_ptr<trace::PieceCode> code;
  std::vector<Reg> inputs; ///< registers of tens
  std::vector<bool> wholeStorage;
  std::vector<Number_> numbers;
  std::vector<Dim> symbols; ///< of the code, over syms
  struct Out {
    Reg tens = kNoReg; ///< register for a new tensor over the output's storage (kNoReg: not needed)
    int32_t writeBack = -1;
    uint32_t versionBumps = 0;
  };
  std::vector<Out> outputs;
  bool last = false; ///< nothing that may miss follows (the tree finds out by itself: a hint for readers)
  bool equals(const Data &) const override;
  std::string text() const override;
};

/// An op on registers, run by the eager kernels.
struct EagerCall final : Data {
  const OpInfo *op = nullptr;
  CallForm form = CallForm::Functional;
  OwnedArgs<GVal> args;               ///< GVal::id is a register of tens
  std::vector<Reg> outs;              ///< registers of tens
  std::vector<NumberOperand> numbers; ///< of the Num arguments whose ref() is not null, in order
  bool equals(const Data &) const override;
  std::string text() const override;
};

struct RngEffect final : Data {
  Ref<Generator> generator;
  Dim blocks;
  bool equals(const Data &) const override;
  std::string text() const override;
};

/// The registers as effects see them.
struct Registers {
  PyObject *const *objs;
  const dlc::Tensor *tens;
  Ints syms;
  const Number *nums;
};

/// An effect whose meaning lies outside of this folder. Runs in the commit, in its place among the effects.
class TapeEffect : public Data {
public:
  virtual void apply(const Registers &r) const = 0;
  /// The registers that apply() reads, so that they are kept alive until then.
  virtual void reads(std::vector<Reg> &objs, std::vector<Reg> &tens) const = 0;
  /// The numbers that it reads: registers of nums, and expressions of syms.
  virtual void readsNumbers(std::vector<Reg> &nums, std::vector<Dim> &dims) const {}
};

/// One way through a function. Body: loads, guards, numbers, running. Commit: making and effects, ends with Return.
struct Path {
  std::vector<Instr> body, commit;
  int32_t objs = 0, tens = 0, syms = 0, nums = 0; ///< registers used
  Py_ssize_t nargs = 0;                           ///< positional arguments of the call it was made from
  Obj kwnames;                                    ///< tuple of keyword names or null
};

/// Everything about the thread that changes what ops do: grad mode, default dtype, deterministic mode, ...
int64_t modeWord();

/// One line per instruction, for explain and DLC_LOGS=guards.
std::string text(const Instr &i);

} // namespace dlc::py
