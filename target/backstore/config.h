// SPDX-License-Identifier: Apache-2.0
// How a backstore is to be opened, as plain values: what a LUN's state file, a configuration file
// and the control channel describe. Offsets and lengths are in bytes here too; LBAs end in the
// layer above.
#pragma once

#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/runtime/clock.h"
#include "target/backstore/backstore.h"

namespace vjbod::backstore {

enum class BackstoreKind : uint8_t { file, block, memory };
enum class CacheMode : uint8_t { page_cache, direct };
enum class FilterKind : uint8_t { delay, error, trace };

const char* name_of(BackstoreKind kind);
const char* name_of(CacheMode mode);
const char* name_of(FilterKind kind);
// From the names above; the error lists what is known.
Result<BackstoreKind> backstore_kind_from_name(std::string_view name);
Result<CacheMode> cache_mode_from_name(std::string_view name);
Result<FilterKind> filter_kind_from_name(std::string_view name);
Result<OpKind> op_kind_from_name(std::string_view name);

// A set of op kinds.
class OpKinds {
 public:
  constexpr OpKinds() = default;
  constexpr OpKinds(std::initializer_list<OpKind> kinds) {
    for (OpKind kind : kinds) add(kind);
  }
  static constexpr OpKinds all() {
    return {OpKind::read, OpKind::write, OpKind::flush, OpKind::unmap, OpKind::write_zeroes};
  }
  constexpr void add(OpKind kind) { bits_ = static_cast<uint8_t>(bits_ | bit(kind)); }
  constexpr bool contains(OpKind kind) const { return (bits_ & bit(kind)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  static constexpr unsigned bit(OpKind kind) { return 1U << static_cast<unsigned>(kind); }
  uint8_t bits_ = 0;
};

// Which ops a filter's rule is for: those of these kinds that touch this range. A flush has no
// range: its kind decides.
struct OpMatch {
  OpKinds kinds = OpKinds::all();
  uint64_t offset_bytes = 0;
  uint64_t length_bytes = std::numeric_limits<uint64_t>::max();

  bool matches(const Op& op) const;
};

struct DelayRule {
  OpMatch match = {};
  std::optional<Duration> delay = {};  // none: until the rule is removed
};

struct ErrorRule {
  OpMatch match = {};
  int error_number = EIO;              // any errno
  std::optional<uint64_t> times = {};  // none: always
};

struct FilterConfig {
  FilterKind kind = FilterKind::trace;
  std::vector<DelayRule> delays = {};  // delay: in force from the start
  std::vector<ErrorRule> errors = {};  // error: likewise
  size_t trace_entries = 256;          // trace: how many ops are remembered
};

inline constexpr size_t trace_entries_max = 65536;  // about 4 MiB

struct BackstoreConfig {
  BackstoreKind kind = BackstoreKind::file;
  std::string path = {};       // file and block: absolute
  uint64_t size_bytes = 0;     // memory: its size. file, block: 0, as large as what is found there
  uint32_t block_bytes = 512;  // logical: 512 or 4096
  CacheMode cache = CacheMode::page_cache;
  bool thick = false;  // file: its space stays allocated, so nothing is unmapped and growing
                       // allocates at once
  bool read_only = false;
  bool use_io_uring = true;  // false: worker threads, as where the kernel refuses io_uring
  std::vector<FilterConfig> filters =
      {};  // each kind at most once; the first is nearest to the medium
};

}  // namespace vjbod::backstore
