// Which session's symbols an expression has: what outlives a session (the tape) compares.
#pragma once
#include <cstdint>

namespace dlc {

/// The session of this thread; 0 outside of sessions with symbols. No two sessions have the same number.
uint64_t currentSession();
void setCurrentSession(uint64_t id);

} // namespace dlc
