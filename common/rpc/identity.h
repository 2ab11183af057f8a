// SPDX-License-Identifier: Apache-2.0
// Who a box is: an ECDSA P-256 key and a self-signed certificate, made at the first start, kept in
// the state directory with mode 0600, and known to other boxes by the SHA-256 fingerprint of the
// certificate. No authority signs anything: a fingerprint that was pinned at pairing is the trust.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace vjbod::rpc {

// SHA-256 of a certificate's DER form. Not a secret.
struct Fingerprint {
  std::array<std::byte, 32> bytes{};

  std::string to_text() const;  // 64 lower-case hexadecimal digits
  auto operator<=>(const Fingerprint&) const = default;
};

// Exactly what to_text() gives; upper-case digits and colons between pairs are taken too.
Result<Fingerprint> parse_fingerprint(std::string_view text);
// Of the first certificate in PEM text.
Result<Fingerprint> fingerprint_of(std::string_view certificate_pem);

struct Identity {
  std::string certificate_pem;
  std::string private_key_pem;  // a secret: never logged, never sent
  Fingerprint fingerprint;
};

// A new identity, in memory only. `box_name` becomes the certificate's common name; nobody trusts
// it.
Result<Identity> make_identity(std::string_view box_name);

// Reads `state_dir`/identity.pem (certificate and key in one file, so that they cannot come apart),
// or makes it. A file that is there but damaged, or readable by others, is refused and kept: a new
// identity would silently break every pairing.
Result<Identity> load_or_make_identity(const std::string& state_dir, std::string_view box_name);

}  // namespace vjbod::rpc
