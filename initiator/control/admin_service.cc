// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/admin_service.h"

#include <utility>

#include "initiator/control/preflight.h"

namespace vjbod::initiator {

namespace {

constexpr Duration list_timeout = std::chrono::seconds(10);

// Ends a call with the value of a result.
template <typename Response>
auto answer_with(rpc::Answer<Response> answer) {
  return [answer](Result<Response> result) mutable {
    if (result) answer.response() = std::move(*result);
    answer.finish(result);
  };
}

auto answer_done(rpc::Answer<v1::Empty> answer) {
  return [answer](vjbod::Status status) mutable { answer.finish(status); };
}

// A create or an attach: steps as they come, then the disk.
template <typename Request, typename Start>
grpc::ServerWriteReactor<v1::DiskProgress>* stream_progress(Reactor& reactor,
                                                            const Request* request, Start start) {
  auto stream = std::make_shared<rpc::ServerStream<v1::DiskProgress>>();
  reactor.post([stream, request = *request, start = std::move(start)] {
    auto progress = [stream](const std::string& step, const std::string& text) {
      v1::DiskProgress message;
      message.set_step(step);
      message.set_text(text);
      stream->write(std::move(message));
    };
    start(request, progress, [stream](Result<v1::Disk> disk) {
      if (!disk) {
        stream->finish(rpc::to_grpc_status(disk.error()));
        return;
      }
      v1::DiskProgress last;
      last.set_step("done");
      *last.mutable_disk() = std::move(*disk);
      stream->write(std::move(last));
      stream->finish(grpc::Status::OK);
    });
  });
  return stream->start();
}

}  // namespace

AdminService::Unary* AdminService::GetStatus(Context* context, const v1::Empty*,
                                             v1::HostStatus* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this](auto answer) {
    answer.response() = parts_.status;
    answer.response().set_disks(static_cast<uint32_t>(parts_.disks.count()));
    answer.ok();
  });
}

AdminService::Unary* AdminService::Pair(Context* context, const v1::HostPairRequest* request,
                                        v1::HostPeer* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.peers.pair(*request, answer_with(answer));
  });
}

AdminService::Unary* AdminService::ListPeers(Context* context, const v1::Empty*,
                                             v1::ListHostPeersResponse* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this](auto answer) {
    parts_.peers.list(answer.response());
    answer.ok();
  });
}

AdminService::Unary* AdminService::Unpair(Context* context, const v1::UnpairRequest* request,
                                          v1::Empty* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.peers.unpair(request->peer(), request->force(), answer_done(answer));
  });
}

AdminService::Unary* AdminService::ListInterfacePairs(Context* context,
                                                      const v1::PeerRequest* request,
                                                      v1::ListInterfacePairsResponse* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    list_interface_pairs(parts_.peers, request->peer(), answer_with(answer));
  });
}

AdminService::Unary* AdminService::Preflight(Context* context, const v1::PeerRequest* request,
                                             v1::PreflightResponse* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    run_preflight(parts_.reactor, parts_.peers, parts_.probe_shard, request->peer(),
                  answer_with(answer));
  });
}

AdminService::Unary* AdminService::ListPeerPools(Context* context, const v1::PeerRequest* request,
                                                 v1::ListPeerPoolsResponse* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    auto link = parts_.peers.link(request->peer());
    if (!link) {
      answer.fail(link.error());
      return;
    }
    (*link)->template call<v1::Empty, v1::ListPoolsResponse>(
        &PeerLink::Service::Stub::async_interface::ListPools, v1::Empty(), list_timeout,
        [answer](Result<v1::ListPoolsResponse> pools) mutable {
          if (pools) *answer.response().mutable_pools() = pools->pools();
          answer.finish(pools);
        });
  });
}

AdminService::Unary* AdminService::ListPeerLuns(Context* context, const v1::PeerRequest* request,
                                                v1::ListPeerLunsResponse* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    auto link = parts_.peers.link(request->peer());
    if (!link) {
      answer.fail(link.error());
      return;
    }
    (*link)->template call<v1::Empty, v1::ListLunsResponse>(
        &PeerLink::Service::Stub::async_interface::ListLuns, v1::Empty(), list_timeout,
        [answer](Result<v1::ListLunsResponse> luns) mutable {
          if (luns) *answer.response().mutable_luns() = luns->luns();
          answer.finish(luns);
        });
  });
}

grpc::ServerWriteReactor<v1::DiskProgress>* AdminService::CreateDisk(
    Context*, const v1::CreateDiskRequest* request) {
  return stream_progress(parts_.reactor, request,
                         [this](const v1::CreateDiskRequest& create, auto progress, auto done) {
                           parts_.disks.create(create, progress, done);
                         });
}

grpc::ServerWriteReactor<v1::DiskProgress>* AdminService::AttachDisk(
    Context*, const v1::AttachDiskRequest* request) {
  return stream_progress(parts_.reactor, request,
                         [this](const v1::AttachDiskRequest& attach, auto progress, auto done) {
                           parts_.disks.attach(attach, progress, done);
                         });
}

AdminService::Unary* AdminService::ListDisks(Context* context, const v1::ListDisksRequest* request,
                                             v1::ListDisksResponse* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.disks.list(request->disk(), answer_with(answer));
  });
}

AdminService::Unary* AdminService::ConnectDisk(Context* context, const v1::DiskRequest* request,
                                               v1::Disk* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.disks.connect(request->disk(), answer_with(answer));
  });
}

AdminService::Unary* AdminService::DisconnectDisk(Context* context, const v1::DiskRequest* request,
                                                  v1::Disk* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.disks.disconnect(request->disk(), answer_with(answer));
  });
}

AdminService::Unary* AdminService::ReconnectDisk(Context* context,
                                                 const v1::ReconnectDiskRequest* request,
                                                 v1::Disk* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.disks.reconnect(*request, answer_with(answer));
  });
}

AdminService::Unary* AdminService::EditDisk(Context* context, const v1::EditDiskRequest* request,
                                            v1::Disk* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.disks.edit(*request, answer_with(answer));
  });
}

AdminService::Unary* AdminService::DetachDisk(Context* context,
                                              const v1::DetachDiskRequest* request,
                                              v1::Empty* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.disks.detach(request->disk(), request->force(), answer_done(answer));
  });
}

AdminService::Unary* AdminService::DeleteDisk(Context* context, const v1::DiskRequest* request,
                                              v1::Empty* response) {
  return rpc::handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.disks.remove(request->disk(), answer_done(answer));
  });
}

grpc::ServerWriteReactor<v1::Event>* AdminService::Events(Context*,
                                                          const v1::HostEventsRequest* request) {
  auto stream = std::make_shared<rpc::ServerStream<v1::Event>>();
  parts_.reactor.post(
      [this, stream, follow = request->follow()] { parts_.events.subscribe(stream, follow); });
  return stream->start();
}

}  // namespace vjbod::initiator
