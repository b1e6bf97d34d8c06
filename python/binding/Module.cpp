// The extension module dlc._C: puts the parts together. The package python/dlc gives its names their public places.
#include "compiler/api/OptMain.h"
#include "frontend/compile/Backend.h"
#include "python/binding/Internal.h"
#include "runtime/core/Knobs.h"
#include "runtime/core/ThreadPool.h"

namespace {

/// One line a fact about this build and machine.
PyObject *showConfig(PyObject *, PyObject *) {
  return dlc::py::guarded([] {
    std::string text =
        dlc::str("dlc ", DLC_VERSION, ", built by ", __VERSION__, "\nthreads: ", dlc::getNumThreads(),
                 "\navx512: ", __builtin_cpu_supports("avx512f") ? "yes" : "no",
                 "\ncompiler: ", dlc::currentBackend() ? "yes" : "none, compiled functions run in the interpreter",
                 "\nsettings:\n", dlc::describeKnobs());
    return PyUnicode_FromString(text.c_str());
  });
}

/// _opt_main(list of str): dlc-opt with these arguments; its exit status.
PyObject *optMain(PyObject *, PyObject *list) {
  return dlc::py::guarded([&]() -> PyObject * {
    std::vector<std::string> words;
    DLC_REQUIRE(PyList_Check(list), Type, "_opt_main: a list of str is needed");
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
      const char *word = PyUnicode_AsUTF8(PyList_GetItem(list, i));
      if (!word)
        return nullptr;
      words.push_back(word);
    }
    std::vector<char *> argv;
    for (std::string &word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    return PyLong_FromLong(dlc::compiler::optMain(static_cast<int>(words.size()), argv.data()));
  });
}

PyMethodDef functions[] = {{"_opt_main", optMain, METH_O, nullptr},
                           {"show_config", showConfig, METH_NOARGS, "Version, machine and settings as text."},
                           {}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "dlc._C", "The C++ side of dlc.", -1, functions, nullptr, nullptr, nullptr, nullptr};

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
    initGil(module.get());
    initTypes(module.get());
    collectOpMethods();
    collectConvertMethods();
    collectAutogradMethods();
    initTensor(module.get());
    initOps(module.get());
    initConvert(module.get());
    initAutograd(module.get());
    initMisc(module.get());
    initModuleBase(module.get());
    initCompile(module.get());
    return module.release();
  });
}
