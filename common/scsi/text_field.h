// SPDX-License-Identifier: Apache-2.0
// ASCII fields of fixed length, left-aligned and padded with spaces (SPC-4 4.4.1).
#pragma once

#include <string>
#include <string_view>

#include "common/base/bytes.h"

namespace vjbod::scsi {

// Cuts what is too long.
void put_text(std::string_view text, size_t width, ByteWriter& out);

// Without the padding. What is not printable ASCII becomes '?': the text is shown to people and
// compared, and its sender is not trusted.
std::string take_text(ConstBytes field);

}  // namespace vjbod::scsi
