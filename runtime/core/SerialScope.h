// Keeps parallelFor on the calling thread for a while, or lets it cut finer.
#pragma once
#include <cstdint>

namespace dlc {

/// While in scope (and `on`), loops of this thread run in the caller alone. Results are the same either way.
class SerialScope {
public:
  explicit SerialScope(bool on);
  ~SerialScope();

private:
  bool previous_;
};

/// While in scope, work of a microsecond may be shared out: for a caller that measures whether that pays and takes it
/// back with a SerialScope where it does not. Results are the same either way.
class FineScope {
public:
  explicit FineScope(bool on);
  ~FineScope();

private:
  bool previous_;
};

/// What a task of the pool should be worth here, as a share of `otherwise`.
int64_t taskGrain(int64_t otherwise);

} // namespace dlc
