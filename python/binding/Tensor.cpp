// The Tensor type: life cycle, identity with the C++ tensor, attributes that read the layout, and plain queries.
#include "python/binding/Binding.h"
#include "python/binding/Internal.h"
#include <structmember.h>
#include <vector>

namespace dlc::py {

PyTypeObject *tensorType;

namespace {

std::vector<PyMethodDef> &methodList() {
  static std::vector<PyMethodDef> list;
  return list;
}
std::vector<PyGetSetDef> &getterList() {
  static std::vector<PyGetSetDef> list;
  return list;
}

PyTensor *self_(PyObject *o) { return reinterpret_cast<PyTensor *>(o); }

void tensorDealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  PyTensor *t = self_(self);
  if (t->weakrefs)
    PyObject_ClearWeakRefs(self);
  Py_CLEAR(t->dict);
  if (t->tensor.defined())
    t->tensor.impl()->pyObject = nullptr;
  t->tensor.~Tensor();
  type->tp_free(self);
  Py_DECREF(type);
}

int tensorTraverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(self_(self)->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int tensorClear(PyObject *self) {
  Py_CLEAR(self_(self)->dict);
  return 0;
}

/// Plain tensors are only tracked by the collector once they have a dict, the one way into a cycle.
int tensorSetattr(PyObject *self, PyObject *name, PyObject *value) {
  int rc = PyObject_GenericSetAttr(self, name, value);
  if (self_(self)->dict && !PyObject_GC_IsTracked(self))
    PyObject_GC_Track(self);
  return rc;
}

Py_hash_t tensorHash(PyObject *self) { return _Py_HashPointer(self); }

/// Tensor(), Tensor(2, 3) (uninitialised), Tensor(data): the legacy constructor, always of the default dtype.
PyObject *tensorNew(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  return guarded([&]() -> PyObject * {
    DLC_REQUIRE(!kwargs || PyDict_GET_SIZE(kwargs) == 0 || type != tensorType, Type,
                "Tensor() takes no keyword arguments\nuse dlc.tensor(data, dtype=...)");
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *first = n ? PyTuple_GET_ITEM(args, 0) : nullptr;
    Sizes sizes;
    if (n == 0)
      sizes.push_back(0);
    else if (isTensor(first))
      return wrapAs(type, detach(tensorOf(first)));
    else if (!PyLong_Check(first) && Py_TYPE(first) != sizeType)
      return wrapAs(type, tensorFromData(first, defaultDType()));
    else if (Py_TYPE(first) == sizeType)
      toInts(first, sizes);
    else
      toInts(args, sizes);
    return wrapAs(type, Tensor::empty(sizes, defaultDType()));
  });
}

PyObject *makeSubclass(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    DLC_ARGS("_make_subclass", 2, 3, "cls", "data", "require_grad");
    DLC_REQUIRE(PyType_Check(slot[0]) && PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(slot[0]), tensorType), Type,
                "_make_subclass: `cls` must be a subclass of Tensor");
    DLC_REQUIRE(isTensor(slot[1]), Type, "_make_subclass: `data` must be a Tensor, not ", Py_TYPE(slot[1])->tp_name);
    Tensor t = detach(tensorOf(slot[1]));
    setRequiresGrad(t, slot[2] && PyObject_IsTrue(slot[2]) == 1);
    return wrapAs(reinterpret_cast<PyTypeObject *>(slot[0]), std::move(t));
  });
}

// --- layout

