// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/framer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace vjbod::iscsi {

namespace {

// Digests are little-endian on the wire, unlike everything else (RFC 7143 section 13.1).
uint32_t load_digest(const std::byte* from) {
  uint32_t value = 0;
  for (size_t i = pdu_digest_bytes; i-- > 0;)
    value = value << 8 | std::to_integer<uint32_t>(from[i]);
  return value;
}

void store_digest(std::byte* to, uint32_t value) {
  for (size_t i = 0; i < pdu_digest_bytes; ++i, value >>= 8) to[i] = static_cast<std::byte>(value);
}

}  // namespace

Framer::Framer(Bytes buffer, const Rules& rules) : buffer_(buffer) {
  set_rules(rules);
}

void Framer::set_rules(const Rules& rules) {
  VJBOD_CHECK(rules.data_segment_length_max <= data_segment_length_max);
  VJBOD_CHECK(buffer_.size() >= pdu_bytes_max(rules.data_segment_length_max),
              "a buffer of {} bytes is too small for data segments of {}", buffer_.size(),
              rules.data_segment_length_max);
  rules_ = rules;
}

void Framer::use_buffer(Bytes buffer) {
  VJBOD_CHECK(buffer.size() >= pdu_bytes_max(rules_.data_segment_length_max) &&
              buffer.size() >= wanted_ && buffer.size() >= available());
  if (available() > 0) std::memmove(buffer.data(), buffer_.data() + begin_, available());
  buffer_ = buffer;
  end_ = available();
  begin_ = header_at_ = 0;
  data_ = {};
}

Framer::ReceiveSpace Framer::receive_space(size_t buffered_max) {
  const size_t free_at_end = buffer_.size() - end_;
  // Moving is paid for by at least as many bytes consumed before, unless it cannot be helped.
  const bool worth_moving = free_at_end < buffer_.size() / 2 && available() <= begin_;
  if (begin_ == end_ || buffer_.size() - begin_ < wanted_ || worth_moving) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, available());
    end_ = available();
    begin_ = header_at_ = 0;
  }
  const size_t missing = wanted_ > available() ? wanted_ - available() : 0;
  const size_t at_least = destination_.empty() ? std::max<size_t>(missing, 1) : 0;
  const size_t size = std::min(std::max(buffered_max, at_least), buffer_.size() - end_);
  return {.placed = destination_, .buffered = buffer_.subspan(end_, size)};
}

void Framer::received(size_t count) {
  const size_t placed = std::min(count, destination_.size());
  if (placed > 0) {
    note_moved(destination_.first(placed));
    destination_ = destination_.subspan(placed);
  }
  count -= placed;
  VJBOD_CHECK(count <= buffer_.size() - end_, "more bytes received than there was space for");
  end_ += count;
}

Result<Framer::Event> Framer::next() {
  switch (stage_) {
    case Stage::header: return take_header();
    case Stage::header_shown:
      if (data_goes_ == DataGoes::stays) return take_whole();
      stage_ = Stage::data;
      return take_data();
    case Stage::data: return take_data();
    case Stage::trailer: return take_trailer();
    case Stage::failed: break;
  }
  return fail(error_);
}

Result<Framer::Event> Framer::take_header() {
  data_ = {};
  if (available() < bhs_bytes) return starve(bhs_bytes);
  header_at_ = begin_;
  ahs_length_ = bhs_total_ahs_bytes(bhs());
  if (ahs_length_ > rules_.ahs_bytes_max) {
    return give_up({Errc::ahs_too_long,
                    fmt::format("{} announces {} bytes of additional header segments; the limit "
                                "is {}",
                                name_of(bhs_opcode(bhs())), ahs_length_, rules_.ahs_bytes_max)});
  }
  const size_t digested = bhs_bytes + ahs_length_;
  header_length_ = digested + (rules_.header_digest ? pdu_digest_bytes : 0);
  if (available() < header_length_) return starve(header_length_);
  if (rules_.header_digest) {
    const uint32_t sent = load_digest(&buffer_[begin_ + digested]);
    const uint32_t computed = crc32c(buffer_.subspan(begin_, digested));
    if (sent != computed) {
      return give_up({Errc::header_digest,
                      fmt::format("the header digest is 0x{:08x}, the header of what seems to be a "
                                  "{} has 0x{:08x}",
                                  sent, name_of(bhs_opcode(bhs())), computed)});
    }
  }
  data_length_ = bhs_data_segment_length(bhs());
  if (data_length_ > rules_.data_segment_length_max) {
    return give_up(
        {Errc::data_too_long,
         fmt::format("{} announces {} bytes of data; the limit is {}", name_of(bhs_opcode(bhs())),
                     data_length_, rules_.data_segment_length_max)});
  }
  data_digest_ = rules_.data_digest && data_length_ > 0;
  data_goes_ = DataGoes::stays;
  stage_ = Stage::header_shown;
  return Event::header;
}

