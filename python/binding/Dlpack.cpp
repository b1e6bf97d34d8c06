// Tensors from and to DLPack capsules (the published C ABI, version 0.x).
#include "python/binding/Internal.h"

namespace dlc::py {
namespace {

struct DlDevice {
  int32_t type, id;
};
struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void *data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t *shape, *strides;
  uint64_t byteOffset;
};
struct DlManaged {
  DlTensor tensor;
  void *context;
  void (*deleter)(DlManaged *);
};
constexpr int32_t kDlCpu = 1;
enum DlCode : uint8_t { DlInt = 0, DlUInt = 1, DlFloat = 2, DlBfloat = 4, DlBool = 6 };

DlType dlTypeOf(DType t) {
  uint8_t code = t == DType::Bool   ? DlBool
                 : t == DType::U8   ? DlUInt
                 : t == DType::BF16 ? DlBfloat
                 : isFloat(t)       ? DlFloat
                                    : DlInt;
  return {code, static_cast<uint8_t>(itemSize(t) * 8), 1};
}

std::optional<DType> dtypeOfDl(DlType d) {
  for (int i = 0; i < kNumDTypes; ++i) {
    DlType mine = dlTypeOf(static_cast<DType>(i));
    if (mine.code == d.code && mine.bits == d.bits && d.lanes == 1)
      return static_cast<DType>(i);
  }
  return std::nullopt;
}

void dropCapsule(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor"))
    return; // consumed
  auto *m = static_cast<DlManaged *>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (m && m->deleter)
    m->deleter(m);
}

PyObject *dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("__dlpack__", 0, 0, "stream", "max_version", "dl_device", "copy");
    const Tensor &t = tensorOf(self);
    DLC_REQUIRE(!requiresGrad(t), Runtime,
                "__dlpack__: the tensor requires grad, which DLPack cannot express\nuse t.detach()");
    struct Holder {
      DlManaged managed;
      Tensor tensor;
      Sizes sizes, strides;
    };
    auto *h = new Holder{{}, t, t.sizes(), t.strides()};
    h->managed.tensor = {
        t.data(), {kDlCpu, 0}, static_cast<int32_t>(t.dim()), dlTypeOf(t.dtype()), h->sizes.data(), h->strides.data(),
        0};
    h->managed.context = h;
    h->managed.deleter = [](DlManaged *m) { delete static_cast<Holder *>(m->context); };
    t.storage().markForeign();
    PyObject *capsule = PyCapsule_New(&h->managed, "dltensor", dropCapsule);
    if (!capsule)
      delete h;
    return capsule;
  });
}
PyObject *dlpackDevice(PyObject *, PyObject *) { return Py_BuildValue("(ii)", kDlCpu, 0); }

PyObject *fromDlpack(PyObject *, PyObject *source) {
  return guarded([&] {
    Obj capsule = PyCapsule_CheckExact(source) ? Obj::borrow(source)
                                               : Obj::check(PyObject_CallMethod(source, "__dlpack__", nullptr));
    auto *m = static_cast<DlManaged *>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
    if (!m)
      throw PythonError{};
    const DlTensor &d = m->tensor;
    DLC_REQUIRE(d.device.type == kDlCpu, Runtime, "from_dlpack: the tensor is on device type ", d.device.type,
                ", not the CPU\nmove it to the CPU first");
    std::optional<DType> dtype = dtypeOfDl(d.dtype);
    DLC_REQUIRE(dtype, Runtime, "from_dlpack: dlc has no dtype of code ", int(d.dtype.code), " with ",
                int(d.dtype.bits), " bits");
    Sizes sizes(d.shape, d.shape + d.ndim);
    Sizes strides = d.strides ? Sizes(d.strides, d.strides + d.ndim) : contiguousStrides(sizes);
    int64_t last = 0;
    bool empty = false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      DLC_REQUIRE(strides[i] >= 0 || sizes[i] <= 1, Value,
                  "from_dlpack: negative strides are not supported\ncopy the array first");
      empty |= sizes[i] == 0;
      last += (sizes[i] - 1) * strides[i];
    }
    PyCapsule_SetName(capsule.get(), "used_dltensor");
    size_t bytes = empty ? 0 : static_cast<size_t>(last + 1) * itemSize(*dtype);
    auto storage = Storage::wrap(static_cast<char *>(d.data) + d.byteOffset, bytes, [m] {
      if (m->deleter && Py_IsInitialized()) {
        HoldGil hold;
        m->deleter(m);
      }
    });
    return wrap(Tensor::viewOf(std::move(storage), sizes, strides, 0, *dtype));
  });
}

const PyMethodDef *methods() {
  static PyMethodDef defs[] = {fastMethod("__dlpack__", dlpack, "A DLPack capsule of the same memory."),
                               {"__dlpack_device__", dlpackDevice, METH_NOARGS, "The DLPack device: the CPU."},
                               {}};
  return defs;
}
PyMethodDef functions[] = {
    {"from_dlpack", fromDlpack, METH_O, "A tensor over the memory of a DLPack capsule or exporter."}, {}};

} // namespace

void collectDlpackMethods() { addMethods(methods()); }

void initDlpack(PyObject *module) {
  if (PyModule_AddFunctions(module, functions) < 0)
    throw PythonError{};
}

} // namespace dlc::py
