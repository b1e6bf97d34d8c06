// Methods that dataclasses and namedtuple write without source: what they do is known, so it is done here, through the
// session.
#include "python/binding/Imported.h"
#include "python/capture/hooks/Hooks.h"
#include "python/capture/hooks/Lookup.h"
#include <cstring>

namespace dlc::py {
namespace {

/// The class that defines `function` under its name and was made by @dataclass; null if there is none.
PyTypeObject *dataclassOf(PyObject *function, PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject *name = reinterpret_cast<PyFunctionObject *>(function)->func_name;
  for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    PyTypeObject *t = asType(PyTuple_GET_ITEM(type->tp_mro, i));
    if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE))
      continue;
    if (PyDict_GetItemWithError(t->tp_dict, name) == function)
      return PyDict_GetItemWithError(t->tp_dict, DLC_NAME("__dataclass_fields__")) ? t : nullptr;
  }
  return nullptr;
}

struct Field {
  Obj name, factory; ///< factory null: none
  bool init, isVariable, compare, repr;
};

std::vector<Field> fieldsOf(PyTypeObject *type) {
  static Imported missing("dataclasses", "MISSING");
  std::vector<Field> fields;
  PyObject *all = PyDict_GetItemWithError(type->tp_dict, DLC_NAME("__dataclass_fields__")), *key, *f;
  for (Py_ssize_t at = 0; PyDict_Next(all, &at, &key, &f);) {
    auto get = [&, o = f](const char *name) { return Obj::check(PyObject_GetAttrString(o, name)); };
    Obj kind = Obj::check(PyObject_GetAttrString(get("_field_type").get(), "name")), factory = get("default_factory");
    if (std::strcmp(textOf(kind.get()), "_FIELD_CLASSVAR") == 0)
      continue;
    fields.push_back({Obj::borrow(key), factory.get() == missing.get() ? Obj() : factory, get("init").get() == Py_True,
                      std::strcmp(textOf(kind.get()), "_FIELD_INITVAR") == 0, get("compare").get() == Py_True,
                      get("repr").get() == Py_True});
  }
  return fields;
}

/// Parameter values of a call by name; false if some are missing or too many.
bool bindArguments(PyObject *function, Given args, std::vector<std::pair<PyObject *, PyObject *>> &out) {
  auto *f = reinterpret_cast<PyFunctionObject *>(function);
  auto *code = reinterpret_cast<PyCodeObject *>(f->func_code);
  Obj names = Obj::check(PyCode_GetVarnames(code));
  Py_ssize_t total = code->co_argcount + code->co_kwonlyargcount,
             defaults = f->func_defaults ? PyTuple_GET_SIZE(f->func_defaults) : 0, used = 0;
  if (args.n > code->co_argcount)
    return false;
  for (Py_ssize_t i = 0; i < total; ++i) {
    PyObject *name = PyTuple_GET_ITEM(names.get(), i), *value = i < args.n ? args.v[i] : nullptr;
    for (Py_ssize_t k = 0; k < args.numKeywords(); ++k)
      if (PyUnicode_Compare(PyTuple_GET_ITEM(args.kwnames, k), name) == 0) {
        if (value)
          return false;
        value = args.v[args.n + k];
        ++used;
      }
    Py_ssize_t d = i - (code->co_argcount - defaults);
    if (!value && i < code->co_argcount && d >= 0)
      value = PyTuple_GET_ITEM(f->func_defaults, d);
    if (!value && i >= code->co_argcount && f->func_kwdefaults)
      value = PyDict_GetItemWithError(f->func_kwdefaults, name);
    if (!value)
      return false;
    out.emplace_back(name, value);
  }
  return used == args.numKeywords();
}

