// SPDX-License-Identifier: Apache-2.0
// Who logs in where, how, and how patiently. Made by the control layer; a value that is copied into
// every session of a disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/iscsi/chap.h"
#include "common/iscsi/negotiation.h"
#include "common/iscsi/pdu.h"
#include "common/runtime/clock.h"

namespace vjbod::initiator {

struct SessionTimers {
  Duration connect_timeout = std::chrono::seconds(3);
  Duration login_timeout = std::chrono::seconds(15);  // from connected to full feature phase
  // Any received byte counts as life. After so long without one a NOP-Out asks for a sign of life,
  // and without an answer the connection is given up after the second time.
  Duration keepalive_idle = std::chrono::seconds(15);
  Duration keepalive_timeout = std::chrono::seconds(15);
  // How long commands under way may take to come in before a logout, and the logout itself.
  Duration drain_timeout = std::chrono::milliseconds(1500);
  Duration logout_timeout = std::chrono::milliseconds(1500);
  // A command without an answer for so long, on a connection that lives, is got back by closing
  // the connection: at ErrorRecoveryLevel 0 there is no other way that is safe.
  Duration command_timeout = std::chrono::seconds(120);
  // How long the target may take to end what an earlier session has left.
  Duration fence_timeout = std::chrono::seconds(30);
};

struct SessionConfig {
  std::string initiator_name;
  std::string target_name;  // empty: a discovery session
  // Persistent: the same over all reconnects, so that a new session reinstates the old one and the
  // target can fence it (RFC 7143 section 6.3.5). Different for every session to the same target.
  iscsi::Isid isid{};
  std::optional<iscsi::ChapCredentials> chap;    // what we prove
  std::optional<iscsi::ChapCredentials> mutual;  // what the target must prove
  std::vector<iscsi::ChapAlgorithm> chap_algorithms{iscsi::chap_algorithms_by_strength.begin(),
                                                    iscsi::chap_algorithms_by_strength.end()};
  // Some targets choke on a list of algorithms, or take SHA-256's number for another algorithm: a
  // login that ends at CHAP is tried once more at once with MD5 alone, and what worked is kept.
  // Never for targets of ours.
  bool chap_md5_retry = false;
  // For targets that are not ours: after the login, and before anything else, what an earlier
  // session with the same ISID may have left in this LUN's task set is aborted. Reinstatement
  // should have done so (RFC 7143 section 6.3.5), but not every target waits for writes that its
  // storage still holds, and one that lands after its repetition undoes what came later. ABORT TASK
  // SET is for our own I_T nexus alone: a LUN reset would hit the others of a shared LUN.
  std::optional<iscsi::LunField> fence_lun;
  iscsi::DigestWish header_digest = iscsi::DigestWish::none;
  iscsi::DigestWish data_digest = iscsi::DigestWish::none;
  SessionTimers timers;
  iscsi::FillRandom fill_random = fill_secure_random;  // for challenges; a simulation repeats them

  SessionConfig copy() const;
};

}  // namespace vjbod::initiator
