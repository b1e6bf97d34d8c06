// The extension module dlc._C: puts the parts together. The package python/dlc gives its names their public places.
#include "python/binding/Internal.h"

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "dlc._C", "The C++ side of dlc.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};

} // namespace

extern "C" __attribute__((visibility("default"))) PyObject *PyInit__C() {
  using namespace dlc::py;
  return guarded([]() -> PyObject * {
    Obj module = Obj::check(PyModule_Create(&definition));
    initTypes(module.get());
    collectOpMethods();
    collectConvertMethods();
    collectAutogradMethods();
    initTensor(module.get());
    initOps(module.get());
    initConvert(module.get());
    initAutograd(module.get());
    initMisc(module.get());
    return module.release();
  });
}
