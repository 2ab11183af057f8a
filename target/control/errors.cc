// SPDX-License-Identifier: Apache-2.0
#include "target/control/errors.h"

#include "target/backstore/errc.h"

namespace vjbod::target {

namespace {

rpc::Errc kind_of(backstore::Errc code) {
  switch (code) {
    case backstore::Errc::bad_config:
    case backstore::Errc::size: return rpc::Errc::usage;
    case backstore::Errc::not_found: return rpc::Errc::not_found;
    case backstore::Errc::already_exists: return rpc::Errc::already_exists;
    case backstore::Errc::in_use: return rpc::Errc::busy;
    case backstore::Errc::permission: return rpc::Errc::permission;
    case backstore::Errc::no_space: return rpc::Errc::no_space;
    case backstore::Errc::wrong_type:
    case backstore::Errc::unsupported:
    case backstore::Errc::io_error: return rpc::Errc::other;
  }
  return rpc::Errc::other;
}

}  // namespace

Error control_error(Error error) {
  if (error.code.category() == backstore::error_category())
    error.code = kind_of(static_cast<backstore::Errc>(error.code.value()));
  return error;
}

}  // namespace vjbod::target
