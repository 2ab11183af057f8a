// SPDX-License-Identifier: Apache-2.0
// The answers to text requests in full feature phase, which come down to SendTargets (RFC 7143
// appendix C). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace vjbod::target {

// Text of one request, collected over its continuations, and of its answer.
inline constexpr size_t text_request_bytes_max = 16 * 1024;
inline constexpr size_t text_response_bytes_max = 1024 * 1024;

struct DiscoveryScope {
  bool discovery_session = false;
  std::string_view own_target;       // of a normal session
  std::vector<std::string> targets;  // all that the asker may log in to
  std::string_view reached_address;  // "10.0.0.2:3260": the one this connection came to
  std::vector<std::string> other_portals;
  uint16_t portal_group_tag = 1;
};

// The whole answer, as key=value pairs each ended by NUL, in the order asked. An error is a
// violation of the key=value grammar, to be answered by a Reject.
Result<std::string> answer_text(ConstBytes request, const DiscoveryScope& scope);

// Whether an address may be told to an initiator that reached us at `reached`: loopback is told on
// loopback only, and link-local never to anybody who came from elsewhere. Both are "address:port".
bool worth_advertising(std::string_view portal, std::string_view reached);

}  // namespace vjbod::target
