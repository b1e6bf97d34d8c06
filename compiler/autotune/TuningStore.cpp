// An entry is a file of an ObjectCache of its own: key text as source, value text as binary. That gives atomic writes
// and checksums, and what is damaged counts as absent.
#include "compiler/autotune/TuningStore.h"
#include "compiler/cpu/CpuCompiler.h"
#include "runtime/core/Error.h"
#include "runtime/core/ThreadPool.h"

#include <cstdio>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace dlc::compiler {

/// Counts changes of what the tuner tries: entries of another search say nothing about this one.
static constexpr int kSearchVersion = 2;
static constexpr uint64_t kDiskLimit = uint64_t(64) << 20;

std::string tuningHost() {
  const CpuTarget &target = CpuCompiler::get().target();
  std::ostringstream os;
  os << "dlc tuning " << kSearchVersion << '\n'
     << CpuCompiler::version() << '\n'
     << "cpu " << target.cpu << ' ' << target.features << ' ' << target.vectorBits << '\n'
     << "caches " << sysconf(_SC_LEVEL1_DCACHE_SIZE) << ' ' << sysconf(_SC_LEVEL2_CACHE_SIZE) << ' '
     << sysconf(_SC_LEVEL3_CACHE_SIZE) << '\n'
     << "threads " << getNumThreads() << '\n';
  return os.str();
}

std::string toText(const TuningEntry &entry) {
  char line[96];
  std::snprintf(line, sizeof line, "default %.17g\nseconds %.17g\n", entry.defaultSeconds, entry.seconds);
  return "schedule " + entry.schedule + "\n" + line;
}

std::optional<TuningEntry> fromText(const std::string &text) {
  TuningEntry entry;
  std::istringstream is(text);
  std::string line;
  if (!std::getline(is, line) || line.rfind("schedule ", 0) != 0)
    return std::nullopt;
  entry.schedule = line.substr(9);
  std::string name;
  if (!(is >> name >> entry.defaultSeconds) || name != "default" || !(is >> name >> entry.seconds) ||
      name != "seconds" || !(entry.defaultSeconds >= 0) || !(entry.seconds >= 0))
    return std::nullopt;
  return entry;
}

TuningStore::TuningStore(std::string directory) : disk_(directory, kDiskLimit), directory_(std::move(directory)) {}

TuningStore &TuningStore::get() {
  static TuningStore *store = [] {
    const ObjectCache &cache = CpuCompiler::get().cache();
    return new TuningStore(cache.usable() ? cache.directory() + "/tuning" : "");
  }();
  return *store;
}

std::optional<TuningEntry> TuningStore::find(const std::string &key) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto it = memory_.find(key); it != memory_.end())
      return it->second;
  }
  std::vector<char> text;
  if (disk_.load(digest(key), text) != ObjectCache::Status::Hit)
    return std::nullopt;
  std::optional<TuningEntry> entry = fromText(std::string(text.begin(), text.end()));
  if (entry) {
    std::lock_guard<std::mutex> lock(mutex_);
    memory_.emplace(key, *entry);
  }
  return entry;
}

void TuningStore::put(const std::string &key, const TuningEntry &entry) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    memory_[key] = entry;
    loads_ += !disk_.usable();
  }
  disk_.store(digest(key), toText(entry), key);
  disk_.evict();
}

std::vector<std::pair<std::string, std::string>> TuningStore::dump() {
  std::map<std::string, std::string> all;
  disk_.forEach([&](const std::string &binary, const std::string &source) { all[source] = binary; });
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto &[key, entry] : memory_)
    all[key] = toText(entry);
  return {all.begin(), all.end()};
}

bool TuningStore::load(const std::string &key, const std::string &value) {
  std::optional<TuningEntry> entry = fromText(value);
  if (!entry || key.rfind(tuningHost(), 0) != 0)
    return false;
  std::lock_guard<std::mutex> lock(mutex_);
  memory_[key] = *entry;
  loads_ = std::hash<std::string>()(std::to_string(loads_) + key + value);
  return true;
}

std::string TuningStore::generation() {
  struct stat info;
  std::ostringstream os;
  if (disk_.usable() && stat(directory_.c_str(), &info) == 0)
    os << info.st_mtim.tv_sec << '.' << info.st_mtim.tv_nsec;
  std::lock_guard<std::mutex> lock(mutex_);
  os << '/' << loads_;
  return os.str();
}

} // namespace dlc::compiler
