// Binds the generated table: functions, methods, in-place forms and operators, each a thunk of one call.
#include "python/binding/Parser.h"
#include "runtime/core/Symbolic.h"
#include <cstring>
#include <structseq.h>
#include <unordered_set>

namespace dlc::py {
namespace {

#include "python/binding/PyTable.inc"

constexpr size_t kNumPyFunctions = std::size(kPyFunctions);

BoundFunction bound[kNumPyFunctions];

/// Estimated scalar steps, to decide whether giving up the GIL pays.
int64_t workOf(const OpInfo &op, Span<const Arg<Tensor>> args) {
  if (op.kind == OpKind::View)
    return 0;
  int64_t work = 0, widest = 1;
  for (const Arg<Tensor> &a : args) {
    if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList) {
      for (const Tensor &t : a.values())
        if (t.defined()) {
          const Sizes &sizes = t.impl()->sizes;
          int64_t n = 1;
          for (int64_t s : sizes)
            n *= s;
          work += n;
          if (t.dim() > 0 && a.value != args[0].value)
            widest = std::max(widest, std::max(sizes.front(), sizes.back()));
        }
    } else if (a.tag == ArgTag::DimList && (op.kind == OpKind::Creation || op.kind == OpKind::Random)) {
      int64_t n = 1;
      for (const Dim &d : a.dimList())
        n *= d.value();
      work += n;
    }
  }
  bool heavy = op.kind == OpKind::Contraction || op.kind == OpKind::Structured;
  return heavy ? work * std::max<int64_t>(1, widest / 8) : work;
}
constexpr int64_t kReleaseGilFrom = 40000; // about 20 us of a memory-bound loop

/// The namedtuple type of an op with several results.
PyTypeObject *resultType(const OpInfo &op, const char *name) {
  static std::vector<PyTypeObject *> types(opTable().size());
  PyTypeObject *&type = types[op.id];
  if (!type) {
    auto *fields = new PyStructSequence_Field[op.publicResults + 1]; // lives as long as the type
    for (int i = 0; i < op.publicResults; ++i)
      fields[i] = {op.results[static_cast<size_t>(i)], nullptr};
    fields[op.publicResults] = {nullptr, nullptr};
    PyStructSequence_Desc desc = {strdup(str("dlc.return_types.", name).c_str()), nullptr, fields, op.publicResults};
    type = PyStructSequence_NewType(&desc);
    if (!type)
      throw PythonError{};
  }
  return type;
}

PyObject *wrapResults(const OpInfo &op, const char *name, SmallVec<Tensor, 3> &outs) {
  if (op.listResult) {
    Obj tuple = Obj::check(PyTuple_New(static_cast<Py_ssize_t>(outs.size())));
    for (size_t i = 0; i < outs.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Obj::check(wrap(std::move(outs[i]))).release());
    return tuple.release();
  }
  if (op.publicResults == 0)
    Py_RETURN_NONE;
  if (op.publicResults == 1)
    return wrap(std::move(outs[0]));
  Obj tuple = Obj::check(PyStructSequence_New(resultType(op, name)));
  for (int i = 0; i < op.publicResults; ++i)
    PyStructSequence_SET_ITEM(tuple.get(), i, Obj::check(wrap(std::move(outs[static_cast<size_t>(i)]))).release());
  return tuple.release();
}

void readOut(const OpInfo &op, PyObject *out, SmallVec<Tensor, 3> &outs) {
  auto add = [&](PyObject *o) {
    DLC_REQUIRE(isTensor(o), Type, op.name, "(): argument 'out' must be a Tensor, not ", Py_TYPE(o)->tp_name);
    outs.push_back(tensorOf(o));
  };
  if (PyTuple_Check(out))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(out); ++i)
      add(PyTuple_GET_ITEM(out, i));
  else
    add(out);
  DLC_REQUIRE(outs.size() == op.publicResults && op.results.size() == op.publicResults, Type, op.name,
              "(): argument 'out' must be ", int(op.publicResults), " tensors, not ", outs.size());
}

