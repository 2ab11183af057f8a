// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/framer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/random.h"

namespace vjbod::iscsi {
namespace {

using Octets = std::vector<std::byte>;

struct Digests {
  bool header = false;
  bool data = false;
};

Octets pattern(size_t size, uint8_t first = 1) {
  Octets out(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(first + i * 7);
  return out;
}

void append_pdu(Octets& stream, const Pdu& pdu, const Octets& data, Digests digests) {
  std::array<std::byte, header_and_digest_bytes> header;
  const auto length = static_cast<uint32_t>(data.size());
  const size_t header_size = encode_pdu_header(pdu, length, digests.header, header);
  stream.insert(stream.end(), header.begin(), header.begin() + header_size);
  stream.insert(stream.end(), data.begin(), data.end());
  Crc32c crc;
  crc.add(data);
  std::array<std::byte, trailer_bytes_max> trailer;
  const size_t trailer_size = encode_pdu_trailer(length, digests.data ? &crc : nullptr, trailer);
  stream.insert(stream.end(), trailer.begin(), trailer.begin() + trailer_size);
}

Octets one_pdu(const Pdu& pdu, const Octets& data, Digests digests) {
  Octets stream;
  append_pdu(stream, pdu, data, digests);
  return stream;
}

// A receiver as a mover is one: Data-In goes to memory of its own, a Data-Out is dropped, all else
// stays in place. Everything is recorded as text.
class Receiver {
 public:
  explicit Receiver(Framer::Rules rules, size_t data_max = 8192)
      : memory_(pdu_bytes_max(data_max)), framer_(memory_, rules) {}

  // Feeds all bytes, at most `chunk` per receive.
  void feed(ConstBytes bytes, size_t chunk, size_t buffered_max = SIZE_MAX) {
    while (!bytes.empty() && !error_) {
      auto space = framer_.receive_space(buffered_max);
      const size_t count =
          std::min({bytes.size(), chunk, space.placed.size() + space.buffered.size()});
      ASSERT_GT(count, 0U);
      const size_t placed = std::min(count, space.placed.size());
      if (placed > 0) std::memcpy(space.placed.data(), bytes.data(), placed);
      if (count > placed) {
        std::memcpy(space.buffered.data(), bytes.data() + placed, count - placed);
      }
      received_in_place_ += placed;
      framer_.received(count);
      bytes = bytes.subspan(count);
      drain();
    }
  }

  const std::vector<std::string>& seen() const { return seen_; }
  const std::optional<Error>& error() const { return error_; }
  size_t received_in_place() const { return received_in_place_; }
  Framer& framer() { return framer_; }

 private:
  void drain() {
    for (;;) {
      auto event = framer_.next();
      if (!event) {
        error_ = event.error();
        return;
      }
      switch (*event) {
        case Framer::Event::starved: return;
        case Framer::Event::header: on_header(); break;
        case Framer::Event::pdu: on_pdu(); break;
      }
    }
  }
  void on_header() {
    opcode_ = bhs_opcode(framer_.bhs());
    itt_ = bhs_itt(framer_.bhs());
    destination_.assign(framer_.data_segment_length(), std::byte{0xee});
    if (opcode_ == Opcode::data_in) framer_.place_data(destination_);
    if (opcode_ == Opcode::data_out) framer_.drop_data();
  }
  void on_pdu() {
    ConstBytes data = opcode_ == Opcode::data_in ? ConstBytes(destination_) : framer_.data();
    seen_.push_back(
        fmt::format("{} {} {} {:08x}", name_of(opcode_), itt_, data.size(), crc32c(data)));
  }

  Octets memory_;
  Framer framer_;
  Opcode opcode_{};
  uint32_t itt_ = 0;
  Octets destination_;
  std::vector<std::string> seen_;
  std::optional<Error> error_;
  size_t received_in_place_ = 0;
};

std::string record(std::string_view name, uint32_t itt, const Octets& data) {
  return fmt::format("{} {} {} {:08x}", name, itt, data.size(), crc32c(data));
}

// A stream with every way a data segment can go and every padding, and what a Receiver must see.
struct Sample {
  Octets stream;
  std::vector<std::string> expected;
};
Sample sample(Digests digests) {
  Sample out;
  uint32_t itt = 1;
  for (size_t size : {0, 1, 2, 3, 4, 61, 130}) {
    const Octets data = pattern(size, static_cast<uint8_t>(itt));
    append_pdu(out.stream, NopOut{.itt = itt}, data, digests);
    out.expected.push_back(record("NOP-Out", itt++, data));
    append_pdu(out.stream, DataIn{.itt = itt}, data, digests);
    out.expected.push_back(record("Data-In", itt++, data));
    append_pdu(out.stream, DataOut{.itt = itt}, data, digests);
    out.expected.push_back(record("Data-Out", itt++, {}));
  }
  return out;
}

class FramerDigests : public testing::TestWithParam<Digests> {
 protected:
  Framer::Rules rules() const {
    return {.header_digest = GetParam().header, .data_digest = GetParam().data};
  }
};
INSTANTIATE_TEST_SUITE_P(All, FramerDigests,
                         testing::Values(Digests{false, false}, Digests{true, false},
                                         Digests{false, true}, Digests{true, true}),
                         [](const auto& p) {
                           return fmt::format("header{}data{}", p.param.header, p.param.data);
                         });

TEST_P(FramerDigests, ManyPdusOutOfOneReceive) {
  const Sample given = sample(GetParam());
  Receiver receiver(rules());

  receiver.feed(given.stream, given.stream.size());

  EXPECT_FALSE(receiver.error().has_value());
  EXPECT_EQ(receiver.seen(), given.expected);
  EXPECT_TRUE(receiver.framer().at_boundary());
}

TEST_P(FramerDigests, EveryChunkSizeGivesTheSamePdus) {
  const Sample given = sample(GetParam());
  for (size_t chunk = 1; chunk < 300; ++chunk) {
    Receiver receiver(rules());
    receiver.feed(given.stream, chunk);
    EXPECT_EQ(receiver.seen(), given.expected) << "chunks of " << chunk;
  }
}

TEST_P(FramerDigests, EverySplitInTwoGivesTheSamePdus) {
  const Sample given = sample(GetParam());
  for (size_t split = 1; split < given.stream.size(); ++split) {
    Receiver receiver(rules());
    receiver.feed(ConstBytes(given.stream).first(split), split);
    EXPECT_FALSE(receiver.seen().size() == given.expected.size());
    receiver.feed(ConstBytes(given.stream).subspan(split), given.stream.size());
    EXPECT_EQ(receiver.seen(), given.expected) << "split at " << split;
  }
}

TEST_P(FramerDigests, ASmallBufferedPartChangesNothing) {
  const Sample given = sample(GetParam());
  Receiver receiver(rules());

  receiver.feed(given.stream, given.stream.size(), 0);

  EXPECT_EQ(receiver.seen(), given.expected);
}

TEST_P(FramerDigests, ANewBufferAtAnyPointKeepsTheStream) {
  const Sample given = sample(GetParam());
  for (size_t split = 1; split < given.stream.size(); split += 3) {
    Octets other(pdu_bytes_max(8192) + split);
    Receiver receiver(rules());
    receiver.feed(ConstBytes(given.stream).first(split), split);
    receiver.framer().use_buffer(other);
    receiver.feed(ConstBytes(given.stream).subspan(split), 100);
    EXPECT_EQ(receiver.seen(), given.expected) << "new buffer at " << split;
  }
}

TEST_P(FramerDigests, EveryFlippedBitIsEitherNoticedOrHarmless) {
  const Octets stream = one_pdu(NopOut{.itt = 5}, pattern(6), GetParam());
  const size_t header = bhs_bytes + (GetParam().header ? pdu_digest_bytes : 0);
  for (size_t bit = 0; bit < stream.size() * 8; ++bit) {
    Octets damaged = stream;
    damaged[bit / 8] ^= std::byte{1} << bit % 8;
    Receiver receiver(rules());
    receiver.feed(damaged, damaged.size());
    if (GetParam().header && bit / 8 < header) {
      // A longer AHS makes the framer wait for more before it can tell.
      EXPECT_TRUE(receiver.error() || receiver.seen().empty()) << "bit " << bit;
    } else if (GetParam().data && bit / 8 >= header) {
      ASSERT_TRUE(receiver.error()) << "bit " << bit;
      EXPECT_EQ(receiver.error()->code, Errc::data_digest);
    }
  }
}

TEST(Framer, WholePdusAreGivenOutInPlace) {
  Octets memory(pdu_bytes_max(8192));
  Framer framer(memory);
  const Octets stream = one_pdu(NopOut{}, pattern(100), {});
  std::memcpy(framer.receive_space().buffered.data(), stream.data(), stream.size());
  framer.received(stream.size());

  ASSERT_EQ(framer.next(), Framer::Event::header);
  ASSERT_EQ(framer.next(), Framer::Event::pdu);

  EXPECT_EQ(framer.bhs().data(), memory.data());
  EXPECT_EQ(framer.data().data(), memory.data() + bhs_bytes);
  EXPECT_EQ(framer.next(), Framer::Event::starved);
}

TEST(Framer, ALargeDataInIsReceivedStraightIntoItsDestination) {
  const Octets data = pattern(200000);
  const Octets stream = one_pdu(DataIn{.itt = 9}, data, {true, true});
  Receiver receiver({.header_digest = true, .data_digest = true, .data_segment_length_max = 262144},
                    262144);

  receiver.feed(ConstBytes(stream).first(1000), 1000);
  receiver.feed(ConstBytes(stream).subspan(1000), stream.size());

  EXPECT_EQ(receiver.seen(), std::vector{record("Data-In", 9, data)});
  EXPECT_EQ(receiver.received_in_place(), data.size() - (1000 - header_and_digest_bytes));
}

TEST(Framer, ForgottenPlacedDataIsNotWrittenAnyMore) {
  const Octets data = pattern(400);
  const Octets stream = one_pdu(DataIn{}, data, {false, true});
  Octets memory(pdu_bytes_max(8192));
  Octets destination(400, std::byte{0xee});
  Framer framer(memory, {.data_digest = true});
  auto put = [&](ConstBytes part) {
    std::memcpy(framer.receive_space().buffered.data(), part.data(), part.size());
    framer.received(part.size());
  };
  put(ConstBytes(stream).first(148));
  ASSERT_EQ(framer.next(), Framer::Event::header);
  framer.place_data(destination);
  ASSERT_EQ(framer.next(), Framer::Event::starved);

  framer.forget_placed_data();
  EXPECT_TRUE(framer.receive_space().placed.empty());
  put(ConstBytes(stream).subspan(148));

  EXPECT_EQ(framer.next(), Framer::Event::pdu);
  EXPECT_TRUE(std::equal(data.begin(), data.begin() + 100, destination.begin()));
  EXPECT_TRUE(std::all_of(destination.begin() + 100, destination.end(),
                          [](std::byte b) { return b == std::byte{0xee}; }));
}

TEST(Framer, DigestsBeginAtThePduAfterTheRulesChange) {
  Octets stream;
  append_pdu(stream, LoginRequest{.itt = 1}, pattern(10), {false, false});
  append_pdu(stream, NopOut{.itt = 2}, pattern(10), {true, true});
  Octets memory(pdu_bytes_max(8192));
  Framer framer(memory);
  std::memcpy(framer.receive_space().buffered.data(), stream.data(), stream.size());
  framer.received(stream.size());
  ASSERT_EQ(framer.next(), Framer::Event::header);

  framer.set_rules({.header_digest = true, .data_digest = true});  // the login PDU is under way

  EXPECT_EQ(framer.next(), Framer::Event::pdu);
  EXPECT_EQ(framer.next(), Framer::Event::header);
  EXPECT_EQ(bhs_itt(framer.bhs()), 2U);
  EXPECT_EQ(framer.next(), Framer::Event::pdu);
  EXPECT_EQ(framer.next(), Framer::Event::starved);
}

TEST(Framer, TakesDataUpToTheLimitAndRefusesOneByteMore) {
  for (size_t size : {8192, 8193}) {
    Receiver receiver({});
    receiver.feed(one_pdu(NopOut{}, pattern(size), {}), 4096);
    EXPECT_EQ(receiver.error().has_value(), size == 8193);
  }
}

TEST(Framer, RefusesTooMuchDataAtTheHeaderAndForGood) {
  Receiver receiver({.data_segment_length_max = 8192});

  receiver.feed(ConstBytes(one_pdu(DataOut{}, pattern(8193), {})).first(bhs_bytes), bhs_bytes);

  ASSERT_TRUE(receiver.error());
  EXPECT_EQ(receiver.error()->code, Errc::data_too_long);
  EXPECT_EQ(receiver.error()->text, "Data-Out announces 8193 bytes of data; the limit is 8192");
  EXPECT_EQ(receiver.framer().next().error().code, Errc::data_too_long);
}

TEST(Framer, GivesOutAdditionalHeaderSegmentsAndChecksThemWithTheHeader) {
  std::array<std::byte, bhs_bytes> bhs;
  encode_bhs(ScsiCommand{.itt = 3}, 4, 2, bhs);
  Octets stream(bhs.begin(), bhs.end());
  const Octets ahs = pattern(8);
  stream.insert(stream.end(), ahs.begin(), ahs.end());
  const uint32_t digest = crc32c(stream);
  for (int shift = 0; shift < 32; shift += 8) stream.push_back(std::byte(digest >> shift & 0xff));
  const Octets data = pattern(4);
  stream.insert(stream.end(), data.begin(), data.end());
  Octets memory(pdu_bytes_max(8192));
  Framer framer(memory, {.header_digest = true});
  std::memcpy(framer.receive_space().buffered.data(), stream.data(), stream.size());
  framer.received(stream.size());

  ASSERT_EQ(framer.next(), Framer::Event::header);
  ASSERT_EQ(framer.next(), Framer::Event::pdu);

  EXPECT_TRUE(std::equal(ahs.begin(), ahs.end(), framer.ahs().begin(), framer.ahs().end()));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), framer.data().begin(), framer.data().end()));
}

