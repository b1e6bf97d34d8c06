// NVRTC, opened at run time through one table of symbols: CUDA text to cubin, in the process. Does not see MLIR.
#ifndef DLC_COMPILER_CUDA_NVRTC_NVRTC_H
#define DLC_COMPILER_CUDA_NVRTC_NVRTC_H

#include <memory>
#include <string>
#include <vector>

namespace dlc::compiler {

/// What ptxas says of one kernel.
struct CudaUsage {
  std::string kernel;
  int registers = 0;
  int spillBytes = 0; ///< stores and loads together
  int sharedBytes = 0;
};

/// A compiled program.
struct Cubin {
  std::string binary;
  std::string log; ///< compiler and ptxas messages
  std::vector<CudaUsage> usage;
};

/// One loaded NVRTC library.
class Nvrtc {
public:
  /// Opens the library at `path`, or, if it is empty, the one that DLC_NVRTC names or the system's loader finds.
  /// Throws dlc::Error (RuntimeError) that says what was tried and what to install.
  static std::shared_ptr<Nvrtc> open(const std::string &path = "");
  /// Returns the path of an NVRTC library in the site-packages below `environment` (a virtual environment), or "".
  static std::string findIn(const std::string &environment);
  ~Nvrtc();

  /// Compiles text for a real architecture such as "sm_80". Warnings are errors. Throws dlc::Error with the log.
  Cubin compile(const std::string &text, const std::string &arch, const std::string &name = "dlc.cu");
  /// Returns "13.0" or the like.
  std::string version() const;

private:
  struct Symbols;
  Nvrtc();
  void check(int result, const char *what) const;
  std::unique_ptr<Symbols> symbols_;
};

} // namespace dlc::compiler

#endif // DLC_COMPILER_CUDA_NVRTC_NVRTC_H
