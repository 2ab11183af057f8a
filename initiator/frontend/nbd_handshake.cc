// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_handshake.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "initiator/frontend/nbd_rules.h"

namespace vjbod::initiator::nbd {

namespace {
// After the answer to export_name, unless the client has asked to leave them out.
constexpr size_t export_name_zeros = 124;
}  // namespace

Handshake::Handshake(Export exported) : export_(std::move(exported)) {
  VJBOD_CHECK(export_.name.size() <= string_bytes_max &&
              export_.description.size() <= string_bytes_max);
  append(encode_greeting());
}

size_t Handshake::consume(ConstBytes input) {
  switch (phase_) {
    case Phase::client_flags: return consume_client_flags(input);
    case Phase::options: return consume_option(input);
    case Phase::waiting_for_geometry:
    case Phase::transmission:
    case Phase::closed: return 0;
  }
  return 0;
}

size_t Handshake::consume_client_flags(ConstBytes input) {
  if (input.size() < client_flags_bytes) return 0;
  const auto flags = load_big_endian<uint32_t>(input.data());
  constexpr uint32_t known = handshake_flag::fixed_newstyle | handshake_flag::no_zeroes;
  if ((flags & ~known) != 0) {
    close("the client set unknown handshake flags");
  } else {
    fixed_newstyle_ = (flags & handshake_flag::fixed_newstyle) != 0;
    no_zeroes_ = (flags & handshake_flag::no_zeroes) != 0;
    phase_ = Phase::options;
  }
  return client_flags_bytes;
}

size_t Handshake::consume_option(ConstBytes input) {
  if (skip_bytes_ > 0) {
    const size_t skipped = std::min<uint64_t>(skip_bytes_, input.size());
    skip_bytes_ -= skipped;
    return skipped;
  }
  if (input.size() < option_header_bytes) return 0;
  const auto header = decode_option_header(input.first<option_header_bytes>());
  if (!header) {
    close("the client sent no option where one was due (wrong magic number)");
    return option_header_bytes;
  }
  if (header->length_bytes <= option_bytes_max &&
      input.size() - option_header_bytes < header->length_bytes) {
    return 0;
  }
  if (++options_seen_ > options_max) {
    close("the client sent too many options");
    return option_header_bytes;
  }
  if (!fixed_newstyle_ && header->option != Option::export_name) {
    close("the client sent an option that its handshake flags rule out");
    return option_header_bytes;
  }
  if (header->length_bytes > option_bytes_max) {
    if (header->option == Option::export_name) {
      close("the client asked for an export name beyond the length limit");
    } else {
      reply_error(header->option, OptionReply::error_too_big, "the option is too long");
      skip_bytes_ = header->length_bytes;
    }
    return option_header_bytes;
  }
  on_option(header->option, input.subspan(option_header_bytes, header->length_bytes));
  return option_header_bytes + header->length_bytes;
}

void Handshake::on_option(Option option, ConstBytes data) {
  switch (option) {
    case Option::export_name: on_export_name(as_text(data)); return;
    case Option::abort:
      reply(option, OptionReply::ack);
      close("");
      return;
    case Option::list: on_list(data); return;
    case Option::starttls:
      reply_error(option, OptionReply::error_policy,
                  "the socket is local and guarded by its file mode; TLS is not offered");
      return;
    case Option::info:
    case Option::go: on_info_or_go(option, data); return;
    case Option::structured_reply: on_structured_reply(data); return;
    case Option::list_meta_context:
    case Option::set_meta_context: on_meta_context(option, data); return;
  }
  reply_error(option, OptionReply::error_unsupported, "the option is unknown");
}

void Handshake::on_export_name(std::string_view name) {
  if (!is_ours(name)) {
    close("the client asked for an export that does not exist here");
    return;
  }
  chosen_ = Option::export_name;
  answer_chosen();
}

void Handshake::on_list(ConstBytes data) {
  if (!data.empty()) {
    reply_error(Option::list, OptionReply::error_invalid, "a list request takes no data");
    return;
  }
  std::vector<std::byte> server(sizeof(uint32_t) + export_.name.size() +
                                export_.description.size());
  ByteWriter(server)
      .u32(static_cast<uint32_t>(export_.name.size()))
      .bytes(as_bytes(export_.name))
      .bytes(as_bytes(export_.description));
  reply(Option::list, OptionReply::server, server);
  reply(Option::list, OptionReply::ack);
}

void Handshake::on_info_or_go(Option option, ConstBytes data) {
  ByteReader reader(data);
  const std::string_view name = as_text(reader.bytes(reader.u32()));
  wants_name_ = wants_description_ = false;
  for (int count = reader.u16(); count > 0 && reader.ok(); --count) {
    const auto info = static_cast<Info>(reader.u16());
    wants_name_ |= info == Info::name;
    wants_description_ |= info == Info::description;
  }
  if (!reader.ok() || reader.remaining() != 0) {
    reply_error(option, OptionReply::error_invalid, "the lengths in the option do not fit it");
  } else if (!is_ours(name)) {
    reply_error(option, OptionReply::error_unknown, "there is no such export on this socket");
  } else {
    chosen_ = option;
    answer_chosen();
  }
}

void Handshake::on_structured_reply(ConstBytes data) {
  if (!data.empty()) {
    reply_error(Option::structured_reply, OptionReply::error_invalid, "the option takes no data");
    return;
  }
  structured_replies_ = true;
  reply(Option::structured_reply, OptionReply::ack);
}

// The disk cannot say which blocks are allocated, so there is no context to list or to select: a
// plain ack says so.
void Handshake::on_meta_context(Option option, ConstBytes data) {
  if (!structured_replies_) {
    reply_error(option, OptionReply::error_invalid,
                "metadata contexts need structured replies to be negotiated first");
    return;
  }
  ByteReader reader(data);
  const std::string_view name = as_text(reader.bytes(reader.u32()));
  for (uint32_t count = reader.u32(); count > 0 && reader.ok(); --count) reader.skip(reader.u32());
  if (!reader.ok() || reader.remaining() != 0) {
    reply_error(option, OptionReply::error_invalid, "the lengths in the option do not fit it");
  } else if (!is_ours(name)) {
    reply_error(option, OptionReply::error_unknown, "there is no such export on this socket");
  } else {
    reply(option, OptionReply::ack);
  }
}

void Handshake::set_geometry(const BlockGeometry& geometry) {
  // Requests are checked against what the client was told.
  if (phase_ == Phase::transmission || phase_ == Phase::closed) return;
  geometry_ = geometry;
  if (phase_ == Phase::waiting_for_geometry) {
    phase_ = Phase::options;
    answer_chosen();
  }
}

void Handshake::refuse_waiting(OptionReply error, std::string_view message) {
  if (phase_ != Phase::waiting_for_geometry) return;
  phase_ = Phase::options;
  if (chosen_ == Option::export_name) {
    close("the size of the disk is not known, and the client's way of asking has no error reply");
  } else {
    reply_error(chosen_, error, message);
  }
}

void Handshake::answer_chosen() {
  if (!geometry_) {
    phase_ = Phase::waiting_for_geometry;
    return;
  }
  const uint16_t flags = transmission_flags(*geometry_, structured_replies_);
  if (chosen_ == Option::export_name) {
    std::array<std::byte, 10 + export_name_zeros> answer{};
    ByteWriter(answer).u64(geometry_->size_bytes).u16(flags);
    append(
        ConstBytes(answer).first(no_zeroes_ ? answer.size() - export_name_zeros : answer.size()));
    phase_ = Phase::transmission;
    return;
  }
  std::array<std::byte, 12> size;
  ByteWriter(size).u16(static_cast<uint16_t>(Info::export_)).u64(geometry_->size_bytes).u16(flags);
  reply(chosen_, OptionReply::info, size);
  if (wants_name_) reply_info_text(chosen_, Info::name, export_.name);
  if (wants_description_ && !export_.description.empty()) {
    reply_info_text(chosen_, Info::description, export_.description);
  }
  // Told even when not asked for: requests that ignore it get errors.
  const BlockSizes sizes = block_sizes(*geometry_);
  std::array<std::byte, 14> limits;
  ByteWriter(limits)
      .u16(static_cast<uint16_t>(Info::block_size))
      .u32(sizes.minimum_bytes)
      .u32(sizes.preferred_bytes)
      .u32(sizes.maximum_bytes);
  reply(chosen_, OptionReply::info, limits);
  reply(chosen_, OptionReply::ack);
  if (chosen_ == Option::go) phase_ = Phase::transmission;
}

void Handshake::reply(Option option, OptionReply type, ConstBytes data) {
  append(encode_option_reply_header({option, type, static_cast<uint32_t>(data.size())}));
  append(data);
}

void Handshake::reply_error(Option option, OptionReply type, std::string_view message) {
  reply(option, type, as_bytes(message));
}

void Handshake::reply_info_text(Option option, Info info, std::string_view text) {
  std::vector<std::byte> data(sizeof(uint16_t) + text.size());
  ByteWriter(data).u16(static_cast<uint16_t>(info)).bytes(as_bytes(text));
  reply(option, OptionReply::info, data);
}

void Handshake::close(std::string_view reason) {
  close_reason_ = reason;
  phase_ = Phase::closed;
}

}  // namespace vjbod::initiator::nbd
