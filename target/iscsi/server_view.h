// SPDX-License-Identifier: Apache-2.0
// What the sessions of a shard need to know of the whole server, as an immutable snapshot: the
// control layer makes a new one and every shard gets it by message, so that no login ever takes a
// lock or waits for the control layer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/clock.h"
#include "target/iscsi/login_machine.h"
#include "target/scsi/nexus.h"

namespace vjbod::target {

// Who may do what. Made by the control layer, immutable, called on any shard.
class AccessTable : public LoginPolicy {
 public:
  virtual ~AccessTable() = default;
  // The names of the targets this initiator may log in to; the answer to SendTargets. Nothing else
  // is ever told.
  virtual std::vector<std::string> targets_of(std::string_view initiator_name) const = 0;
};

// A target and its LUNs. Portal group tag 1 throughout: all portals lead to the same nexus.
inline constexpr uint16_t portal_group_tag = 1;
struct TargetDefinition {
  std::string name;
  std::vector<scsi::LunMapping> luns;
};

struct ServerLimits {
  size_t connections_max = 1024;             // in total, half-open ones included
  size_t connections_per_address_max = 256;  // from one remote address
  Duration login_deadline = std::chrono::seconds(15);
  Duration keepalive_idle = std::chrono::seconds(15);    // nothing heard so long: a NOP-In asks
  Duration keepalive_answer = std::chrono::seconds(15);  // nothing heard after that: dead
  Duration logout_grace =
      std::chrono::seconds(3);    // at shutdown, for initiators to log out by themselves
  uint32_t command_window = 128;  // commands in flight per session
  uint32_t max_burst_length = 1024 * 1024;
  uint32_t first_burst_length = 256 * 1024;
};

struct ServerView {
  std::map<std::string, std::vector<scsi::LunMapping>, std::less<>> targets;  // by name
  std::shared_ptr<const AccessTable> access;
  // "10.0.0.2:3260": the addresses told in SendTargets besides the one that was reached.
  std::vector<std::string> advertised_portals;
};

}  // namespace vjbod::target
