// SPDX-License-Identifier: Apache-2.0
// CHAP values: the first byte chooses the bound for a binary value or an end of the exchange, which
// then gets CHAP keys that it must not believe.
#include "common/base/check.h"
#include "common/base/random.h"
#include "common/iscsi/binary_value.h"
#include "common/iscsi/chap_exchange.h"

using namespace vjbod;

namespace {

iscsi::ChapCredentials credentials(const char* user, const char* secret) {
  return {user, iscsi::Secret(secret)};
}

// Feeds one text after the other, separated by an empty pair (two NULs).
template <typename End>
void feed(End& end, std::string_view input) {
  for (int round = 0; round < 4 && !input.empty(); ++round) {
    const size_t cut = input.find(std::string_view("\0\0", 2));
    std::string text(input.substr(0, cut));
    input = cut == std::string_view::npos ? std::string_view{} : input.substr(cut + 2);
    text += '\0';
    const auto pairs = iscsi::split_text(as_bytes(std::string_view(text)));
    if (!pairs) return;
    iscsi::ChapKeys keys;
    for (const auto& pair : *pairs) {
      if (const iscsi::KeyInfo* key = iscsi::find_key(pair.key)) keys.take(key->key, pair.value);
    }
    iscsi::TextBuilder answers;
    if (!end.receive(keys, answers)) return;
    VJBOD_CHECK(iscsi::split_text(as_bytes(std::string_view(answers.text()))));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto fill_random = [random = Random(1)](Bytes bytes) mutable { random.fill(bytes); };
  const std::vector<iscsi::ChapAlgorithm> algorithms(iscsi::chap_algorithms_by_strength.begin(),
                                                     iscsi::chap_algorithms_by_strength.end());
  if (data[0] == 0xff) {
    iscsi::ChapTarget end(credentials("host", "secret of the host"),
                          credentials("box", "secret of the box"), algorithms, fill_random);
    feed(end, input);
    VJBOD_CHECK(!end.done(), "CHAP was passed without the secret");
  } else if (data[0] == 0xfe) {
    iscsi::ChapInitiator end(credentials("host", "secret of the host"),
                             credentials("box", "secret of the box"), algorithms, fill_random);
    feed(end, input);
    VJBOD_CHECK(!end.done(), "CHAP was passed without the secret");
  } else {
    const size_t bytes_max = data[0];
    const auto bytes = iscsi::decode_binary_value(input, bytes_max);
    if (!bytes) return 0;
    VJBOD_CHECK(!bytes->empty() && bytes->size() <= bytes_max);
    VJBOD_CHECK(iscsi::decode_binary_value(iscsi::encode_hex(*bytes), bytes_max) == *bytes);
    VJBOD_CHECK(iscsi::decode_binary_value(iscsi::encode_base64(*bytes), bytes_max) == *bytes);
  }
  return 0;
}