/// Each field is set from its parameter or factory, then __post_init__ runs.
Obj dataclassInit(Session &s, PyObject *function, PyTypeObject *type, Given args) {
  std::vector<std::pair<PyObject *, PyObject *>> given;
  readFunction(s, function, args);
  if (!bindArguments(function, args, given))
    return callPlain(function, args); // raises
  PyObject *self = args.v[0];
  static Imported hasFactory("dataclasses", "_HAS_DEFAULT_FACTORY");
  PyObject *params = PyDict_GetItemWithError(type->tp_dict, DLC_NAME("__dataclass_params__"));
  Obj frozen = params ? Obj::check(PyObject_GetAttrString(params, "frozen")) : Obj();
  std::vector<Obj> variables;
  for (const Field &f : fieldsOf(type)) {
    Obj value;
    for (const auto &[name, v] : given)
      if (f.init && PyUnicode_Compare(name, f.name.get()) == 0)
        value = Obj::borrow(v);
    if (f.factory && (!value || value.get() == hasFactory.get())) {
      if (!PyType_Check(f.factory.get()) || (asType(f.factory.get())->tp_flags & Py_TPFLAGS_HEAPTYPE))
        s.fail("a dataclass has a default factory in Python");
      value = callObject(s, f.factory.get(), {nullptr, 0});
    }
    if (!value)
      continue;
    if (f.isVariable)
      variables.push_back(value);
    else if (frozen && frozen.get() == Py_True)
      setPlainAttribute(s, self, f.name.get(), value.get());
    else
      setAttribute(s, self, f.name.get(), value.get());
  }
  lookUp(s, type, DLC_NAME("__post_init__"));
  if (_PyType_Lookup(type, DLC_NAME("__post_init__"))) {
    std::vector<PyObject *> raw;
    for (const Obj &v : variables)
      raw.push_back(v.get());
    callMethod(s, self, DLC_NAME("__post_init__"), {raw.data(), static_cast<Py_ssize_t>(raw.size())});
  }
  return Obj::borrow(Py_None);
}

Obj fieldTuple(Session &s, PyTypeObject *type, PyObject *o) {
  Obj list = Obj::check(PyList_New(0));
  for (const Field &f : fieldsOf(type))
    if (f.compare && !f.isVariable && PyList_Append(list.get(), attribute(s, o, f.name.get()).get()) < 0)
      throw PythonError{};
  return Obj::check(PyList_AsTuple(list.get()));
}

Obj dataclassCompare(Session &s, PyTypeObject *type, int op, Given args) {
  if (Py_TYPE(args.v[0]) != Py_TYPE(args.v[1]))
    return Obj::borrow(Py_NotImplemented);
  Obj a = fieldTuple(s, type, args.v[0]), b = fieldTuple(s, type, args.v[1]);
  return compare(s, op, a.get(), b.get());
}

Obj dataclassRepr(Session &s, PyTypeObject *type, PyObject *self) {
  static PyObject *const empty = PyUnicode_InternFromString("");
  Obj name = Obj::check(PyType_GetQualName(Py_TYPE(self)));
  std::string out = str(textOf(name.get()), "(");
  bool first = true;
  for (const Field &f : fieldsOf(type)) {
    if (!f.repr || f.isVariable)
      continue;
    Obj value = text(s, attribute(s, self, f.name.get()).get(), 'r', empty);
    out += str(first ? "" : ", ", textOf(f.name.get()), "=", textOf(value.get()));
    first = false;
  }
  out += ")";
  return Obj::check(PyUnicode_FromStringAndSize(out.data(), static_cast<Py_ssize_t>(out.size())));
}

} // namespace

Obj callGenerated(Session &s, PyObject *function, Given args) {
  auto *code = reinterpret_cast<PyCodeObject *>(PyFunction_GET_CODE(function));
  const char *name = textOf(reinterpret_cast<PyFunctionObject *>(function)->func_name);
  PyObject *globals = PyFunction_GET_GLOBALS(function);
  if (args.n == 0 || std::strncmp(name, "__", 2) != 0)
    return Obj();
  PyObject *self = args.v[0];
  if (std::strcmp(name, "__new__") == 0 && PyType_Check(self) && PyType_IsSubtype(asType(self), &PyTuple_Type)) {
    PyObject *module = PyDict_GetItemWithError(globals, DLC_NAME("__name__"));
    if (!module || std::strncmp(textOf(module), "namedtuple_", 11) != 0)
      return Obj();
    readFunction(s, function, args);
    return callPlain(function, args);
  }
  bool wrappedRepr = std::strcmp(name, "__repr__") == 0 && std::strstr(textOf(code->co_filename), "dataclasses.py");
  if (std::strcmp(textOf(code->co_filename), "<string>") != 0 && !wrappedRepr)
    return Obj();
  PyTypeObject *type = dataclassOf(function, self);
  if (!type)
    return Obj();
  s.constant(asObject(type)); // its fields are fixed when it is made
  if (std::strcmp(name, "__init__") == 0)
    return dataclassInit(s, function, type, args);
  static const char *const comparisons[] = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"};
  for (int op = kEq; op <= kGtE; ++op)
    if (std::strcmp(name, comparisons[op]) == 0 && args.n == 2)
      return dataclassCompare(s, type, op, args);
  return std::strcmp(name, "__repr__") == 0 ? dataclassRepr(s, type, self) : Obj();
}

} // namespace dlc::py
