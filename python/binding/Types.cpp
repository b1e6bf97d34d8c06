// The small Python types: dtype, Size, device, Generator, finfo, iinfo.
#include "python/binding/Binding.h"
#include <cfloat>
#include <cstring>
#include <limits>

namespace dlc::py {

PyTypeObject *dtypeType, *sizeType, *deviceType, *generatorType;

namespace {

PyObject *dtypeObjects[kNumDTypes];
PyObject *cpuObject;

template <class T> T *as(PyObject *o) { return reinterpret_cast<T *>(o); }

PyTypeObject *makeType(PyObject *module, PyType_Spec &spec, PyTypeObject *base = nullptr) {
  Obj bases = base ? Obj::check(PyTuple_Pack(1, base)) : Obj();
  Obj type = Obj::check(PyType_FromSpecWithBases(&spec, bases.get()));
  const char *name = std::strrchr(spec.name, '.') + 1;
  if (PyModule_AddObjectRef(module, name, type.get()) < 0)
    throw PythonError{};
  return reinterpret_cast<PyTypeObject *>(type.release());
}

void freeObject(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// --- dtype

PyObject *dtypeRepr(PyObject *self) { return PyUnicode_FromFormat("dlc.%s", nameOf(dtypeOf(self))); }
PyObject *dtypeReduce(PyObject *self, PyObject *) { return PyUnicode_FromString(nameOf(dtypeOf(self))); }
PyObject *dtypeItemsize(PyObject *self, void *) { return PyLong_FromSize_t(itemSize(dtypeOf(self))); }
PyObject *dtypeIsFloat(PyObject *self, void *) { return PyBool_FromLong(isFloat(dtypeOf(self))); }
PyObject *dtypeIsSigned(PyObject *self, void *) { return PyBool_FromLong(isSigned(dtypeOf(self))); }
PyObject *dtypeIsComplex(PyObject *, void *) { Py_RETURN_FALSE; }
PyObject *dtypeName(PyObject *self, void *) { return PyUnicode_FromString(nameOf(dtypeOf(self))); }

PyMethodDef dtypeMethods[] = {{"__reduce__", dtypeReduce, METH_NOARGS, nullptr}, {}};
PyGetSetDef dtypeGetters[] = {
    {"itemsize", dtypeItemsize, nullptr, "Bytes of one element.", nullptr},
    {"is_floating_point", dtypeIsFloat, nullptr, "True for float16, bfloat16, float32, float64.", nullptr},
    {"is_signed", dtypeIsSigned, nullptr, "True if negative values exist.", nullptr},
    {"is_complex", dtypeIsComplex, nullptr, "Always False: dlc has no complex dtypes.", nullptr},
    {"name", dtypeName, nullptr, "The name, 'float32'.", nullptr},
    {}};
PyType_Slot dtypeSlots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(freeObject)},
                            {Py_tp_repr, reinterpret_cast<void *>(dtypeRepr)},
                            {Py_tp_methods, dtypeMethods},
                            {Py_tp_getset, dtypeGetters},
                            {Py_tp_doc, const_cast<char *>("An element type: dlc.float32, dlc.int64, ...")},
                            {0, nullptr}};
PyType_Spec dtypeSpec = {"dlc.dtype", sizeof(PyDType), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         dtypeSlots};

void addDTypes(PyObject *module) {
  dtypeType = makeType(module, dtypeSpec);
  for (int i = 0; i < kNumDTypes; ++i) {
    PyDType *o = PyObject_New(PyDType, dtypeType);
    if (!o)
      throw PythonError{};
    o->dtype = static_cast<DType>(i);
    dtypeObjects[i] = reinterpret_cast<PyObject *>(o);
    if (PyModule_AddObjectRef(module, nameOf(o->dtype), dtypeObjects[i]) < 0)
      throw PythonError{};
  }
  const std::pair<const char *, DType> aliases[] = {{"float", DType::F32}, {"double", DType::F64},
                                                    {"half", DType::F16},  {"short", DType::I16},
                                                    {"int", DType::I32},   {"long", DType::I64}};
  for (auto &[name, t] : aliases)
    if (PyModule_AddObjectRef(module, name, dtypeObjects[static_cast<int>(t)]) < 0)
      throw PythonError{};
}

// --- Size

PyObject *toSize(PyObject *tuple) {
  Obj owned = Obj::check(tuple);
  if (!PyTuple_CheckExact(owned.get()))
    return owned.release();
  Py_ssize_t n = PyTuple_GET_SIZE(owned.get());
  Obj size = Obj::check(sizeType->tp_alloc(sizeType, n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(size.get(), i, Py_NewRef(PyTuple_GET_ITEM(owned.get(), i)));
  return size.release();
}

PyObject *sizeRepr(PyObject *self) {
  return guarded([&]() -> PyObject * {
    Obj list = Obj::check(PySequence_List(self));
    return PyUnicode_FromFormat("dlc.Size(%R)", list.get());
  });
}
PyObject *sizeNumel(PyObject *self, PyObject *) {
  int64_t n = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
    n *= PyLong_AsLongLong(PyTuple_GET_ITEM(self, i));
  return PyErr_Occurred() ? nullptr : PyLong_FromLongLong(n);
}
PyObject *sizeConcat(PyObject *a, PyObject *b) {
  return guarded([&] { return toSize(PyTuple_Type.tp_as_sequence->sq_concat(a, b)); });
}
PyObject *sizeSubscript(PyObject *self, PyObject *key) {
  return guarded([&] { return toSize(PyTuple_Type.tp_as_mapping->mp_subscript(self, key)); });
}
PyObject *sizeNew(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  return guarded([&]() -> PyObject * {
    Obj self = Obj::check(PyTuple_Type.tp_new(type, args, kwargs));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i)
      requireInt(PyTuple_GET_ITEM(self.get(), i), "Size", "sizes");
    return self.release();
  });
}
PyObject *sizeReduce(PyObject *self, PyObject *) { return Py_BuildValue("(O(N))", sizeType, PySequence_Tuple(self)); }

PyMethodDef sizeMethods[] = {{"numel", sizeNumel, METH_NOARGS, "The product of all sizes."},
                             {"__reduce__", sizeReduce, METH_NOARGS, nullptr},
                             {}};
PyType_Slot sizeSlots[] = {{Py_tp_new, reinterpret_cast<void *>(sizeNew)},
                           {Py_tp_repr, reinterpret_cast<void *>(sizeRepr)},
                           {Py_sq_concat, reinterpret_cast<void *>(sizeConcat)},
                           {Py_mp_subscript, reinterpret_cast<void *>(sizeSubscript)},
                           {Py_tp_methods, sizeMethods},
                           {Py_tp_doc, const_cast<char *>("The sizes of a tensor: a tuple of ints.")},
                           {0, nullptr}};
PyType_Spec sizeSpec = {"dlc.Size", 0, 0, Py_TPFLAGS_DEFAULT, sizeSlots};

// --- device

const char *deviceText(PyObject *self) { return as<PyDevice>(self)->cuda ? "cuda" : "cpu"; }

/// Reads "cpu", "cuda", "cuda:1" into `d`; returns false if the text is none of them.
bool parseDevice(PyObject *text, PyDevice &d) {
  const char *s = PyUnicode_AsUTF8(text);
  if (!s)
    throw PythonError{};
  d.index = -1;
  d.cuda = std::strncmp(s, "cuda", 4) == 0;
  const char *rest = s + (d.cuda ? 4 : 3);
  if (!d.cuda && std::strncmp(s, "cpu", 3) != 0)
    return false;
  if (*rest == 0)
    return true;
  char *end;
  d.index = static_cast<int>(std::strtol(rest + 1, &end, 10));
  return *rest == ':' && end != rest + 1 && *end == 0 && d.index >= 0;
}

PyObject *deviceNew(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"type", "index", nullptr};
  PyObject *text, *index = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char **>(names), &text, &index))
    return nullptr;
  return guarded([&]() -> PyObject * {
    if (Py_TYPE(text) == deviceType)
      return Py_NewRef(text);
    PyDevice parsed{};
    DLC_REQUIRE(PyUnicode_Check(text), Type, "device: `type` must be a string such as 'cpu', not ",
                Py_TYPE(text)->tp_name);
    DLC_REQUIRE(parseDevice(text, parsed), Runtime, "device: unknown device '", PyUnicode_AsUTF8(text), "'\nuse 'cpu'");
    if (index && index != Py_None)
      parsed.index = static_cast<int>(requireInt(index, "device", "index"));
    Obj self = Obj::check(type->tp_alloc(type, 0));
    as<PyDevice>(self.get())->cuda = parsed.cuda;
    as<PyDevice>(self.get())->index = parsed.index;
    return self.release();
  });
}
PyObject *deviceStr(PyObject *self) {
  int index = as<PyDevice>(self)->index;
  return index < 0 ? PyUnicode_FromString(deviceText(self)) : PyUnicode_FromFormat("%s:%d", deviceText(self), index);
}
PyObject *deviceRepr(PyObject *self) {
  int index = as<PyDevice>(self)->index;
  return index < 0 ? PyUnicode_FromFormat("device(type='%s')", deviceText(self))
                   : PyUnicode_FromFormat("device(type='%s', index=%d)", deviceText(self), index);
}
PyObject *deviceCompare(PyObject *a, PyObject *b, int op) {
  if (Py_TYPE(b) != deviceType || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  bool same = as<PyDevice>(a)->cuda == as<PyDevice>(b)->cuda && as<PyDevice>(a)->index == as<PyDevice>(b)->index;
  return PyBool_FromLong(same == (op == Py_EQ));
}
Py_hash_t deviceHash(PyObject *self) { return as<PyDevice>(self)->cuda * 1000 + as<PyDevice>(self)->index + 2; }
PyObject *deviceGetType(PyObject *self, void *) { return PyUnicode_FromString(deviceText(self)); }
PyObject *deviceGetIndex(PyObject *self, void *) {
  int index = as<PyDevice>(self)->index;
  if (index < 0)
    Py_RETURN_NONE;
  return PyLong_FromLong(index);
}
PyObject *deviceReduce(PyObject *self, PyObject *) { return Py_BuildValue("(O(N))", deviceType, deviceStr(self)); }

PyMethodDef deviceMethods[] = {{"__reduce__", deviceReduce, METH_NOARGS, nullptr}, {}};
PyGetSetDef deviceGetters[] = {{"type", deviceGetType, nullptr, "'cpu' or 'cuda'.", nullptr},
                               {"index", deviceGetIndex, nullptr, "The device's number, or None.", nullptr},
                               {}};
PyType_Slot deviceSlots[] = {{Py_tp_new, reinterpret_cast<void *>(deviceNew)},
                             {Py_tp_dealloc, reinterpret_cast<void *>(freeObject)},
                             {Py_tp_repr, reinterpret_cast<void *>(deviceRepr)},
                             {Py_tp_str, reinterpret_cast<void *>(deviceStr)},
                             {Py_tp_hash, reinterpret_cast<void *>(deviceHash)},
                             {Py_tp_richcompare, reinterpret_cast<void *>(deviceCompare)},
                             {Py_tp_methods, deviceMethods},
                             {Py_tp_getset, deviceGetters},
                             {Py_tp_doc, const_cast<char *>("Where a tensor lives; only 'cpu' holds tensors.")},
                             {0, nullptr}};
PyType_Spec deviceSpec = {"dlc.device", sizeof(PyDevice), 0, Py_TPFLAGS_DEFAULT, deviceSlots};

// --- Generator

PyObject *newGenerator(PyTypeObject *type, Ref<Generator> g) {
  PyObject *self = type->tp_alloc(type, 0);
  if (self)
    new (&as<PyGenerator>(self)->generator) Ref<Generator>(std::move(g));
  return self;
}
PyObject *generatorNew(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"device", nullptr};
  PyObject *device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char **>(names), &device))
    return nullptr;
  return guarded([&] {
    requireCpu(device, "Generator");
    return newGenerator(type, makeRef<Generator>(67280421310721u));
  });
}
void generatorFree(PyObject *self) {
  as<PyGenerator>(self)->generator.~Ref<Generator>();
  freeObject(self);
}
Generator &gen(PyObject *self) { return *as<PyGenerator>(self)->generator; }