PyObject *size(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("size", 0, 1, "dim");
    const Tensor &t = tensorOf(self);
    if (!slot[0] || slot[0] == Py_None)
      return wrapSize(t.sizes());
    return PyLong_FromLongLong(
        t.sizes()[static_cast<size_t>(wrapDim(requireInt(slot[0], "size", "dim"), t.dim(), "size"))]);
  });
}
PyObject *stride(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("stride", 0, 1, "dim");
    const Tensor &t = tensorOf(self);
    if (slot[0] && slot[0] != Py_None)
      return PyLong_FromLongLong(
          t.strides()[static_cast<size_t>(wrapDim(requireInt(slot[0], "stride", "dim"), t.dim(), "stride"))]);
    Obj tuple = Obj::check(PyTuple_New(t.dim()));
    for (int64_t d = 0; d < t.dim(); ++d)
      PyTuple_SET_ITEM(tuple.get(), d, PyLong_FromLongLong(t.stride(d)));
    return tuple.release();
  });
}
PyObject *dim(PyObject *self, PyObject *) { return PyLong_FromLongLong(tensorOf(self).dim()); }
PyObject *numel(PyObject *self, PyObject *) { return PyLong_FromLongLong(tensorOf(self).numel()); }
PyObject *storageOffset(PyObject *self, PyObject *) { return PyLong_FromLongLong(tensorOf(self).offset()); }
PyObject *elementSize(PyObject *self, PyObject *) { return PyLong_FromSize_t(itemSize(tensorOf(self).dtype())); }
PyObject *isContiguous(PyObject *self, PyObject *) { return PyBool_FromLong(tensorOf(self).isContiguous()); }
PyObject *isFloatingPoint(PyObject *self, PyObject *) { return PyBool_FromLong(isFloat(tensorOf(self).dtype())); }
PyObject *isComplex(PyObject *, PyObject *) { Py_RETURN_FALSE; }
PyObject *isSignedM(PyObject *self, PyObject *) { return PyBool_FromLong(isSigned(tensorOf(self).dtype())); }
PyObject *getDevice(PyObject *, PyObject *) { return PyLong_FromLong(-1); }
PyObject *dataPtr(PyObject *self, PyObject *) {
  return guarded([&] {
    const Tensor &t = tensorOf(self);
    void *p = t.data();
    t.storage().markForeign();
    return PyLong_FromVoidPtr(p);
  });
}
PyObject *storagePtr(PyObject *self, PyObject *) { return PyLong_FromVoidPtr(tensorOf(self).storageRef().get()); }

PyObject *getShape(PyObject *self, void *) { return wrapSize(tensorOf(self).sizes()); }
PyObject *getDType(PyObject *self, void *) { return wrap(tensorOf(self).dtype()); }
PyObject *getDeviceAttr(PyObject *, void *) { return cpuDevice(); }
PyObject *getNdim(PyObject *self, void *) { return dim(self, nullptr); }
PyObject *getItemsize(PyObject *self, void *) { return elementSize(self, nullptr); }
PyObject *getNbytes(PyObject *self, void *) {
  return PyLong_FromLongLong(tensorOf(self).numel() * static_cast<int64_t>(itemSize(tensorOf(self).dtype())));
}
PyObject *getFalse(PyObject *, void *) { Py_RETURN_FALSE; }
PyObject *getVersion(PyObject *self, void *) { return PyLong_FromUnsignedLong(tensorOf(self).storage().version()); }

// --- values

PyObject *item(PyObject *self, PyObject *) {
  return guarded([&] {
    noteValueRead();
    return wrap(tensorOf(self).item());
  });
}
Number oneValue(PyObject *self, const char *what) {
  const Tensor &t = tensorOf(self);
  DLC_REQUIRE(t.numel() == 1, Runtime, what, ": the value of a tensor of sizes ", listStr(t.sizes()),
              " is ambiguous or not a number: it has ", t.numel(), " elements\nuse any(), all() or index one element");
  noteValueRead();
  return t.item();
}
int tensorBool(PyObject *self) {
  return guarded([&] { return static_cast<int>(oneValue(self, "bool").toBool()); });
}
PyObject *tensorInt(PyObject *self) {
  return guarded([&]() -> PyObject * {
    Number n = oneValue(self, "int");
    return n.isFloat() ? PyLong_FromDouble(n.toDouble()) : PyLong_FromLongLong(n.toInt());
  });
}
PyObject *tensorFloat(PyObject *self) {
  return guarded([&] { return PyFloat_FromDouble(oneValue(self, "float").toDouble()); });
}
PyObject *tensorIndex(PyObject *self) {
  return guarded([&]() -> PyObject * {
    const Tensor &t = tensorOf(self);
    DLC_REQUIRE(t.numel() == 1 && isIntegral(t.dtype()), Type,
                "only integer tensors of one element can be used as an index, not ", describe(t));
    noteValueRead();
    return PyLong_FromLongLong(t.item().toInt());
  });
}

