#include "kernels/wide/Wide.h"

namespace dlc::kernels {

extern const WideCode kWideCode;

const WideCode *wideCode() {
  static const WideCode *const code = __builtin_cpu_supports("x86-64-v4") ? &kWideCode : nullptr;
  return code;
}

} // namespace dlc::kernels
