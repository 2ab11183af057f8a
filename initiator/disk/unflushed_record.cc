// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/unflushed_record.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>

#include "common/base/boot_id.h"
#include "common/base/check.h"
#include "common/base/unique_fd.h"

namespace vjbod::initiator {

// As it lies in the file. Read by no other program, and by no other start of the machine.
struct UnflushedRecord::Page {
  std::array<char, 8> format;
  std::array<char, boot_id_bytes + 4> boot_id;
  std::array<char, cache_id_bytes_max + 1> cache_id;
  uint64_t writes_completed;
  uint64_t writes_flushed;
};

namespace {

constexpr std::string_view format_1 = "VJBODuf1";

template <size_t size>
void store(std::string_view text, std::array<char, size>& field) {
  VJBOD_CHECK(text.size() <= size, "{} bytes in a field of {}", text.size(), size);
  field.fill('\0');
  std::copy(text.begin(), text.end(), field.begin());
}

template <size_t size>
std::string_view load(const std::array<char, size>& field) {
  return {field.data(), strnlen(field.data(), size)};
}

}  // namespace

UnflushedRecord::UnflushedRecord() : page_(new Page{}, [](Page* page) { delete page; }) {}

Result<UnflushedRecord> UnflushedRecord::open(const std::string& path, const std::string& boot_id) {
  const auto failed = [&path](const char* what, int errno_value) {
    return fail(system_code(errno_value), "the record of unflushed writes {} cannot be {}: {}",
                path, what, system_code(errno_value).message());
  };
  const UniqueFd file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!file.valid()) return failed("opened", errno);
  // The space is had before it is mapped: a store into a page that the file system has no room for
  // would end the process.
  if (int error = posix_fallocate(file.get(), 0, sizeof(Page)); error != 0)
    return failed("made", error);
  void* mapped = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return failed("mapped", errno);
  UnflushedRecord record(
      PageMemory(static_cast<Page*>(mapped), [](Page* page) { munmap(page, sizeof(Page)); }));
  Page& page = *record.page_;
  if (load(page.format) != format_1 || load(page.boot_id) != boot_id ||
      page.writes_flushed > page.writes_completed) {
    page = {};
    store(boot_id, page.boot_id);
    store(format_1, page.format);
  }
  return record;
}

std::string_view UnflushedRecord::cache_id() const {
  return load(page_->cache_id);
}

void UnflushedRecord::set_cache_id(std::string_view id) {
  VJBOD_CHECK(id.size() <= cache_id_bytes_max, "a cache id of {} bytes", id.size());
  if (id != cache_id()) store(id, page_->cache_id);
}

uint64_t UnflushedRecord::writes_completed() const {
  return page_->writes_completed;
}

uint64_t UnflushedRecord::unflushed() const {
  return page_->writes_completed - page_->writes_flushed;
}

void UnflushedRecord::write_completed() {
  ++page_->writes_completed;
}

void UnflushedRecord::flushed(uint64_t writes) {
  page_->writes_flushed = std::max(page_->writes_flushed, writes);
}

}  // namespace vjbod::initiator
