// SPDX-License-Identifier: Apache-2.0
// Binary values in text: 0x and hexadecimal digits, or 0b and base64 (RFC 7143 section 6.1).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace vjbod::iscsi {

// The bytes, at most `bytes_max` of them: the length is checked before anything is decoded. An odd
// number of hexadecimal digits, base64 with a wrong length, wrong padding or non-zero left-over
// bits, any other character, and no digit at all are bad_value.
Result<std::vector<std::byte>> decode_binary_value(std::string_view value, size_t bytes_max);

std::string encode_hex(ConstBytes bytes);     // "0x" and lower-case digits
std::string encode_base64(ConstBytes bytes);  // "0b" and padded base64

}  // namespace vjbod::iscsi
