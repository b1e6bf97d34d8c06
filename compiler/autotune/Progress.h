// What the user sees of tuning: a bar on the terminal, and a line a kernel for DLC_LOGS=tuning.
#pragma once
#include "compiler/api/Executable.h"
#include <chrono>
#include <string>

namespace dlc::compiler {

class TuningProgress {
public:
  /// The bar is shown if stderr is a terminal or the options ask for it.
  TuningProgress(const CompileOptions &options, size_t kernels);
  /// One kernel is done. `gain`: how much faster it became; `total`: all so far together.
  void step(const std::string &kernel, double gain, bool decided, double total);
  void end(int64_t tuned, int64_t changed, int64_t open);

private:
  void draw(const std::string &text);
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  std::string name_;
  size_t kernels_, done_ = 0;
  bool bar_, log_;
  double total_ = 1;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace dlc::compiler
