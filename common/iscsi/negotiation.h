// SPDX-License-Identifier: Apache-2.0
// The negotiation of operational keys (RFC 7143 sections 6.2 and 13), one engine for both ends.
// Feed it every operational pair that comes; it gives the pairs to send back and, at the end, what
// was agreed. Pure and synchronous; owned by one login machine.
#pragma once

#include <array>
#include <cstdint>
#include <span>
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
  bool rdma_extensions = false;  // the transport is iSER: no normal session without it
  bool initial_r2t = true;       // true: the outcome will be Yes
  bool immediate_data = true;
  uint32_t max_recv_data_segment_length = 256 * 1024;
  // With rdma_extensions: what our posted receives leave beyond the command window.
  uint32_t max_outstanding_unexpected_pdus = 32;
  uint32_t max_ahs_length = 256;
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

  // Takes the peer's operational pairs of one text: answers to our offers, and offers and
  // declarations, whose answers are added to `answers`. Keys that nobody knows are answered as
  // well. An error ends the login: bad_value, or protocol for a key that comes twice in the login,
  // from the wrong end, or with an answer that our offer does not allow. Keys of other groups are
  // the caller's to take out first.
  Status receive(std::span<const TextPair> pairs, TextBuilder& answers);

  // No more pairs: what holds from here on, or why these keys are no agreement.
  Result<NegotiatedParameters> finish() const;

 private:
  enum class Progress : uint8_t { untouched, offered, settled };

  Status receive_one(const KeyInfo& key, std::string_view value, TextBuilder& answers);
  Status receive_answer(const KeyInfo& key, std::string_view value);
  Status receive_declaration(const KeyInfo& key, std::string_view value);
  // The answer, as it goes onto the wire.
  std::string answer_to(const KeyInfo& key, std::string_view value);
  bool irrelevant(const KeyInfo& key) const;
  uint64_t wished_number(Key key) const;
  bool wished_boolean(Key key) const;
  std::string_view wished_list(Key key) const;
  void settle(Key key, uint64_t number_or_boolean);
  void settle_choice(Key key, std::string_view choice);
  void propose(Key key, TextBuilder& out);

  Side side_;
  NegotiationWishes wishes_;
  NegotiatedParameters parameters_;
  std::array<Progress, key_count> progress_{};
};

}  // namespace vjbod::iscsi
