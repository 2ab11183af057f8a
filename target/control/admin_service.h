// SPDX-License-Identifier: Apache-2.0
// TargetAdmin: what `vjbod target` calls on the box itself. Who may call was decided when the
// connection was accepted. gRPC's threads only post to the control reactor.
#pragma once

#include <functional>
#include <string>

#include "common/rpc/call_bridge.h"
#include "target/control/control_parts.h"
#include "vjbod/v1/target.grpc.pb.h"

namespace vjbod::target {

class AdminService final : public v1::TargetAdmin::CallbackService {
 public:
  // `parts` outlives the service.
  explicit AdminService(ControlParts& parts) : parts_(parts) {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  Unary* GetStatus(Context* context, const v1::Empty*, v1::TargetStatus* response) override;
  Unary* CreatePairToken(Context* context, const v1::CreatePairTokenRequest* request,
                         v1::PairToken* response) override;
  Unary* ListPeers(Context* context, const v1::Empty*,
                   v1::ListTargetPeersResponse* response) override;
  Unary* UnpairPeer(Context* context, const v1::NameRequest* request, v1::Empty* response) override;
  Unary* ListPools(Context* context, const v1::Empty*, v1::ListPoolsResponse* response) override;
  Unary* CreateLun(Context* context, const v1::CreateLunRequest* request,
                   v1::Lun* response) override;
  Unary* ListLuns(Context* context, const v1::Empty*, v1::ListLunsResponse* response) override;
  Unary* DeleteLun(Context* context, const v1::LunRequest* request, v1::Empty* response) override;
  Unary* ResizeLun(Context* context, const v1::ResizeLunRequest* request,
                   v1::Lun* response) override;
  Unary* BindLun(Context* context, const v1::BindLunRequest* request, v1::Lun* response) override;
  Unary* UnbindLun(Context* context, const v1::LunRequest* request, v1::Lun* response) override;
  Unary* AddInitiator(Context* context, const v1::AddInitiatorRequest* request,
                      v1::Initiator* response) override;
  Unary* ListInitiators(Context* context, const v1::Empty*,
                        v1::ListInitiatorsResponse* response) override;
  Unary* RemoveInitiator(Context* context, const v1::NameRequest* request,
                         v1::Empty* response) override;
  Unary* AllowInitiator(Context* context, const v1::InitiatorLunRequest* request,
                        v1::Initiator* response) override;
  Unary* DenyInitiator(Context* context, const v1::InitiatorLunRequest* request,
                       v1::Initiator* response) override;
  Unary* ListPortals(Context* context, const v1::Empty*,
                     v1::ListPortalsResponse* response) override;
  Unary* ListSessions(Context* context, const v1::Empty*,
                      v1::ListSessionsResponse* response) override;
  Unary* KillSession(Context* context, const v1::NameRequest* request,
                     v1::Empty* response) override;
  grpc::ServerWriteReactor<v1::Event>* Events(Context* context,
                                              const v1::EventsRequest* request) override;
  Unary* SetFault(Context* context, const v1::SetFaultRequest* request,
                  v1::Empty* response) override;
  Unary* TraceLun(Context* context, const v1::NameRequest* request,
                  v1::LunTrace* response) override;

 private:
  Status create_token(uint32_t ttl_s, v1::PairToken& response);
  Status set_fault(const v1::SetFaultRequest& request);
  void delete_lun(const std::string& name, rpc::Answer<v1::Empty> answer);
  // Answers with the LUN as it is now, or with the error.
  void answer_lun(const Status& status, const std::string& name, rpc::Answer<v1::Lun>& answer);
  void answer_initiator(const Status& status, const std::string& iqn,
                        rpc::Answer<v1::Initiator>& answer);

  ControlParts& parts_;
};

}  // namespace vjbod::target
