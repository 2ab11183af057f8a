// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/slab_directory.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"

namespace vjbod {

namespace {

bool before(const std::byte* address, Bytes slab) {
  return address < slab.data();
}

}  // namespace

SlabDirectory::~SlabDirectory() {
  VJBOD_CHECK(slabs_.empty() && watchers_.empty(), "{} slabs and {} watchers are left",
              slabs_.size(), watchers_.size());
}

void SlabDirectory::add(Bytes slab) {
  slabs_.insert(std::upper_bound(slabs_.begin(), slabs_.end(), slab.data(), before), slab);
}

void SlabDirectory::remove(Bytes slab) {
  const auto next = std::upper_bound(slabs_.begin(), slabs_.end(), slab.data(), before);
  VJBOD_CHECK(next != slabs_.begin() && std::prev(next)->data() == slab.data(),
              "a slab goes that never came");
  slabs_.erase(std::prev(next));
  for (SlabWatcher* watcher : watchers_) watcher->on_slab_gone(slab);
}

void SlabDirectory::watch(SlabWatcher& watcher) {
  watchers_.push_back(&watcher);
}

void SlabDirectory::unwatch(SlabWatcher& watcher) {
  std::erase(watchers_, &watcher);
}

Bytes SlabDirectory::slab_of(ConstBytes memory) const {
  const auto next = std::upper_bound(slabs_.begin(), slabs_.end(), memory.data(), before);
  if (next == slabs_.begin()) return {};
  const Bytes slab = *std::prev(next);
  const size_t offset = static_cast<size_t>(memory.data() - slab.data());
  return offset <= slab.size() && memory.size() <= slab.size() - offset ? slab : Bytes{};
}

}  // namespace vjbod