PyObject *generatorSeed(PyObject *self, PyObject *seed) {
  return guarded([&]() -> PyObject * {
    gen(self).manualSeed(static_cast<uint64_t>(requireInt(seed, "Generator.manual_seed", "seed")));
    return Py_NewRef(self);
  });
}
PyObject *generatorInitial(PyObject *self, PyObject *) { return PyLong_FromUnsignedLongLong(gen(self).seed()); }
PyObject *generatorGetState(PyObject *self, PyObject *) {
  return guarded([&] {
    Tensor t = Tensor::empty({2}, DType::I64);
    t.dataAs<int64_t>()[0] = static_cast<int64_t>(gen(self).seed());
    t.dataAs<int64_t>()[1] = static_cast<int64_t>(gen(self).offset());
    return wrap(std::move(t));
  });
}
PyObject *generatorSetState(PyObject *self, PyObject *state) {
  return guarded([&]() -> PyObject * {
    DLC_REQUIRE(isTensor(state), Type, "Generator.set_state: `new_state` must be a tensor, not ",
                Py_TYPE(state)->tp_name);
    const Tensor &t = tensorOf(state);
    DLC_REQUIRE(t.dtype() == DType::I64 && t.numel() == 2 && t.isContiguous(), Runtime,
                "Generator.set_state: `new_state` is ", describe(t), ", not int64[2]\npass what get_state() returned");
    gen(self).manualSeed(static_cast<uint64_t>(t.dataAs<int64_t>()[0]));
    gen(self).setOffset(static_cast<uint64_t>(t.dataAs<int64_t>()[1]));
    return Py_NewRef(self);
  });
}
PyObject *generatorDevice(PyObject *, void *) { return cpuDevice(); }

