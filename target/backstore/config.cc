// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/config.h"

#include "target/backstore/errc.h"

namespace vjbod::backstore {

namespace {

template <typename Enum>
Result<Enum> from_name(const char* what, std::string_view name, std::initializer_list<Enum> all) {
  std::string known;
  for (Enum value : all) {
    if (name == name_of(value)) return value;
    known += known.empty() ? "" : ", ";
    known += name_of(value);
  }
  return fail(Errc::bad_config, "\"{}\" is not a {}; known are {}", name, what, known);
}

}  // namespace

const char* name_of(BackstoreKind kind) {
  switch (kind) {
    case BackstoreKind::file: return "file";
    case BackstoreKind::block: return "block";
    case BackstoreKind::memory: return "memory";
  }
  return "unknown";
}

const char* name_of(CacheMode mode) {
  switch (mode) {
    case CacheMode::page_cache: return "page-cache";
    case CacheMode::direct: return "direct";
  }
  return "unknown";
}

const char* name_of(FilterKind kind) {
  switch (kind) {
    case FilterKind::delay: return "delay";
    case FilterKind::error: return "error";
    case FilterKind::trace: return "trace";
  }
  return "unknown";
}

Result<BackstoreKind> backstore_kind_from_name(std::string_view name) {
  return from_name("backstore kind", name,
                   {BackstoreKind::file, BackstoreKind::block, BackstoreKind::memory});
}

Result<CacheMode> cache_mode_from_name(std::string_view name) {
  return from_name("cache mode", name, {CacheMode::page_cache, CacheMode::direct});
}

Result<FilterKind> filter_kind_from_name(std::string_view name) {
  return from_name("filter kind", name, {FilterKind::delay, FilterKind::error, FilterKind::trace});
}

Result<OpKind> op_kind_from_name(std::string_view name) {
  return from_name(
      "kind of operation", name,
      {OpKind::read, OpKind::write, OpKind::flush, OpKind::unmap, OpKind::write_zeroes});
}

bool OpMatch::matches(const Op& op) const {
  if (!kinds.contains(op.kind)) return false;
  if (op.kind == OpKind::flush) return true;
  // Written so that a range that reaches to the end of the numbers does not overflow.
  if (op.offset_bytes < offset_bytes) return offset_bytes - op.offset_bytes < op.length_bytes;
  return op.offset_bytes - offset_bytes < length_bytes;
}

}  // namespace vjbod::backstore
