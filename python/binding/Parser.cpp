// Parsing of op calls. The positional path touches each argument once; keywords are compared by identity first.
#include "python/binding/Parser.h"
#include <cstring>

namespace dlc::py {

void ArgFrame::reset() {
  while (numWrapped_)
    reinterpret_cast<Tensor *>(wrapped_)[--numWrapped_].~Tensor();
  while (numInts_)
    reinterpret_cast<Sizes *>(ints_)[--numInts_].~Sizes();
  while (numDims_)
    reinterpret_cast<Dims *>(dims_)[--numDims_].~Dims();
  if (lists_)
    lists_->clear();
}

const Tensor &ArgFrame::wrapNumber(const Number &n) {
  DLC_CHECK(numWrapped_ < kMaxWrapped, "too many numbers for tensor parameters");
  return *new (reinterpret_cast<Tensor *>(wrapped_) + numWrapped_++) Tensor(n);
}
Sizes &ArgFrame::newInts() {
  DLC_CHECK(numInts_ < kMaxLists, "too many list parameters");
  return *new (reinterpret_cast<Sizes *>(ints_) + numInts_++) Sizes();
}
Dims &ArgFrame::newDims() {
  DLC_CHECK(numDims_ < kMaxLists, "too many list parameters");
  return *new (reinterpret_cast<Dims *>(dims_) + numDims_++) Dims();
}
std::vector<Tensor> &ArgFrame::newTensors() {
  if (!lists_)
    lists_ = std::make_unique<std::deque<std::vector<Tensor>>>();
  return lists_->emplace_back();
}

namespace {

/// Why an overload did not fit, kept as pointers until someone asks.
struct Mismatch {
  enum What : uint8_t { None, Type, TooMany, Missing, Unknown, Duplicate, Choice } what = None;
  const PyParam *param = nullptr;
  PyObject *value = nullptr; // borrowed
};

const char *expected(ParamKind k) {
  switch (k) {
  case ParamKind::T:
  case ParamKind::TMut:
    return "a Tensor";
  case ParamKind::TOpt:
  case ParamKind::TOptMut:
    return "a Tensor or None";
  case ParamKind::TN:
    return "a Tensor or a number";
  case ParamKind::TNOpt:
    return "a Tensor, a number or None";
  case ParamKind::TList:
  case ParamKind::TListMut:
  case ParamKind::TOptList:
    return "a list or tuple of Tensors";
  case ParamKind::Num:
  case ParamKind::NumOpt:
    return "a number";
  case ParamKind::SymInts:
  case ParamKind::SymIntsOpt:
  case ParamKind::IntList:
  case ParamKind::IntListOpt:
    return "a tuple of ints";
  case ParamKind::SymInt:
  case ParamKind::SymIntOpt:
  case ParamKind::Int:
  case ParamKind::IntOpt:
    return "an int";
  case ParamKind::Bool:
    return "a bool";
  case ParamKind::Float:
  case ParamKind::FloatOpt:
    return "a float";
  case ParamKind::Str:
  case ParamKind::StrOpt:
    return "a str";
  case ParamKind::DTypeA:
  case ParamKind::DTypeOpt:
    return "a dtype";
  case ParamKind::DeviceOpt:
    return "a device";
  case ParamKind::Rng:
    return "a Generator";
  }
  return "something else";
}

bool readTensors(PyObject *o, bool optional, std::vector<Tensor> &out) {
  if (!PyList_Check(o) && !PyTuple_Check(o))
    return false;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  PyObject **items = PySequence_Fast_ITEMS(o);
  out.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (isTensor(items[i]))
      out.push_back(tensorOf(items[i]));
    else if (optional && items[i] == Py_None)
      out.emplace_back();
    else
      return false;
  }
  return true;
}

bool readInts(PyObject *o, const PyParam &p, Sizes &out) {
  if (toInts(o, out))
    return true;
  int64_t v;
  if (!p.fixed || PyBool_Check(o) || !toInt(o, v))
    return false;
  for (uint8_t k = 0; k < p.fixed; ++k)
    out.push_back(v);
  return true;
}

/// Sizes; one int stands for all of a fixed number.
bool readDims(PyObject *o, const PyParam &p, Dims &out) {
  Dim v;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      if (!toDim(PySequence_Fast_GET_ITEM(o, i), v))
        return false;
      out.push_back(v);
    }
    return true;
  }
  if (PyBool_Check(o) || !toDim(o, v))
    return false;
  for (uint8_t k = 0; k < std::max<uint8_t>(p.fixed, 1); ++k)
    out.push_back(v);
  return true;
}

