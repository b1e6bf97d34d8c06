// Names of the bytes of watched storages: they change with every write that no version tells of, and end with the
// storage.
#include "runtime/core/StorageWatch.h"
#include "runtime/core/Tensor.h"
#include <gtest/gtest.h>

using namespace dlc;

namespace {

struct Counting final : StorageWatch::Listener {
  int told = 0;
  const Storage *last = nullptr;
  void changed(const Storage *storage) override {
    ++told;
    last = storage;
  }
};

TEST(StorageWatch, AStampNamesBytesUntilTheyAreWritten) {
  Ref<Storage> a = Storage::allocate(64), b = Storage::allocate(64);
  auto listener = std::make_shared<Counting>();
  uint64_t generation = StorageWatch::generation(), stamp = StorageWatch::watch(*a, listener);
  EXPECT_NE(stamp, 0u);
  EXPECT_EQ(StorageWatch::watch(*a, listener), stamp);
  EXPECT_NE(StorageWatch::watch(*b), stamp);
  EXPECT_EQ(StorageWatch::stampOf(*a), stamp);
  EXPECT_EQ(StorageWatch::generation(), generation);
  StorageWatch::wrote(*a);
  EXPECT_EQ(listener->told, 1); // once, though it was named twice
  EXPECT_EQ(listener->last, a.get());
  EXPECT_EQ(StorageWatch::stampOf(*a), 0u);
  EXPECT_NE(StorageWatch::generation(), generation);
  EXPECT_NE(StorageWatch::watch(*a), stamp);
  StorageWatch::wrote(*a);
  EXPECT_EQ(listener->told, 1); // it did not ask again
}

TEST(StorageWatch, DeathsAreToldAndLeaveNothing) {
  size_t before = StorageWatch::size();
  auto listener = std::make_shared<Counting>();
  std::vector<Ref<Storage>> storages;
  for (int i = 0; i < 1000; ++i) {
    storages.push_back(Storage::allocate(16));
    StorageWatch::watch(*storages.back(), listener);
  }
  EXPECT_EQ(StorageWatch::size(), before + 1000);
  storages.clear();
  EXPECT_EQ(listener->told, 1000);
  EXPECT_EQ(StorageWatch::size(), before);
}

TEST(StorageWatch, AListenerMayBeGone) {
  Ref<Storage> a = Storage::allocate(16);
  StorageWatch::watch(*a, std::make_shared<Counting>());
  StorageWatch::wrote(*a);
  EXPECT_EQ(StorageWatch::stampOf(*a), 0u);
}

TEST(StorageWatch, TheMarkOfStateOutlivesWrites) {
  Ref<Storage> a = Storage::allocate(16), b = Storage::allocate(16);
  StorageWatch::markState(*a);
  uint64_t generation = StorageWatch::generation();
  StorageWatch::wrote(*a);
  EXPECT_TRUE(StorageWatch::isMarkedState(*a));
  EXPECT_FALSE(StorageWatch::isMarkedState(*b));
  EXPECT_EQ(StorageWatch::generation(), generation); // nothing was derived from it
}

} // namespace
