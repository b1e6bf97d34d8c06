// Tensors from and to Python data: nested lists, NumPy arrays, buffers; dtype conversion methods.
#include "python/binding/Imported.h"
#include "python/binding/Internal.h"
#include <cstring>
#include <limits>

namespace dlc::py {
namespace {

using A = Arg<Tensor>;

// --- nested sequences

bool isSequence(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o) || PyRange_Check(o); }

/// Shape and category of nested data, found in one walk.
struct Layout {
  Sizes sizes;
  Category category = Category::Bool;
  bool any = false; ///< some number was seen
};

void measure(PyObject *o, size_t depth, Layout &layout) {
  Number n;
  if (isSequence(o)) {
    Obj fast = Obj::check(PySequence_Fast(o, "expected a sequence"));
    Py_ssize_t len = PySequence_Fast_GET_SIZE(fast.get());
    if (layout.sizes.size() == depth && !layout.any)
      layout.sizes.push_back(len);
    DLC_REQUIRE(depth < layout.sizes.size() && layout.sizes[depth] == len, Value,
                "tensor: expected a sequence of length ", depth < layout.sizes.size() ? layout.sizes[depth] : 0,
                " at dim ", depth, ", not ", len, "\nmake the lists of each level equally long");
    for (Py_ssize_t i = 0; i < len; ++i)
      measure(PySequence_Fast_GET_ITEM(fast.get(), i), depth + 1, layout);
    return;
  }
  DLC_REQUIRE(toNumber(o, n), Type, "tensor: cannot make a tensor of ", Py_TYPE(o)->tp_name,
              "\ngive numbers, nested lists or arrays");
  DLC_REQUIRE(depth == layout.sizes.size(), Value, "tensor: expected a sequence of length ", layout.sizes[depth],
              " at dim ", depth, ", not a number\nmake the lists of each level equally long");
  layout.any = true;
  layout.category = std::max(layout.category, n.category());
}

template <class T> T convert(const Number &n) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (!n.isFloat()) {
      int64_t v = n.toInt();
      bool fits = v <= static_cast<int64_t>(std::numeric_limits<T>::max()) &&
                  (v >= static_cast<int64_t>(std::numeric_limits<T>::min()) || (!std::is_signed_v<T> && v >= -255));
      DLC_REQUIRE(fits, Runtime, "tensor: the value ", v, " does not fit in ", dtypeOfType<T>,
                  "\nchoose a wider dtype");
    }
  }
  return n.as<T>();
}

