// Ownership of a storage's memory: the caching allocator's, or somebody else's.
#include "runtime/core/Storage.h"
#include "runtime/core/Allocator.h"
#include "runtime/core/Error.h"
#include "runtime/core/StorageWatch.h"

namespace dlc {

Ref<Storage> Storage::allocate(size_t bytes) { return Ref<Storage>(new Storage(allocateBytes(bytes), bytes)); }

Ref<Storage> Storage::wrap(void *data, size_t bytes, std::function<void()> release) {
  Ref<Storage> s(new Storage(data, bytes));
  s->foreign_ = true;
  s->release_ = std::move(release);
  return s;
}

Ref<Storage> Storage::deferred(size_t bytes, LazySource *source) {
  Ref<Storage> s(new Storage(nullptr, bytes));
  s->lazy_ = source;
  return s;
}

Storage::~Storage() {
  StorageWatch::died(this);
  if (lazy_)
    lazy_->released(*this);
  if (release_)
    release_();
  else
    freeBytes(data_, bytes_);
}

void Storage::adopt(void *data) {
  DLC_CHECK(!release_, "a foreign storage keeps its memory");
  freeBytes(data_, bytes_);
  data_ = data;
}

void Storage::swapData(Storage &other) {
  DLC_CHECK(!release_ && !other.release_ && bytes_ == other.bytes_, bytes_, " and ", other.bytes_, " bytes");
  std::swap(data_, other.data_);
}

} // namespace dlc
