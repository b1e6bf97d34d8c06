// Reading attributes: what object, type, module, super and dlc.nn.Module do when asked for a name, with every look-up
// told to the session. Python's own code (properties, __getattr__, descriptors) is entered.
#include "python/binding/Imported.h"
#include "python/capture/hooks/Hooks.h"
#include "python/capture/hooks/Lookup.h"
#include <cstring>

namespace dlc::py {

PyObject *lookUp(Session &s, PyTypeObject *type, PyObject *name) {
  PyObject *found = _PyType_Lookup(type, name);
  if (!classWrote(s, type, name)) {
    if (isMutableType(type))
      s.guardTypeAttr(type, name);
  } else if (PyTypeObject *holder = holderOf(type, name)) {
    if (isMutableType(holder) && !s.wroteTo(asObject(holder), Session::Slot::Attr, name))
      s.guardTypeAttr(holder, name);
  }
  return found;
}

PyObject *ownDict(PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030c0000
  Obj dict(PyType_GetDict(type)); // the type keeps it alive
  return dict.get();
#else
  return type->tp_dict;
#endif
}

PyTypeObject *holderOf(PyTypeObject *type, PyObject *name) {
  for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    PyTypeObject *t = asType(PyTuple_GET_ITEM(type->tp_mro, i));
    if (PyDict_GetItemWithError(ownDict(t), name))
      return t;
  }
  return nullptr;
}

bool isMutableType(PyTypeObject *type) {
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE);
}

bool classWrote(Session &s, PyTypeObject *type, PyObject *name) {
  PyObject *mro = type->tp_mro;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); ++i)
    if (s.wroteTo(PyTuple_GET_ITEM(mro, i), Session::Slot::Attr, name))
      return true;
  return false;
}

Obj classEntry(Session &s, PyTypeObject *type, PyObject *name, PyObject *found) {
  if (s.failed())
    return Obj::borrow(found);
  if (classWrote(s, type, name)) { // what this call set is not the state at entry, what it left alone is
    PyTypeObject *holder = holderOf(type, name);
    if (!holder || s.wroteTo(asObject(holder), Session::Slot::Attr, name)) {
      PyObject *written = holder ? s.written(asObject(holder), Session::Slot::Attr, name) : nullptr;
      return Obj::borrow(written ? written : found);
    }
    type = holder;
  }
  Instr load = instr(Do::TypeGet, s.constant(asObject(type)), name);
  return s.read(found, std::move(load), str(type->tp_name, ".", textOf(name)));
}