PyObject *listOf(const Tensor &t, int64_t d, const char *p) {
  if (d == t.dim())
    return visitDType(t.dtype(), [&](auto tag) -> PyObject * {
      using T = typename decltype(tag)::type;
      T v = *reinterpret_cast<const T *>(p);
      if constexpr (std::is_same_v<T, bool>)
        return PyBool_FromLong(v);
      else if constexpr (std::is_integral_v<T>)
        return PyLong_FromLongLong(v);
      else
        return PyFloat_FromDouble(static_cast<double>(v));
    });
  int64_t step = t.stride(d) * static_cast<int64_t>(itemSize(t.dtype()));
  Obj list = Obj::check(PyList_New(t.size(d)));
  for (int64_t i = 0; i < t.size(d); ++i)
    PyList_SET_ITEM(list.get(), i, Obj::check(listOf(t, d + 1, p + i * step)).release());
  return list.release();
}
PyObject *tolist(PyObject *self, PyObject *) {
  noteValueRead();
  return guarded([&] { return listOf(tensorOf(self), 0, static_cast<const char *>(tensorOf(self).data())); });
}

Py_ssize_t tensorLen(PyObject *self) {
  return guarded([&]() -> Py_ssize_t {
    DLC_REQUIRE(tensorOf(self).dim() > 0, Type, "len() of a 0-d tensor");
    return tensorOf(self).size(0);
  });
}

PyMethodDef methods[] = {
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(makeSubclass)),
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC, "An object of `cls` sharing the memory of `data`."},
    fastMethod("size", size, "The sizes, or the size of one dimension."),
    fastMethod("stride", stride, "The strides in elements, or the stride of one dimension."),
    {"dim", dim, METH_NOARGS, "The number of dimensions."},
    {"ndimension", dim, METH_NOARGS, "The number of dimensions."},
    {"numel", numel, METH_NOARGS, "The number of elements."},
    {"nelement", numel, METH_NOARGS, "The number of elements."},
    {"storage_offset", storageOffset, METH_NOARGS, "The offset of the first element in its storage, in elements."},
    {"element_size", elementSize, METH_NOARGS, "Bytes of one element."},
    {"is_floating_point", isFloatingPoint, METH_NOARGS, "True for floating dtypes."},
    {"is_complex", isComplex, METH_NOARGS, "Always False."},
    {"is_signed", isSignedM, METH_NOARGS, "True if the dtype has negative values."},
    {"get_device", getDevice, METH_NOARGS, "-1: the CPU has no number."},
    {"is_contiguous", isContiguous, METH_NOARGS, "True if the elements are row-major without gaps."},
    {"data_ptr", dataPtr, METH_NOARGS,
     "The address of the first element; the memory then counts as shared with others."},
    {"_storage_ptr", storagePtr, METH_NOARGS, "An identity of the storage, without forcing it."},
    {"item", item, METH_NOARGS, "The one element as a Python number."},
    {"tolist", tolist, METH_NOARGS, "The elements as nested lists, a number for a 0-d tensor."},
    {}};
PyGetSetDef getters[] = {{"shape", getShape, nullptr, "The sizes.", nullptr},
                         {"dtype", getDType, nullptr, "The element type.", nullptr},
                         {"device", getDeviceAttr, nullptr, "Where the tensor lives.", nullptr},
                         {"ndim", getNdim, nullptr, "The number of dimensions.", nullptr},
                         {"itemsize", getItemsize, nullptr, "Bytes of one element.", nullptr},
                         {"nbytes", getNbytes, nullptr, "Bytes of all elements.", nullptr},
                         {"is_cuda", getFalse, nullptr, "Always False.", nullptr},
                         {"is_sparse", getFalse, nullptr, "Always False.", nullptr},
                         {"is_quantized", getFalse, nullptr, "Always False.", nullptr},
                         {"_version", getVersion, nullptr, "How often the storage was changed in place.", nullptr},
                         {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                         {}};
PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, nullptr},
                         {}};

} // namespace

