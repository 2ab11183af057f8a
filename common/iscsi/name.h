// SPDX-License-Identifier: Apache-2.0
// iSCSI names by grammar (RFC 7143 section 4.2.7): iqn., eui. and naa. A name that passed here is
// safe to store, to print and to compare byte by byte.
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"

namespace vjbod::iscsi {

inline constexpr size_t name_bytes_max = 223;

// The name in lower case, as names are compared (RFC 3722), or Errc::bad_name and what is wrong
// with it. Allowed is what RFC 3722 leaves of ASCII: letters, digits, '-', '.' and ':'; what it
// leaves beyond ASCII is not supported. Two dots in a row are refused: no use, and trouble in a
// path. The text of an error shows the name only as far as it can be printed.
Result<std::string> normalised_name(std::string_view name);

}  // namespace vjbod::iscsi