template <class T> void fill(PyObject *o, T *&p) {
  if (isSequence(o)) {
    Obj fast = Obj::check(PySequence_Fast(o, "expected a sequence"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
      fill(PySequence_Fast_GET_ITEM(fast.get(), i), p);
    return;
  }
  Number n;
  toNumber(o, n);
  *p++ = convert<T>(n);
}

/// Nested data with tensors and arrays replaced by lists; null if there is none of them.
Obj plainData(PyObject *o, bool &found) {
  if (isTensor(o) || (isTypedBuffer(o) && PyObject_HasAttrString(o, "tolist"))) {
    found = true;
    return Obj::check(PyObject_CallMethod(o, "tolist", nullptr));
  }
  if (!isSequence(o))
    return Obj::borrow(o);
  Obj list = Obj::check(PySequence_List(o));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    Obj item = plainData(PyList_GET_ITEM(list.get(), i), found);
    PyList_SetItem(list.get(), i, item.release());
  }
  return list;
}

/// The dtype of the first tensor or array in nested data: [t1, t2] has t1's dtype.
std::optional<DType> firstDType(PyObject *o) {
  if (isTensor(o))
    return tensorOf(o).dtype();
  if (isTypedBuffer(o))
    return tensorFromBuffer(o, "tensor").dtype();
  if ((PyList_Check(o) || PyTuple_Check(o)) && PySequence_Fast_GET_SIZE(o) > 0)
    return firstDType(PySequence_Fast_GET_ITEM(o, 0));
  return std::nullopt;
}

// --- buffers

std::optional<DType> dtypeOfFormat(const char *format, Py_ssize_t itemsize) {
  if (!format)
    return DType::U8;
  if (*format == '@' || *format == '=' || *format == '<')
    ++format;
  if (format[0] == 0 || format[1] != 0)
    return std::nullopt;
  switch (*format) {
  case '?':
    return DType::Bool;
  case 'B':
    return DType::U8;
  case 'b':
    return DType::I8;
  case 'h':
    return DType::I16;
  case 'i':
  case 'l':
  case 'q':
    return itemsize == 8 ? DType::I64 : DType::I32;
  case 'e':
    return DType::F16;
  case 'f':
    return DType::F32;
  case 'd':
    return DType::F64;
  default:
    return std::nullopt;
  }
}

const char *formatOf(DType t) {
  static const char *const formats[] = {"?", "B", "b", "h", "i", "q", "e", nullptr, "f", "d"};
  return formats[static_cast<int>(t)];
}

/// An object that lends the memory of a tensor through the buffer protocol.
struct PyBufferOwner {
  PyObject_HEAD Tensor tensor;
  Py_ssize_t *shape, *strides;
};
PyTypeObject *bufferType;

int getBuffer(PyObject *self, Py_buffer *view, int) {
  auto *o = reinterpret_cast<PyBufferOwner *>(self);
  const Tensor &t = o->tensor;
  static char nothing;
  view->buf = t.numel() ? t.data() : &nothing;
  view->obj = Py_NewRef(self);
  view->itemsize = static_cast<Py_ssize_t>(itemSize(t.dtype()));
  view->len = t.numel() * view->itemsize;
  view->readonly = 0;
  view->ndim = static_cast<int>(t.dim());
  view->format = const_cast<char *>(formatOf(t.dtype()));
  view->shape = o->shape;
  view->strides = o->strides;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}
void freeBuffer(PyObject *self) {
  auto *o = reinterpret_cast<PyBufferOwner *>(self);
  PyTypeObject *type = Py_TYPE(self);
  o->tensor.~Tensor();
  delete[] o->shape;
  delete[] o->strides;
  type->tp_free(self);
  Py_DECREF(type);
}
PyType_Slot bufferSlots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(freeBuffer)},
                             {Py_bf_getbuffer, reinterpret_cast<void *>(getBuffer)},
                             {0, nullptr}};
PyType_Spec bufferSpec = {"dlc._Buffer", sizeof(PyBufferOwner), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, bufferSlots};

Obj lendBuffer(const Tensor &t) {
  DLC_REQUIRE(formatOf(t.dtype()), Type, "numpy: NumPy has no bfloat16\nconvert with .float() first");
  {
    ReleaseGil release;
    (void)t.data(); // forces a pending program
  }
  t.storage().markForeign();
  Obj self = Obj::check(bufferType->tp_alloc(bufferType, 0));
  auto *o = reinterpret_cast<PyBufferOwner *>(self.get());
  new (&o->tensor) Tensor(t);
  o->shape = new Py_ssize_t[static_cast<size_t>(t.dim()) + 1];
  o->strides = new Py_ssize_t[static_cast<size_t>(t.dim()) + 1];
  for (int64_t d = 0; d < t.dim(); ++d) {
    o->shape[d] = t.size(d);
    o->strides[d] = t.stride(d) * static_cast<Py_ssize_t>(itemSize(t.dtype()));
  }
  return self;
}

PyObject *numpyModule() {
  static Imported module("numpy");
  try {
    return module.get();
  } catch (const PythonError &) {
    PyErr_Clear();
    fail(ErrorKind::Runtime, "numpy: NumPy is not installed\ninstall it with pip install numpy, or use tolist()");
  }
}

PyObject *toNumpy(const Tensor &t, bool force) {
  DLC_REQUIRE(force || !requiresGrad(t), Runtime,
              "numpy: the tensor requires grad, and NumPy cannot track it\nuse t.detach().numpy()");
  Obj buffer = lendBuffer(t);
  return PyObject_CallMethod(numpyModule(), "asarray", "O", buffer.get());
}

PyObject *numpyMethod(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    DLC_ARGS("numpy", 0, 0, "force");
    return toNumpy(tensorOf(self), slot[0] && PyObject_IsTrue(slot[0]) == 1);
  });
}
PyObject *arrayMethod(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("__array__", 0, 2, "dtype", "copy");
    Obj array = Obj::check(toNumpy(tensorOf(self), false));
    bool copy = slot[1] && slot[1] == Py_True;
    if (slot[0] && slot[0] != Py_None)
      return PyObject_CallMethod(array.get(), "astype", "O", slot[0]);
    return copy ? PyObject_CallMethod(array.get(), "copy", nullptr) : array.release();
  });
}

