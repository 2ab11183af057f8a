// SPDX-License-Identifier: Apache-2.0
// What a login has agreed on (RFC 7143 section 13), with the RFC's defaults: the values in force
// before and without negotiation. "our" and "peer" are seen from the end that holds the struct.
#pragma once

#include <chrono>
#include <cstdint>

namespace vjbod::iscsi {

struct NegotiatedParameters {
  bool header_digest = false;
  bool data_digest = false;
  uint32_t max_connections = 1;
  uint16_t target_portal_group_tag = 0;
  bool initial_r2t = true;
  bool immediate_data = true;
  // Each end declares what it can take in one PDU: ours bounds what we receive, the peer's what we
  // send.
  uint32_t our_max_recv_data_segment_length = 8192;
  uint32_t peer_max_recv_data_segment_length = 8192;
  uint32_t max_burst_length = 262144;
  uint32_t first_burst_length = 65536;
  std::chrono::seconds default_time2wait{2};
  std::chrono::seconds default_time2retain{20};
  uint32_t max_outstanding_r2t = 1;
  bool data_pdu_in_order = true;
  bool data_sequence_in_order = true;
  uint32_t error_recovery_level = 0;
  bool discovery = false;  // SessionType=Discovery
  bool rdma_extensions = false;
  // With rdma_extensions. PDUs beyond the command window that the peer can take at once; 0: it did
  // not say.
  uint32_t peer_max_outstanding_unexpected_pdus = 0;
  uint32_t peer_max_ahs_length = 256;
  bool iser_hello_required = false;
};

}  // namespace vjbod::iscsi
