// Test helper: compiles printed CUDA text for the CPU through the host shim and calls its kernels.
#ifndef DLC_TESTS_UNIT_CUDA_HOSTPROGRAM_H
#define DLC_TESTS_UNIT_CUDA_HOSTPROGRAM_H

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

/// One kernel to export: its name and block shape.
struct HostKernel {
  std::string name;
  unsigned threadsX, threadsY;
};

/// A program compiled for the CPU. DLC_TEST_CXX and DLC_TEST_SOURCE come from CMake.
class HostProgram {
public:
  HostProgram(const std::string &text, const std::vector<HostKernel> &kernels) {
    char folder[] = "/tmp/dlc-cuda-XXXXXX";
    if (!mkdtemp(folder))
      throw std::runtime_error("can't make a temporary folder");
    std::string base = folder;
    {
      std::ofstream out(base + "/program.cpp");
      out << "#include \"compiler/cuda/HostShim.h\"\n" << text;
      for (const HostKernel &kernel : kernels)
        out << "DLC_HOST_KERNEL(" << kernel.name << ", " << kernel.threadsX << ", " << kernel.threadsY << ", 3)\n";
    }
    std::string command = std::string(DLC_TEST_CXX) +
                          " -std=c++17 -O1 -fPIC -shared -march=x86-64-v3 -ffp-contract=off" +
                          " -Wall -Werror -Wno-tautological-compare -I" + DLC_TEST_SOURCE + " " + base +
                          "/program.cpp -o " + base + "/program.so";
    int status = std::system(command.c_str());
    if (status == 0)
      library_ = dlopen((base + "/program.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_)
      std::filesystem::remove_all(base);
    else
      throw std::runtime_error("the printed text does not compile for the CPU; see " + base);
  }
  ~HostProgram() {
    if (library_)
      dlclose(library_);
  }
  HostProgram(const HostProgram &) = delete;

  void run(const std::string &kernel, const std::vector<void *> &bufs, const std::vector<int64_t> &ints,
           unsigned grid) {
    using Entry = void (*)(void *const *, const long long *, unsigned);
    auto entry = reinterpret_cast<Entry>(dlsym(library_, (kernel + "_host").c_str()));
    if (!entry)
      throw std::runtime_error("the program has no kernel " + kernel);
    std::vector<long long> numbers(ints.begin(), ints.end());
    entry(bufs.data(), numbers.data(), grid);
  }

  /// Returns the kernel as a function of the binary interface (the parallel range is ignored); three blocks.
  void (*entry(const std::string &kernel) const)(void *const *, const int64_t *) {
    return reinterpret_cast<void (*)(void *const *, const int64_t *)>(dlsym(library_, (kernel + "_entry").c_str()));
  }

private:
  void *library_ = nullptr;
};

#endif // DLC_TESTS_UNIT_CUDA_HOSTPROGRAM_H
