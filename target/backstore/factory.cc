// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/factory.h"

#include "target/backstore/block_backstore.h"
#include "target/backstore/errc.h"
#include "target/backstore/file_backstore.h"
#include "target/backstore/memory_backstore.h"

namespace vjbod::backstore {

namespace {

// File offsets are signed 64-bit numbers, and tools get strange near their end.
constexpr uint64_t size_max_bytes = uint64_t{1} << 62;

Status validate_filter(const FilterConfig& filter) {
  for (const DelayRule& rule : filter.delays) {
    if (rule.match.kinds.empty())
      return fail(Errc::bad_config, "filters: a delay rule is for no kind of operation");
    if (rule.delay && *rule.delay < Duration::zero())
      return fail(Errc::bad_config, "filters: a delay is negative");
  }
  for (const ErrorRule& rule : filter.errors) {
    if (rule.match.kinds.empty())
      return fail(Errc::bad_config, "filters: an error rule is for no kind of operation");
    if (rule.error_number <= 0 || rule.error_number > 4095)
      return fail(Errc::bad_config, "filters: {} is not an errno", rule.error_number);
  }
  if (filter.kind != FilterKind::delay && !filter.delays.empty())
    return fail(Errc::bad_config, "filters: delay rules given to a {} filter",
                name_of(filter.kind));
  if (filter.kind != FilterKind::error && !filter.errors.empty())
    return fail(Errc::bad_config, "filters: error rules given to a {} filter",
                name_of(filter.kind));
  if (filter.kind == FilterKind::trace &&
      (filter.trace_entries == 0 || filter.trace_entries > trace_entries_max))
    return fail(Errc::bad_config, "filters: trace_entries is {}, allowed are 1 to {}",
                filter.trace_entries, trace_entries_max);
  return {};
}

Result<std::shared_ptr<Backstore>> open_medium(const BackstoreConfig& config) {
  switch (config.kind) {
    case BackstoreKind::file: return FileBackstore::open(config);
    case BackstoreKind::block: return BlockBackstore::open(config);
    case BackstoreKind::memory: return MemoryBackstore::open(config);
  }
  return fail(Errc::bad_config, "kind {} is not known", static_cast<unsigned>(config.kind));
}

std::shared_ptr<Backstore> wrap(std::shared_ptr<Backstore> inner, const BackstoreConfig& config,
                                const FilterConfig& filter) {
  switch (filter.kind) {
    case FilterKind::delay:
      return std::make_shared<DelayBackstore>(std::move(inner), filter.delays);
    case FilterKind::error:
      return std::make_shared<ErrorBackstore>(std::move(inner), filter.errors);
    case FilterKind::trace: break;
  }
  std::string name = config.path.empty() ? name_of(config.kind) : config.path;
  return std::make_shared<TraceBackstore>(std::move(inner), std::move(name), filter.trace_entries);
}

}  // namespace

Status validate_config(const BackstoreConfig& config) {
  if (config.block_bytes != 512 && config.block_bytes != 4096)
    return fail(Errc::bad_config, "block_bytes is {}, allowed are 512 and 4096",
                config.block_bytes);
  if (config.size_bytes % config.block_bytes != 0 || config.size_bytes > size_max_bytes)
    return fail(Errc::bad_config,
                "size_bytes is {}; it must be a multiple of the block size {} and at most {}",
                config.size_bytes, config.block_bytes, size_max_bytes);
  if (config.kind == BackstoreKind::memory) {
    if (!config.path.empty())
      return fail(Errc::bad_config, "path is given, but a memory backstore has none");
    if (config.size_bytes == 0) return fail(Errc::bad_config, "size_bytes of a memory LUN is 0");
    if (config.cache == CacheMode::direct)
      return fail(Errc::bad_config, "cache is direct, but memory has no cache to go around");
  } else if (!config.path.starts_with('/') || config.path.find('\0') != std::string::npos) {
    return fail(Errc::bad_config, "path of a {} backstore must be absolute", name_of(config.kind));
  }
  if (config.thick && config.kind != BackstoreKind::file)
    return fail(Errc::bad_config, "thick is only for file backstores, this one is {}",
                name_of(config.kind));
  uint32_t seen = 0;
  for (const FilterConfig& filter : config.filters) {
    uint32_t bit = 1U << static_cast<unsigned>(filter.kind);
    if ((seen & bit) != 0)
      return fail(Errc::bad_config, "filters: {} is there twice", name_of(filter.kind));
    seen |= bit;
    if (Status valid = validate_filter(filter); !valid) return valid;
  }
  return {};
}

Result<std::shared_ptr<Backstore>> open_backstore(const BackstoreConfig& config) {
  if (Status valid = validate_config(config); !valid) return fail(valid.error());
  Result<std::shared_ptr<Backstore>> opened = open_medium(config);
  if (!opened) return opened;
  std::shared_ptr<Backstore> backstore = std::move(*opened);
  for (const FilterConfig& filter : config.filters)
    backstore = wrap(std::move(backstore), config, filter);
  return backstore;
}

FilterControls filter_controls(const Backstore& backstore) {
  FilterControls controls;
  const Backstore* at = &backstore;
  while (const auto* filter = dynamic_cast<const FilterBackstore*>(at)) {
    if (const auto* delay = dynamic_cast<const DelayBackstore*>(filter))
      controls.delay = delay->control();
    if (const auto* error = dynamic_cast<const ErrorBackstore*>(filter))
      controls.error = error->control();
    if (const auto* trace = dynamic_cast<const TraceBackstore*>(filter))
      controls.trace = trace->control();
    at = &filter->inner();
  }
  return controls;
}

}  // namespace vjbod::backstore
