// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/refusal.h"

#include "common/iscsi/errc.h"
#include "common/transport/rdma_errc.h"
#include "initiator/disk/geometry.h"

namespace vjbod::initiator {

rpc::Errc refusal_kind(const DiskStatus& status) {
  if (status.state == DiskState::stale) return rpc::Errc::identity_mismatch;
  if (!status.last_error) return rpc::Errc::other;
  const std::error_code& code = status.last_error->code;
  if (!transport::rdma_reason_of(code).empty()) return rpc::Errc::iser_unavailable;
  if (code == iscsi::Errc::authentication) return rpc::Errc::authentication;
  if (code == iscsi::Errc::target_not_found || code == DiskErrc::not_a_disk)
    return rpc::Errc::not_found;
  if (code == DiskErrc::attached_twice) return rpc::Errc::already_exists;
  if (code == iscsi::Errc::not_allowed) return rpc::Errc::permission;
  if (code == iscsi::Errc::unsupported_version) return rpc::Errc::version;
  return rpc::Errc::other;
}

}  // namespace vjbod::initiator