/// x ** 2 with a literal 2 is square(x): the same dtype, and no logarithm an element.
const OpInfo &withoutPower(const OpInfo &op, const Arg<Tensor> *args) {
  static const uint16_t powId = opNamed("pow").id;
  if (op.id != powId)
    return op;
  const Tensor &base = *args[0].value, &exponent = *args[1].value;
  bool integers = exponent.isWrapped() && exponent.dtype() == DType::I64 && categoryOf(base.dtype()) == Category::Int;
  DLC_REQUIRE(!integers || exponent.item().toInt() >= 0, Runtime,
              "pow: Integers to negative integer powers are not allowed: ", describe(base), " to the power ",
              exponent.item().toInt(), "\nconvert the tensor to a floating dtype, or give a float as the exponent");
  bool square = exponent.isWrapped() && exponent.dtype() == DType::I64 && !base.isWrapped() &&
                base.dtype() != DType::Bool && exponent.item().toInt() == 2;
  return square ? opNamed("square") : op;
}

} // namespace

const OpInfo &opNamed(const char *name) {
  const OpInfo *op = findOp(name);
  DLC_CHECK(op, "no op ", name);
  return *op;
}

void runOp(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  if (!currentInterceptor() && workOf(op, args) >= kReleaseGilFrom) {
    ReleaseGil release;
    dispatch(op, args, outs, form);
    return;
  }
  try {
    dispatch(op, args, outs, form);
  } catch (const Error &) {
    if (form != CallForm::Functional || !symbolicHost())
      throw;
    SymbolicScope plain(nullptr); // the same error again, about the sizes at hand and not about symbols
    outs.clear();
    dispatch(op, args, outs, form);
  }
}

/// An operator whose operands are not all its own: a NumPy array beside the tensor takes part as the tensor of its
/// memory, on either side. NumPy leaves these operators to us.
static PyObject *callWithArrays(const BoundFunction &fn, const CallArgs &call) {
  Obj converted[2];
  PyObject *args[2];
  bool any = false;
  for (int i = 0; i < 2; ++i) {
    args[i] = call.args[i];
    if (isTensor(args[i]) || !isTypedBuffer(args[i]))
      continue;
    converted[i] = Obj::check(wrap(tensorFromBuffer(args[i], fn.table->name)));
    args[i] = converted[i].get();
    any = true;
  }
  if (!any)
    Py_RETURN_NOTIMPLEMENTED;
  return callOp(fn, Spelling::Operator, {nullptr, args, 2, nullptr});
}

PyObject *callOp(const BoundFunction &fn, Spelling spelling, const CallArgs &call) {
  return guarded([&]() -> PyObject * {
    ArgFrame frame;
    CallExtras extras;
    const BoundOverload *o = parseCall(fn, spelling, call, frame, extras, spelling == Spelling::Operator);
    if (!o)
      return callWithArrays(fn, call);
    const OpInfo &op = withoutPower(*o->op, frame.args());
    SmallVec<Tensor, 3> outs;
    CallForm form = CallForm::Functional;
    if (spelling == Spelling::Inplace) {
      form = CallForm::InPlace;
      outs.push_back(tensorOf(call.self));
    } else if (extras.out) {
      form = CallForm::Out;
      readOut(op, extras.out, outs);
    }
    runOp(op, {frame.args(), op.params.size()}, outs, form);
    if (form == CallForm::InPlace)
      return Py_NewRef(call.self);
    if (form == CallForm::Out)
      return Py_NewRef(extras.out);
    if (extras.requiresGrad)
      setRequiresGrad(outs[0], true);
    return wrapResults(op, fn.table->name, outs);
  });
}

