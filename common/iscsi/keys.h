// SPDX-License-Identifier: Apache-2.0
// The one table of text keys: RFC 7143 sections 12 and 13, RFC 7145 section 6. What a key means,
// who may send it, when, and how two offers become one value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace vjbod::iscsi {

enum class Side : uint8_t { initiator, target };

enum class Key : uint8_t {
  // Who is talking to whom.
  session_type,
  initiator_name,
  initiator_alias,
  target_name,
  target_alias,
  target_address,
  target_portal_group_tag,
  send_targets,
  // RFC 7143 section 12
  auth_method,
  chap_a,
  chap_i,
  chap_c,
  chap_n,
  chap_r,
  // RFC 7143 section 13
  header_digest,
  data_digest,
  max_connections,
  initial_r2t,
  immediate_data,
  max_recv_data_segment_length,
  max_burst_length,
  first_burst_length,
  default_time2wait,
  default_time2retain,
  max_outstanding_r2t,
  data_pdu_in_order,
  data_sequence_in_order,
  error_recovery_level,
  task_reporting,
  iscsi_protocol_level,
  // RFC 3720 keys that RFC 7143 section 13.25 made obsolete
  if_marker,
  of_marker,
  if_mark_int,
  of_mark_int,
  // RFC 7145 section 6
  rdma_extensions,
  target_recv_data_segment_length,
  initiator_recv_data_segment_length,
  max_outstanding_unexpected_pdus,
  max_ahs_length,
  tagged_buffer_for_solicited_data_only,
  iser_hello_required,
};
inline constexpr size_t key_count = static_cast<size_t>(Key::iser_hello_required) + 1;

enum class KeyType : uint8_t {
  text,     // any value; the key's owner checks it
  number,   // within [low, high]
  boolean,  // Yes or No
  list,     // comma separated; one item is chosen
};

// How the answer follows from the offer and our own value.
enum class KeyResult : uint8_t {
  declared,  // no answer
  boolean_and,
  boolean_or,
  minimum,
  maximum,
  first_in_list,  // the first item that the answering end can take
  always_no,      // obsolete markers
  always_reject,
};

enum class KeyGroup : uint8_t {
  identity,        // the login machines' own
  authentication,  // CHAP's
  operational,     // the negotiation's
};

enum class KeySender : uint8_t { initiator, target, both };

// When a key may come. "leading" and "initialize" differ only for further connections of a session,
// of which there are none here.
enum class KeyPhase : uint8_t {
  leading,       // LO: login of the leading connection
  initialize,    // IO: login of any connection
  full_feature,  // FFPO
  any,           // ALL
};

enum class KeyRelevance : uint8_t {
  always,
  normal_session,  // irrelevant when SessionType=Discovery
  rdma,            // irrelevant when RDMAExtensions=No
};

struct KeyInfo {
  Key key;
  std::string_view name;
  KeyGroup group;
  KeyType type;
  KeyResult result;
  KeySender sender;
  KeyPhase phase;
  KeyRelevance relevance;
  // Numbers: the range (and see in_range).
  uint64_t low = 0, high = 0;
  // The RFC's value in force without negotiation: the number, or 0 and 1 for No and Yes.
  uint64_t default_value = 0;
  std::string_view default_text{};
};

// In the order of the enum: key_table()[index of key].
std::span<const KeyInfo> key_table();
const KeyInfo& info_of(Key key);
// By the exact name (keys are case-sensitive); null for a key that is not in the table.
const KeyInfo* find_key(std::string_view name);
bool may_send(const KeyInfo& key, Side side);
// Whether the number may stand for the key: within the range, or the zero of the RFC 7145 keys
// that read "0 or 2 to ...".
bool in_range(const KeyInfo& key, uint64_t value);

// The values with a meaning of their own (RFC 7143 section 6.2). Illegal as offers.
inline constexpr std::string_view value_reject = "Reject";
inline constexpr std::string_view value_irrelevant = "Irrelevant";
inline constexpr std::string_view value_not_understood = "NotUnderstood";
bool is_reserved_answer(std::string_view value);

}  // namespace vjbod::iscsi
