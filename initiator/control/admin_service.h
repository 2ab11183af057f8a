// SPDX-License-Identifier: Apache-2.0
// HostAdmin: what `vjbod` on this box calls. Takes calls from gRPC's threads to the main reactor,
// and nothing else.
#pragma once

#include <memory>

#include "common/rpc/call_bridge.h"
#include "common/rpc/event_log.h"
#include "initiator/control/disk_manager.h"
#include "initiator/control/peer_manager.h"
#include "vjbod/v1/host.grpc.pb.h"

namespace vjbod::initiator {

class AdminService final : public v1::HostAdmin::CallbackService {
 public:
  struct Parts {
    Reactor& reactor;
    PeerManager& peers;
    DiskManager& disks;
    rpc::EventLog& events;
    HostShard& probe_shard;  // for preflight
    v1::HostStatus status;   // without the count of disks
  };
  explicit AdminService(Parts parts) : parts_(std::move(parts)) {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  Unary* GetStatus(Context*, const v1::Empty*, v1::HostStatus*) override;
  Unary* Pair(Context*, const v1::HostPairRequest*, v1::HostPeer*) override;
  Unary* ListPeers(Context*, const v1::Empty*, v1::ListHostPeersResponse*) override;
  Unary* Unpair(Context*, const v1::UnpairRequest*, v1::Empty*) override;
  Unary* ListInterfacePairs(Context*, const v1::PeerRequest*,
                            v1::ListInterfacePairsResponse*) override;
  Unary* Preflight(Context*, const v1::PeerRequest*, v1::PreflightResponse*) override;
  Unary* ListPeerPools(Context*, const v1::PeerRequest*, v1::ListPeerPoolsResponse*) override;
  Unary* ListPeerLuns(Context*, const v1::PeerRequest*, v1::ListPeerLunsResponse*) override;
  grpc::ServerWriteReactor<v1::DiskProgress>* CreateDisk(Context*,
                                                         const v1::CreateDiskRequest*) override;
  grpc::ServerWriteReactor<v1::DiskProgress>* AttachDisk(Context*,
                                                         const v1::AttachDiskRequest*) override;
  Unary* ListDisks(Context*, const v1::ListDisksRequest*, v1::ListDisksResponse*) override;
  Unary* ConnectDisk(Context*, const v1::DiskRequest*, v1::Disk*) override;
  Unary* DisconnectDisk(Context*, const v1::DiskRequest*, v1::Disk*) override;
  Unary* ReconnectDisk(Context*, const v1::ReconnectDiskRequest*, v1::Disk*) override;
  Unary* EditDisk(Context*, const v1::EditDiskRequest*, v1::Disk*) override;
  Unary* DetachDisk(Context*, const v1::DetachDiskRequest*, v1::Empty*) override;
  Unary* DeleteDisk(Context*, const v1::DiskRequest*, v1::Empty*) override;
  grpc::ServerWriteReactor<v1::Event>* Events(Context*, const v1::HostEventsRequest*) override;

 private:
  Parts parts_;
};

}  // namespace vjbod::initiator