bool inChoices(Str s, const char *choices) {
  for (const char *c = choices; *c;) {
    const char *end = std::strchr(c, '|');
    size_t n = end ? static_cast<size_t>(end - c) : std::strlen(c);
    if (s == Str(c, n))
      return true;
    c += n + (end != nullptr);
  }
  return false;
}

bool readNumber(PyObject *o, Number &out) {
  if (toNumber(o, out))
    return true;
  if (!isTensor(o) || tensorOf(o).dim() != 0)
    return false;
  noteValueRead();
  out = tensorOf(o).item();
  return true;
}

bool readInt(PyObject *o, int64_t &out) { return !PyBool_Check(o) && toInt(o, out); }

/// Boxes one argument; false if it is not of the parameter's kind.
bool readArg(const PyParam &p, PyObject *o, bool numberSelf, ArgFrame &frame, size_t i) {
  using A = Arg<Tensor>;
  switch (p.kind) {
  case ParamKind::T:
  case ParamKind::TMut:
  case ParamKind::TOpt:
  case ParamKind::TOptMut:
  case ParamKind::TN:
  case ParamKind::TNOpt: {
    if (isTensor(o))
      return frame.set(i, A::of(tensorOf(o))), true;
    bool optional = p.kind == ParamKind::TOpt || p.kind == ParamKind::TOptMut || p.kind == ParamKind::TNOpt;
    if (o == Py_None)
      return frame.set(i, A()), optional;
    Number n;
    if ((p.kind != ParamKind::TN && p.kind != ParamKind::TNOpt && !numberSelf) || !toNumber(o, n))
      return false;
    return frame.set(i, A::of(frame.wrapNumber(n))), true;
  }
  case ParamKind::TList:
  case ParamKind::TListMut:
  case ParamKind::TOptList: {
    std::vector<Tensor> &list = frame.newTensors();
    if (!readTensors(o, p.kind == ParamKind::TOptList, list))
      return false;
    return frame.set(i, A::list(Span<const Tensor>(list.data(), list.size()))), true;
  }
  case ParamKind::NumOpt:
    if (o == Py_None)
      return frame.set(i, A()), true;
    [[fallthrough]];
  case ParamKind::Num: {
    Number n;
    return readNumber(o, n) && (frame.set(i, A::number(n)), true);
  }
  case ParamKind::SymIntOpt:
    if (o == Py_None)
      return frame.set(i, A()), true;
    [[fallthrough]];
  case ParamKind::SymInt: {
    Dim v;
    return !PyBool_Check(o) && toDim(o, v) && (frame.set(i, A::ofDim(v)), true);
  }
  case ParamKind::SymIntsOpt:
    if (o == Py_None)
      return frame.set(i, A()), true;
    [[fallthrough]];
  case ParamKind::SymInts: {
    Dims &dims = frame.newDims();
    if (!readDims(o, p, dims))
      return false;
    return frame.set(i, A::ofDims(Span<const Dim>(dims.data(), dims.size()))), true;
  }
  case ParamKind::IntListOpt:
    if (o == Py_None)
      return frame.set(i, A()), true;
    [[fallthrough]];
  case ParamKind::IntList: {
    Sizes &ints = frame.newInts();
    return readInts(o, p, ints) && (frame.set(i, A::ofInts(Ints(ints))), true);
  }
  case ParamKind::IntOpt:
    if (o == Py_None)
      return frame.set(i, A()), true;
    [[fallthrough]];
  case ParamKind::Int: {
    int64_t v;
    return readInt(o, v) && (frame.set(i, A::ofInt(v)), true);
  }
  case ParamKind::Bool: {
    Number n;
    if (o == Py_True || o == Py_False)
      return frame.set(i, A::ofBool(o == Py_True)), true;
    return toNumber(o, n) && n.category() == Category::Bool && (frame.set(i, A::ofBool(n.toBool())), true);
  }
  case ParamKind::FloatOpt:
    if (o == Py_None)
      return frame.set(i, A()), true;
    [[fallthrough]];
  case ParamKind::Float: {
    Number n;
    return readNumber(o, n) && n.category() != Category::Bool && (frame.set(i, A::ofFloat(n.toDouble())), true);
  }
  case ParamKind::StrOpt:
    if (o == Py_None)
      return frame.set(i, A()), true;
    [[fallthrough]];
  case ParamKind::Str: {
    Py_ssize_t n;
    const char *s = PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, &n) : nullptr;
    return s && (frame.set(i, A::ofStr(Str(s, static_cast<size_t>(n)))), true);
  }
  case ParamKind::DTypeOpt:
    if (o == Py_None)
      return frame.set(i, A()), true;
    [[fallthrough]];
  case ParamKind::DTypeA: {
    DType t;
    return toDType(o, t) && (frame.set(i, A::ofDType(t)), true);
  }
  case ParamKind::DeviceOpt:
    if (o != Py_None && !PyUnicode_Check(o) && Py_TYPE(o) != deviceType)
      return false;
    requireCpu(o, "device");
    return frame.set(i, A()), true;
  case ParamKind::Rng:
    if (o != Py_None && Py_TYPE(o) != generatorType)
      return false;
    return frame.set(i, A::ofRng(o == Py_None ? nullptr : reinterpret_cast<PyGenerator *>(o)->generator.get())), true;
  }
  return false;
}