namespace {

/// Finds the class's entry without a data descriptor in it: an own attribute comes first.
void guardNoDataDescriptor(Session &s, PyTypeObject *type, PyObject *name, PyObject *found) {
  if (found && PyFunction_Check(found))
    classEntry(s, type, name, found);
  else
    lookUp(s, type, name);
}

bool isC(PyObject *descriptor) {
  PyTypeObject *t = Py_TYPE(descriptor);
  return t == &PyMethodDescr_Type || t == &PyWrapperDescr_Type || t == &PyClassMethodDescr_Type ||
         t == &PyGetSetDescr_Type || t == &PyMemberDescr_Type || PyCFunction_Check(descriptor);
}

Obj getDescriptor(PyObject *descriptor, PyObject *o, PyTypeObject *type) {
  return Obj::check(Py_TYPE(descriptor)->tp_descr_get(descriptor, o, asObject(type)));
}

/// Objects whose C getters give what they were made with.
bool hasPlainGetters(PyObject *o) {
  PyTypeObject *t = Py_TYPE(o);
  return PyType_Check(o) || PyFunction_Check(o) || t == &PyProperty_Type || t == &PyStaticMethod_Type ||
         t == &PyClassMethod_Type || t == &PySlice_Type || t == &PyRange_Type || PyExceptionInstance_Check(o) ||
         isDType(o) || t == deviceType || PyCode_Check(o) || PyComplex_CheckExact(o) || PyMethod_Check(o) ||
         PyCFunction_Check(o) || std::strcmp(t->tp_name, "functools.partial") == 0 ||
         std::strcmp(t->tp_name, "dlc.finfo") == 0 || std::strcmp(t->tp_name, "dlc.iinfo") == 0 ||
         std::strcmp(t->tp_name, "dlc._Compiled") == 0;
}

/// Attributes of tensors that C computes.
Obj tensorGetter(Session &s, PyObject *o, PyObject *name, PyObject *descriptor) {
  static const char *const kGuarded[] = {"dtype",         "device",       "ndim",         "itemsize",
                                         "is_cuda",       "is_sparse",    "is_quantized", "is_leaf",
                                         "requires_grad", "retains_grad", "data"};
  const char *text = textOf(name);
  if (std::strcmp(text, "shape") == 0)
    if (Obj sizes = s.symbolicSizes(tensorOf(o)))
      return sizes;
  if (std::strcmp(text, "nbytes") == 0)
    concretizeSizes(s, o);
  if (std::strcmp(text, "shape") == 0 || std::strcmp(text, "nbytes") == 0)
    return getDescriptor(descriptor, o, Py_TYPE(o));
  for (const char *known : kGuarded)
    if (std::strcmp(text, known) == 0)
      return getDescriptor(descriptor, o, Py_TYPE(o));
  Obj value = getDescriptor(descriptor, o, Py_TYPE(o));
  if (std::strcmp(text, "grad") == 0 || std::strcmp(text, "_grad") == 0) {
    PyObject *grad = DLC_NAME("grad");
    if (!s.isKnown(o) || s.wroteTo(o, Session::Slot::Attr, grad))
      return value;
    return s.read(value.get(), instr(Do::GetAttr, s.regOf(o), grad), s.sourceOf(o) + ".grad");
  }
  if (std::strcmp(text, "grad_fn") == 0 && value.get() == Py_None)
    return value;
  s.fail(str("the attribute `", text, "` of a tensor is looked at"));
  return value;
}

Obj cGetter(Session &s, PyObject *o, PyObject *name, PyObject *descriptor) {
  if (PyType_IsSubtype(Py_TYPE(o), tensorType) &&
      PyType_IsSubtype(tensorType, reinterpret_cast<PyDescrObject *>(descriptor)->d_type))
    if (std::strcmp(textOf(name), "__class__") != 0)
      return tensorGetter(s, o, name, descriptor);
  if (Py_TYPE(descriptor) == &PyGetSetDescr_Type && std::strcmp(textOf(name), "__dict__") == 0 && !PyType_Check(o)) {
    Obj dict = getDescriptor(descriptor, o, Py_TYPE(o));
    if (s.isKnown(o) && !s.isKnown(dict.get())) {
      s.know(dict.get(), s.load(dict.get(), instr(Do::GetAttr, s.regOf(o), name), ""), s.sourceOf(o) + ".__dict__");
      s.dictOwners[dict.get()] = Obj::borrow(o);
    }
    return dict;
  }
  Obj value = getDescriptor(descriptor, o, Py_TYPE(o));
  if (std::strcmp(textOf(name), "__class__") == 0) {
    s.constant(value.get());
    return value;
  }
  return readGetter(s, o, name, value.get());
}

/// A __slots__ member.
Obj slotMember(Session &s, PyObject *o, PyObject *name, PyObject *descriptor) {
  auto *member = reinterpret_cast<PyMemberDescrObject *>(descriptor)->d_member;
  if (member->type != T_OBJECT_EX || !s.isKnown(o))
    return cGetter(s, o, name, descriptor);
  if (s.wroteTo(o, Session::Slot::Attr, name)) {
    PyObject *written = s.written(o, Session::Slot::Attr, name);
    return written ? Obj::borrow(written) : getDescriptor(descriptor, o, Py_TYPE(o));
  }
  Obj value = Obj(Py_TYPE(descriptor)->tp_descr_get(descriptor, o, asObject(Py_TYPE(o))));
  if (!value) {
    s.fail(str("the slot `", textOf(name), "` of an object is empty"));
    throw PythonError{};
  }
  return s.read(value.get(), instr(Do::SlotGet, s.regOf(o), nullptr, member->offset),
                str(s.sourceOf(o), ".", textOf(name)));
}

PyTypeObject *tupleGetterType() {
  static PyTypeObject *const type = [] {
    Obj module(PyImport_ImportModule("_collections"));
    Obj found(module ? PyObject_GetAttrString(module.get(), "_tuplegetter") : nullptr);
    PyErr_Clear();
    return asType(found.release());
  }();
  return type;
}

Obj tupleField(Session &s, PyObject *o, PyObject *descriptor) {
  Obj plain = getDescriptor(descriptor, o, Py_TYPE(o));
  Obj parts = Obj::check(PyObject_CallMethod(descriptor, "__reduce__", nullptr));
  PyObject *args = PyTuple_GET_ITEM(parts.get(), 1);
  return s.isKnown(o) ? s.item(o, PyLong_AsSsize_t(PyTuple_GET_ITEM(args, 0))) : plain;
}

/// The entry of a C member that holds another object, of a known one.
Obj inside(Session &s, PyObject *holder, const char *member) {
  Obj name = Obj::check(PyUnicode_InternFromString(member));
  Obj value = Obj::check(PyObject_GetAttr(holder, name.get()));
  return readGetter(s, holder, name.get(), value.get());
}

/// A descriptor's __get__ in Python.
Obj userDescriptor(Session &s, PyTypeObject *owner, PyObject *name, PyObject *found, PyObject *o, PyTypeObject *type) {
  Obj descriptor = classEntry(s, owner, name, found);
  Obj get = specialMethod(s, descriptor.get(), DLC_NAME("__get__"));
  if (!get) {
    s.fail(str("the descriptor `", textOf(name), "` of type ", Py_TYPE(found)->tp_name, " is not known"));
    return getDescriptor(found, o, type);
  }
  PyObject *args[] = {o ? o : Py_None, asObject(type)};
  return callSpecial(s, get, descriptor.get(), {args, 2});
}

} // namespace

