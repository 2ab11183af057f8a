// SPDX-License-Identifier: Apache-2.0
// What a disk knows of an iSCSI session: it carries SCSI commands while it is up. A session object
// is one connection and one generation; after its end a new object takes over, with the same ISID.
#pragma once

#include <array>
#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/intrusive_list.h"
#include "common/base/result.h"

namespace vjbod::initiator {

struct ChannelCommand;

// `status` is the SAM status byte; `sense` and everything else are valid during the upcall only.
struct ChannelCompletion {
  bool target_failure = false;  // iSCSI response 0x01: the command did not complete at the target
  uint8_t status = 0;
  ConstBytes sense;
  uint64_t data_bytes = 0;  // really moved
  bool overflow = false, underflow = false;
  uint32_t residual_bytes = 0;
};

class ChannelCommandOwner {
 public:
  // At most once per issued command. A command that gets none by the time of on_session_closed was
  // not answered: whether it was executed is not known, and its memory is free again.
  virtual void on_command_done(ChannelCommand& command, const ChannelCompletion& completion) = 0;

 protected:
  ~ChannelCommandOwner() = default;
};

// The caller's, with its memory, from issue() to on_command_done() or on_session_closed().
struct ChannelCommand : ListNode<> {
  std::array<std::byte, 16> cdb{};
  ConstBytes write;  // at most one of the two is non-empty
  Bytes read;
  std::array<std::byte, 8> lun{};
  ChannelCommandOwner* owner = nullptr;
  uint32_t itt = 0;  // the session's
};

class ScsiChannel {
 public:
  virtual bool can_issue() const = 0;  // a tag is free and the command window is open
  virtual void issue(ChannelCommand& command) = 0;

 protected:
  ~ScsiChannel() = default;
};

class SessionEvents {
 public:
  virtual void on_logged_in() = 0;
  // can_issue() has become true again.
  virtual void on_window_open() = 0;
  // The last upcall: no lent memory is touched any more. `permanent`: trying again without a change
  // of configuration is pointless (authentication, not found, forbidden, version).
  virtual void on_session_closed(const Error& reason, bool permanent) = 0;

 protected:
  ~SessionEvents() = default;
};

}  // namespace vjbod::initiator
