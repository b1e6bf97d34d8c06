// Subscripts: reading, setting and deleting items of lists, tuples, dicts, tensors and of objects with their own
// __getitem__.
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {
namespace {

void check(int rc) {
  if (rc < 0)
    throw PythonError{};
}

/// The key of a C container: symbolic numbers in it become constants, also inside slices and tuples.
Obj plainKey(Session &s, PyObject *key) {
  if (PySlice_Check(key) && s.isKnown(key))
    readNumbers(s, key);
  if (!s.containsSymbolic(key))
    return Obj::borrow(key);
  if (isSymbolic(key))
    return s.concretize(key);
  if (PySlice_Check(key)) {
    auto *slice = reinterpret_cast<PySliceObject *>(key);
    Obj start = plainKey(s, slice->start), stop = plainKey(s, slice->stop), step = plainKey(s, slice->step);
    return Obj::check(PySlice_New(start.get(), stop.get(), step.get()));
  }
  if (PyTuple_CheckExact(key) || PyList_CheckExact(key)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(key);
    Obj copy = Obj::check(PyTuple_CheckExact(key) ? PyTuple_New(n) : PyList_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject *item = plainKey(s, PySequence_Fast_GET_ITEM(key, i)).release();
      if (PyTuple_CheckExact(key))
        PyTuple_SET_ITEM(copy.get(), i, item);
      else
        PyList_SET_ITEM(copy.get(), i, item);
    }
    return copy;
  }
  return Obj::borrow(key);
}

/// An integer tensor of no dimensions in a subscript is read as a number.
void readIndexTensor(Session &s, PyObject *o) {
  if (!isTensor(o) || tensorOf(o).dim() != 0 || categoryOf(tensorOf(o).dtype()) != Category::Int ||
      tensorOf(o).dtype() == DType::U8)
    return;
  ReadsValue reading(s);
  Obj number = Obj::check(PyNumber_Index(o));
  Obj seen = s.readNumber(tensorOf(o), number.get());
  s.concretize(seen.get());
}

/// Everything in the subscript of a tensor is read.
void readTensorKey(Session &s, PyObject *key) {
  if (PySlice_Check(key)) {
    auto *slice = reinterpret_cast<PySliceObject *>(key);
    if (s.isKnown(key))
      readNumbers(s, key);
    for (PyObject *bound : {slice->start, slice->stop, slice->step})
      readIndexTensor(s, bound);
    return;
  }
  if (PyTuple_Check(key) || PyList_Check(key)) {
    if (!s.readDeep(key))
      return;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(key); ++i)
      readTensorKey(s, PySequence_Fast_GET_ITEM(key, i));
  } else if (isTensor(key)) {
    readIndexTensor(s, key);
  } else if (!Session::isScalar(key) && !isSymbolic(key) && !PySlice_Check(key) && !PyRange_Check(key)) {
    s.fail(str("a tensor is indexed by an object of type ", Py_TYPE(key)->tp_name));
  }
}

/// True if `key` is an int (after tensors and symbols became numbers).
bool integerKey(Session &s, Obj &key) {
  readIndexTensor(s, key.get());
  if (isTensor(key.get())) {
    ReadsValue reading(s);
    key = Obj::check(PyNumber_Index(key.get()));
  }
  if (PyLong_Check(key.get()))
    return true;
  if (!PySlice_Check(key.get()) && !Session::isScalar(key.get()))
    s.fail(str("a list is indexed by an object of type ", Py_TYPE(key.get())->tp_name));
  return false;
}

/// The index counted from the start; -1 if it is out of range. The length is guarded where it matters.
Py_ssize_t wrappedIndex(Session &s, PyObject *o, PyObject *key) {
  Py_ssize_t i = PyNumber_AsSsize_t(key, nullptr), n = PySequence_Fast_GET_SIZE(o);
  if (i >= 0 && i < n)
    return i;
  if (s.isKnown(o)) {
    Obj length = s.length(o);
    s.concretize(length.get());
  }
  return i < 0 && i + n >= 0 ? i + n : -1;
}

/// What the C base type finds, whatever the class of `o` defines.
Obj plainItem(PyObject *o, PyObject *key) {
  PyTypeObject *base = PyList_Check(o)          ? &PyList_Type
                       : Py_TYPE(o) == sizeType ? sizeType
                       : PyTuple_Check(o)       ? &PyTuple_Type
                                                : &PyDict_Type;
  return Obj::check(base->tp_as_mapping->mp_subscript(o, key));
}

Obj sequenceItem(Session &s, PyObject *o, PyObject *rawKey) {
  Obj key = plainKey(s, rawKey);
  if (!integerKey(s, key)) {
    if (PySlice_Check(key.get()))
      s.readAll(o);
    return plainItem(o, key.get());
  }
  Py_ssize_t i = wrappedIndex(s, o, key.get());
  return i < 0 || !s.isKnown(o) ? plainItem(o, key.get()) : s.item(o, i);
}

Obj dictItem(Session &s, PyObject *o, PyObject *rawKey) {
  Obj key = plainKey(s, rawKey);
  checkKey(s, key.get());
  if (Obj value = dictValue(s, o, key.get()))
    return value;
  if (PyDict_CheckExact(o) || s.failed())
    return Obj::check(PyObject_GetItem(o, key.get())); // raises
  PyObject *const arg = key.get();
  if (Obj method = specialMethod(s, o, DLC_NAME("__missing__")))
    return callSpecial(s, method, o, {&arg, 1});
  if (!PyObject_HasAttrString(o, "default_factory"))
    return Obj::check(PyObject_GetItem(o, key.get()));
  Obj factory = Obj::check(PyObject_GetAttrString(o, "default_factory"));
  if (s.isKnown(o))
    factory = s.read(factory.get(), instr(Do::GetAttr, s.regOf(o), DLC_NAME("default_factory")), "");
  if (factory.get() == Py_None)
    return Obj::check(PyObject_GetItem(o, key.get()));
  Obj value = callObject(s, factory.get(), {nullptr, 0});
  setItem(s, o, key.get(), value.get());
  return value;
}

/// Whether the class of `o` finds what the base does: its slots may differ, as a class in Python has slots of its own.
bool inherits(PyObject *o, PyTypeObject *base, PyObject *name) {
  return _PyType_Lookup(Py_TYPE(o), name) == _PyType_Lookup(base, name);
}

/// Objects of C types that give the same for the same key.
bool isPlainlyIndexed(PyObject *o) {
  PyTypeObject *t = Py_TYPE(o);
  return PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o) || PyRange_Check(o) || PyType_Check(o) ||
         std::strcmp(t->tp_name, "re.Match") == 0 || std::strcmp(t->tp_name, "collections.deque") == 0;
}

} // namespace