void Framer::place_data(Bytes destination) {
  VJBOD_CHECK(destination.size() == data_length_, "{} bytes of memory for {} of data",
              destination.size(), data_length_);
  begin_moving_data(DataGoes::placed, destination);
}

void Framer::drop_data() {
  begin_moving_data(DataGoes::dropped, {});
}

void Framer::begin_moving_data(DataGoes goes, Bytes destination) {
  VJBOD_CHECK(stage_ == Stage::header_shown && data_goes_ == DataGoes::stays,
              "only once, right after the header event");
  data_goes_ = goes;
  destination_ = destination;
  data_left_ = data_length_;
  running_ = {};
  begin_ += header_length_;
}

void Framer::forget_placed_data() {
  destination_ = {};
  if (data_goes_ == DataGoes::placed) data_goes_ = DataGoes::dropped;
}

void Framer::note_moved(ConstBytes part) {
  if (data_digest_) running_.add(part);
  data_left_ -= static_cast<uint32_t>(part.size());
}

Result<Framer::Event> Framer::take_whole() {
  const size_t length = header_length_ + data_length_ + trailer_length();
  if (available() < length) return starve(length);
  const size_t data_at = begin_ + header_length_;
  if (data_digest_) {
    const size_t digested = data_length_ + padding_bytes(data_length_);
    const uint32_t sent = load_digest(&buffer_[data_at + digested]);
    const uint32_t computed = crc32c(buffer_.subspan(data_at, digested));
    if (sent != computed) return give_up(wrong_data_digest(sent, computed));
  }
  data_ = buffer_.subspan(data_at, data_length_);
  return end_pdu(length);
}

Result<Framer::Event> Framer::take_data() {
  const size_t count = std::min<size_t>(available(), data_left_);
  if (count > 0) {
    const Bytes part = buffer_.subspan(begin_, count);
    if (data_goes_ == DataGoes::placed) {
      std::memcpy(destination_.data(), part.data(), count);
      destination_ = destination_.subspan(count);
    }
    note_moved(part);
    begin_ += count;
  }
  if (data_left_ > 0) return starve(0);
  stage_ = Stage::trailer;
  return take_trailer();
}

Result<Framer::Event> Framer::take_trailer() {
  const size_t length = trailer_length();
  if (available() < length) return starve(length);
  if (data_digest_) {
    const size_t padding = length - pdu_digest_bytes;
    running_.add(buffer_.subspan(begin_, padding));
    const uint32_t sent = load_digest(&buffer_[begin_ + padding]);
    if (sent != running_.value()) return give_up(wrong_data_digest(sent, running_.value()));
  }
  return end_pdu(length);
}

Framer::Event Framer::end_pdu(size_t consumed) {
  begin_ += consumed;
  wanted_ = bhs_bytes;
  data_goes_ = DataGoes::stays;
  stage_ = Stage::header;
  return Event::pdu;
}

size_t Framer::trailer_length() const {
  return padding_bytes(data_length_) + (data_digest_ ? pdu_digest_bytes : 0);
}

Framer::Event Framer::starve(size_t wanted) {
  wanted_ = wanted;
  return Event::starved;
}

Error Framer::wrong_data_digest(uint32_t sent, uint32_t computed) const {
  return {Errc::data_digest,
          fmt::format("the data digest is 0x{:08x}, the {} bytes of data have 0x{:08x}", sent,
                      data_length_, computed)};
}

tl::unexpected<Error> Framer::give_up(Error error) {
  stage_ = Stage::failed;
  destination_ = {};
  error_ = std::move(error);
  return fail(error_);
}

size_t encode_pdu_header(const Pdu& pdu, uint32_t data_segment_length, bool header_digest,
                         std::span<std::byte, header_and_digest_bytes> out) {
  const auto bhs = out.first<bhs_bytes>();
  encode_bhs(pdu, data_segment_length, 0, bhs);
  if (!header_digest) return bhs_bytes;
  store_digest(&out[bhs_bytes], crc32c(bhs));
  return header_and_digest_bytes;
}

size_t encode_pdu_trailer(uint32_t data_segment_length, const Crc32c* data_crc,
                          std::span<std::byte, trailer_bytes_max> out) {
  if (data_segment_length == 0) return 0;
  const size_t padding = padding_bytes(data_segment_length);
  std::fill_n(out.begin(), padding, std::byte{0});
  if (data_crc == nullptr) return padding;
  Crc32c crc = *data_crc;
  crc.add(out.first(padding));
  store_digest(&out[padding], crc.value());
  return padding + pdu_digest_bytes;
}

}  // namespace vjbod::iscsi
