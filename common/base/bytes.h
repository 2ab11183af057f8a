// SPDX-License-Identifier: Apache-2.0
// Big-endian numbers in byte spans, and a reader and a writer with a sticky error: check once, at
// the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace vjbod {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

inline ConstBytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The caller guarantees that `width` bytes are there (1 to 8).
template <typename T>
constexpr T load_big_endian(const std::byte* from, size_t width = sizeof(T)) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value = value << 8 | std::to_integer<uint64_t>(from[i]);
  return static_cast<T>(value);
}
template <typename T>
constexpr void store_big_endian(std::byte* to, T value, size_t width = sizeof(T)) {
  auto rest = static_cast<uint64_t>(value);
  for (size_t i = width; i-- > 0; rest >>= 8) to[i] = static_cast<std::byte>(rest);
}

// Reads from a span. After the first read beyond the end, ok() is false and every read gives zero.
class ByteReader {
 public:
  explicit ByteReader(ConstBytes bytes) : rest_(bytes) {}

  uint8_t u8() { return number<uint8_t>(1); }
  uint16_t u16() { return number<uint16_t>(2); }
  uint32_t u24() { return number<uint32_t>(3); }
  uint32_t u32() { return number<uint32_t>(4); }
  uint64_t u48() { return number<uint64_t>(6); }
  uint64_t u64() { return number<uint64_t>(8); }
  ConstBytes bytes(size_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    ConstBytes taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  void skip(size_t count) { bytes(count); }
  size_t remaining() const { return rest_.size(); }
  bool ok() const { return ok_; }

 private:
  template <typename T>
  T number(size_t width) {
    ConstBytes taken = bytes(width);
    return taken.size() == width ? load_big_endian<T>(taken.data(), width) : T{};
  }

  ConstBytes rest_;
  bool ok_ = true;
};

// Writes into a span. After the first write beyond the end, ok() is false and every write does
// nothing.
class ByteWriter {
 public:
  explicit ByteWriter(Bytes bytes) : start_(bytes) {}

  ByteWriter& u8(uint8_t value) { return number(value, 1); }
  ByteWriter& u16(uint16_t value) { return number(value, 2); }
  ByteWriter& u24(uint32_t value) { return number(value, 3); }
  ByteWriter& u32(uint32_t value) { return number(value, 4); }
  ByteWriter& u48(uint64_t value) { return number(value, 6); }
  ByteWriter& u64(uint64_t value) { return number(value, 8); }
  ByteWriter& bytes(ConstBytes from) {
    if (take(from.size()) && !from.empty()) std::memcpy(at(from.size()), from.data(), from.size());
    return *this;
  }
  ByteWriter& zeros(size_t count) {
    if (take(count)) std::fill_n(at(count), count, std::byte{0});
    return *this;
  }
  size_t written() const { return used_; }
  Bytes result() const { return start_.first(used_); }
  bool ok() const { return ok_; }

 private:
  bool take(size_t count) {
    if (!ok_ || count > start_.size() - used_) {
      ok_ = false;
      return false;
    }
    used_ += count;
    return true;
  }
  std::byte* at(size_t count) { return start_.data() + (used_ - count); }
  ByteWriter& number(uint64_t value, size_t width) {
    if (take(width)) store_big_endian(at(width), value, width);
    return *this;
  }

  Bytes start_;
  size_t used_ = 0;
  bool ok_ = true;
};

}  // namespace vjbod
