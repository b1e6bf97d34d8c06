// One file an entry: header (magic, sizes, checksum of the rest), binary, source. Files are written under a name of
// their own, then renamed, so a reader sees a whole entry or none.
#include "compiler/cpu/ObjectCache.h"
#include "runtime/core/Error.h"
#include "runtime/core/Knobs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlc::compiler {

namespace {

constexpr char kMagic[8] = {'d', 'l', 'c', 'o', 'b', 'j', '1', '\n'};

struct Header {
  char magic[8];
  uint64_t binarySize, sourceSize;
  char checksum[64];
};

/// A file descriptor that closes itself.
struct File {
  int fd;
  explicit File(int fd) : fd(fd) {}
  ~File() {
    if (fd >= 0)
      close(fd);
  }
  File(const File &) = delete;
};

bool readAll(int fd, char *data, size_t size) {
  while (size) {
    ssize_t n = read(fd, data, size);
    if (n <= 0)
      return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool writeAll(int fd, const char *data, size_t size) {
  while (size) {
    ssize_t n = write(fd, data, size);
    if (n <= 0)
      return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool isOurs(const struct stat &info) { return info.st_uid == geteuid() && !(info.st_mode & (S_IWGRP | S_IWOTH)); }

// Creates `path` and its parents; true if it is then a directory that only we can write.
bool makeDirectory(const std::string &path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0700);
  mkdir(path.c_str(), 0700);
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && isOurs(info) && !(info.st_mode & 077);
}

} // namespace

std::string digest(std::string_view text) {
  auto hash = llvm::SHA256::hash(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
  return llvm::toHex(hash, /*LowerCase=*/true);
}

std::string ObjectCache::defaultDirectory() {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string directory = variable("DLC_CACHE_DIR");
  if (!directory.empty())
    return directory[0] == '/' ? directory : "";
  directory = variable("XDG_CACHE_HOME");
  if (!directory.empty() && directory[0] == '/')
    return directory + "/dlc";
  directory = variable("HOME");
  return !directory.empty() && directory[0] == '/' ? directory + "/.cache/dlc" : "";
}

ObjectCache::ObjectCache(std::string directory, uint64_t limit) : directory_(std::move(directory)), limit_(limit) {
  if (!directory_.empty() && (directory_[0] != '/' || !makeDirectory(directory_))) {
    warnOnce(str("the cache folder ", directory_,
                 " is not used: it must be a folder of yours with mode 0700 on a writable disk; "
                 "kernels are compiled anew in each process"));
    directory_.clear();
  }
}

// Reads and checks one file. `key`: what its source must have as digest.
static ObjectCache::Status readEntry(const std::string &path, const std::string &key, std::vector<char> &content,
                                     uint64_t &binarySize) {
  using Status = ObjectCache::Status;
  File file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.fd < 0)
    return Status::Miss;
  struct stat info;
  Header header;
  if (fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode) || !isOurs(info) ||
      static_cast<size_t>(info.st_size) < sizeof(header) ||
      !readAll(file.fd, reinterpret_cast<char *>(&header), sizeof(header)))
    return Status::Bad;
  uint64_t rest = static_cast<uint64_t>(info.st_size) - sizeof(header);
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.binarySize > rest ||
      header.sourceSize != rest - header.binarySize)
    return Status::Bad;
  content.resize(rest);
  if (!readAll(file.fd, content.data(), content.size()) ||
      digest({content.data(), content.size()}) != std::string_view(header.checksum, sizeof(header.checksum)) ||
      digest({content.data() + header.binarySize, header.sourceSize}) != key)
    return Status::Bad;
  binarySize = header.binarySize;
  futimens(file.fd, nullptr); // used now
  return Status::Hit;
}

ObjectCache::Status ObjectCache::load(const std::string &key, std::vector<char> &binary) {
  if (!usable())
    return Status::Miss;
  std::vector<char> content;
  uint64_t binarySize = 0;
  Status status = readEntry(pathOf(key), key, content, binarySize);
  if (status == Status::Hit) {
    content.resize(binarySize);
    binary = std::move(content);
  }
  return status;
}

void ObjectCache::forEach(const std::function<void(const std::string &, const std::string &)> &visit) {
  DIR *directory = usable() ? opendir(directory_.c_str()) : nullptr;
  if (!directory)
    return;
  while (dirent *item = readdir(directory)) {
    std::string name = item->d_name;
    std::vector<char> content;
    uint64_t n = 0;
    if (name.size() > 2 && name[0] != '.' && name.substr(name.size() - 2) == ".o" &&
        readEntry(directory_ + "/" + name, name.substr(0, name.size() - 2), content, n) == Status::Hit)
      visit(std::string(content.data(), n), std::string(content.data() + n, content.size() - n));
  }
  closedir(directory);
}

void ObjectCache::store(const std::string &key, std::string_view binary, std::string_view source) {
  if (!usable())
    return;
  static std::atomic<uint64_t> counter{0};
  std::string temporary = directory_ + "/." + key + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
  std::string content(binary);
  content += source;
  Header header;
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.binarySize = binary.size();
  header.sourceSize = source.size();
  std::string checksum = digest(content);
  std::memcpy(header.checksum, checksum.data(), sizeof(header.checksum));
  bool written;
  {
    File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    written = file.fd >= 0 && writeAll(file.fd, reinterpret_cast<const char *>(&header), sizeof(header)) &&
              writeAll(file.fd, content.data(), content.size());
  }
  if (!written || rename(temporary.c_str(), pathOf(key).c_str()) != 0)
    unlink(temporary.c_str());
}

void ObjectCache::evict() {
  DIR *directory = usable() ? opendir(directory_.c_str()) : nullptr;
  if (!directory)
    return;
  struct Entry {
    std::string path;
    uint64_t size;
    timespec used;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  while (dirent *item = readdir(directory)) {
    std::string_view name = item->d_name;
    std::string path = directory_ + "/" + std::string(name);
    struct stat info;
    constexpr time_t kHour = 3600;
    bool unfinished = name[0] == '.' && name.find(".o") == std::string_view::npos && name.size() > 2;
    if (unfinished && lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_mtime + kHour < time(nullptr))
      unlink(path.c_str()); // left by a process that died
    if (unfinished || name.size() < 3 || name.substr(name.size() - 2) != ".o" || lstat(path.c_str(), &info) != 0 ||
        !S_ISREG(info.st_mode))
      continue;
    total += static_cast<uint64_t>(info.st_size);
    entries.push_back({std::move(path), static_cast<uint64_t>(info.st_size), info.st_mtim});
  }
  closedir(directory);
  if (total <= limit_)
    return;
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (const Entry &entry : entries) {
    if (total <= limit_)
      break;
    unlink(entry.path.c_str());
    total -= entry.size;
  }
}

} // namespace dlc::compiler
