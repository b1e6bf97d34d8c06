#include "runtime/core/Generator.h"

namespace dlc {

Generator &defaultGenerator() {
  static Ref<Generator> generator = makeRef<Generator>(0);
  return *generator;
}

} // namespace dlc
