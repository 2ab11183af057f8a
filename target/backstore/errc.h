// SPDX-License-Identifier: Apache-2.0
// What can go wrong with opening, growing, making or deleting a backstore. Errors of single I/Os
// are errno values in the system category (backstore.h).
#pragma once

#include <system_error>

namespace vjbod::backstore {

enum class Errc {
  bad_config = 1,  // the configuration contradicts itself; nothing was opened
  not_found,
  already_exists,
  in_use,  // somebody else has the file or device open
  permission,
  no_space,
  wrong_type,   // the path is there but is not what the kind asks for
  size,         // too small, not a multiple of the block, or would shrink
  unsupported,  // the file system, device or kernel cannot do it
  io_error,
};

const std::error_category& error_category();
inline std::error_code make_error_code(Errc code) {
  return {static_cast<int>(code), error_category()};
}

// The code that tells best what an errno of open, fallocate, mmap… means here.
Errc errc_of(int error_number);

}  // namespace vjbod::backstore

template <>
struct std::is_error_code_enum<vjbod::backstore::Errc> : std::true_type {};
