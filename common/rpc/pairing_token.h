// SPDX-License-Identifier: Apache-2.0
// The one-time token that a person carries from `vjbod target pair-token` to `vjbod pair`: where
// the target is, how to know it, and the secret that proves the right to pair. Pure.
//
// Text form: "vjbod1-" and unpadded base64url of version, port, fingerprint, secret, addresses and
// a checksum (so that a mistyped token is told from a wrong one). The whole token is a secret.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/rpc/identity.h"

namespace vjbod::rpc {

inline constexpr size_t token_addresses_max = 8;
inline constexpr size_t token_text_bytes_max = 1024;  // longer input is not looked at

using PairingSecret = std::array<std::byte, 16>;

struct PairingToken {
  std::vector<std::string> addresses;  // numeric IPv4 or IPv6, best first; at least one
  uint16_t port = 0;                   // of the control channel; never 0
  Fingerprint fingerprint;             // of the target's certificate
  PairingSecret secret{};
};

// The addresses must be numeric and no more than token_addresses_max.
Result<std::string> encode_token(const PairingToken& token);
// Blanks and line ends around it are ignored; nothing else is forgiven. Errors never repeat input.
Result<PairingToken> decode_token(std::string_view text);

}  // namespace vjbod::rpc
