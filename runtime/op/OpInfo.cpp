// Look-up of ops by name.
#include "runtime/op/OpInfo.h"
#include <string>
#include <unordered_map>

namespace dlc {

const OpInfo *findOp(Str name) {
  static const std::unordered_map<std::string_view, const OpInfo *> byName = [] {
    std::unordered_map<std::string_view, const OpInfo *> m;
    for (const OpInfo &op : opTable())
      m.emplace(op.name, &op);
    return m;
  }();
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : it->second;
}

} // namespace dlc