Obj bindFound(Session &s, PyTypeObject *owner, PyObject *name, PyObject *found, PyObject *o, PyTypeObject *type) {
  PyTypeObject *kind = Py_TYPE(found);
  if (PyFunction_Check(found)) {
    Obj function = classEntry(s, owner, name, found);
    return o ? Obj::check(PyMethod_New(function.get(), o)) : function;
  }
  if (!kind->tp_descr_get)
    return classEntry(s, owner, name, found);
  if (kind == &PyStaticMethod_Type)
    return inside(s, classEntry(s, owner, name, found).get(), "__func__");
  if (kind == &PyClassMethod_Type) {
    Obj function = inside(s, classEntry(s, owner, name, found).get(), "__func__");
    if (PyFunction_Check(function.get()))
      return Obj::check(PyMethod_New(function.get(), asObject(type)));
    return getDescriptor(found, o, type);
  }
  if (kind == &PyProperty_Type && o) {
    lookUp(s, owner, name);
    Obj getter = inside(s, classEntry(s, owner, name, found).get(), "fget");
    if (getter.get() == Py_None)
      return getDescriptor(found, o, type); // raises
    return callObject(s, getter.get(), {&o, 1});
  }
  if (isMutableType(owner) && isC(found))
    lookUp(s, owner, name);
  if (o && kind == &PyMemberDescr_Type)
    return slotMember(s, o, name, found);
  if (o && kind == &PyGetSetDescr_Type)
    return cGetter(s, o, name, found);
  if (o && kind == tupleGetterType()) {
    lookUp(s, owner, name);
    return tupleField(s, o, found);
  }
  if (isC(found) || kind == &PyProperty_Type || kind == tupleGetterType())
    return getDescriptor(found, o, type);
  if (std::strcmp(kind->tp_name, "dlc._Compiled") == 0 || PyMethod_Check(found)) {
    classEntry(s, owner, name, found);
    return getDescriptor(found, o, type);
  }
  return userDescriptor(s, owner, name, found, o, type);
}

Obj readGetter(Session &s, PyObject *o, PyObject *name, PyObject *value) {
  if (s.failed() || !s.isKnown(o) || Session::isScalar(o))
    return Obj::borrow(value);
  if (s.wroteTo(o, Session::Slot::Attr, name)) {
    PyObject *written = s.written(o, Session::Slot::Attr, name);
    return Obj::borrow(written ? written : value);
  }
  if (!hasPlainGetters(o))
    s.fail(str("the attribute `", textOf(name), "` of an object of type ", Py_TYPE(o)->tp_name, " is computed by C"));
  return s.read(value, instr(Do::GetAttr, s.regOf(o), name), str(s.sourceOf(o), ".", textOf(name)));
}

