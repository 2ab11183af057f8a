// SPDX-License-Identifier: Apache-2.0
#include "target/control/pairing.h"

#include <algorithm>

#include "common/rpc/errc.h"

namespace vjbod::target {

rpc::PairingSecret PairingDesk::offer(TimePoint now, Duration ttl,
                                      const iscsi::FillRandom& fill_random) {
  forget_expired(now);
  if (offers_.size() >= offers_max) offers_.erase(offers_.begin());
  Offer& offer = offers_.emplace_back();
  fill_random(offer.secret);
  offer.expires = now + ttl;
  return offer.secret;
}

Status PairingDesk::present(ConstBytes secret, const rpc::Fingerprint& host, TimePoint now) {
  forget_expired(now);
  Offer* found = nullptr;
  for (Offer& offer : offers_)
    if (iscsi::equal_constant_time(offer.secret, secret)) found = &offer;
  if (found != nullptr && (!found->used_by || *found->used_by == host)) return {};
  for (Offer& offer : offers_) ++offer.wrong_tries;
  std::erase_if(offers_, [](const Offer& offer) { return offer.wrong_tries >= wrong_tries_max; });
  return fail(rpc::Errc::authentication,
              "the pairing token is wrong, used up or expired; make a new one with `vjbod target "
              "pair-token` on the target box");
}

void PairingDesk::use(ConstBytes secret, const rpc::Fingerprint& host) {
  for (Offer& offer : offers_)
    if (iscsi::equal_constant_time(offer.secret, secret)) offer.used_by = host;
}

void PairingDesk::forget_used() {
  std::erase_if(offers_, [](const Offer& offer) { return offer.used_by.has_value(); });
}

size_t PairingDesk::open_offers(TimePoint now) {
  forget_expired(now);
  return static_cast<size_t>(std::count_if(offers_.begin(), offers_.end(),
                                           [](const Offer& offer) { return !offer.used_by; }));
}

void PairingDesk::forget_expired(TimePoint now) {
  std::erase_if(offers_, [&](const Offer& offer) { return offer.expires <= now; });
}

}  // namespace vjbod::target
