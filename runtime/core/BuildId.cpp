// The note that the linker leaves in a file, found through the program headers of the loaded image.
#include "runtime/core/BuildId.h"
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <link.h>

namespace dlc {

namespace {

struct Search {
  uintptr_t address;
  std::string id;
};

std::string noteOf(const char *at, const char *end) {
  auto align = [](size_t n) { return (n + 3) & ~size_t(3); };
  while (end - at >= static_cast<std::ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof(note));
    const char *name = at + sizeof(note), *value = name + align(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
      return std::string(value, note.n_descsz);
    at = value + align(note.n_descsz);
  }
  return {};
}

int visit(dl_phdr_info *info, size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  bool ours = false;
  std::string id;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD)
      ours |= search.address >= begin && search.address < begin + header.p_memsz;
    else if (header.p_type == PT_NOTE && id.empty())
      id = noteOf(reinterpret_cast<const char *>(begin), reinterpret_cast<const char *>(begin + header.p_memsz));
  }
  if (ours)
    search.id = id;
  return ours;
}

} // namespace

const std::string &buildId() {
  static const std::string *id = [] {
    Search search{reinterpret_cast<uintptr_t>(&buildId), {}};
    dl_iterate_phdr(visit, &search);
    return new std::string(search.id);
  }();
  return *id;
}

} // namespace dlc