PyMethodDef generatorMethods[] = {
    {"manual_seed", generatorSeed, METH_O, "Starts the stream of `seed`; returns self."},
    {"initial_seed", generatorInitial, METH_NOARGS, "The seed of the stream."},
    {"get_state", generatorGetState, METH_NOARGS, "The seed and offset as an int64 tensor."},
    {"set_state", generatorSetState, METH_O, "Continues from a state of get_state()."},
    {}};
PyGetSetDef generatorGetters[] = {{"device", generatorDevice, nullptr, "Always the CPU.", nullptr}, {}};
PyType_Slot generatorSlots[] = {
    {Py_tp_new, reinterpret_cast<void *>(generatorNew)},
    {Py_tp_dealloc, reinterpret_cast<void *>(generatorFree)},
    {Py_tp_methods, generatorMethods},
    {Py_tp_getset, generatorGetters},
    {Py_tp_doc, const_cast<char *>("A stream of random numbers (Philox): a seed and an offset.")},
    {0, nullptr}};
PyType_Spec generatorSpec = {"dlc.Generator", sizeof(PyGenerator), 0, Py_TPFLAGS_DEFAULT, generatorSlots};

// --- finfo, iinfo: plain namespaces filled at call

struct FloatLimits {
  double eps, max, tiny;
  const char *resolution;
};
FloatLimits limitsOf(DType t) {
  switch (t) {
  case DType::F16:
    return {9.765625e-4, 65504.0, 6.103515625e-05, "0.001"};
  case DType::BF16:
    return {7.8125e-3, 3.3895313892515355e38, 1.1754943508222875e-38, "0.01"};
  case DType::F64:
    return {DBL_EPSILON, DBL_MAX, DBL_MIN, "1e-15"};
  default:
    return {FLT_EPSILON, FLT_MAX, FLT_MIN, "1e-6"};
  }
}

