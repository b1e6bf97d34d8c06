// The bar is redrawn in place; the last line stays.
#include "compiler/autotune/Progress.h"
#include "runtime/core/Knobs.h"

#include <cstdio>
#include <unistd.h>

namespace dlc::compiler {

TuningProgress::TuningProgress(const CompileOptions &options, size_t kernels)
    : name_(options.name), kernels_(kernels),
      bar_(options.tuningProgress == CompileOptions::Progress::On ||
           (options.tuningProgress == CompileOptions::Progress::Auto && isatty(STDERR_FILENO))),
      log_(!knobs().logs.empty() && logEnabled("tuning")) {
  draw("");
}

void TuningProgress::draw(const std::string &text) {
  if (!bar_)
    return;
  constexpr size_t kWidth = 20;
  size_t full = kernels_ ? done_ * kWidth / kernels_ : kWidth;
  std::fprintf(stderr, "\rtuning %s [%s%s] %zu/%zu kernels, %.1f s, %.2fx%s\033[K", name_.c_str(),
               std::string(full, '#').c_str(), std::string(kWidth - full, '.').c_str(), done_, kernels_, seconds(),
               total_, text.c_str());
  std::fflush(stderr);
}

void TuningProgress::step(const std::string &kernel, double gain, bool decided, double total) {
  ++done_;
  total_ = total;
  char text[128];
  std::snprintf(text, sizeof text, "%s %.2fx", kernel.substr(0, 60).c_str(), gain);
  if (log_)
    logLine("tuning", name_ + ": " + (decided ? text : kernel + " not decided in time"));
  draw(std::string(" | ") + text);
}

void TuningProgress::end(int64_t tuned, int64_t changed, int64_t open) {
  char text[160];
  std::snprintf(text, sizeof text, "%lld kernels tuned, %lld changed, %lld left, kernels together %.2fx, %.1f s",
                static_cast<long long>(tuned), static_cast<long long>(changed), static_cast<long long>(open), total_,
                seconds());
  if (bar_)
    std::fprintf(stderr, "\rtuning %s: %s\033[K\n", name_.c_str(), text);
  if (log_)
    logLine("tuning", name_ + ": " + text);
}

} // namespace dlc::compiler
