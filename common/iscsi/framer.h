// SPDX-License-Identifier: Apache-2.0
// iSCSI PDUs out of a byte stream and into one (RFC 7143 sections 11.1 and 11.2): header, AHS,
// header digest, data segment, padding, data digest. Sans-I/O: the owner does the receiving and
// sending. One Framer per connection, on its owner's thread. No allocation (errors excepted).
//
// Receiving. The framer works in a buffer lent by its owner. PDUs that lie in it completely are
// given out in place; a data segment can instead go straight to where it belongs (a Data-In into
// the reader's memory), and then only what was already received is copied.
//
//   auto space = framer.receive_space();              // where the next bytes belong
//   size_t n = readv(socket, {space.placed, space.buffered});
//   framer.received(n);
//   for (;;) {
//     Result<Framer::Event> event = framer.next();
//     if (!event) return close(event.error());        // final: the stream has lost its framing
//     switch (*event) {
//       case Framer::Event::starved: return;          // receive more
//       case Framer::Event::header:                   // bhs(), ahs(), data_segment_length()
//         pdu = decode_bhs(framer.bhs());
//         if (it is Data-In) framer.place_data(memory of the task at Buffer Offset);
//         else if (nobody wants it) framer.drop_data();
//         break;                                      // else the data stays in place
//       case Framer::Event::pdu:                      // complete and digests are right
//         use(pdu, framer.data());
//     }
//   }
//
// bhs(), ahs() and data() point into the buffer and hold until the next call of next(),
// receive_space() or use_buffer(). After place_data or drop_data, bhs() and ahs() end with the
// next call too, so decode at the header event; data() is empty then.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "common/base/bytes.h"
#include "common/base/crc32c.h"
#include "common/base/result.h"
#include "common/iscsi/pdu_codec.h"

namespace vjbod::iscsi {

inline constexpr size_t pdu_digest_bytes = 4;
// Data segments and AHS are padded to whole words (RFC 7143 section 11.1).
constexpr size_t padding_bytes(size_t data_segment_length) {
  return -data_segment_length & 3;
}
// The longest PDU on the wire with data segments up to a limit, digests included: the smallest
// buffer for a framer with that limit.
constexpr size_t pdu_bytes_max(size_t data_segment_length_limit) {
  return bhs_bytes + total_ahs_bytes_max + pdu_digest_bytes + data_segment_length_limit +
         padding_bytes(data_segment_length_limit) + pdu_digest_bytes;
}

class Framer {
 public:
  // The rules of one phase. The defaults are those of the login phase (RFC 7143 section 13).
  struct Rules {
    bool header_digest = false;
    bool data_digest = false;
    uint32_t data_segment_length_max = 8192;  // our declared MaxRecvDataSegmentLength
    uint32_t ahs_bytes_max = total_ahs_bytes_max;
  };
  enum class Event { starved, header, pdu };
  // Fill `placed` first, then `buffered`. At least one is not empty as long as next() said starved.
  struct ReceiveSpace {
    Bytes placed;    // the rest of the data segment that place_data gave a destination
    Bytes buffered;  // in the framer's buffer
  };

  // `buffer` is at least pdu_bytes_max(data_segment_length_max) and stays until the framer is gone
  // or has another one.
  explicit Framer(Bytes buffer) : Framer(buffer, Rules()) {}
  Framer(Bytes buffer, const Rules& rules);
  Framer(const Framer&) = delete;
  Framer& operator=(const Framer&) = delete;

  // Takes effect with the next header that next() gives out; a PDU under way ends by its own rules.
  // The buffer must be large enough.
  void set_rules(const Rules& rules);
  // Moves what is unparsed into another buffer, which must be large enough for the rules and the
  // bytes.
  void use_buffer(Bytes buffer);

  // `buffered_max` bounds the second part: a mover that expects large data segments keeps it small,
  // so that the next PDU's data is not received into the buffer and then copied.
  ReceiveSpace receive_space(size_t buffered_max = std::numeric_limits<size_t>::max());
  // That many bytes of the last receive_space() were filled. 0 < count.
  void received(size_t count);

  // Errors: data_too_long, ahs_too_long, header_digest, data_digest. An error is final: every later
  // call gives it again.
  Result<Event> next();

  // From the header event on:
  Bhs bhs() const { return Bhs(buffer_.data() + header_at_, bhs_bytes); }
  ConstBytes ahs() const { return buffer_.subspan(header_at_ + bhs_bytes, ahs_length_); }
  uint32_t data_segment_length() const { return data_length_; }
  // Between the header event and the next call of next(). `destination` has exactly
  // data_segment_length() bytes and stays until the pdu event; what arrives in it before that is
  // not yet checked by the digest.
  void place_data(Bytes destination);
  void drop_data();
  // At the pdu event; without padding. Empty if placed or dropped.
  ConstBytes data() const { return data_; }

  // The placed data is owed to nobody any more (the task was cancelled): the rest is dropped, and
  // the destination is not touched again.
  void forget_placed_data();
  // Nothing received waits in the buffer and no PDU is under way.
  bool at_boundary() const { return stage_ == Stage::header && begin_ == end_; }

 private:
  enum class Stage { header, header_shown, data, trailer, failed };
  enum class DataGoes { stays, placed, dropped };

  Result<Event> take_header();
  Result<Event> take_whole();
  Result<Event> take_data();
  Result<Event> take_trailer();
  Error wrong_data_digest(uint32_t sent, uint32_t computed) const;
  tl::unexpected<Error> give_up(Error error);
  Event starve(size_t wanted);
  Event end_pdu(size_t consumed);
  void begin_moving_data(DataGoes goes, Bytes destination);
  void note_moved(ConstBytes part);
  size_t available() const { return end_ - begin_; }
  size_t trailer_length() const;

  Bytes buffer_;
  size_t begin_ = 0;  // [begin_, end_) is received and not consumed
  size_t end_ = 0;
  size_t wanted_ = bhs_bytes;  // bytes from begin_ on, without which next() cannot get on
  Rules rules_;
  Stage stage_ = Stage::header;

  // The PDU under way, or the last one.
  size_t header_at_ = 0;
  size_t header_length_ = 0;  // with AHS and digest
  size_t ahs_length_ = 0;
  uint32_t data_length_ = 0;
  bool data_digest_ = false;
  DataGoes data_goes_ = DataGoes::stays;
  Bytes destination_;       // placed: what of it is still to be filled
  uint32_t data_left_ = 0;  // placed or dropped: bytes of the data segment still to come
  Crc32c running_;          // placed or dropped: over the data so far
  ConstBytes data_;

  Error error_;  // with Stage::failed
};

// Sending. A PDU goes out as header, data, trailer, so that the data is gathered from where it
// lies.
inline constexpr size_t header_and_digest_bytes = bhs_bytes + pdu_digest_bytes;
inline constexpr size_t trailer_bytes_max = 3 + pdu_digest_bytes;

// Writes the header and, if asked for, its digest; returns how many bytes (48 or 52). No AHS.
size_t encode_pdu_header(const Pdu& pdu, uint32_t data_segment_length, bool header_digest,
                         std::span<std::byte, header_and_digest_bytes> out);
// Writes padding and, with `data_crc` (over the data, in order, without padding), the data digest;
// returns how many bytes (0 to 7). A PDU without data has neither.
size_t encode_pdu_trailer(uint32_t data_segment_length, const Crc32c* data_crc,
                          std::span<std::byte, trailer_bytes_max> out);

}  // namespace vjbod::iscsi