/// object.__getattribute__; null and no error if there is nothing.
Obj genericOrNull(Session &s, PyObject *o, PyObject *name) {
  PyTypeObject *type = Py_TYPE(o);
  Obj found = Obj::borrow(_PyType_Lookup(type, name));
  if (found && Py_TYPE(found.get())->tp_descr_set)
    return bindFound(s, type, name, found.get(), o, type);
  PyObject **dict = _PyObject_GetDictPtr(o);
  Obj own = Obj::borrow(dict && *dict ? PyDict_GetItemWithError(*dict, name) : nullptr);
  if (!own && PyErr_Occurred())
    throw PythonError{};
  bool known = s.isKnown(o), wrote = known && s.wroteTo(o, Session::Slot::Attr, name);
  if (own) {
    guardNoDataDescriptor(s, type, name, found.get());
    if (!known || s.failed())
      return own;
    if (wrote) {
      PyObject *written = s.written(o, Session::Slot::Attr, name);
      return written ? Obj::borrow(written) : own;
    }
    return s.read(own.get(), instr(Do::AttrGet, s.regOf(o), name), str(s.sourceOf(o), ".", textOf(name)));
  }
  if (known && !wrote && dict)
    s.guard(instr(Do::AttrLacks, s.regOf(o), name));
  if (!found) {
    lookUp(s, type, name);
    return Obj();
  }
  return bindFound(s, type, name, found.get(), o, type);
}

