// SPDX-License-Identifier: Apache-2.0
// The negotiation of operational keys (RFC 7143 sections 6.2 and 13), one engine for both ends.
// Feed it every operational pair that comes; it gives the pairs to send back and, at the end, what
// was agreed. Pure and synchronous; owned by one login machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/iscsi/keys.h"
#include "common/iscsi/parameters.h"
#include "common/iscsi/text.h"

namespace vjbod::iscsi {

enum class DigestWish : uint8_t {
  none,     // only None is acceptable
  prefer,   // CRC32C if the other end can
  require,  // no session without CRC32C
};

// What this end wants and can take. Lengths in bytes.
struct NegotiationWishes {
  DigestWish header_digest = DigestWish::none;
  DigestWish data_digest = DigestWish::none;
  bool rdma_extensions = false;
  bool initial_r2t = true;  // true: the outcome will be Yes
  bool immediate_data = true;
  uint32_t max_recv_data_segment_length = 256 * 1024;
  uint32_t max_burst_length = 1024 * 1024;
  uint32_t first_burst_length = 64 * 1024;
  uint32_t max_outstanding_r2t = 1;
  uint32_t time2wait_s = 0;
  uint32_t time2retain_s = 0;  // no task outlives its connection at ErrorRecoveryLevel 0
};

class Negotiation {
 public:
  Negotiation(Side side, const NegotiationWishes& wishes) : side_(side), wishes_(wishes) {}

  // SessionType is known first: it makes keys irrelevant.
  void set_discovery() { parameters_.discovery = true; }

  // The pairs that this end brings up by itself: all of an initiator's offers, or what a target
  // declares. Once per login.
  void offer(TextBuilder& out);

  // Takes one operational pair of the peer: an answer to ours, or an offer or a declaration, whose
  // answer (if it has one) is added to `answers`. Also answers keys that nobody knows. An error
  // ends the login: bad_value, negotiation, or protocol for a key that comes twice or from the
  // wrong end. Keys that are not operational are the caller's to take first.
  Status receive(const TextPair& pair, TextBuilder& answers);

  // No more pairs: what holds from here on, or why these keys are no agreement.
  Result<NegotiatedParameters> finish() const;

 private:
  enum class Progress : uint8_t { untouched, offered, settled };

  Status receive_answer(const KeyInfo& key, std::string_view value);
  Status receive_declaration(const KeyInfo& key, std::string_view value);
  Status receive_offer(const KeyInfo& key, std::string_view value, TextBuilder& answers);
  bool irrelevant(const KeyInfo& key) const;
  uint64_t wished_number(const KeyInfo& key) const;
  bool wished_boolean(const KeyInfo& key) const;
  std::string_view wished_list(const KeyInfo& key) const;
  void settle_number(const KeyInfo& key, uint64_t value);
  void settle_boolean(const KeyInfo& key, bool value);
  void settle_choice(const KeyInfo& key, std::string_view value);

  Side side_;
  NegotiationWishes wishes_;
  NegotiatedParameters parameters_;
  std::array<Progress, key_count> progress_{};
};

}  // namespace vjbod::iscsi