TEST(Framer, RefusesAdditionalHeaderSegmentsBeyondTheLimit) {
  std::array<std::byte, bhs_bytes> bhs;
  encode_bhs(ScsiCommand{}, 0, 3, bhs);
  Receiver receiver({.ahs_bytes_max = 8});

  receiver.feed(bhs, bhs_bytes);

  ASSERT_TRUE(receiver.error());
  EXPECT_EQ(receiver.error()->code, Errc::ahs_too_long);
}

TEST(Framer, ADamagedHeaderIsADigestErrorAndNotALengthError) {
  Octets stream = one_pdu(NopOut{}, {}, {true, true});
  stream[5] = std::byte{0xff};  // 16 MiB of data
  Receiver receiver({.header_digest = true, .data_digest = true});

  receiver.feed(stream, stream.size());

  ASSERT_TRUE(receiver.error());
  EXPECT_EQ(receiver.error()->code, Errc::header_digest);
}

TEST(Framer, APaddingByteOfAnyValueIsFineButIsDigested) {
  Octets stream = one_pdu(NopOut{.itt = 1}, pattern(3), {false, false});
  stream.back() = std::byte{0x77};
  Receiver without({});
  without.feed(stream, stream.size());
  EXPECT_EQ(without.seen().size(), 1U);

  Octets digested = one_pdu(NopOut{.itt = 1}, pattern(3), {false, true});
  digested[bhs_bytes + 3] = std::byte{0x77};
  Receiver with({.data_digest = true});
  with.feed(digested, digested.size());
  ASSERT_TRUE(with.error());
  EXPECT_EQ(with.error()->code, Errc::data_digest);
}

