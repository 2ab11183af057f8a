// SPDX-License-Identifier: Apache-2.0
// CHAP's arithmetic (RFC 1994 section 4.1, RFC 7143 section 12.1.3): secrets, algorithms,
// responses. The exchange of keys is in chap_exchange.h. Pure; randomness comes from outside.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace vjbod::iscsi {

// Fills the span with random bytes. In production: fill_secure_random (common/base/random.h).
using FillRandom = std::function<void(Bytes)>;

enum class ChapAlgorithm : uint8_t { md5 = 5, sha1 = 6, sha256 = 7, sha3_256 = 8 };

// What we offer and prefer when nothing else is said, by strength. SHA-256 comes before SHA3-256
// because more peers know it, and both are out of reach of an attacker.
inline constexpr std::array chap_algorithms_by_strength = {
    ChapAlgorithm::sha256, ChapAlgorithm::sha3_256, ChapAlgorithm::sha1, ChapAlgorithm::md5};
inline constexpr std::array chap_algorithms_md5_only = {ChapAlgorithm::md5};
// Between boxes of ours nothing weaker is ever taken, whoever stands between them.
inline constexpr std::array chap_algorithms_of_ours = {ChapAlgorithm::sha256,
                                                       ChapAlgorithm::sha3_256};

std::optional<ChapAlgorithm> chap_algorithm(uint64_t number);  // none: not one of ours
const char* name_of(ChapAlgorithm algorithm);                  // "SHA256"
size_t digest_bytes(ChapAlgorithm algorithm);

inline constexpr size_t chap_digest_bytes_max = 32;
inline constexpr size_t chap_challenge_bytes_max = 1024;  // RFC 7143 section 12.1.3
inline constexpr size_t chap_name_bytes_max = 255;
// 96 bits (RFC 7143 section 9.2.1). Both bounds are for configuration, not for the protocol.
inline constexpr size_t chap_secret_bytes_min = 12;
inline constexpr size_t chap_secret_bytes_max = 255;

// A secret in memory. Wiped on destruction; moved, never copied by accident; has no way to be
// printed.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string_view text) : bytes_(as_bytes(text).begin(), as_bytes(text).end()) {}
  Secret(Secret&& other) noexcept : bytes_(std::move(other.bytes_)) {}
  Secret& operator=(Secret&& other) noexcept;
  ~Secret() { wipe(); }

  Secret copy() const { return Secret(as_text(bytes_)); }
  bool empty() const { return bytes_.empty(); }
  ConstBytes bytes() const { return bytes_; }
  // In a time that depends on the lengths only.
  bool same_as(const Secret& other) const;

 private:
  void wipe();

  std::vector<std::byte> bytes_;  // never grows: no bytes are left behind by a reallocation
};

struct ChapCredentials {
  std::string user;
  Secret secret;

  ChapCredentials copy() const { return {user, secret.copy()}; }
};

// For configuration: may this be a CHAP secret? The error says what is wrong with it and never
// repeats it.
// A user name of CHAP_N: 1 to chap_name_bytes_max bytes, no blanks, no control characters.
Status check_chap_name(std::string_view name);
Status check_secret(std::string_view secret);

// Whether this may be a CHAP user of ours: 1 to 255 bytes, no control characters.
bool is_chap_name(std::string_view name);

struct ChapDigest {
  std::array<std::byte, chap_digest_bytes_max> bytes{};
  size_t size = 0;

  ConstBytes view() const { return ConstBytes(bytes).first(size); }
};

// H(identifier, secret, challenge). Fails only when OpenSSL does not offer the algorithm.
Result<ChapDigest> chap_response(ChapAlgorithm algorithm, uint8_t identifier, const Secret& secret,
                                 ConstBytes challenge);

// Equal lengths are compared in constant time; different lengths are unequal.
bool equal_constant_time(ConstBytes a, ConstBytes b);

}  // namespace vjbod::iscsi