/// The elements as bytes in row-major order.
PyObject *tensorBytes(PyObject *, PyObject *o) {
  return guarded([&]() -> PyObject * {
    DLC_REQUIRE(isTensor(o), Type, "_tensor_bytes: a Tensor is needed");
    static const OpInfo &clone = opNamed("clone");
    Tensor t = tensorOf(o);
    if (!t.isContiguous())
      t = call(clone, A::of(t), A::ofStr(Str("contiguous_format")));
    size_t bytes = static_cast<size_t>(t.numel()) * itemSize(t.dtype());
    return PyBytes_FromStringAndSize(bytes ? static_cast<const char *>(t.data()) : "", static_cast<Py_ssize_t>(bytes));
  });
}

PyObject *tensorFromBytes(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("_tensor_from_bytes", 3, 3, "data", "dtype", "shape");
    DType dtype;
    Sizes sizes;
    DLC_REQUIRE(toDType(slot[1], dtype) && toInts(slot[2], sizes), Type, "_tensor_from_bytes: bad dtype or shape");
    Tensor t = Tensor::empty(sizes, dtype);
    Py_buffer view;
    if (PyObject_GetBuffer(slot[0], &view, PyBUF_SIMPLE) < 0)
      throw PythonError{};
    size_t bytes = static_cast<size_t>(t.numel()) * itemSize(dtype);
    bool fits = static_cast<size_t>(view.len) == bytes;
    if (fits && bytes)
      std::memcpy(t.data(), view.buf, bytes);
    PyBuffer_Release(&view);
    DLC_REQUIRE(fits, Value, "_tensor_from_bytes: ", bytes, " bytes are needed, not ", view.len);
    return wrap(std::move(t));
  });
}

// --- functions

PyObject *tensorFn(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    DLC_ARGS("tensor", 1, 1, "data", "dtype", "device", "requires_grad", "pin_memory");
    requireCpu(slot[2], "tensor");
    std::optional<DType> dtype;
    if (slot[1] && slot[1] != Py_None) {
      dtype.emplace();
      DLC_REQUIRE(toDType(slot[1], *dtype), Type, "tensor: `dtype` must be a dtype, not ", Py_TYPE(slot[1])->tp_name);
    }
    Tensor t = tensorFromData(slot[0], dtype);
    if (slot[3] && PyObject_IsTrue(slot[3]) == 1)
      setRequiresGrad(t, true);
    return wrap(std::move(t));
  });
}

PyObject *asTensor(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("as_tensor", 1, 2, "data", "dtype", "device");
    requireCpu(slot[2], "as_tensor");
    std::optional<DType> dtype;
    if (slot[1] && slot[1] != Py_None) {
      dtype.emplace();
      DLC_REQUIRE(toDType(slot[1], *dtype), Type, "as_tensor: `dtype` must be a dtype, not ",
                  Py_TYPE(slot[1])->tp_name);
    }
    if (isTensor(slot[0]) && (!dtype || tensorOf(slot[0]).dtype() == *dtype))
      return Py_NewRef(slot[0]);
    if (!isTensor(slot[0]) && !isTypedBuffer(slot[0]))
      return wrap(tensorFromData(slot[0], dtype));
    Tensor t = isTensor(slot[0]) ? tensorOf(slot[0]) : tensorFromBuffer(slot[0], "as_tensor");
    return wrap(dtype ? castTo(t, *dtype) : t);
  });
}

PyObject *fromNumpy(PyObject *, PyObject *array) {
  return guarded([&] {
    DLC_REQUIRE(std::strcmp(Py_TYPE(array)->tp_name, "numpy.ndarray") == 0 ||
                    PyObject_HasAttrString(array, "__array_interface__"),
                Type, "from_numpy: expected an ndarray, not ", Py_TYPE(array)->tp_name,
                "\nuse dlc.tensor(data) for other data");
    return wrap(tensorFromBuffer(array, "from_numpy"));
  });
}

