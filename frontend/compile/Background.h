// The thread that compiles for functions with background=True, one job after the other.
#pragma once
#include <functional>

namespace dlc {

/// Whether compileInBackground would take a job now.
bool backgroundCompiles();
/// Queues `job`, starting the thread if there is none. Returns false where no thread may be started (in a forked child,
/// at exit): the caller compiles itself. The job must not throw.
bool compileInBackground(std::function<void()> job);
/// Waits until nothing is queued or running, or for `milliseconds`; returns whether nothing is left.
bool waitForBackground(int milliseconds);
/// Forgets what is queued, lets the running job end and joins the thread. No job is taken afterwards.
void stopBackground();

} // namespace dlc