void addMethods(const PyMethodDef *defs) {
  for (; defs->ml_name; ++defs)
    methodList().push_back(*defs);
}
void addGetters(const PyGetSetDef *defs) {
  for (; defs->name; ++defs)
    getterList().push_back(*defs);
}

PyObject *wrap(Tensor t) {
  if (!t.defined())
    Py_RETURN_NONE;
  if (void *existing = t.impl()->pyObject)
    return Py_NewRef(static_cast<PyObject *>(existing));
  return wrapAs(tensorType, std::move(t));
}

PyObject *wrapAs(PyTypeObject *type, Tensor t) {
  PyObject *self;
  if (type == tensorType)
    self = reinterpret_cast<PyObject *>(PyObject_GC_New(PyTensor, type));
  else
    self = type->tp_alloc(type, 0);
  if (!self)
    return nullptr;
  t.impl()->pyObject = self;
  t.impl()->wrapped = false;
  new (&self_(self)->tensor) Tensor(std::move(t));
  self_(self)->dict = nullptr;
  self_(self)->weakrefs = nullptr;
  return self;
}

int64_t wrapDim(int64_t d, int64_t rank, const char *op) {
  int64_t n = rank > 0 ? rank : 1;
  DLC_REQUIRE(d >= -n && d < n && rank > 0, Index, op, ": dim ", d, " out of range for rank ", rank, "\nuse a dim in [",
              -n, ", ", n - 1, "]");
  return d < 0 ? d + rank : d;
}

void initTensor(PyObject *module) {
  addMethods(methods);
  addGetters(getters);
  methodList().push_back({});
  getterList().push_back({});
  std::vector<PyType_Slot> slots = {
      {Py_tp_new, reinterpret_cast<void *>(tensorNew)},
      {Py_tp_dealloc, reinterpret_cast<void *>(tensorDealloc)},
      {Py_tp_traverse, reinterpret_cast<void *>(tensorTraverse)},
      {Py_tp_clear, reinterpret_cast<void *>(tensorClear)},
      {Py_tp_setattro, reinterpret_cast<void *>(tensorSetattr)},
      {Py_tp_hash, reinterpret_cast<void *>(tensorHash)},
      {Py_tp_methods, methodList().data()},
      {Py_tp_getset, getterList().data()},
      {Py_tp_members, members},
      {Py_nb_bool, reinterpret_cast<void *>(tensorBool)},
      {Py_nb_int, reinterpret_cast<void *>(tensorInt)},
      {Py_nb_float, reinterpret_cast<void *>(tensorFloat)},
      {Py_nb_index, reinterpret_cast<void *>(tensorIndex)},
      {Py_mp_length, reinterpret_cast<void *>(tensorLen)},
      {Py_sq_length, reinterpret_cast<void *>(tensorLen)},
      {Py_tp_doc, const_cast<char *>("A multi-dimensional array of one dtype, a view of a storage.")}};
  addOperatorSlots(slots);
  addIndexSlots(slots);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"dlc.Tensor", sizeof(PyTensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                      slots.data()};
  Obj type = Obj::check(PyType_FromSpec(&spec));
  tensorType = reinterpret_cast<PyTypeObject *>(type.get());
  Obj priority = Obj::check(PyLong_FromLong(1000)); // NumPy then leaves mixed arithmetic to us
  if (PyObject_SetAttrString(type.get(), "__array_priority__", priority.get()) < 0 ||
      PyModule_AddObjectRef(module, "Tensor", type.get()) < 0)
    throw PythonError{};
  type.release();
}

} // namespace dlc::py