bool iteratesAsSequence(PyObject *o) {
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o) || Py_TYPE(o) == sizeType)
    return true;
  PyTypeObject *base = PyList_Check(o) ? &PyList_Type : PyTuple_Check(o) ? &PyTuple_Type : nullptr;
  return base && inherits(o, base, DLC_NAME("__iter__")) && inherits(o, base, DLC_NAME("__len__"));
}
bool isListLike(PyObject *o) {
  return PyList_CheckExact(o) ||
         (PyList_Check(o) && inherits(o, &PyList_Type, DLC_NAME("__getitem__")) && iteratesAsSequence(o));
}
bool isTupleLike(PyObject *o) {
  return PyTuple_CheckExact(o) || Py_TYPE(o) == sizeType ||
         (PyTuple_Check(o) && inherits(o, &PyTuple_Type, DLC_NAME("__getitem__")) && iteratesAsSequence(o));
}
bool isDictLike(PyObject *o) {
  if (PyDict_CheckExact(o) || !PyDict_Check(o))
    return PyDict_CheckExact(o);
  PyTypeObject *base = PyODict_Check(o) ? &PyODict_Type : &PyDict_Type;
  return inherits(o, base, DLC_NAME("__getitem__")) && inherits(o, base, DLC_NAME("__iter__")) &&
         inherits(o, base, DLC_NAME("__len__"));
}