PyObject *fromBuffer(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    DLC_ARGS("frombuffer", 2, 1, "buffer", "dtype", "count", "offset");
    DType dtype;
    DLC_REQUIRE(slot[1] && toDType(slot[1], dtype), Type, "frombuffer: `dtype` must be a dtype");
    int64_t offset = slot[3] ? requireInt(slot[3], "frombuffer", "offset") : 0;
    int64_t count = slot[2] ? requireInt(slot[2], "frombuffer", "count") : -1;
    auto *view = new Py_buffer;
    if (PyObject_GetBuffer(slot[0], view, PyBUF_SIMPLE) < 0) {
      delete view;
      throw PythonError{};
    }
    int64_t item = static_cast<int64_t>(itemSize(dtype)), length = view->len, room = length - offset;
    bool fits = offset >= 0 && offset <= length && (count >= 0 ? count <= room / item : room % item == 0);
    if (!fits) {
      PyBuffer_Release(view);
      delete view;
      fail(ErrorKind::Value, "frombuffer: ", count >= 0 ? str(count, " elements") : std::string("elements"), " of ",
           item, " bytes from byte ", offset, " do not fit a buffer of ", length,
           " bytes\nuse an `offset` and `count` inside of it, or a length that is a multiple of the element size");
    }
    auto storage = Storage::wrap(static_cast<char *>(view->buf) + offset, static_cast<size_t>(room), [view] {
      if (!Py_IsInitialized())
        return;
      HoldGil hold;
      PyBuffer_Release(view);
      delete view;
    });
    if (count < 0)
      count = room / item;
    return wrap(Tensor::viewOf(std::move(storage), {count}, {1}, 0, dtype));
  });
}

// --- conversion methods

PyObject *result(PyObject *self, const Tensor &before, const Tensor &after) {
  return after.is(before) ? Py_NewRef(self) : wrap(after);
}

PyObject *to(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    const Tensor &t = tensorOf(self);
    DType dtype = t.dtype();
    bool copy = false;
    int flag = 0; // positional bools: non_blocking, copy
    for (Py_ssize_t i = 0; i < nargs; ++i) {
      if (isTensor(args[i]))
        dtype = tensorOf(args[i]).dtype();
      else if (PyBool_Check(args[i]))
        copy |= flag++ == 1 && args[i] == Py_True;
      else if (PyUnicode_Check(args[i]) || Py_TYPE(args[i]) == deviceType || args[i] == Py_None)
        requireCpu(args[i], "to");
      else
        DLC_REQUIRE(toDType(args[i], dtype), Type, "to: expected a dtype, device or tensor, not ",
                    Py_TYPE(args[i])->tp_name);
    }
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
      const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k));
      PyObject *value = args[nargs + k];
      if (std::strcmp(name, "dtype") == 0)
        DLC_REQUIRE(value == Py_None || toDType(value, dtype), Type, "to: `dtype` must be a dtype, not ",
                    Py_TYPE(value)->tp_name);
      else if (std::strcmp(name, "device") == 0)
        requireCpu(value, "to");
      else if (std::strcmp(name, "copy") == 0)
        copy = PyObject_IsTrue(value) == 1;
      else if (std::strcmp(name, "other") == 0 && isTensor(value))
        dtype = tensorOf(value).dtype();
      else
        DLC_REQUIRE(std::strcmp(name, "non_blocking") == 0 || std::strcmp(name, "memory_format") == 0, Type,
                    "to() got an unexpected keyword argument '", name, "'");
    }
    static const OpInfo &clone = opNamed("clone");
    Tensor r = castTo(t, dtype);
    return result(self, t, copy && r.is(t) ? call(clone, A::of(t), A::ofStr(Str("preserve_format"))) : r);
  });
}

