// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/pdu_rules.h"

#include <limits>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "common/iscsi/pdu_codec.h"

namespace vjbod::iscsi {

namespace {

using Reason = std::optional<std::string>;

Reason because(std::string_view reason) {
  return std::string(reason);
}

bool beyond_32_bits(uint32_t offset, uint32_t length) {
  return offset > std::numeric_limits<uint32_t>::max() - length;
}

// RFC 7143 sections 11.12 and 11.13: stage 2 does not exist, and the way leads forward.
Reason wrong_stages(bool transit, bool continues, Stage current, Stage next) {
  constexpr auto no_stage = static_cast<Stage>(2);
  if (transit && continues) return because("the T and C bits are both set");
  if (current == no_stage || current == Stage::full_feature) {
    return fmt::format("CSG {} is not a stage of a login", static_cast<unsigned>(current));
  }
  if (!transit) return {};
  if (next == no_stage) return because("NSG 2 is not a stage");
  if (next <= current) {
    return fmt::format("NSG {} does not come after CSG {}", static_cast<unsigned>(next),
                       static_cast<unsigned>(current));
  }
  return {};
}

// --- sent by the initiator ---

Reason wrong(const NopOut& pdu, uint32_t) {
  if (pdu.itt == reserved_tag && !pdu.immediate) {
    return because("without an Initiator Task Tag it must be immediate");  // section 11.18
  }
  return {};
}

Reason wrong(const ScsiCommand& pdu, uint32_t data_segment_length) {
  // Section 11.3.1.
  if (pdu.attribute > TaskAttribute::aca) {
    return fmt::format("task attribute {} does not exist", static_cast<unsigned>(pdu.attribute));
  }
  if (!pdu.final && !pdu.write) return because("the F and W bits are both 0");
  if (!pdu.read && !pdu.write && pdu.expected_data_transfer_length != 0) {
    return fmt::format("Expected Data Transfer Length is {} with the R and W bits both 0",
                       pdu.expected_data_transfer_length);
  }
  if (data_segment_length > 0 && !pdu.write) {
    return fmt::format("{} bytes of immediate data come with the W bit 0", data_segment_length);
  }
  if (data_segment_length > pdu.expected_data_transfer_length) {
    return fmt::format("{} bytes of immediate data exceed the Expected Data Transfer Length of {}",
                       data_segment_length, pdu.expected_data_transfer_length);
  }
  return {};
}

Reason wrong(const TaskManagementRequest&, uint32_t) {
  return {};
}

Reason wrong(const LoginRequest& pdu, uint32_t) {
  if (pdu.version_min > pdu.version_max) {
    return fmt::format("Version-min {} is greater than Version-max {}", pdu.version_min,
                       pdu.version_max);
  }
  return wrong_stages(pdu.transit, pdu.continues, pdu.current_stage, pdu.next_stage);
}

Reason wrong(const TextRequest& pdu, uint32_t) {
  if (pdu.final && pdu.continues) return because("the F and C bits are both set");
  return {};
}

Reason wrong(const DataOut& pdu, uint32_t data_segment_length) {
  if (beyond_32_bits(pdu.buffer_offset, data_segment_length)) {
    return fmt::format("Buffer Offset {} and {} bytes of data go beyond 32 bits", pdu.buffer_offset,
                       data_segment_length);
  }
  return {};
}

Reason wrong(const LogoutRequest& pdu, uint32_t) {
  if (pdu.reason > LogoutReason::remove_for_recovery) {
    return fmt::format("logout reason {} does not exist", static_cast<unsigned>(pdu.reason));
  }
  return {};
}

Reason wrong(const SnackRequest& pdu, uint32_t) {
  constexpr uint8_t type_max = 3;  // section 11.16.1
  if (pdu.type > type_max) return fmt::format("SNACK type {} does not exist", pdu.type);
  return {};
}

// --- sent by the target ---

Reason wrong(const NopIn&, uint32_t) {
  return {};
}

Reason wrong(const ScsiResponse& pdu, uint32_t) {
  if (pdu.overflow && pdu.underflow) return because("the O and U bits are both set");
  if (pdu.bidirectional_read_overflow && pdu.bidirectional_read_underflow) {
    return because("the o and u bits are both set");
  }
  constexpr uint8_t target_failure = 0x01, first_vendor_response = 0x80;  // section 11.4.3
  if (pdu.response > target_failure && pdu.response < first_vendor_response) {
    return fmt::format("response 0x{:02x} does not exist", pdu.response);
  }
  return {};
}

Reason wrong(const TaskManagementResponse& pdu, uint32_t) {
  if (pdu.result > TaskManagementResult::authorization_failed &&
      pdu.result != TaskManagementResult::rejected) {
    return fmt::format("response {} does not exist", static_cast<unsigned>(pdu.result));
  }
  return {};
}

Reason wrong(const LoginResponse& pdu, uint32_t) {
  if (pdu.status_class != 0) return {};  // the rest has no meaning then, section 11.13.5
  return wrong_stages(pdu.transit, pdu.continues, pdu.current_stage, pdu.next_stage);
}

Reason wrong(const TextResponse& pdu, uint32_t) {
  if (pdu.final && pdu.continues) return because("the F and C bits are both set");
  if (!pdu.final && pdu.ttt == reserved_tag) {
    // Section 11.11.4: the initiator could not go on.
    return because("more is to come, but there is no Target Transfer Tag to ask for it");
  }
  return {};
}

Reason wrong(const DataIn& pdu, uint32_t data_segment_length) {
  // Section 11.7.1.
  if (pdu.has_status && !pdu.final) return because("the S bit is set without the F bit");
  if (pdu.overflow && pdu.underflow) return because("the O and U bits are both set");
  if (beyond_32_bits(pdu.buffer_offset, data_segment_length)) {
    return fmt::format("Buffer Offset {} and {} bytes of data go beyond 32 bits", pdu.buffer_offset,
                       data_segment_length);
  }
  return {};
}

Reason wrong(const LogoutResponse& pdu, uint32_t) {
  if (pdu.result > LogoutResult::cleanup_failed) {
    return fmt::format("response {} does not exist", static_cast<unsigned>(pdu.result));
  }
  return {};
}

Reason wrong(const R2t& pdu, uint32_t) {
  // Section 11.8.
  if (pdu.ttt == reserved_tag) return because("the Target Transfer Tag is the reserved one");
  if (pdu.desired_data_transfer_length == 0) {
    return because("the Desired Data Transfer Length is 0");
  }
  if (beyond_32_bits(pdu.buffer_offset, pdu.desired_data_transfer_length)) {
    return fmt::format("Buffer Offset {} and Desired Data Transfer Length {} go beyond 32 bits",
                       pdu.buffer_offset, pdu.desired_data_transfer_length);
  }
  return {};
}

Reason wrong(const AsyncMessage&, uint32_t) {
  return {};
}

Reason wrong(const Reject&, uint32_t) {
  return {};
}

// A task needs a tag that can be told from none. NOPs may go without; Async Message and Reject have
// no field for it.
template <typename T>
constexpr bool needs_itt = requires(T pdu) {
  pdu.itt;
}
&&!std::is_same_v<T, NopOut> && !std::is_same_v<T, NopIn> && !std::is_same_v<T, SnackRequest>;

template <typename T>
Reason wrong_in_general(const T& pdu, uint32_t data_segment_length, size_t ahs_bytes) {
  if (ahs_bytes > 0 && !std::is_same_v<T, ScsiCommand>) {  // section 11.2.1.5
    return fmt::format("it has {} bytes of additional header segments; only a SCSI Command may",
                       ahs_bytes);
  }
  if constexpr (needs_itt<T>) {
    if (pdu.itt == reserved_tag) return because("the Initiator Task Tag is the reserved one");
  }
  if constexpr (!requires { pdu.data_segment_length; }) {
    if (data_segment_length > 0) {
      return fmt::format("it has {} bytes of data and takes none", data_segment_length);
    }
  }
  return wrong(pdu, data_segment_length);
}

}  // namespace

std::optional<std::string> invalid(const Pdu& pdu, uint32_t data_segment_length, size_t ahs_bytes) {
  Reason reason = std::visit(
      [&](const auto& p) { return wrong_in_general(p, data_segment_length, ahs_bytes); }, pdu);
  if (reason) reason = fmt::format("{}: {}", name_of(opcode_of(pdu)), *reason);
  return reason;
}

}  // namespace vjbod::iscsi
