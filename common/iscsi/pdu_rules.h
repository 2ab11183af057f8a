// SPDX-License-Identifier: Apache-2.0
// Whether a decoded header is one that the RFC allows, seen alone: without knowing the session, its
// negotiated values or its tasks. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/iscsi/pdu.h"

namespace vjbod::iscsi {

// Nothing if the PDU is fine, else a sentence that names the field and what is wrong with it, for
// the log and for people; what it leads to (Reject with invalid_pdu_field, a login status, closing)
// is the caller's to decide. The lengths are those that the header announces.
// Values that the RFC leaves open for growth and that have an answer of their own are let through:
// an unknown task management function, asynchronous event or reject reason.
std::optional<std::string> invalid(const Pdu& pdu, uint32_t data_segment_length, size_t ahs_bytes);

}  // namespace vjbod::iscsi