template <DType D> PyObject *castMethod(PyObject *self, PyObject *const *, Py_ssize_t, PyObject *) {
  return guarded([&] { return result(self, tensorOf(self), castTo(tensorOf(self), D)); });
}
PyObject *cpu(PyObject *self, PyObject *const *, Py_ssize_t, PyObject *) { return Py_NewRef(self); }
PyObject *cuda(PyObject *, PyObject *const *, Py_ssize_t, PyObject *) {
  return guarded([]() -> PyObject * {
    throw Error(ErrorKind::Runtime,
                "cuda: device 'cuda' is not available: this build of dlc runs on the CPU only\nuse device='cpu'");
  });
}
PyObject *type(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("type", 0, 1, "dtype", "non_blocking");
    static const char *const names[] = {"BoolTensor", "ByteTensor", "CharTensor",     "ShortTensor", "IntTensor",
                                        "LongTensor", "HalfTensor", "BFloat16Tensor", "FloatTensor", "DoubleTensor"};
    const Tensor &t = tensorOf(self);
    if (!slot[0] || slot[0] == Py_None)
      return PyUnicode_FromFormat("dlc.%s", names[static_cast<int>(t.dtype())]);
    DType dtype = t.dtype();
    bool known = toDType(slot[0], dtype);
    for (int i = 0; PyUnicode_Check(slot[0]) && !known && i < kNumDTypes; ++i)
      if (str("dlc.", names[i]) == PyUnicode_AsUTF8(slot[0])) {
        dtype = static_cast<DType>(i);
        known = true;
      }
    DLC_REQUIRE(known, Type, "type: `dtype` must be a dtype, not ", Py_TYPE(slot[0])->tp_name);
    return result(self, t, castTo(t, dtype));
  });
}
PyObject *typeAs(PyObject *self, PyObject *other) {
  return guarded([&] {
    DLC_REQUIRE(isTensor(other), Type, "type_as: `other` must be a Tensor, not ", Py_TYPE(other)->tp_name);
    return result(self, tensorOf(self), castTo(tensorOf(self), tensorOf(other).dtype()));
  });
}

const PyMethodDef *methods() {
  static PyMethodDef defs[] = {
      fastMethod("numpy", numpyMethod, "A NumPy array of the same memory."),
      fastMethod("__array__", arrayMethod, "A NumPy array of the same memory."),
      fastMethod("to", to, "The tensor with another dtype (or on the CPU); itself if nothing changes."),
      fastMethod("float", castMethod<DType::F32>, "As float32."),
      fastMethod("double", castMethod<DType::F64>, "As float64."),
      fastMethod("half", castMethod<DType::F16>, "As float16."),
      fastMethod("bfloat16", castMethod<DType::BF16>, "As bfloat16."),
      fastMethod("long", castMethod<DType::I64>, "As int64."),
      fastMethod("int", castMethod<DType::I32>, "As int32."),
      fastMethod("short", castMethod<DType::I16>, "As int16."),
      fastMethod("char", castMethod<DType::I8>, "As int8."),
      fastMethod("byte", castMethod<DType::U8>, "As uint8."),
      fastMethod("bool", castMethod<DType::Bool>, "As bool."),
      fastMethod("cpu", cpu, "The tensor itself: it is on the CPU."),
      fastMethod("cuda", cuda, "Raises: there is no CUDA device."),
      fastMethod("type", type, "The type's name, or the tensor as another dtype."),
      {"type_as", typeAs, METH_O, "The tensor with the dtype of `other`."},
      {}};
  return defs;
}
PyMethodDef functions[] = {
    fastMethod("tensor", tensorFn, "A new tensor from numbers, nested lists, arrays or a tensor; always a copy."),
    fastMethod("as_tensor", asTensor, "A tensor of the data, sharing memory where possible."),
    fastMethod("frombuffer", fromBuffer, "A 1-d tensor over the memory of a buffer."),
    fastMethod("_tensor_from_bytes", tensorFromBytes, nullptr),
    {"_tensor_bytes", tensorBytes, METH_O, nullptr},
    {"from_numpy", fromNumpy, METH_O, "A tensor over the memory of a NumPy array."},
    {}};

} // namespace

bool isTypedBuffer(PyObject *o) {
  return !isTensor(o) && PyObject_CheckBuffer(o) && !PyBytes_Check(o) && !PyByteArray_Check(o);
}

Tensor castTo(const Tensor &t, DType dtype) {
  static const OpInfo &op = opNamed("cast");
  return t.dtype() == dtype ? t : call(op, A::of(t), A::ofDType(dtype));
}