namespace {

template <size_t I> PyObject *functionThunk(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return callOp(bound[I], Spelling::Function, {nullptr, args, nargs, kwnames});
}
template <size_t I> PyObject *methodThunk(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return callOp(bound[I], Spelling::Method, {self, args, nargs, kwnames});
}
template <size_t I> PyObject *inplaceThunk(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return callOp(bound[I], Spelling::Inplace, {self, args, nargs, kwnames});
}

struct Thunks {
  FastFn function, method, inplace;
};
template <size_t... I> constexpr std::array<Thunks, sizeof...(I)> makeThunks(std::index_sequence<I...>) {
  return {Thunks{functionThunk<I>, methodThunk<I>, inplaceThunk<I>}...};
}
constexpr auto thunks = makeThunks(std::make_index_sequence<kNumPyFunctions>());

// --- operators

enum BinarySlot {
  Add,
  Sub,
  Mul,
  TrueDiv,
  FloorDiv,
  Mod,
  MatMul,
  And,
  Or,
  Xor,
  LShift,
  RShift,
  Lt,
  Le,
  Eq,
  Ne,
  Gt,
  Ge,
  NumBinary
};
constexpr const char *kBinaryNames[NumBinary] = {"add",    "sub", "mul", "truediv", "floordiv", "mod",
                                                 "matmul", "and", "or",  "xor",     "lshift",   "rshift",
                                                 "lt",     "le",  "eq",  "ne",      "gt",       "ge"};
enum UnarySlot { Neg, Abs, Invert, NumUnary };
constexpr const char *kUnaryNames[NumUnary] = {"neg", "abs", "invert"};

const BoundFunction *binaryFns[NumBinary], *unaryFns[NumUnary], *powFn;

template <int S> PyObject *binarySlot(PyObject *a, PyObject *b) {
  if (!binaryFns[S])
    Py_RETURN_NOTIMPLEMENTED;
  PyObject *args[] = {a, b};
  return callOp(*binaryFns[S], Spelling::Operator, {nullptr, args, 2, nullptr});
}
template <int S> PyObject *inplaceSlot(PyObject *a, PyObject *b) {
  if (!binaryFns[S])
    Py_RETURN_NOTIMPLEMENTED;
  if (!(binaryFns[S]->table->spellings & kInplace))
    return binarySlot<S>(a, b);
  return callOp(*binaryFns[S], Spelling::Inplace, {a, &b, 1, nullptr});
}
template <int S> PyObject *unarySlot(PyObject *a) {
  if (!unaryFns[S]) {
    PyErr_Format(PyExc_TypeError, "bad operand type for %s: Tensor", kUnaryNames[S]);
    return nullptr;
  }
  return callOp(*unaryFns[S], Spelling::Method, {a, nullptr, 0, nullptr});
}
PyObject *positive(PyObject *a) { return Py_NewRef(a); }
PyObject *powSlot(PyObject *a, PyObject *b, PyObject *) {
  PyObject *args[] = {a, b};
  return callOp(*powFn, Spelling::Operator, {nullptr, args, 2, nullptr});
}
PyObject *inplacePowSlot(PyObject *a, PyObject *b, PyObject *) {
  return callOp(*powFn, Spelling::Inplace, {a, &b, 1, nullptr});
}

PyObject *compare(PyObject *a, PyObject *b, int op) {
  static const int slots[] = {Lt, Le, Eq, Ne, Gt, Ge}; // in the order of Py_LT ... Py_GE
  if (!binaryFns[slots[op]])
    Py_RETURN_NOTIMPLEMENTED;
  PyObject *args[] = {a, b};
  return callOp(*binaryFns[slots[op]], Spelling::Operator, {nullptr, args, 2, nullptr});
}

void bindFunction(size_t k) {
  const PyFunction &fn = kPyFunctions[k];
  auto *overloads = new BoundOverload[fn.numOverloads]; // live as long as the process
  for (int i = 0; i < fn.numOverloads; ++i) {
    const PyOverload &o = fn.overloads[i];
    const OpInfo *op = findOp(o.op);
    DLC_CHECK(op, "no op ", o.op);
    DLC_CHECK(op->params.size() <= ArgFrame::kMaxArgs, o.op);
    auto **names = new PyObject *[o.numParams + 1];
    for (int j = 0; j < o.numParams; ++j)
      names[j] = Obj::check(PyUnicode_InternFromString(o.params[j].name)).release();
    const PyParam *full = nullptr;
    for (int j = 0; o.slots && j < fn.numOverloads; ++j)
      if (!fn.overloads[j].slots && findOp(fn.overloads[j].op) == op)
        full = fn.overloads[j].params;
    overloads[i] = {&o, op, o.params, full, o.numParams, o.kwonly, o.varargs, names};
  }
  bound[k] = {&fn, overloads, fn.numOverloads};
  for (int s = 0; s < NumBinary; ++s)
    if (std::strcmp(fn.operatorName, kBinaryNames[s]) == 0)
      binaryFns[s] = &bound[k];
  for (int s = 0; s < NumUnary; ++s)
    if (std::strcmp(fn.operatorName, kUnaryNames[s]) == 0)
      unaryFns[s] = &bound[k];
  if (std::strcmp(fn.operatorName, "pow") == 0)
    powFn = &bound[k];
}

/// A method definition that lives as long as the process.
PyMethodDef *lastingDef(const char *name, FastFn fn, const char *doc) {
  return new PyMethodDef(fastMethod(name, fn, doc));
}

/// The module object `path` ("nn.functional") below `root`, made if absent; its name has '_' for '.'.
Obj submodule(PyObject *root, const char *path) {
  if (!*path)
    return Obj::borrow(root);
  std::string name = path;
  std::replace(name.begin(), name.end(), '.', '_');
  if (PyObject_HasAttrString(root, name.c_str()))
    return Obj::check(PyObject_GetAttrString(root, name.c_str()));
  Obj module = Obj::check(PyModule_New(str("dlc.", path).c_str()));
  if (PyModule_AddObjectRef(root, name.c_str(), module.get()) < 0)
    throw PythonError{};
  return module;
}

} // namespace

