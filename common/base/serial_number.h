// SPDX-License-Identifier: Apache-2.0
// 32-bit serial numbers with RFC 1982 arithmetic, as RFC 7143 section 4.2.2.1 asks for CmdSN,
// StatSN and DataSN.
#pragma once

#include <cstdint>

namespace vjbod {

// A plain value. Comparison is "is a ahead of b within half the number circle", so it has no total
// order on purpose.
struct SerialNumber {
  uint32_t value = 0;

  constexpr SerialNumber() = default;
  constexpr explicit SerialNumber(uint32_t v) : value(v) {}

  constexpr SerialNumber& operator++() {
    ++value;
    return *this;
  }
  constexpr SerialNumber operator+(uint32_t n) const { return SerialNumber(value + n); }
  constexpr SerialNumber operator-(uint32_t n) const { return SerialNumber(value - n); }
  // How far `other` is behind this, as a signed distance.
  constexpr int32_t distance_from(SerialNumber other) const {
    return static_cast<int32_t>(value - other.value);
  }
  constexpr bool operator==(const SerialNumber&) const = default;
  friend constexpr bool operator<(SerialNumber a, SerialNumber b) { return a.distance_from(b) < 0; }
  friend constexpr bool operator>(SerialNumber a, SerialNumber b) { return b < a; }
  friend constexpr bool operator<=(SerialNumber a, SerialNumber b) { return !(b < a); }
  friend constexpr bool operator>=(SerialNumber a, SerialNumber b) { return !(a < b); }
};

}  // namespace vjbod
