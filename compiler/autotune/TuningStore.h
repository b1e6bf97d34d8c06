// What tuning found out, kept across processes and shippable. Free of MLIR.
#pragma once
#include "compiler/cpu/ObjectCache.h"
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dlc::compiler {

/// The result of tuning one kernel.
struct TuningEntry {
  std::string schedule;      ///< text of a schedule attribute; empty: the default is best
  double defaultSeconds = 0; ///< of one run of the kernel
  double seconds = 0;        ///< with the schedule
  friend bool operator==(const TuningEntry &a, const TuningEntry &b) {
    return a.schedule == b.schedule && a.defaultSeconds == b.defaultSeconds && a.seconds == b.seconds;
  }
};

/// Everything but the kernel that an entry depends on, one fact a line: versions, processor, caches, threads.
std::string tuningHost();

/// Entries by key text: host, shape class, kernel without schedule. Thread safe; several processes may share the
/// folder.
class TuningStore {
public:
  /// `directory`: where entries are kept (see ObjectCache); empty: in memory only.
  explicit TuningStore(std::string directory);
  /// The process's store, in the folder `tuning` of the persistent cache.
  static TuningStore &get();

  std::optional<TuningEntry> find(const std::string &key);
  void put(const std::string &key, const TuningEntry &entry);

  /// All entries, of other processors too, as (key, value) texts.
  std::vector<std::pair<std::string, std::string>> dump();
  /// Takes an entry of a dump, for this process; false if it is of another host (or makes no sense) and was left out.
  bool load(const std::string &key, const std::string &value);

  /// Changes whenever an entry may have been added, by whichever process: part of the key of what entries decide.
  std::string generation();

private:
  ObjectCache disk_;
  std::string directory_;
  std::mutex mutex_;
  std::map<std::string, TuningEntry> memory_;
  uint64_t loads_ = 0; ///< a digest of what was loaded, in order
};

/// An entry as text and back; nothing if the text is none.
std::string toText(const TuningEntry &entry);
std::optional<TuningEntry> fromText(const std::string &text);

} // namespace dlc::compiler
