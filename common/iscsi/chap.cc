// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/chap.h"

#include <algorithm>
#include <memory>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "common/base/check.h"
#include "common/iscsi/errc.h"

namespace vjbod::iscsi {

namespace {

const char* openssl_name(ChapAlgorithm algorithm) {
  switch (algorithm) {
    case ChapAlgorithm::md5: return "MD5";
    case ChapAlgorithm::sha1: return "SHA1";
    case ChapAlgorithm::sha256: return "SHA2-256";
    case ChapAlgorithm::sha3_256: return "SHA3-256";
  }
  return "";
}

struct DigestDeleter {
  void operator()(EVP_MD* digest) const { EVP_MD_free(digest); }
};
struct ContextDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

}  // namespace

std::optional<ChapAlgorithm> chap_algorithm(uint64_t number) {
  for (const ChapAlgorithm algorithm : chap_algorithms_by_strength) {
    if (number == static_cast<uint64_t>(algorithm)) return algorithm;
  }
  return std::nullopt;
}

const char* name_of(ChapAlgorithm algorithm) {
  switch (algorithm) {
    case ChapAlgorithm::md5: return "MD5";
    case ChapAlgorithm::sha1: return "SHA1";
    case ChapAlgorithm::sha256: return "SHA256";
    case ChapAlgorithm::sha3_256: return "SHA3-256";
  }
  return "unknown";
}

size_t digest_bytes(ChapAlgorithm algorithm) {
  switch (algorithm) {
    case ChapAlgorithm::md5: return 16;
    case ChapAlgorithm::sha1: return 20;
    case ChapAlgorithm::sha256:
    case ChapAlgorithm::sha3_256: return 32;
  }
  return 0;
}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    wipe();
    bytes_ = std::move(other.bytes_);
  }
  return *this;
}

void Secret::wipe() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
  bytes_.clear();
}

bool Secret::same_as(const Secret& other) const {
  return equal_constant_time(bytes(), other.bytes());
}

Status check_chap_name(std::string_view name) {
  if (name.empty() || name.size() > chap_name_bytes_max)
    return fail(Errc::authentication, "a CHAP user name has 1 to {} bytes", chap_name_bytes_max);
  for (char c : name)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
      return fail(Errc::authentication,
                  "a CHAP user name holds no blanks and no control characters");
  return {};
}

Status check_secret(std::string_view secret) {
  if (secret.size() < chap_secret_bytes_min) {
    return fail(Errc::authentication,
                "CHAP secret has {} bytes; at least {} are needed (RFC 7143 section 9.2.1)",
                secret.size(), chap_secret_bytes_min);
  }
  if (secret.size() > chap_secret_bytes_max) {
    return fail(Errc::authentication, "CHAP secret has {} bytes; at most {} are taken",
                secret.size(), chap_secret_bytes_max);
  }
  if (has_control_character(secret)) {
    return fail(Errc::authentication,
                "CHAP secret has a control character; does its file end with more than one "
                "newline?");
  }
  return {};
}

bool is_chap_name(std::string_view name) {
  return !name.empty() && name.size() <= chap_name_bytes_max && !has_control_character(name);
}

Result<ChapDigest> chap_response(ChapAlgorithm algorithm, uint8_t identifier, const Secret& secret,
                                 ConstBytes challenge) {
  const std::unique_ptr<EVP_MD, DigestDeleter> digest(
      EVP_MD_fetch(nullptr, openssl_name(algorithm), nullptr));
  if (!digest) {
    return fail(Errc::authentication, "CHAP algorithm {} is not available in OpenSSL here",
                name_of(algorithm));
  }
  const std::unique_ptr<EVP_MD_CTX, ContextDeleter> context(EVP_MD_CTX_new());
  ChapDigest response;
  unsigned int size = 0;
  const bool worked =
      context && EVP_DigestInit_ex2(context.get(), digest.get(), nullptr) == 1 &&
      EVP_DigestUpdate(context.get(), &identifier, 1) == 1 &&
      EVP_DigestUpdate(context.get(), secret.bytes().data(), secret.bytes().size()) == 1 &&
      EVP_DigestUpdate(context.get(), challenge.data(), challenge.size()) == 1 &&
      EVP_MD_get_size(digest.get()) == static_cast<int>(digest_bytes(algorithm)) &&
      EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(response.bytes.data()),
                         &size) == 1;
  if (!worked) {
    return fail(Errc::authentication, "CHAP algorithm {} failed in OpenSSL", name_of(algorithm));
  }
  response.size = size;
  return response;
}

bool equal_constant_time(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace vjbod::iscsi
