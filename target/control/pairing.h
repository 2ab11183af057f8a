// SPDX-License-Identifier: Apache-2.0
// The secrets of pairing tokens that are out: given to a person, waiting to be presented once by a
// host. Pure; the caller supplies time and randomness.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/iscsi/chap.h"
#include "common/rpc/identity.h"
#include "common/rpc/pairing_token.h"
#include "common/runtime/clock.h"

namespace vjbod::target {

class PairingDesk {
 public:
  static constexpr Duration ttl_default = std::chrono::minutes(10);
  static constexpr Duration ttl_max = std::chrono::hours(24);
  static constexpr unsigned wrong_tries_max = 5;  // then every token is gone
  static constexpr size_t offers_max = 8;         // the oldest makes way for a new one

  rpc::PairingSecret offer(TimePoint now, Duration ttl, const iscsi::FillRandom& fill_random);

  // Whether this secret is out and not yet used by anybody else. A wrong one counts as a try.
  // The same host may present it again: its answer may have been lost. Compares in constant time.
  Status present(ConstBytes secret, const rpc::Fingerprint& host, TimePoint now);
  // The host was paired: nobody else can use the secret from here on.
  void use(ConstBytes secret, const rpc::Fingerprint& host);

  // A host was unpaired: what was used before pairs nobody again, not even the one who used it.
  void forget_used();

  size_t open_offers(TimePoint now);

 private:
  struct Offer {
    rpc::PairingSecret secret{};
    TimePoint expires{};
    unsigned wrong_tries = 0;
    std::optional<rpc::Fingerprint> used_by;
  };
  void forget_expired(TimePoint now);

  std::vector<Offer> offers_;  // oldest first
};

}  // namespace vjbod::target