/// A types.SimpleNamespace of the given keyword values.
PyObject *simpleNamespace(PyObject *kwargs) {
  Obj dict = Obj::check(kwargs);
  Obj types = Obj::check(PyImport_ImportModule("types"));
  Obj cls = Obj::check(PyObject_GetAttrString(types.get(), "SimpleNamespace"));
  Obj none = Obj::check(PyTuple_New(0));
  return PyObject_Call(cls.get(), none.get(), dict.get());
}

PyObject *finfo(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    DLC_ARGS("finfo", 0, 1, "type");
    DType t = defaultDType();
    DLC_REQUIRE((!slot[0] || toDType(slot[0], t)) && isFloat(t), Type,
                "finfo: `type` must be a floating dtype\nuse dlc.iinfo for integers");
    FloatLimits l = limitsOf(t);
    return simpleNamespace(Py_BuildValue("{s:i,s:d,s:d,s:d,s:d,s:d,s:d,s:s}", "bits", int(itemSize(t) * 8), "eps",
                                         l.eps, "max", l.max, "min", -l.max, "tiny", l.tiny, "smallest_normal", l.tiny,
                                         "resolution", std::strtod(l.resolution, nullptr), "dtype", nameOf(t)));
  });
}

PyObject *iinfo(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    DLC_ARGS("iinfo", 1, 1, "type");
    DType t;
    DLC_REQUIRE(toDType(slot[0], t) && categoryOf(t) == Category::Int, Type,
                "iinfo: `type` must be an integer dtype\nuse dlc.finfo for floats");
    return visitDType(t, [&](auto tag) -> PyObject * {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>)
        return simpleNamespace(Py_BuildValue("{s:i,s:L,s:L,s:s}", "bits", int(sizeof(T) * 8), "max",
                                             (long long)std::numeric_limits<T>::max(), "min",
                                             (long long)std::numeric_limits<T>::min(), "dtype", nameOf(t)));
      else
        return nullptr;
    });
  });
}

