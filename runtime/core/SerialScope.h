// Keeps parallelFor on the calling thread for a while.
#pragma once

namespace dlc {

/// While in scope (and `on`), loops of this thread run in the caller alone. Results are the same either way.
class SerialScope {
public:
  explicit SerialScope(bool on);
  ~SerialScope();

private:
  bool previous_;
};

} // namespace dlc
