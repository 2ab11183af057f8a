// SPDX-License-Identifier: Apache-2.0
// The CHAP exchange of keys (RFC 7143 section 12.1.3), one class for each end. Each takes the
// peer's CHAP keys of one text, adds its own, and says where it stands; any error is the end of the
// login. Pure; owned by a login machine.
//
//   initiator                          target
//   CHAP_A=7,6,8,5               ->
//                                <-    CHAP_A=7, CHAP_I, CHAP_C
//   CHAP_N, CHAP_R [CHAP_I, CHAP_C] ->
//                                <-    [CHAP_N, CHAP_R]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/iscsi/chap.h"
#include "common/iscsi/keys.h"
#include "common/iscsi/text.h"

namespace vjbod::iscsi {

// The CHAP keys of one text, each at most once.
struct ChapKeys {
  std::optional<std::string_view> algorithms, identifier, challenge, name, response;

  bool any() const { return algorithms || identifier || challenge || name || response; }
  // False when the key is not a CHAP key.
  bool take(Key key, std::string_view value);
};

class ChapTarget {
 public:
  ChapTarget(ChapCredentials initiator, std::optional<ChapCredentials> mutual,
             std::vector<ChapAlgorithm> algorithms, FillRandom fill_random);

  // Errc::authentication in every failure.
  Status receive(const ChapKeys& keys, TextBuilder& answers);
  bool done() const { return state_ == State::done; }
  const std::string& authenticated_user() const { return initiator_.user; }  // when done

 private:
  enum class State : uint8_t { expecting_algorithms, expecting_response, done };

  Status choose(const ChapKeys& keys, TextBuilder& answers);
  Status verify(const ChapKeys& keys, TextBuilder& answers);
  Status prove(const ChapKeys& keys, TextBuilder& answers);

  State state_ = State::expecting_algorithms;
  ChapCredentials initiator_;
  std::optional<ChapCredentials> mutual_;
  std::vector<ChapAlgorithm> algorithms_;
  FillRandom fill_random_;
  ChapAlgorithm algorithm_ = ChapAlgorithm::md5;
  uint8_t identifier_ = 0;
  std::vector<std::byte> challenge_;
};

class ChapInitiator {
 public:
  ChapInitiator(ChapCredentials ours, std::optional<ChapCredentials> mutual,
                std::vector<ChapAlgorithm> algorithms, FillRandom fill_random);

  void begin(TextBuilder& out);  // CHAP_A
  Status receive(const ChapKeys& keys, TextBuilder& out);
  // Our response is out. With one-way CHAP nothing more comes.
  bool answered() const { return state_ == State::expecting_proof || state_ == State::done; }
  // The target has proved the mutual secret, or none was asked for and ours is out.
  bool done() const { return state_ == State::done; }

 private:
  enum class State : uint8_t { expecting_challenge, expecting_proof, done };

  Status respond(const ChapKeys& keys, TextBuilder& out);
  Status verify(const ChapKeys& keys);

  State state_ = State::expecting_challenge;
  ChapCredentials ours_;
  std::optional<ChapCredentials> mutual_;
  std::vector<ChapAlgorithm> algorithms_;
  FillRandom fill_random_;
  ChapAlgorithm algorithm_ = ChapAlgorithm::md5;
  uint8_t identifier_ = 0;
  std::vector<std::byte> challenge_;
  ChapDigest our_response_;
};

}  // namespace vjbod::iscsi
