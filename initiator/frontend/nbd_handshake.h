// SPDX-License-Identifier: Apache-2.0
// The server's side of the NBD handshake ("fixed newstyle"), one per connection: bytes in, bytes
// out, until the client has chosen the export. Pure. The owner keeps the input it could not take
// yet, sends output() and closes the socket when told to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "initiator/disk/block_device.h"
#include "initiator/frontend/nbd_wire.h"

namespace vjbod::initiator::nbd {

// The one disk behind the socket. Clients may ask for it by name or as the default export "".
struct Export {
  std::string name;         // at most string_bytes_max
  std::string description;  // for people; may be empty; at most string_bytes_max
};

class Handshake {
 public:
  // Longest option that is read; longer ones are skipped and answered with "too big". Holds an
  // export name and three queries of the longest kind.
  static constexpr uint32_t option_bytes_max = 4 * string_bytes_max + 64;
  // Input that the owner must be able to hold, so that every message it can get fits.
  static constexpr size_t input_bytes_max = option_header_bytes + option_bytes_max;
  // A client needs about five; one that haggles without end is closed.
  static constexpr int options_max = 256;

  enum class Phase {
    client_flags,
    options,
    waiting_for_geometry,  // the client has chosen; the size of the disk is not known yet
    transmission,          // over, successfully: what follows in the input are requests
    closed,                // over: send output(), then close; see close_reason()
  };

  explicit Handshake(Export exported);

  // Takes at most one message from the front of `input` and returns how many bytes it took: zero
  // when the message is not complete, in waiting_for_geometry and when the handshake is over. Send
  // output() before calling again: that bounds it.
  size_t consume(ConstBytes input);

  // The disk's size and limits, at any time and again when they change. Ends waiting_for_geometry.
  void set_geometry(const BlockGeometry& geometry);
  // Ends waiting_for_geometry with an error; nothing in other phases.
  void refuse_waiting(OptionReply error, std::string_view message);

  Phase phase() const { return phase_; }
  // What is to be sent; the owner clears it.
  std::vector<std::byte>& output() { return output_; }
  // Why the phase is closed, a sentence; empty when the client has said goodbye.
  std::string_view close_reason() const { return close_reason_; }

  // Valid in transmission.
  bool structured_replies() const { return structured_replies_; }
  const BlockGeometry& geometry() const { return *geometry_; }

 private:
  size_t consume_client_flags(ConstBytes input);
  size_t consume_option(ConstBytes input);
  void on_option(Option option, ConstBytes data);
  void on_export_name(std::string_view name);
  void on_list(ConstBytes data);
  void on_info_or_go(Option option, ConstBytes data);
  void on_structured_reply(ConstBytes data);
  void on_meta_context(Option option, ConstBytes data);
  void answer_chosen();

  bool is_ours(std::string_view name) const { return name.empty() || name == export_.name; }
  void reply(Option option, OptionReply type, ConstBytes data = {});
  void reply_error(Option option, OptionReply type, std::string_view message);
  void reply_info_text(Option option, Info info, std::string_view text);
  void append(ConstBytes bytes) { output_.insert(output_.end(), bytes.begin(), bytes.end()); }
  void close(std::string_view reason);

  const Export export_;
  Phase phase_ = Phase::client_flags;
  std::vector<std::byte> output_;
  std::string_view close_reason_;
  std::optional<BlockGeometry> geometry_;
  bool fixed_newstyle_ = false;
  bool no_zeroes_ = false;
  bool structured_replies_ = false;
  int options_seen_ = 0;
  uint64_t skip_bytes_ = 0;  // rest of an option that was too big
  // The option that waits for the geometry, and what it asked for.
  Option chosen_{};
  bool wants_name_ = false;
  bool wants_description_ = false;
};

}  // namespace vjbod::initiator::nbd