/// Boxes a parameter's default; false if it has none.
bool setDefault(const PyParam &p, ArgFrame &frame, size_t i) {
  using A = Arg<Tensor>;
  bool number = p.kind == ParamKind::Num || p.kind == ParamKind::NumOpt;
  switch (p.def) {
  case PyDefault::Required:
    return false;
  case PyDefault::None:
    return frame.set(i, p.kind == ParamKind::Rng ? A::ofRng(nullptr) : A()), true;
  case PyDefault::Bool:
    return frame.set(i, number ? A::number(Number(p.i != 0)) : A::ofBool(p.i != 0)), true;
  case PyDefault::Int:
    if (p.kind == ParamKind::TN || p.kind == ParamKind::TNOpt)
      return frame.set(i, A::of(frame.wrapNumber(Number(p.i)))), true;
    if (p.kind == ParamKind::SymInt || p.kind == ParamKind::SymIntOpt)
      return frame.set(i, A::ofDim(Dim(p.i))), true;
    return frame.set(i, number                       ? A::number(Number(p.i))
                        : p.kind == ParamKind::Float ? A::ofFloat(static_cast<double>(p.i))
                                                     : A::ofInt(p.i)),
           true;
  case PyDefault::Float:
    if (p.kind == ParamKind::TN || p.kind == ParamKind::TNOpt)
      return frame.set(i, A::of(frame.wrapNumber(Number(p.f)))), true;
    return frame.set(i, number ? A::number(Number(p.f)) : A::ofFloat(p.f)), true;
  case PyDefault::Str:
    return frame.set(i, A::ofStr(Str(p.s))), true;
  case PyDefault::Ints: {
    if (p.kind == ParamKind::SymInts || p.kind == ParamKind::SymIntsOpt) {
      Dims &dims = frame.newDims();
      for (uint8_t k = 0; k < p.fixed; ++k)
        dims.push_back(Dim(p.i));
      return frame.set(i, A::ofDims(Span<const Dim>(dims.data(), dims.size()))), true;
    }
    Sizes &ints = frame.newInts();
    for (uint8_t k = 0; k < p.fixed && p.s == nullptr; ++k)
      ints.push_back(p.i);
    return frame.set(i, A::ofInts(Ints(ints))), true;
  }
  }
  return false;
}