bool checkKey(Session &s, PyObject *key) {
  PyTypeObject *type = Py_TYPE(key);
  if (Session::isScalar(key) || isSymbolic(key) || type->tp_hash == PyBaseObject_Type.tp_hash || isTensor(key) ||
      isEnumMember(key) || isIdentity(key) || type == &PyFrozenSet_Type || PyFunction_Check(key) || type == deviceType)
    return true;
  if (PyTuple_Check(key) && type->tp_hash == PyTuple_Type.tp_hash) {
    s.readAll(key);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
      if (!checkKey(s, PyTuple_GET_ITEM(key, i)))
        return false;
    return true;
  }
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type->tp_hash == PyObject_HashNotImplemented)
    return true; // raises
  s.fail(str("an object of type ", type->tp_name, " is a key"));
  return false;
}

Obj dictValue(Session &s, PyObject *dict, PyObject *key) {
  PyObject *owner = ownerOf(s, dict);
  if (!owner || !PyUnicode_CheckExact(key))
    return s.dictGet(dict, key);
  Obj own = Obj::borrow(PyDict_GetItemWithError(dict, key));
  if (s.wroteTo(owner, Session::Slot::Attr, key)) {
    PyObject *written = s.written(owner, Session::Slot::Attr, key);
    return own && written ? Obj::borrow(written) : own;
  }
  if (own)
    return s.read(own.get(), instr(Do::AttrGet, s.regOf(owner), key), str(s.sourceOf(owner), ".", textOf(key)));
  s.guard(instr(Do::AttrLacks, s.regOf(owner), key));
  return Obj();
}

Obj getBaseItem(Session &s, PyObject *o, PyObject *key) {
  return PyDict_Check(o) ? dictItem(s, o, key) : sequenceItem(s, o, key);
}

Obj getItem(Session &s, PyObject *o, PyObject *key) {
  if (s.failed())
    return Obj::check(PyObject_GetItem(o, plainNumber(key).get()));
  if (isTensor(o) && Py_TYPE(o)->tp_as_mapping->mp_subscript == tensorType->tp_as_mapping->mp_subscript) {
    readTensorKey(s, key);
    ReadsValue reading(s);
    return Obj::check(PyObject_GetItem(o, key));
  }
  if (isListLike(o) || isTupleLike(o))
    return sequenceItem(s, o, key);
  if (isDictLike(o))
    return dictItem(s, o, key);
  if (!PyType_Check(o))
    if (Obj method = specialMethod(s, o, DLC_NAME("__getitem__")))
      return callSpecial(s, method, o, {&key, 1});
  if (isEnumClass(o)) {
    Obj value = Obj::check(PyObject_GetItem(o, key));
    s.constant(value.get());
    return value;
  }
  Obj plain = plainKey(s, key);
  if (!(isPlainlyIndexed(o) || isNewNumpy(s, o)) || (s.isKnown(o) && !Session::isScalar(o) && !PyType_Check(o)))
    s.fail(str("an object of type ", Py_TYPE(o)->tp_name, " is indexed"));
  return Obj::check(PyObject_GetItem(o, plain.get()));
}

