// The extension module dlc._C: puts the parts together. The package python/dlc gives its names their public places.
#include "frontend/compile/Backend.h"
#include "python/binding/Internal.h"
#include "runtime/core/Knobs.h"
#include "runtime/core/ThreadPool.h"

namespace {

/// One line a fact about this build and machine.
PyObject *showConfig(PyObject *, PyObject *) {
  return dlc::py::guarded([] {
    std::string text = dlc::str("dlc ", DLC_VERSION, ", built by ", __VERSION__, "\nthreads: ", dlc::getNumThreads(),
                                "\navx512: ", __builtin_cpu_supports("avx512f") ? "yes" : "no",
                                "\ncompiler: ", dlc::currentBackend() ? "yes" : "none, compiled functions run in the interpreter",
                                "\nsettings:\n", dlc::describeKnobs());
    return PyUnicode_FromString(text.c_str());
  });
}

PyMethodDef functions[] = {{"show_config", showConfig, METH_NOARGS, "Version, machine and settings as text."}, {}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "dlc._C", "The C++ side of dlc.", -1, functions, nullptr, nullptr, nullptr, nullptr};

} // namespace

extern "C" __attribute__((visibility("default"))) PyObject *PyInit__C() {
  using namespace dlc::py;
  return guarded([]() -> PyObject * {
    Obj module = Obj::check(PyModule_Create(&definition));
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
      PyErr_SetString(PyExc_ImportError, "dlc needs a CPU with AVX2 and FMA (x86-64-v3)");
      return nullptr;
    }
    if (PyModule_AddStringConstant(module.get(), "__version__", DLC_VERSION) < 0)
      return nullptr;
    initTypes(module.get());
    collectOpMethods();
    collectConvertMethods();
    collectAutogradMethods();
    initTensor(module.get());
    initOps(module.get());
    initConvert(module.get());
    initAutograd(module.get());
    initMisc(module.get());
    initCompile(module.get());
    return module.release();
  });
}