/// NumPy's and the functional spelling of a parameter's name.
const char *canonicalName(const char *name) {
  static const char *const pairs[][2] = {
      {"input", "self"}, {"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "self"}, {"x2", "other"}};
  for (auto &pair : pairs)
    if (std::strcmp(name, pair[0]) == 0)
      return pair[1];
  return nullptr;
}

int findParam(const BoundOverload &o, PyObject *key) {
  for (int i = 0; i < o.numParams; ++i)
    if (o.names[i] == key)
      return i;
  const char *name = PyUnicode_AsUTF8(key);
  for (int i = 0; i < o.numParams; ++i)
    if (std::strcmp(o.params[i].name, name) == 0)
      return i;
  const char *other = canonicalName(name);
  for (int i = 0; other && i < o.numParams; ++i)
    if (std::strcmp(o.params[i].name, other) == 0)
      return i;
  return -1;
}

/// Keywords that every op of the kind takes beside its parameters; true if `key` was one of them.
bool readExtra(const PyFunction &fn, const OpInfo &op, PyObject *key, PyObject *value, CallExtras &extras) {
  const char *name = PyUnicode_AsUTF8(key);
  if ((fn.spellings & kOut) && std::strcmp(name, "out") == 0) {
    extras.out = value == Py_None ? nullptr : value;
    return true;
  }
  if (op.kind != OpKind::Creation && op.kind != OpKind::Random)
    return false;
  if (std::strcmp(name, "requires_grad") == 0) {
    extras.requiresGrad = PyObject_IsTrue(value) == 1;
    return true;
  }
  if (std::strcmp(name, "device") == 0) {
    requireCpu(value, fn.name);
    return true;
  }
  bool ignorable = std::strcmp(name, "layout") == 0 || std::strcmp(name, "memory_format") == 0 ||
                   std::strcmp(name, "pin_memory") == 0;
  return ignorable && (value == Py_None || value == Py_False);
}

/// What a parameter without default is when a shorter signature leaves it out: the start of a range.
Arg<Tensor> zeroOf(ParamKind kind) {
  if (kind == ParamKind::Num)
    return Arg<Tensor>::number(Number(0));
  return kind == ParamKind::SymInt ? Arg<Tensor>::ofDim(Dim(0)) : Arg<Tensor>();
}

bool takesVarargs(ParamKind k) { return k == ParamKind::SymInts || k == ParamKind::IntList || k == ParamKind::TList; }

bool parseOverload(const PyFunction &fn, const BoundOverload &o, Spelling spelling, const CallArgs &call,
                   ArgFrame &frame, CallExtras &extras, Mismatch &why) {
  const int n = o.numParams;
  PyObject *given[ArgFrame::kMaxArgs];
  std::memset(given, 0, sizeof(PyObject *) * static_cast<size_t>(n));
  int at = 0;
  if (call.self)
    given[at++] = call.self;
  Py_ssize_t nargs = call.nargs;
  Obj packed;
  Py_ssize_t from = 0;
  // A run of ints (or tensors) in the place of a list takes all that is left.
  if (o.varargs && nargs > 0) {
    int list = 0;
    while (list < n && !takesVarargs(o.params[list].kind))
      ++list;
    from = list - at;
    if (list < n && from >= 0 && from < nargs && !PyTuple_Check(call.args[from]) && !PyList_Check(call.args[from])) {
      packed = Obj::check(PyTuple_New(nargs - from));
      for (Py_ssize_t i = from; i < nargs; ++i)
        PyTuple_SET_ITEM(packed.get(), i - from, Py_NewRef(call.args[i]));
      given[list] = packed.get();
      nargs = from;
    }
  }
  if (at + nargs > o.kwonly) {
    why = {Mismatch::TooMany, nullptr, nullptr};
    return false;
  }
  for (Py_ssize_t i = 0; i < nargs; ++i)
    given[at + i] = call.args[i];
  if (call.kwnames) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call.kwnames); ++k) {
      PyObject *key = PyTuple_GET_ITEM(call.kwnames, k), *value = call.args[call.nargs + k];
      int i = findParam(o, key);
      if (i < 0) {
        if (readExtra(fn, *o.op, key, value, extras))
          continue;
        why = {Mismatch::Unknown, nullptr, key};
        return false;
      }
      if (given[i]) {
        why = {Mismatch::Duplicate, o.params + i, nullptr};
        return false;
      }
      given[i] = value;
    }
  }
  const uint8_t *slots = o.table->slots;
  for (size_t i = 0; slots && i < o.op->params.size(); ++i)
    if (!o.full || !setDefault(o.full[i], frame, i))
      frame.set(i, zeroOf(o.op->params[i].kind));
  bool numberSelf = spelling == Spelling::Operator;
  for (int i = 0; i < n; ++i) {
    const PyParam &p = o.params[i];
    size_t to = slots ? slots[i] : static_cast<size_t>(i);
    if (given[i] ? readArg(p, given[i], numberSelf, frame, to) : setDefault(p, frame, to))
      continue;
    PyObject *shown = packed && given[i] == packed.get() ? call.args[from] : given[i];
    why = given[i] ? Mismatch{Mismatch::Type, &p, shown} : Mismatch{Mismatch::Missing, &p, nullptr};
    return false;
  }
  return true;
}