namespace {

void setTensorItem(Session &s, PyObject *o, PyObject *key, PyObject *value) {
  readTensorKey(s, key);
  if (PyTuple_Check(value) || PyList_Check(value))
    s.readDeep(value);
  else if (!isTensor(value) && !Session::isScalar(value) && !isSymbolic(value))
    s.fail(str("an object of type ", Py_TYPE(value)->tp_name, " is stored in a tensor"));
  ReadsValue reading(s);
  check(PyObject_SetItem(o, key, value));
}

/// A tuple that goes to something from outside can't be made plain in place at the end: its numbers become constants.
Obj storableIn(Session &s, PyObject *o, PyObject *value) {
  return value && PyTuple_Check(value) && s.isKnown(o) ? concretizeDeep(s, value, true) : Obj::borrow(value);
}

/// The store as an effect: of what the C base does, as the class's own __setitem__ was entered already if there is one.
void storeEffect(Session &s, PyObject *o, PyTypeObject *base, PyObject *key, PyObject *value) {
  PyObject *name = value ? DLC_NAME("__setitem__") : DLC_NAME("__delitem__");
  if (!s.isKnown(o))
    return;
  if (inherits(o, base, name))
    return s.effectSetItem(o, key, value);
  s.noteWrite(o, Session::Slot::Item, key, value);
  PyObject *args[] = {o, key, value};
  s.effectCall(_PyType_Lookup(base, name), args, value ? 3 : 2, nullptr);
}

void setListItem(Session &s, PyObject *o, PyObject *rawKey, PyObject *rawValue) {
  Obj storable = storableIn(s, o, rawValue);
  PyObject *value = storable.get();
  Obj key = plainKey(s, rawKey);
  bool known = s.isKnown(o), integer = integerKey(s, key);
  Obj stored = value ? (known ? plainNumber(value) : Obj::borrow(value)) : Obj();
  if (integer && known) {
    Obj length = s.length(o); // an index out of range raises
    s.concretize(length.get());
  }
  if (!integer && value)
    stored = known ? concretizeDeep(s, consumable(s, value).get(), true) : consumable(s, value);
  if (!integer && known)
    s.readAll(o);
  if (known)
    s.beforeChange(o);
  check(PyList_Type.tp_as_mapping->mp_ass_subscript(o, key.get(), stored.get()));
  if (!known)
    return;
  if (integer)
    return storeEffect(s, o, &PyList_Type, key.get(), value);
  if (value && !PyList_Check(stored.get()) && !PyTuple_Check(stored.get()))
    s.fail("a slice of a list from outside is set to an iterator");
  PyObject *args[] = {o, key.get(), stored.get()};
  s.effectCall(_PyType_Lookup(&PyList_Type, value ? DLC_NAME("__setitem__") : DLC_NAME("__delitem__")), args,
               value ? 3 : 2, nullptr);
}

void setDictItem(Session &s, PyObject *o, PyObject *rawKey, PyObject *rawValue) {
  Obj storable = storableIn(s, o, rawValue);
  PyObject *value = storable.get();
  Obj key = plainKey(s, rawKey);
  checkKey(s, key.get());
  bool known = s.isKnown(o);
  if (!value && !dictValue(s, o, key.get()))
    return check(PyDict_DelItem(o, key.get())); // raises
  Obj stored = value ? (known ? plainNumber(value) : Obj::borrow(value)) : Obj();
  PyObject *owner = ownerOf(s, o);
  if (known && !owner)
    s.beforeChange(o);
  PyTypeObject *base = PyODict_Check(o) ? &PyODict_Type : &PyDict_Type;
  check(base->tp_as_mapping->mp_ass_subscript(o, key.get(), stored.get()));
  if (!owner)
    return storeEffect(s, o, base, key.get(), value);
  PyObject *found = PyUnicode_CheckExact(key.get()) ? _PyType_Lookup(Py_TYPE(owner), key.get()) : nullptr;
  if (!PyUnicode_CheckExact(key.get()) || (found && Py_TYPE(found)->tp_descr_set))
    return s.fail("the dictionary of an object is changed");
  lookUp(s, Py_TYPE(owner), key.get());
  s.effectSetAttr(owner, key.get(), value);
}

} // namespace

void setBaseItem(Session &s, PyObject *o, PyObject *key, PyObject *value) {
  if (PyDict_Check(o))
    setDictItem(s, o, key, value);
  else
    setListItem(s, o, key, value);
}

void setItem(Session &s, PyObject *o, PyObject *key, PyObject *value) {
  Session::settle(value);
  if (s.failed())
    return check(value ? PyObject_SetItem(o, plainNumber(key).get(), plainNumber(value).get())
                       : PyObject_DelItem(o, plainNumber(key).get()));
  if (isTensor(o) && value)
    return setTensorItem(s, o, key, value);
  if (Obj method = specialMethod(s, o, value ? DLC_NAME("__setitem__") : DLC_NAME("__delitem__"))) {
    PyObject *args[] = {key, value};
    callSpecial(s, method, o, {args, value ? 2 : 1});
    return;
  }
  if (isListLike(o))
    return setListItem(s, o, key, value);
  if (isDictLike(o))
    return setDictItem(s, o, key, value);
  Obj plain = plainKey(s, key);
  if (s.isKnown(o) || !(isPlainlyIndexed(o) || PyTuple_Check(o) || isNewNumpy(s, o)))
    s.fail(str("an item of an object of type ", Py_TYPE(o)->tp_name, " is set"));
  check(value ? PyObject_SetItem(o, plain.get(), plainNumber(value).get()) : PyObject_DelItem(o, plain.get()));
}

} // namespace dlc::py
