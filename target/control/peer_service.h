// SPDX-License-Identifier: Apache-2.0
// TargetPeer: what hosts call over TLS. Every call but Pair is refused unless the caller's
// certificate is that of a paired host; a paired host sees and changes its own LUNs only. gRPC's
// threads only post to the control reactor.
#pragma once

#include <functional>
#include <string>

#include "common/rpc/call_bridge.h"
#include "target/control/control_parts.h"
#include "vjbod/v1/target.grpc.pb.h"

namespace vjbod::target {

class PeerService final : public v1::TargetPeer::CallbackService {
 public:
  // `parts` outlives the service.
  explicit PeerService(ControlParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* Pair(grpc::CallbackServerContext* context,
                                 const v1::PairRequest* request,
                                 v1::PairResponse* response) override;
  grpc::ServerUnaryReactor* Unpair(grpc::CallbackServerContext* context, const v1::Empty* request,
                                   v1::Empty* response) override;
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* request,
                                     v1::DescribeResponse* response) override;
  grpc::ServerUnaryReactor* ListPools(grpc::CallbackServerContext* context,
                                      const v1::Empty* request,
                                      v1::ListPoolsResponse* response) override;
  grpc::ServerUnaryReactor* ListLuns(grpc::CallbackServerContext* context, const v1::Empty* request,
                                     v1::ListLunsResponse* response) override;
  grpc::ServerUnaryReactor* ProvisionLun(grpc::CallbackServerContext* context,
                                         const v1::ProvisionLunRequest* request,
                                         v1::LunAccess* response) override;
  grpc::ServerUnaryReactor* OpenLun(grpc::CallbackServerContext* context,
                                    const v1::OpenLunRequest* request,
                                    v1::LunAccess* response) override;
  grpc::ServerUnaryReactor* CloseLun(grpc::CallbackServerContext* context,
                                     const v1::LunRequest* request, v1::Empty* response) override;
  grpc::ServerUnaryReactor* DeleteLun(grpc::CallbackServerContext* context,
                                      const v1::LunRequest* request, v1::Empty* response) override;
  grpc::ServerUnaryReactor* ResizeLun(grpc::CallbackServerContext* context,
                                      const v1::ResizeLunRequest* request,
                                      v1::Lun* response) override;
  grpc::ServerWriteReactor<v1::Event>* Watch(grpc::CallbackServerContext* context,
                                             const v1::Empty* request) override;

 private:
  // `work(PairedHost, Answer)` on the control reactor, for a paired caller only.
  template <typename Response, typename Work>
  grpc::ServerUnaryReactor* for_host(grpc::CallbackServerContext* context, Response* response,
                                     Work work);
  Result<PairedHost> host_of(const rpc::Caller& caller) const;
  // The LUN, if it is bound to the host.
  Result<std::string> own_lun(const PairedHost& host, const std::string& name_or_naa) const;
  Status pair(const rpc::Caller& caller, const v1::PairRequest& request,
              v1::PairResponse& response);
  Status provision(const PairedHost& host, const v1::ProvisionLunRequest& request,
                   v1::LunAccess& response);
  Status fill_access(const std::string& lun, const std::string& host,
                     v1::LunAccess& response) const;

  ControlParts& parts_;
  TimePoint refusal_told_ = TimePoint::min();  // one event per second, however many try
};

}  // namespace vjbod::target
