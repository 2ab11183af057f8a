// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/errc.h"

#include <cerrno>
#include <string>

namespace vjbod::backstore {

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "backstore"; }
  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::bad_config: return "bad-config";
      case Errc::not_found: return "not-found";
      case Errc::already_exists: return "already-exists";
      case Errc::in_use: return "in-use";
      case Errc::permission: return "permission";
      case Errc::no_space: return "no-space";
      case Errc::wrong_type: return "wrong-type";
      case Errc::size: return "size";
      case Errc::unsupported: return "unsupported";
      case Errc::io_error: return "io-error";
    }
    return "unknown";
  }
};

}  // namespace

const std::error_category& error_category() {
  static const Category category;
  return category;
}

Errc errc_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENXIO:
    case ENODEV: return Errc::not_found;
    case EEXIST: return Errc::already_exists;
    case EBUSY:
    case EWOULDBLOCK:
    case ETXTBSY: return Errc::in_use;
    case EACCES:
    case EPERM:
    case EROFS: return Errc::permission;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM: return Errc::no_space;
    case EFBIG: return Errc::size;
    case ENOTDIR:
    case EISDIR:
    case ELOOP: return Errc::wrong_type;
    case EOPNOTSUPP:
    case ENOSYS: return Errc::unsupported;
    default: return Errc::io_error;
  }
}

}  // namespace vjbod::backstore