const char *shownName(const PyParam &p, Spelling spelling) {
  return spelling == Spelling::Function && std::strcmp(p.name, "self") == 0 ? "input" : p.name;
}

std::string explain(const PyFunction &fn, Spelling spelling, const CallArgs &call, const Mismatch &why) {
  switch (why.what) {
  case Mismatch::Type:
    return str(fn.name, "(): argument '", shownName(*why.param, spelling), "' must be ", expected(why.param->kind),
               ", not ", Py_TYPE(why.value)->tp_name);
  case Mismatch::TooMany:
    return str(fn.name, "(): too many positional arguments (", call.nargs, ")");
  case Mismatch::Missing:
    return str(fn.name, "(): missing required argument '", shownName(*why.param, spelling), "'");
  case Mismatch::Unknown:
    return str(fn.name, "() got an unexpected keyword argument '", PyUnicode_AsUTF8(why.value), "'");
  case Mismatch::Duplicate:
    return str(fn.name, "() got multiple values for argument '", shownName(*why.param, spelling), "'");
  default:
    return str(fn.name, "(): wrong arguments");
  }
}

/// "(float32[3, 4], int, keepdim=bool)"
std::string describeCall(const CallArgs &call) {
  std::string s = "(";
  const char *sep = "";
  auto add = [&](PyObject *o, const char *name) {
    s += str(sep, name ? str(name, "=") : "", isTensor(o) ? describe(tensorOf(o)) : Py_TYPE(o)->tp_name);
    sep = ", ";
  };
  if (call.self)
    add(call.self, nullptr);
  for (Py_ssize_t i = 0; i < call.nargs; ++i)
    add(call.args[i], nullptr);
  for (Py_ssize_t k = 0; call.kwnames && k < PyTuple_GET_SIZE(call.kwnames); ++k)
    add(call.args[call.nargs + k], PyUnicode_AsUTF8(PyTuple_GET_ITEM(call.kwnames, k)));
  return s + ")";
}

void checkChoices(const PyFunction &fn, const BoundOverload &o, Span<const Arg<Tensor>> args) {
  for (int i = 0; i < o.numParams; ++i) {
    const Arg<Tensor> &a = args[o.table->slots ? o.table->slots[i] : static_cast<size_t>(i)];
    if (o.params[i].choices && a.tag == ArgTag::Str)
      DLC_REQUIRE(inChoices(a.str(), o.params[i].choices), Value, fn.name, ": `", o.params[i].name, "` is '", a.str(),
                  "'\nuse one of ", o.params[i].choices);
  }
}

} // namespace

const BoundOverload *parseCall(const BoundFunction &fn, Spelling spelling, const CallArgs &call, ArgFrame &frame,
                               CallExtras &extras, bool quiet) {
  Mismatch why;
  for (int k = 0; k < fn.numOverloads; ++k) {
    const BoundOverload &o = fn.overloads[k];
    if (parseOverload(*fn.table, o, spelling, call, frame, extras, why)) {
      checkChoices(*fn.table, o, {frame.args(), o.op->params.size()});
      return &o;
    }
    frame.reset();
    extras = CallExtras();
  }
  if (quiet)
    return nullptr;
  std::string message = fn.numOverloads == 1
                            ? explain(*fn.table, spelling, call, why)
                            : str(fn.table->name, "(): no signature fits the arguments ", describeCall(call));
  message += "\ncall:";
  for (int k = 0; k < fn.numOverloads; ++k)
    message += str("\n  ", fn.overloads[k].table->schema);
  throw Error(ErrorKind::Type, message);
}

} // namespace dlc::py
