// SPDX-License-Identifier: Apache-2.0
// Why an RDMA connection cannot be made or has ended. Each code has a stable name, which the choice
// between iSER and iSCSI, the event list and the status show; the sentence beside it says the rest.
#pragma once

#include <string_view>
#include <system_error>

namespace vjbod::transport {

enum class RdmaErrc {
  no_rdma_device = 1,  // this machine has none for the address
  wrong_device,        // the address leads through another interface than the chosen one
  rdma_link_down,
  no_gid,  // the device has no RoCE address for the local address
  address_unreachable,
  connect_timeout,
  connect_rejected,  // the peer's iSER refused
  peer_has_no_iser,  // nobody listens there, or it is no iSER
  memlock,           // RLIMIT_MEMLOCK is too small
  registration_failed,
  no_resources,  // the device has no queue, key or window left
  login_rejected,
  device_removed,
  address_changed,
  bad_private_data,  // a connect request without, or with a broken, iSER header
  bad_header,        // a message that is no iSER message
  bad_length,        // a message whose parts do not add up
  out_of_state,      // a message that must not come now
  bad_key,           // an invalidation or a key that nobody agreed on
  transfer_failed,   // the device reported an error of a transfer
  no_common_subnet,  // RDMA is for neighbours, and no pair of interfaces is one
};

const std::error_category& rdma_error_category();
inline std::error_code make_error_code(RdmaErrc code) {
  return {static_cast<int>(code), rdma_error_category()};
}

// "no-rdma-device"; empty when the code is none of these.
std::string_view rdma_reason_of(const std::error_code& code);

}  // namespace vjbod::transport

template <>
struct std::is_error_code_enum<vjbod::transport::RdmaErrc> : std::true_type {};
