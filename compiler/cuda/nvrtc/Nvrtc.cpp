// The table of NVRTC's symbols and the calls that turn text into a cubin.
#include "compiler/cuda/nvrtc/Nvrtc.h"

#include "runtime/core/Error.h"
#include "runtime/core/Knobs.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <regex>
#include <sstream>

namespace dlc::compiler {

using Program = void *;

struct Nvrtc::Symbols {
  void *library = nullptr;
  std::string path;
  int (*version)(int *, int *) = nullptr;
  const char *(*errorString)(int) = nullptr;
  int (*createProgram)(Program *, const char *, const char *, int, const char *const *, const char *const *) = nullptr;
  int (*destroyProgram)(Program *) = nullptr;
  int (*compileProgram)(Program, int, const char *const *) = nullptr;
  int (*logSize)(Program, size_t *) = nullptr;
  int (*log)(Program, char *) = nullptr;
  int (*cubinSize)(Program, size_t *) = nullptr;
  int (*cubin)(Program, char *) = nullptr;

  template <class F> void bind(F &slot, const char *name) {
    slot = reinterpret_cast<F>(dlsym(library, name));
    if (!slot)
      throw Error(ErrorKind::Runtime, "CUDA: " + path + " has no symbol " + name +
                                          "\ninstall NVRTC 12 or newer (pip install nvidia-cuda-nvrtc)");
  }
};

Nvrtc::Nvrtc() : symbols_(std::make_unique<Symbols>()) {}

// The library stays loaded: what it set up at its start can't be undone.
Nvrtc::~Nvrtc() = default;

// NVRTC opens its builtins by name. They lie beside it, where the loader does not look if something (AddressSanitizer)
// stands between NVRTC and dlopen.
static void openBuiltins(const std::string &library) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (fs::directory_iterator it(fs::path(library).parent_path(), ignored), end; it != end; it.increment(ignored))
    if (it->path().filename().string().rfind("libnvrtc-builtins.so", 0) == 0)
      dlopen(it->path().c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::shared_ptr<Nvrtc> Nvrtc::open(const std::string &path) {
  std::vector<std::string> tries;
  if (!path.empty())
    tries = {path};
  else if (!knobs().nvrtc.empty())
    tries = {knobs().nvrtc};
  else
    tries = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  std::shared_ptr<Nvrtc> nvrtc(new Nvrtc);
  Symbols &s = *nvrtc->symbols_;
  std::string failures;
  for (const std::string &name : tries) {
    if (name.find('/') != std::string::npos)
      openBuiltins(name);
    s.library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    s.path = name;
    if (s.library)
      break;
    const char *why = dlerror();
    failures += "\n  " + name + ": " + (why ? why : "unknown error");
  }
  if (!s.library)
    throw Error(ErrorKind::Runtime, "CUDA: the NVRTC library can't be opened; tried" + failures +
                                        "\ninstall it (pip install nvidia-cuda-nvrtc) or set DLC_NVRTC to its path");
  s.bind(s.version, "nvrtcVersion");
  s.bind(s.errorString, "nvrtcGetErrorString");
  s.bind(s.createProgram, "nvrtcCreateProgram");
  s.bind(s.destroyProgram, "nvrtcDestroyProgram");
  s.bind(s.compileProgram, "nvrtcCompileProgram");
  s.bind(s.logSize, "nvrtcGetProgramLogSize");
  s.bind(s.log, "nvrtcGetProgramLog");
  s.bind(s.cubinSize, "nvrtcGetCUBINSize");
  s.bind(s.cubin, "nvrtcGetCUBIN");
  return nvrtc;
}

std::string Nvrtc::findIn(const std::string &environment) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code ignored;
  for (fs::recursive_directory_iterator it(environment + "/lib", ignored), end; it != end; it.increment(ignored)) {
    std::string name = it->path().filename().string();
    if (name.rfind("libnvrtc.so", 0) == 0)
      found.push_back(it->path().string());
    // Only .../site-packages/nvidia is worth walking.
    if (it.depth() == 2 && name != "nvidia")
      it.disable_recursion_pending();
  }
  return found.empty() ? "" : *std::max_element(found.begin(), found.end());
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  check(symbols_->version(&major, &minor), "nvrtcVersion");
  return std::to_string(major) + "." + std::to_string(minor);
}

void Nvrtc::check(int result, const char *what) const {
  if (result != 0)
    throw Error(ErrorKind::Runtime, std::string("CUDA: ") + what + " failed: " + symbols_->errorString(result));
}

// ptxas prints "Compiling entry function 'k' ..." and after it lines with its stack, spills, registers and memory.
static std::vector<CudaUsage> parseUsage(const std::string &log) {
  std::vector<CudaUsage> usage;
  std::istringstream in(log);
  std::smatch m;
  static const std::regex entry("entry function '([^']+)'"), spills("(\\d+) bytes spill (?:stores|loads)"),
      registers("Used (\\d+) registers"), shared("(\\d+) bytes smem");
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, m, entry)) {
      usage.push_back({});
      usage.back().kernel = m[1];
    }
    if (usage.empty())
      continue;
    for (std::sregex_iterator it(line.begin(), line.end(), spills), end; it != end; ++it)
      usage.back().spillBytes += std::stoi((*it)[1]);
    if (std::regex_search(line, m, registers))
      usage.back().registers = std::stoi(m[1]);
    if (std::regex_search(line, m, shared))
      usage.back().sharedBytes = std::stoi(m[1]);
  }
  return usage;
}

Cubin Nvrtc::compile(const std::string &text, const std::string &arch, const std::string &name) {
  Symbols &s = *symbols_;
  Program program = nullptr;
  check(s.createProgram(&program, text.c_str(), name.c_str(), 0, nullptr, nullptr), "nvrtcCreateProgram");
  std::string architecture = "--gpu-architecture=" + arch;
  const char *options[] = {architecture.c_str(), "--std=c++17", "--fmad=false", "--ptxas-options=-v"};
  int result = s.compileProgram(program, static_cast<int>(std::size(options)), options);
  Cubin out;
  size_t size = 0;
  if (s.logSize(program, &size) == 0 && size > 1) {
    out.log.resize(size - 1);
    s.log(program, out.log.data());
  }
  bool warns = out.log.find("warning") != std::string::npos;
  if (result == 0 && !warns && s.cubinSize(program, &size) == 0) {
    out.binary.resize(size);
    result = s.cubin(program, out.binary.data());
  }
  s.destroyProgram(&program);
  if (result != 0 || warns)
    throw Error(ErrorKind::Runtime, "CUDA: compiling " + name + " for " + arch + " failed: " +
                                        (result ? s.errorString(result) : "the text gives warnings") + "\n" + out.log);
  out.usage = parseUsage(out.log);
  return out;
}

} // namespace dlc::compiler
