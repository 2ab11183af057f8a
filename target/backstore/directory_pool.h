// SPDX-License-Identifier: Apache-2.0
// A pool of kind "directory": LUNs are files in it, "NAME.lun". Makes and deletes them so that a
// crash or a full disk leaves a whole file or none. Names come from this box (a LUN's UUID), never
// from a peer. Used by one thread at a time, not a shard: every call waits for the disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "target/backstore/unique_fd.h"

namespace vjbod::backstore {

class DirectoryPool {
 public:
  static constexpr size_t name_bytes_max = 64;  // room for a UUID as text

  struct Space {
    uint64_t total_bytes = 0;      // of the file system
    uint64_t free_bytes = 0;       // what can still be allocated in it
    uint64_t allocated_bytes = 0;  // by the LUNs of this pool
    size_t lun_count = 0;
  };

  // The directory must exist. Clears away what an interrupted create() left.
  static Result<DirectoryPool> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string path_of(std::string_view name) const;

  // Makes a LUN file of zeros and returns its path; it is on stable storage when this returns.
  // `thick`: all its space is allocated, or no_space. already_exists leaves what is there
  // untouched.
  Result<std::string> create(std::string_view name, uint64_t size_bytes, bool thick);
  // not_found when there is none, in_use when somebody serves it. After a restart it stays deleted.
  Status remove(std::string_view name);

  Result<Space> space() const;
  Result<std::vector<std::string>> names() const;  // of the LUN files, in order

 private:
  DirectoryPool(std::string path, UniqueFd directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}

  Result<std::string> create_under(const std::string& file_name, const UniqueFd& file,
                                   uint64_t size_bytes, bool thick) const;
  Status sync() const;

  std::string path_;
  UniqueFd directory_;
};

}  // namespace vjbod::backstore