TEST(Framer, RandomStreamsInRandomChunksComeOutWhole) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    const Digests digests{random.chance(1, 2), random.chance(1, 2)};
    Octets stream;
    std::vector<std::string> expected;
    for (uint32_t itt = 0; itt < 20; ++itt) {
      const Octets data = pattern(random.chance(1, 3) ? random.below(8193) : random.below(40));
      if (random.chance(1, 2)) {
        append_pdu(stream, NopOut{.itt = itt}, data, digests);
        expected.push_back(record("NOP-Out", itt, data));
      } else {
        append_pdu(stream, DataIn{.itt = itt}, data, digests);
        expected.push_back(record("Data-In", itt, data));
      }
    }
    Receiver receiver({.header_digest = digests.header, .data_digest = digests.data});
    ConstBytes rest = stream;
    while (!rest.empty()) {
      const size_t count = std::min<size_t>(rest.size(), 1 + random.below(9000));
      receiver.feed(rest.first(count), count, random.below(10000));
      rest = rest.subspan(count);
    }
    ASSERT_FALSE(receiver.error().has_value()) << receiver.error()->text;
    ASSERT_EQ(receiver.seen(), expected) << "round " << round;
  }
}

TEST(FramerDeath, ABufferTooSmallForTheRulesIsABug) {
  Octets memory(pdu_bytes_max(8192) - 1);
  EXPECT_DEATH(Framer framer(memory), "too small");
}

}  // namespace
}  // namespace vjbod::iscsi
