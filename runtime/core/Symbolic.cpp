// The current session of each thread.
#include "runtime/core/Symbolic.h"
#include "runtime/core/Number.h"
#include "runtime/core/Session.h"

namespace dlc {
namespace {
thread_local SymbolicHost *host = nullptr;
thread_local bool hints = false;
thread_local uint64_t session = 0;
} // namespace

uint64_t currentSession() { return session; }
void setCurrentSession(uint64_t id) { session = id; }
SymbolicHost *symbolicHost() { return host; }
SymbolicHost *symbolicReader() { return hints ? nullptr : host; }
SymbolicScope::SymbolicScope(SymbolicHost *h) : previous_(host), previousHints_(hints) {
  host = h;
  hints = false;
}
SymbolicScope::~SymbolicScope() {
  host = previous_;
  hints = previousHints_;
}
HintScope::HintScope(bool on) : previous_(hints) { hints = on; }
HintScope::~HintScope() { hints = previous_; }

void noteNumberRead(const Number &n) {
  if (SymbolicHost *h = symbolicReader())
    h->numberRead(n);
}

} // namespace dlc
