// The cache of compiled kernels on disk, for many processes at a time. Nothing in it is trusted: a directory or entry
// that is not ours alone, or whose checksum does not match, counts as absent and is replaced.
#ifndef DLC_COMPILER_CPU_OBJECTCACHE_H
#define DLC_COMPILER_CPU_OBJECTCACHE_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlc::compiler {

/// Entries by key (a hexadecimal digest). An entry is a piece of binary and the source that it was made from.
class ObjectCache {
public:
  /// What load() found.
  enum class Status { Hit, Miss, Bad };

  /// Returns the user's directory: $DLC_CACHE_DIR, else $XDG_CACHE_HOME/dlc, else ~/.cache/dlc; empty if none.
  static std::string defaultDirectory();

  /// Opens (and creates, mode 0700) `directory`; an empty name, or one that others own or may write, gives a cache
  /// that never hits. `limit`: bytes above which the entries used longest ago go.
  ObjectCache(std::string directory, uint64_t limit);

  /// Returns whether entries can be kept at all.
  bool usable() const { return !directory_.empty(); }
  const std::string &directory() const { return directory_; }

  /// Looks up `key`; `binary` is set on a hit.
  Status load(const std::string &key, std::vector<char> &binary);
  /// Stores an entry under `key` by atomic rename; silently does nothing if the disk refuses.
  void store(const std::string &key, std::string_view binary, std::string_view source);
  /// Calls `visit(binary, source)` for every sound entry.
  void forEach(const std::function<void(const std::string &, const std::string &)> &visit);
  /// Removes the entries used longest ago until the limit holds.
  void evict();

private:
  std::string pathOf(const std::string &key) const { return directory_ + "/" + key + ".o"; }

  std::string directory_;
  uint64_t limit_;
};

/// Returns the hexadecimal SHA-256 of `text`.
std::string digest(std::string_view text);

} // namespace dlc::compiler

#endif