void addOperatorSlots(std::vector<PyType_Slot> &slots) {
  auto add = [&](int slot, auto *fn) { slots.push_back({slot, reinterpret_cast<void *>(fn)}); };
  add(Py_nb_add, binarySlot<Add>);
  add(Py_nb_subtract, binarySlot<Sub>);
  add(Py_nb_multiply, binarySlot<Mul>);
  add(Py_nb_true_divide, binarySlot<TrueDiv>);
  add(Py_nb_floor_divide, binarySlot<FloorDiv>);
  add(Py_nb_remainder, binarySlot<Mod>);
  add(Py_nb_matrix_multiply, binarySlot<MatMul>);
  add(Py_nb_and, binarySlot<And>);
  add(Py_nb_or, binarySlot<Or>);
  add(Py_nb_xor, binarySlot<Xor>);
  add(Py_nb_lshift, binarySlot<LShift>);
  add(Py_nb_rshift, binarySlot<RShift>);
  add(Py_nb_inplace_add, inplaceSlot<Add>);
  add(Py_nb_inplace_subtract, inplaceSlot<Sub>);
  add(Py_nb_inplace_multiply, inplaceSlot<Mul>);
  add(Py_nb_inplace_true_divide, inplaceSlot<TrueDiv>);
  add(Py_nb_inplace_floor_divide, inplaceSlot<FloorDiv>);
  add(Py_nb_inplace_remainder, inplaceSlot<Mod>);
  add(Py_nb_inplace_and, inplaceSlot<And>);
  add(Py_nb_inplace_or, inplaceSlot<Or>);
  add(Py_nb_inplace_xor, inplaceSlot<Xor>);
  add(Py_nb_inplace_lshift, inplaceSlot<LShift>);
  add(Py_nb_inplace_rshift, inplaceSlot<RShift>);
  add(Py_nb_power, powSlot);
  add(Py_nb_inplace_power, inplacePowSlot);
  add(Py_nb_negative, unarySlot<Neg>);
  add(Py_nb_positive, positive);
  add(Py_nb_absolute, unarySlot<Abs>);
  add(Py_nb_invert, unarySlot<Invert>);
  add(Py_tp_richcompare, compare);
}

void collectOpMethods() {
  std::vector<PyMethodDef> defs;
  for (size_t k = 0; k < kNumPyFunctions; ++k) {
    const PyFunction &fn = kPyFunctions[k];
    bindFunction(k);
    if (fn.spellings & kMethod)
      defs.push_back(fastMethod(fn.name, thunks[k].method, fn.doc));
    if (fn.spellings & kInplace)
      defs.push_back(fastMethod(strdup((std::string(fn.name) + "_").c_str()), thunks[k].inplace, fn.doc));
  }
  defs.push_back({});
  addMethods(defs.data());
}

bool isOpFunction(const PyMethodDef *def) {
  static const std::unordered_set<const void *> all = [] {
    std::unordered_set<const void *> found;
    for (const Thunks &t : thunks)
      for (FastFn fn : {t.function, t.method, t.inplace})
        found.insert(reinterpret_cast<const void *>(fn));
    return found;
  }();
  return all.count(reinterpret_cast<const void *>(def->ml_meth)) != 0;
}

void initOps(PyObject *module) {
  for (size_t k = 0; k < kNumPyFunctions; ++k) {
    const PyFunction &fn = kPyFunctions[k];
    if (!(fn.spellings & kFunction))
      continue;
    Obj owner = submodule(module, fn.module);
    Obj name = Obj::check(PyUnicode_FromString(*fn.module ? str("dlc.", fn.module).c_str() : "dlc"));
    Obj f = Obj::check(PyCFunction_NewEx(lastingDef(fn.name, thunks[k].function, fn.doc), nullptr, name.get()));
    if (PyModule_AddObjectRef(owner.get(), fn.name, f.get()) < 0)
      throw PythonError{};
  }
}

} // namespace dlc::py
