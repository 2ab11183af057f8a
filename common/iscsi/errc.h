// SPDX-License-Identifier: Apache-2.0
// What can be wrong with what an iSCSI peer sent. Stable codes; the sentence beside a code says the
// rest.
#pragma once

#include <system_error>

namespace vjbod::iscsi {

enum class Errc {
  unknown_opcode = 1,
  wrong_direction,  // a target PDU at a target, or the other way round
  bad_field,        // a header field outside what the RFC allows
  data_too_long,    // data segment beyond the receiver's declared limit
  ahs_too_long,
  header_digest,
  data_digest,
  bad_text,             // key=value text that cannot be split
  text_too_long,        // keys over several PDUs beyond the limit
  bad_value,            // a value outside the key's grammar or range
  bad_name,             // not an iSCSI name
  negotiation,          // keys that do not lead to an agreement
  authentication,       // CHAP failed, was skipped, reflected or repeated
  bad_stage,            // a login stage or transition that the RFC does not allow
  login_refused,        // the peer answered a login with an error status
  target_not_found,     // that status says: no target of this name (any more)
  not_allowed,          // that status says: this initiator may not use the target
  unsupported_version,  // that status says: another iSCSI version
  protocol,             // any other PDU that must not come now
  bad_sequence_number,
  connection_lost,  // closed or reset by the peer or the network
  timed_out,
  closed_locally,  // by our own decision: logout, detach, reinstatement, shutdown
};

const std::error_category& error_category();
inline std::error_code make_error_code(Errc code) {
  return {static_cast<int>(code), error_category()};
}

}  // namespace vjbod::iscsi

template <>
struct std::is_error_code_enum<vjbod::iscsi::Errc> : std::true_type {};