namespace {

/// dlc.nn.Module's look-up: the members, then parameters, submodules and buffers.
Obj moduleOrNull(Session &s, PyObject *o, PyObject *name) {
  if (Obj found = genericOrNull(s, o, name))
    return found;
  for (PyObject *tableName : {DLC_NAME("_parameters"), DLC_NAME("_modules"), DLC_NAME("_buffers")}) {
    Obj table = genericOrNull(s, o, tableName);
    if (table && PyDict_Check(table.get()))
      if (Obj entry = dictValue(s, table.get(), name))
        return entry;
  }
  return Obj();
}

/// A member of an Enum, by the entry that its `value` or `name` reads.
Obj enumAttribute(Session &s, PyObject *o, PyObject *name) {
  const char *text = textOf(name);
  const char *entry = std::strcmp(text, "value") == 0 ? "_value_" : std::strcmp(text, "name") == 0 ? "_name_" : nullptr;
  if (!entry)
    return Obj();
  Obj key = Obj::check(PyUnicode_InternFromString(entry));
  lookUp(s, Py_TYPE(o), name);
  return genericOrNull(s, o, key.get());
}

Obj typeAttribute(Session &s, PyObject *o, PyObject *name) {
  PyTypeObject *type = asType(o), *meta = Py_TYPE(o);
  Obj metaFound = Obj::borrow(lookUp(s, meta, name));
  if (metaFound && Py_TYPE(metaFound.get())->tp_descr_set && Py_TYPE(metaFound.get())->tp_descr_get) {
    if (std::strcmp(textOf(name), "__dict__") == 0)
      s.fail("the dictionary of a class is looked at");
    return bindFound(s, meta, name, metaFound.get(), o, meta);
  }
  Obj found = Obj::borrow(_PyType_Lookup(type, name));
  if (isEnumClass(o)) {
    Obj value = Obj::check(PyObject_GetAttr(o, name));
    if (PyObject_TypeCheck(value.get(), type)) { // members can't be rebound
      s.constant(value.get());
      return value;
    }
  }
  if (found)
    return bindFound(s, type, name, found.get(), nullptr, type);
  lookUp(s, type, name);
  if (metaFound)
    return bindFound(s, meta, name, metaFound.get(), o, meta);
  return Obj();
}

Obj moduleObjectAttribute(Session &s, PyObject *o, PyObject *name) {
  PyObject *dict = PyModule_GetDict(o);
  if (s.isKnown(o) && !s.isKnown(dict))
    s.know(dict, s.load(dict, instr(Do::GetAttr, s.regOf(o), DLC_NAME("__dict__")), ""), s.sourceOf(o));
  if (PyObject *special = _PyType_Lookup(Py_TYPE(o), name); special && Py_TYPE(special)->tp_descr_set)
    return bindFound(s, Py_TYPE(o), name, special, o, Py_TYPE(o));
  if (Obj value = dictValue(s, dict, name))
    return value;
  if (PyObject *found = lookUp(s, Py_TYPE(o), name))
    return bindFound(s, Py_TYPE(o), name, found, o, Py_TYPE(o));
  Obj getter = dictValue(s, dict, DLC_NAME("__getattr__"));
  return getter ? callObject(s, getter.get(), {&name, 1}) : Obj();
}

/// super(C, o).name: the search starts after C in the order of o's type.
Obj superAttribute(Session &s, PyObject *o, PyObject *name) {
  Obj self = Obj::check(PyObject_GetAttrString(o, "__self__"));
  Obj after = Obj::check(PyObject_GetAttrString(o, "__thisclass__"));
  Obj start = Obj::check(PyObject_GetAttrString(o, "__self_class__"));
  if (!PyType_Check(start.get()) || std::strcmp(textOf(name), "__class__") == 0)
    return Obj::check(PyObject_GetAttr(o, name));
  guardMro(s, asType(start.get()));
  PyObject *mro = asType(start.get())->tp_mro;
  Py_ssize_t i = 0;
  while (i < PyTuple_GET_SIZE(mro) && PyTuple_GET_ITEM(mro, i) != after.get())
    ++i;
  for (++i; i < PyTuple_GET_SIZE(mro); ++i) {
    PyTypeObject *holder = asType(PyTuple_GET_ITEM(mro, i));
    Obj found = Obj::borrow(PyDict_GetItemWithError(ownDict(holder), name));
    if (!found && PyErr_Occurred())
      throw PythonError{};
    lookUp(s, holder, name);
    if (!found)
      continue;
    bool onClass = self.get() == start.get();
    return bindFound(s, holder, name, found.get(), onClass ? nullptr : self.get(), asType(start.get()));
  }
  return Obj::check(PyObject_GetAttr(o, name));
}

Obj methodAttribute(Session &s, PyObject *o, PyObject *name) {
  if (std::strcmp(textOf(name), "__self__") == 0)
    return Obj::borrow(PyMethod_GET_SELF(o));
  if (std::strcmp(textOf(name), "__func__") == 0)
    return Obj::borrow(PyMethod_GET_FUNCTION(o));
  if (_PyType_Lookup(Py_TYPE(o), name))
    return Obj::check(PyObject_GetAttr(o, name));
  return attribute(s, PyMethod_GET_FUNCTION(o), name);
}

getattrofunc moduleBase() {
  static Imported base("dlc._C", "_ModuleBase");
  return asType(base.get())->tp_getattro;
}

/// What object.__getattribute__ or its like does; null and no error if there is nothing.
Obj byGetter(Session &s, getattrofunc getter, PyObject *o, PyObject *name) {
  if (getter == moduleBase())
    return moduleOrNull(s, o, name);
  if (getter == PyType_Type.tp_getattro)
    return typeAttribute(s, o, name);
  if (getter == PyModule_Type.tp_getattro)
    return moduleObjectAttribute(s, o, name);
  if (getter == PySuper_Type.tp_getattro)
    return superAttribute(s, o, name);
  if (getter == PyMethod_Type.tp_getattro)
    return methodAttribute(s, o, name);
  if (getter != PyObject_GenericGetAttr)
    s.fail(str("attributes of ", Py_TYPE(o)->tp_name, " objects are not understood"));
  return getter == PyObject_GenericGetAttr ? genericOrNull(s, o, name) : Obj::check(getter(o, name));
}

/// Types with __getattribute__ or __getattr__ in Python.
Obj byPython(Session &s, PyObject *o, PyObject *name) {
  PyTypeObject *type = Py_TYPE(o);
  Obj hook = Obj::borrow(lookUp(s, type, DLC_NAME("__getattr__")));
  PyObject *main = lookUp(s, type, DLC_NAME("__getattribute__"));
  Obj value;
  if (main && Py_TYPE(main) == &PyWrapperDescr_Type) {
    auto wrapped = reinterpret_cast<PyWrapperDescrObject *>(main)->d_wrapped;
    auto getter = reinterpret_cast<getattrofunc>(wrapped);
    value = byGetter(s, getter, o, name);
    if (!value && !hook)
      return Obj::check(getter(o, name));
  } else {
    try {
      Obj method = specialMethod(s, o, DLC_NAME("__getattribute__"));
      value = method ? callSpecial(s, method, o, {&name, 1}) : Obj::check(PyObject_GetAttr(o, name));
    } catch (const PythonError &) {
      if (!hook || !PyErr_ExceptionMatches(PyExc_AttributeError))
        throw;
      PyErr_Clear();
    }
  }
  if (value)
    return value;
  if (Obj method = specialMethod(s, o, DLC_NAME("__getattr__")))
    return callSpecial(s, method, o, {&name, 1});
  return callObject(s, boundInC(s, o, hook.get(), "__getattr__").get(), {&name, 1});
}

} // namespace

