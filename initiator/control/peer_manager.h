// SPDX-License-Identifier: Apache-2.0
// The boxes this host is paired with: pairing, their control channels, and what can be asked of
// them. Main reactor.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "common/net/interfaces.h"
#include "common/rpc/event_log.h"
#include "common/rpc/identity.h"
#include "initiator/control/host_state.h"
#include "initiator/control/peer_link.h"
#include "vjbod/v1/host.pb.h"

namespace vjbod::initiator {

class PeerManager final : private PeerLinkEvents {
 public:
  static constexpr size_t peers_max = 64;

  PeerManager(Reactor& reactor, const rpc::Identity& identity, std::string host_name,
              HostState& state, rpc::EventLog& events);

  void start();  // opens the control channels of all peers

  // The address and port of the token are used where none are given.
  void pair(const v1::HostPairRequest& request, std::function<void(Result<v1::HostPeer>)> done);
  // The disks of the peer must be gone. With `force` a peer that cannot be told is forgotten all
  // the same.
  void unpair(const std::string& name, bool force, std::function<void(vjbod::Status)> done);
  void list(v1::ListHostPeersResponse& response) const;

  // An error when there is no such peer.
  Result<PeerLink*> link(const std::string& name);
  Result<const PeerRecord*> record(const std::string& name) const;
  // The peer's interfaces and portals, as of now.
  void describe(const std::string& name, std::function<void(Result<v1::DescribeResponse>)> done);
  // Called for every event of a peer, besides being logged.
  std::function<void(const std::string& peer, const v1::Event& event)> on_event;
  std::function<void(const std::string& peer)> on_reachable;
  // Ends all calls and control channels; nothing of gRPC's clients runs any more when `done` comes.
  void shutdown(std::function<void()> done);

 private:
  void on_peer_event(const std::string& peer, const v1::Event& event) override;
  void on_peer_reachable(const std::string& peer, bool reachable) override;
  void open_link(const PeerRecord& peer);
  // Those that wait for it hear `reason`.
  void retire(std::unique_ptr<PeerLink> link, Error reason);
  void retire_pairing(uint64_t id);
  v1::HostPeer view(const PeerRecord& peer) const;
  // What the other box says of itself, checked and saved.
  vjbod::Status take_peer(const v1::PairResponse& answer, PeerRecord& record);
  const PeerRecord* known_by(const rpc::Fingerprint& fingerprint) const;
  void finish_unpair(const std::string& name);
  // The other box has paired, but we have not: it forgets us again.
  void undo_pairing(uint64_t id);

  Reactor& reactor_;
  const rpc::Identity& identity_;
  const std::string host_name_;
  HostState& state_;
  rpc::EventLog& events_;
  std::map<std::string, std::unique_ptr<PeerLink>> links_;
  std::map<uint64_t, std::unique_ptr<PeerLink>> pairing_;  // links of pairings under way
  uint64_t next_pairing_ = 1;
  std::list<std::unique_ptr<PeerLink>> retired_;  // until gRPC knows them no more
  bool stopping_ = false;
  std::function<void()> shut_down_;
};

}  // namespace vjbod::initiator