PyMethodDef functions[] = {fastMethod("finfo", finfo, "Limits of a floating dtype."),
                           fastMethod("iinfo", iinfo, "Limits of an integer dtype."),
                           {}};

} // namespace

PyObject *wrap(DType t) { return Py_NewRef(dtypeObjects[static_cast<int>(t)]); }

PyObject *wrapSize(Ints sizes) {
  PyObject *o = sizeType->tp_alloc(sizeType, static_cast<Py_ssize_t>(sizes.size()));
  for (size_t i = 0; o && i < sizes.size(); ++i)
    PyTuple_SET_ITEM(o, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(sizes[i]));
  return o;
}

PyObject *cpuDevice() { return Py_NewRef(cpuObject); }

void requireCpu(PyObject *o, const char *op) {
  if (!o || o == Py_None || o == cpuObject)
    return;
  PyDevice d{};
  if (Py_TYPE(o) == deviceType)
    d.cuda = as<PyDevice>(o)->cuda;
  else {
    DLC_REQUIRE(PyUnicode_Check(o), Type, op, ": `device` must be a device or a string, not ", Py_TYPE(o)->tp_name);
    DLC_REQUIRE(parseDevice(o, d), Runtime, op, ": unknown device '", PyUnicode_AsUTF8(o), "'\nuse 'cpu'");
  }
  DLC_REQUIRE(!d.cuda, Runtime, op,
              ": device 'cuda' is not available: this build of dlc runs on the CPU only\nuse device='cpu'");
}

void initTypes(PyObject *module) {
  addDTypes(module);
  sizeType = makeType(module, sizeSpec, &PyTuple_Type);
  deviceType = makeType(module, deviceSpec);
  generatorType = makeType(module, generatorSpec);
  cpuObject = Obj::check(PyObject_CallFunction(reinterpret_cast<PyObject *>(deviceType), "s", "cpu")).release();
  Obj g = Obj::check(newGenerator(generatorType, Ref<Generator>(&defaultGenerator())));
  if (PyModule_AddObjectRef(module, "default_generator", g.get()) < 0 || PyModule_AddFunctions(module, functions) < 0)
    throw PythonError{};
}

} // namespace dlc::py
