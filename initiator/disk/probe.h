// SPDX-License-Identifier: Apache-2.0
// Asks a LUN who it is and what it can do, over a session on which nothing else is issued
// meanwhile: one command after the other, with the quirks of real targets in mind. Owned by the
// disk; on its reactor's thread. No time passes in here: the disk bounds it.
#pragma once

#include <array>
#include <functional>

#include "initiator/disk/geometry.h"
#include "initiator/session/scsi_channel.h"

namespace vjbod::initiator {

// Unit attentions of one probe. A target tells one per command, and may have a few waiting.
inline constexpr uint32_t probe_attentions_max = 32;

// The longest answer that is asked for. Its low byte alone is a good length, too: a target of the
// time when INQUIRY had one byte for it sees 252.
inline constexpr uint16_t probe_bytes_max = 1020;

class Probe final : private ChannelCommandOwner {
 public:
  using Done = std::function<void(Result<ProbeResult>)>;

  Probe(std::array<std::byte, 8> lun, Done done);

  // A new one may begin only when none is under way.
  void start(ScsiChannel& channel);
  // The channel can take commands again.
  void on_window_open() { issue_if_possible(); }
  // The session is closed: the memory is ours again, `done` does not come any more.
  void on_session_down();
  bool running() const { return step_ != Step::none; }

 private:
  enum class Step : uint8_t {
    none,
    test_unit_ready,
    inquiry,
    supported_pages,
    serial,
    identification,
    block_limits,
    provisioning,
    cache_id,
    capacity_16,
    capacity_10,
    mode_sense_6,
    mode_sense_10,
    operation_codes,
  };
  enum class Taken : uint8_t { yes, refused };

  void on_command_done(ChannelCommand& command, const ChannelCompletion& completion) override;
  void enter(Step step);
  void issue_if_possible();
  void after(Step step, Taken taken);
  Step next_page(Step after) const;
  // What the answer of the step holds. An error ends the probe.
  Status take(ConstBytes data);
  bool has_page(uint8_t page) const;
  void finish(Result<ProbeResult> result);

  Done done_;
  ScsiChannel* channel_ = nullptr;
  Step step_ = Step::none;
  bool issued_ = false;
  uint32_t attentions_ = 0;
  ProbeAnswers answers_;
  std::vector<uint8_t> pages_;
  ChannelCommand command_;
  std::array<std::byte, probe_bytes_max> buffer_{};
};

}  // namespace vjbod::initiator
