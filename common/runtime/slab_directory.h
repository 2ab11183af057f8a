// SPDX-License-Identifier: Apache-2.0
// Which memory is lent again and again on one reactor: the slabs of its buffer pools. A data mover
// asks it whether a buffer lies in such a slab, registers the whole slab once (RDMA), and hears
// when the slab is about to be unmapped. On the reactor's thread.
#pragma once

#include <vector>

#include "common/base/bytes.h"

namespace vjbod {

class SlabWatcher {
 public:
  // The slab is unmapped right after this call. Nobody has a buffer of it any more.
  virtual void on_slab_gone(Bytes slab) = 0;

 protected:
  ~SlabWatcher() = default;
};

class SlabDirectory {
 public:
  SlabDirectory() = default;
  SlabDirectory(const SlabDirectory&) = delete;
  SlabDirectory& operator=(const SlabDirectory&) = delete;
  ~SlabDirectory();  // empty, and nobody watches

  void add(Bytes slab);
  void remove(Bytes slab);
  void watch(SlabWatcher& watcher);
  void unwatch(SlabWatcher& watcher);

  // The slab that holds all of `memory`; empty when there is none.
  Bytes slab_of(ConstBytes memory) const;

 private:
  std::vector<Bytes> slabs_;  // by address
  std::vector<SlabWatcher*> watchers_;
};

}  // namespace vjbod