Obj boundInC(Session &s, PyObject *o, PyObject *found, const char *name) {
  PyTypeObject *kind = Py_TYPE(found);
  if (kind != &PyMethodDescr_Type && kind != &PyWrapperDescr_Type)
    s.fail(str("`", name, "` of ", Py_TYPE(o)->tp_name, " objects is a ", kind->tp_name));
  return kind->tp_descr_get ? Obj::check(kind->tp_descr_get(found, o, asObject(Py_TYPE(o)))) : Obj::borrow(found);
}

Obj attribute(Session &s, PyObject *o, PyObject *name) {
  if (isSymbolic(o)) {
    Obj plain = s.concretize(o);
    return Obj::check(PyObject_GetAttr(plain.get(), name));
  }
  PyTypeObject *type = Py_TYPE(o);
  if (s.failed() || Session::isScalar(o))
    return Obj::check(PyObject_GetAttr(o, name));
  if (isEnumMember(o))
    if (Obj value = enumAttribute(s, o, name))
      return value;
  getattrofunc getter = type->tp_getattro;
  bool inC = getter == PyObject_GenericGetAttr || getter == moduleBase() || getter == PyType_Type.tp_getattro ||
             getter == PyModule_Type.tp_getattro || getter == PySuper_Type.tp_getattro ||
             getter == PyMethod_Type.tp_getattro;
  if (!inC && (type->tp_flags & Py_TPFLAGS_HEAPTYPE))
    return byPython(s, o, name);
  if (isMutableType(type) && inC) {
    lookUp(s, type, DLC_NAME("__getattribute__"));
    lookUp(s, type, DLC_NAME("__getattr__"));
  }
  Obj value = byGetter(s, getter, o, name);
  return value ? value : Obj::check(getter(o, name)); // raises
}

Obj attributeOrNull(Session &s, PyObject *o, PyObject *name) {
  try {
    return attribute(s, o, name);
  } catch (const PythonError &) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
      throw;
    PyErr_Clear();
    return Obj();
  }
}

Obj specialMethod(Session &s, PyObject *o, PyObject *name) {
  PyTypeObject *type = Py_TYPE(o);
  PyObject *found = _PyType_Lookup(type, name);
  if (!found || isC(found)) {
    lookUp(s, type, name);
    return Obj();
  }
  return classEntry(s, type, name, found);
}

Obj callSpecial(Session &s, const Obj &method, PyObject *o, Given args) {
  if (PyFunction_Check(method.get()))
    return enter(s, method.get(), ArgList(args, o).given());
  if (Py_TYPE(method.get())->tp_descr_get) { // staticmethod and the like
    Obj bound = getDescriptor(method.get(), o, Py_TYPE(o));
    return callObject(s, bound.get(), args);
  }
  return callObject(s, method.get(), args);
}

void guardMro(Session &s, PyTypeObject *type) {
  if (!isMutableType(type) || s.failed())
    return;
  PyObject *mro = type->tp_mro;
  Reg reg = s.load(mro, instr(Do::GetAttr, s.constant(asObject(type)), DLC_NAME("__mro__")), "");
  Instr same = instr(Do::Is, reg);
  same.object = Obj::borrow(mro);
  s.guard(std::move(same));
}

bool isEnumClass(PyObject *type) {
  static Imported meta("enum", "EnumMeta");
  return PyType_Check(type) && PyObject_TypeCheck(type, asType(meta.get()));
}
bool isEnumMember(PyObject *o) { return isEnumClass(asObject(Py_TYPE(o))); }

PyObject *ownerOf(Session &s, PyObject *dict) {
  auto it = s.dictOwners.find(dict);
  return it == s.dictOwners.end() ? nullptr : it->second.get();
}

} // namespace dlc::py
