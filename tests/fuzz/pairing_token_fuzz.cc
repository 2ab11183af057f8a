// SPDX-License-Identifier: Apache-2.0
// Pairing tokens: one that decodes has what every token has and is written back as the same token;
// the reason against one that does not never repeats its text.
#include <algorithm>

#include "common/base/check.h"
#include "common/rpc/pairing_token.h"

using namespace vjbod;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  Result<rpc::PairingToken> token = rpc::decode_token(input);
  if (!token) {
    if (size >= 40) VJBOD_CHECK(token.error().text.find(input) == std::string::npos);
    return 0;
  }
  VJBOD_CHECK(token->port != 0);
  VJBOD_CHECK(!token->addresses.empty() && token->addresses.size() <= rpc::token_addresses_max);
  Result<std::string> text = rpc::encode_token(*token);
  VJBOD_CHECK(text && input.find(*text) != std::string_view::npos);
  return 0;
}