Tensor tensorFromBuffer(PyObject *array, const char *op) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(array, view.get(), PyBUF_RECORDS_RO) < 0) {
    PyErr_Clear();
    fail(ErrorKind::Type, op, ": the memory of ", Py_TYPE(array)->tp_name, " is not accessible as an array of numbers");
  }
  struct Guard {
    Py_buffer *v;
    ~Guard() {
      if (v)
        PyBuffer_Release(v);
    }
  } guard{view.get()};
  std::optional<DType> dtype = dtypeOfFormat(view->format, view->itemsize);
  DLC_REQUIRE(dtype, Type, op, ": dlc has no dtype for elements of format '", view->format,
              "'\nsupported are bool, uint8, int8 to int64, float16 to float64");
  Sizes sizes(view->shape, view->shape + view->ndim), strides;
  int64_t last = 0;
  bool empty = false;
  for (int d = 0; d < view->ndim; ++d) {
    int64_t s = view->strides[d];
    bool single = sizes[static_cast<size_t>(d)] <= 1;
    DLC_REQUIRE(s >= 0 || single, Value, op, ": the array has negative strides\ncopy it first: array.copy()");
    DLC_REQUIRE(s % view->itemsize == 0 || single, Value, op,
                ": strides are not a multiple of the element size\ncopy the array first: array.copy()");
    strides.push_back(single ? 1 : s / view->itemsize);
    empty |= sizes[static_cast<size_t>(d)] == 0;
    last += (sizes[static_cast<size_t>(d)] - 1) * strides.back();
  }
  if (empty || view->ndim == 0 || std::all_of(sizes.begin(), sizes.end(), [](int64_t s) { return s <= 1; }))
    strides = contiguousStrides(sizes);
  guard.v = nullptr;
  Py_buffer *held = view.release();
  auto storage = Storage::wrap(held->buf, empty ? 0 : static_cast<size_t>((last + 1) * held->itemsize), [held] {
    if (!Py_IsInitialized())
      return;
    HoldGil hold;
    PyBuffer_Release(held);
    delete held;
  });
  return Tensor::viewOf(std::move(storage), sizes, strides, 0, *dtype);
}

Tensor tensorFromData(PyObject *data, std::optional<DType> dtype) {
  static const OpInfo &clone = opNamed("clone");
  if (isTensor(data) || isTypedBuffer(data)) {
    Tensor t = isTensor(data) ? detach(tensorOf(data)) : tensorFromBuffer(data, "tensor");
    Tensor r = dtype ? castTo(t, *dtype) : t;
    return r.is(t) ? call(clone, A::of(t), A::ofStr(Str("contiguous_format"))) : r;
  }
  if (!isSequence(data) && PySequence_Check(data) && !PyUnicode_Check(data) && !PyBytes_Check(data)) {
    Obj list = Obj::check(PySequence_List(data));
    return tensorFromData(list.get(), dtype);
  }
  std::optional<DType> given = dtype;
  bool found = false;
  Obj plain = isSequence(data) && !PyRange_Check(data) ? Obj() : Obj::borrow(data);
  if (!plain) {
    std::optional<DType> first = firstDType(data);
    plain = first ? plainData(data, found) : Obj::borrow(data);
    if (!given && first)
      given = first;
  }
  Layout layout;
  try {
    measure(plain.get(), 0, layout);
  } catch (const Error &) {
    Obj again = plainData(data, found); // tensors or arrays behind the first element
    if (!found || again.get() == plain.get())
      throw;
    layout = Layout();
    measure(again.get(), 0, layout);
    plain = again;
  }
  DType t = given                                ? *given
            : !layout.any                        ? defaultDType()
            : layout.category == Category::Float ? defaultDType()
            : layout.category == Category::Int   ? DType::I64
                                                 : DType::Bool;
  Tensor out = Tensor::empty(layout.sizes, t);
  visitDType(t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T *p = out.dataAs<T>();
    if (out.numel())
      fill<T>(plain.get(), p);
  });
  return out;
}

void collectConvertMethods() {
  addMethods(methods());
  collectDlpackMethods();
}

void initConvert(PyObject *module) {
  bufferType = reinterpret_cast<PyTypeObject *>(Obj::check(PyType_FromSpec(&bufferSpec)).release());
  if (PyModule_AddFunctions(module, functions) < 0)
    throw PythonError{};
  initDlpack(module);
}

} // namespace dlc::py
