// SPDX-License-Identifier: Apache-2.0
// Tells peers what becomes of the LUNs of disks that ended here: at once, or as soon as the peer is
// there again, for which the state keeps them. Main reactor.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "common/rpc/event_log.h"
#include "common/runtime/timer_queue.h"
#include "initiator/control/host_state.h"
#include "initiator/control/peer_manager.h"

namespace vjbod::initiator {

class Farewells {
 public:
  using Told = std::function<void(vjbod::Status)>;

  Farewells(Reactor& reactor, HostState& state, PeerManager& peers, rpc::EventLog& events);

  // Of a disk that ends now, to be put into the state with the disk's removal.
  static FarewellRecord of(const DiskRecord& disk, FarewellRecord::Ending ending);
  // Sends one that is in the state. `told`: the peer knows, or why it does not yet; it is tried
  // again then.
  void tell(const std::string& id, Told told);
  void tell_all(const std::string& peer);  // the peer is there

  // Those that an attach of `lun` (name or NAA) makes void. They are out of the state afterwards,
  // without a save. Busy: one is on its way.
  Result<std::map<std::string, FarewellRecord>> take_back(const std::string& peer,
                                                          const std::string& lun);
  // Of a LUN that is to be made: only farewells that know nothing but the name, from an attach that
  // was given up, would end the new one.
  Result<std::map<std::string, FarewellRecord>> take_back_unnamed(const std::string& peer,
                                                                  const std::string& lun);
  void put_back(std::map<std::string, FarewellRecord> taken);  // the attach failed

 private:
  Result<std::map<std::string, FarewellRecord>> take_back_if(
      const std::function<bool(const FarewellRecord&)>& concerned);
  void answered(const std::string& id, const Result<v1::Empty>& answer, const Told& told);
  void retry();

  Reactor& reactor_;
  HostState& state_;
  PeerManager& peers_;
  rpc::EventLog& events_;
  std::set<std::string> on_their_way_;
  Timer retry_timer_;
};

}  // namespace vjbod::initiator
