// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/keys.h"

#include <algorithm>
#include <array>

namespace vjbod::iscsi {

namespace {

constexpr uint64_t segment_max = 0xffffff;
constexpr uint64_t word_max = 0xffffffff;

using enum KeyGroup;
using enum KeyType;
using enum KeyResult;
using enum KeyPhase;
using enum KeyRelevance;
constexpr KeySender from_initiator = KeySender::initiator;
constexpr KeySender from_target = KeySender::target;
constexpr KeySender from_both = KeySender::both;

// clang-format off
constexpr std::array<KeyInfo, key_count> table = {{
  // key, name, group, type, result, sender, phase, relevance, low, high, default
  {Key::session_type, "SessionType", identity, text, declared, from_initiator, leading, always, 0, 0, 0, "Normal"},
  {Key::initiator_name, "InitiatorName", identity, text, declared, from_initiator, initialize, always},
  {Key::initiator_alias, "InitiatorAlias", identity, text, declared, from_initiator, any, always},
  {Key::target_name, "TargetName", identity, text, declared, from_both, initialize, always},
  {Key::target_alias, "TargetAlias", identity, text, declared, from_target, any, always},
  {Key::target_address, "TargetAddress", identity, text, declared, from_target, any, always},
  {Key::target_portal_group_tag, "TargetPortalGroupTag", identity, number, declared, from_target, initialize, always, 0, 0xffff, 0},
  {Key::send_targets, "SendTargets", identity, text, declared, from_initiator, full_feature, always},

  {Key::auth_method, "AuthMethod", authentication, list, first_in_list, from_both, initialize, always, 0, 0, 0, "None"},
  {Key::chap_a, "CHAP_A", authentication, text, declared, from_both, initialize, always},
  {Key::chap_i, "CHAP_I", authentication, text, declared, from_both, initialize, always},
  {Key::chap_c, "CHAP_C", authentication, text, declared, from_both, initialize, always},
  {Key::chap_n, "CHAP_N", authentication, text, declared, from_both, initialize, always},
  {Key::chap_r, "CHAP_R", authentication, text, declared, from_both, initialize, always},

  {Key::header_digest, "HeaderDigest", operational, list, first_in_list, from_both, initialize, always, 0, 0, 0, "None"},
  {Key::data_digest, "DataDigest", operational, list, first_in_list, from_both, initialize, always, 0, 0, 0, "None"},
  {Key::max_connections, "MaxConnections", operational, number, minimum, from_both, leading, normal_session, 1, 65535, 1},
  {Key::initial_r2t, "InitialR2T", operational, boolean, boolean_or, from_both, leading, normal_session, 0, 1, 1},
  {Key::immediate_data, "ImmediateData", operational, boolean, boolean_and, from_both, leading, normal_session, 0, 1, 1},
  {Key::max_recv_data_segment_length, "MaxRecvDataSegmentLength", operational, number, declared, from_both, any, always, 512, segment_max, 8192},
  {Key::max_burst_length, "MaxBurstLength", operational, number, minimum, from_both, leading, normal_session, 512, segment_max, 262144},
  {Key::first_burst_length, "FirstBurstLength", operational, number, minimum, from_both, leading, normal_session, 512, segment_max, 65536},
  {Key::default_time2wait, "DefaultTime2Wait", operational, number, maximum, from_both, leading, always, 0, 3600, 2},
  {Key::default_time2retain, "DefaultTime2Retain", operational, number, minimum, from_both, leading, always, 0, 3600, 20},
  {Key::max_outstanding_r2t, "MaxOutstandingR2T", operational, number, minimum, from_both, leading, normal_session, 1, 65535, 1},
  {Key::data_pdu_in_order, "DataPDUInOrder", operational, boolean, boolean_or, from_both, leading, normal_session, 0, 1, 1},
  {Key::data_sequence_in_order, "DataSequenceInOrder", operational, boolean, boolean_or, from_both, leading, normal_session, 0, 1, 1},
  {Key::error_recovery_level, "ErrorRecoveryLevel", operational, number, minimum, from_both, leading, always, 0, 2, 0},
  {Key::task_reporting, "TaskReporting", operational, list, first_in_list, from_both, leading, normal_session, 0, 0, 0, "RFC3720"},
  {Key::iscsi_protocol_level, "iSCSIProtocolLevel", operational, number, minimum, from_both, leading, normal_session, 0, 31, 1},

  {Key::if_marker, "IFMarker", operational, boolean, always_no, from_both, initialize, always},
  {Key::of_marker, "OFMarker", operational, boolean, always_no, from_both, initialize, always},
  {Key::if_mark_int, "IFMarkInt", operational, text, always_reject, from_both, initialize, always},
  {Key::of_mark_int, "OFMarkInt", operational, text, always_reject, from_both, initialize, always},

  {Key::rdma_extensions, "RDMAExtensions", operational, boolean, boolean_and, from_both, leading, normal_session, 0, 1, 0},
  {Key::target_recv_data_segment_length, "TargetRecvDataSegmentLength", operational, number, minimum, from_both, initialize, rdma, 512, segment_max, 8192},
  {Key::initiator_recv_data_segment_length, "InitiatorRecvDataSegmentLength", operational, number, minimum, from_both, initialize, rdma, 512, segment_max, 8192},
  {Key::max_outstanding_unexpected_pdus, "MaxOutstandingUnexpectedPDUs", operational, number, declared, from_both, leading, rdma, 2, word_max, 0},
  {Key::max_ahs_length, "MaxAHSLength", operational, number, declared, from_both, leading, rdma, 2, word_max, 256},
  {Key::tagged_buffer_for_solicited_data_only, "TaggedBufferForSolicitedDataOnly", operational, boolean, declared, from_initiator, leading, rdma, 0, 1, 0},
  {Key::iser_hello_required, "iSERHelloRequired", operational, boolean, declared, from_initiator, leading, rdma, 0, 1, 0},
}};
// clang-format on

constexpr bool in_enum_order() {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].key != static_cast<Key>(i)) return false;
  }
  return true;
}
static_assert(in_enum_order());

}  // namespace

std::span<const KeyInfo> key_table() {
  return table;
}

const KeyInfo& info_of(Key key) {
  return table[static_cast<size_t>(key)];
}

const KeyInfo* find_key(std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const KeyInfo& key) { return key.name == name; });
  return found == table.end() ? nullptr : &*found;
}

bool may_send(const KeyInfo& key, Side side) {
  return key.sender == KeySender::both ||
         (key.sender == KeySender::initiator) == (side == Side::initiator);
}

bool in_range(const KeyInfo& key, uint64_t value) {
  const bool zero_is_legal = key.relevance == KeyRelevance::rdma && key.result == declared;
  return (value >= key.low && value <= key.high) || (value == 0 && zero_is_legal);
}

bool is_reserved_answer(std::string_view value) {
  return value == value_reject || value == value_irrelevant || value == value_not_understood;
}

}  // namespace vjbod::iscsi
