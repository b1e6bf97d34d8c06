// Waits and loops outside of parallelFor that a user may want to stop.
#pragma once

namespace dlc {

/// Throws Interrupted (see ThreadPool.h) if the check of setInterruptCheck says stop.
void throwIfInterrupted();

} // namespace dlc
