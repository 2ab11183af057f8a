// SPDX-License-Identifier: Apache-2.0
#include "target/control/peer_service.h"

#include "common/config/values.h"
#include "common/rpc/timestamp.h"
#include "common/rpc/version.h"
#include "common/runtime/wall_clock.h"
#include "target/control/wire.h"

namespace vjbod::target {

using rpc::Answer;
using rpc::Errc;
using rpc::Severity;

namespace {
constexpr Duration refusal_event_interval = std::chrono::seconds(1);
}

Result<PairedHost> PeerService::host_of(const rpc::Caller& caller) const {
  const PairedHost* host =
      caller.fingerprint ? parts_.access.find_host(*caller.fingerprint) : nullptr;
  if (host != nullptr) return *host;
  return fail(
      Errc::authentication,
      "the target box {} is not paired with this host; pair them: `vjbod target pair-token` "
      "there, then `vjbod pair` here",
      parts_.config.name);
}

template <typename Response, typename Work>
grpc::ServerUnaryReactor* PeerService::for_host(grpc::CallbackServerContext* context,
                                                Response* response, Work work) {
  return rpc::handle_call(
      parts_.reactor, context, response,
      [this, caller = rpc::caller_of(*context), work = std::move(work)](Answer<Response> answer) {
        Result<PairedHost> host = host_of(caller);
        if (!host) return answer.fail(host.error());
        work(*host, std::move(answer));
      });
}

grpc::ServerUnaryReactor* PeerService::Pair(grpc::CallbackServerContext* context,
                                            const v1::PairRequest* request,
                                            v1::PairResponse* response) {
  return rpc::handle_call(parts_.reactor, context, response,
                          [this, caller = rpc::caller_of(*context), request](auto answer) {
                            answer.finish(pair(caller, *request, answer.response()));
                          });
}

Status PeerService::pair(const rpc::Caller& caller, const v1::PairRequest& request,
                         v1::PairResponse& response) {
  if (!caller.fingerprint) return fail(Errc::authentication, "a certificate is needed to pair");
  const ConstBytes secret = as_bytes(request.secret());
  const TimePoint now = parts_.reactor.now();
  if (Status valid = parts_.pairing.present(secret, *caller.fingerprint, now); !valid) {
    if (refusal_told_ > now - refusal_event_interval) return valid;
    refusal_told_ = now;
    parts_.event(Severity::warning, "pairing-refused", caller.address,
                 "somebody presented a wrong, used or expired pairing token");
    return valid;
  }
  // The token is still good if one of these fails: what they complain of can be put right.
  if (Status fits = rpc::check_version(request.version(), "the host"); !fits) return fits;
  PairedHost host{request.host_name(), *caller.fingerprint, request.initiator_iqn(), wall_now()};
  const PairedHost* known = parts_.access.find_host(*caller.fingerprint);
  const std::string old_name = known != nullptr ? known->name : host.name;
  if (Status added = parts_.access.add_host(host); !added) return added;
  // Else it would hear what is meant for another host that takes its old name.
  if (old_name != host.name)
    parts_.watchers.close(old_name, {Errc::other, "the host has another name now"});
  parts_.pairing.use(secret, *caller.fingerprint);
  parts_.event(Severity::info, "paired", host.name,
               fmt::format("host {} at {} is paired, fingerprint {}", host.name, caller.address,
                           host.fingerprint.to_text()));
  response.set_target_name(parts_.config.name);
  *response.mutable_version() = rpc::our_version();
  return {};
}

grpc::ServerUnaryReactor* PeerService::Unpair(grpc::CallbackServerContext* context,
                                              const v1::Empty*, v1::Empty* response) {
  return for_host(context, response, [this](const PairedHost& host, Answer<v1::Empty> answer) {
    parts_.access.remove_host(host.name, [this, name = host.name, answer](Status removed) mutable {
      if (AccessManager::in_force(removed)) {
        parts_.pairing.forget_used();
        parts_.watchers.close(name, {Errc::authentication, "the host is not paired any more"});
        parts_.event(Severity::info, "unpaired", name, fmt::format("host {} unpaired", name));
      }
      answer.finish(removed);
    });
  });
}

grpc::ServerUnaryReactor* PeerService::Describe(grpc::CallbackServerContext* context,
                                                const v1::DescribeRequest* request,
                                                v1::DescribeResponse* response) {
  return for_host(context, response,
                  [this, request](const PairedHost& host, Answer<v1::DescribeResponse> answer) {
                    if (Status fits = rpc::check_version(request->version(), "the host"); !fits)
                      return answer.fail(fits.error());
                    Result<std::vector<net::Interface>> interfaces = net::list_interfaces();
                    if (!interfaces) return answer.fail(interfaces.error());
                    v1::DescribeResponse& description = answer.response();
                    description.set_target_name(parts_.config.name);
                    *description.mutable_version() = rpc::our_version();
                    for (const net::Interface& interface : *interfaces)
                      if (!interface.loopback) fill(interface, *description.add_interfaces());
                    for (const ReachablePortal& portal : parts_.portals())
                      fill(portal, *description.add_portals());
                    *description.mutable_now() = rpc::to_timestamp(wall_now());
                    description.set_host_name_known_as(host.name);
                    answer.ok();
                  });
}

grpc::ServerUnaryReactor* PeerService::ListPools(grpc::CallbackServerContext* context,
                                                 const v1::Empty*,
                                                 v1::ListPoolsResponse* response) {
  return for_host(context, response,
                  [this](const PairedHost&, Answer<v1::ListPoolsResponse> answer) {
                    for (const PoolStatus& pool : parts_.pools.list())
                      fill(pool, parts_.store.state(), false, *answer.response().add_pools());
                    answer.ok();
                  });
}

grpc::ServerUnaryReactor* PeerService::ListLuns(grpc::CallbackServerContext* context,
                                                const v1::Empty*, v1::ListLunsResponse* response) {
  return for_host(context, response,
                  [this](const PairedHost& host, Answer<v1::ListLunsResponse> answer) {
                    parts_.serving.list_sessions([this, host, answer](auto sessions) mutable {
                      const SessionCounts counts = count_sessions(sessions);
                      for (const auto& [name, lun] : parts_.store.state().luns) {
                        const bool own = lun.binding && lun.binding->host == host.name;
                        const bool free = !lun.binding && lun.allowed_initiators.empty();
                        if (own || free)
                          fill(parts_.luns.status(lun), counts, *answer.response().add_luns());
                      }
                      answer.ok();
                    });
                  });
}

grpc::ServerUnaryReactor* PeerService::ProvisionLun(grpc::CallbackServerContext* context,
                                                    const v1::ProvisionLunRequest* request,
                                                    v1::LunAccess* response) {
  return for_host(context, response,
                  [this, request](const PairedHost& host, Answer<v1::LunAccess> answer) {
                    answer.finish(provision(host, *request, answer.response()));
                  });
}

Status PeerService::provision(const PairedHost& host, const v1::ProvisionLunRequest& request,
                              v1::LunAccess& response) {
  if (Status valid = config::check_name("LUN name", request.name()); !valid) return valid;
  if (request.request_id().empty())
    return fail(Errc::usage, "a request to make a LUN needs a request id");
  Result<LunBinding> binding =
      parts_.access.make_binding(host.name, target_iqn(parts_.config, request.name()));
  if (!binding) return fail(binding.error());
  const bool existed = parts_.store.state().luns.contains(request.name());
  LunSpecification specification;
  specification.name = request.name();
  specification.pool = request.pool();
  specification.size_bytes = request.size_bytes();
  if (request.block_size() != 0) specification.block_size = request.block_size();
  specification.thick = request.thick();
  specification.request_id = request.request_id();
  specification.binding = std::move(*binding);
  if (Status created = parts_.luns.create(std::move(specification)); !created) return created;
  if (!existed)
    parts_.event(Severity::info, "lun-created", request.name(),
                 fmt::format("LUN {} of {} made in pool {} for host {}", request.name(),
                             config::size_text(request.size_bytes()), request.pool(), host.name));
  return fill_access(request.name(), host.name, response);
}

Status PeerService::fill_access(const std::string& lun, const std::string& host,
                                v1::LunAccess& response) const {
  const Result<const LunRecord*> found = parts_.luns.find(lun);
  if (!found) return fail(found.error());
  const LunRecord& record = **found;
  // It may have been unbound while the call waited for sessions to end.
  if (!record.binding || record.binding->host != host)
    return fail(Errc::bound_to_another_host, "LUN {} is not bound to host {} any more", lun, host);
  const LunStatus status = parts_.luns.status(record);
  if (!status.error.empty()) return fail(Errc::other, "{}", status.error);
  fill(status, {}, *response.mutable_lun());
  for (const ReachablePortal& portal : parts_.portals()) fill(portal, *response.add_portals());
  const LunBinding& binding = *record.binding;
  response.set_chap_user(binding.chap.user);
  response.set_chap_secret(std::string(as_text(binding.chap.secret.bytes())));
  response.set_mutual_user(binding.mutual.user);
  response.set_mutual_secret(std::string(as_text(binding.mutual.secret.bytes())));
  return {};
}

grpc::ServerUnaryReactor* PeerService::OpenLun(grpc::CallbackServerContext* context,
                                               const v1::OpenLunRequest* request,
                                               v1::LunAccess* response) {
  return for_host(
      context, response, [this, request](const PairedHost& host, Answer<v1::LunAccess> answer) {
        Result<const LunRecord*> record = parts_.luns.find(request->lun());
        if (!record) return answer.fail(record.error());
        const std::string name = (*record)->name;
        if (request->as_bound()) {
          Result<std::string> own = own_lun(host, name);
          return answer.finish(own ? fill_access(name, host.name, answer.response())
                                   : Status(fail(own.error())));
        }
        parts_.access.bind(name, host.name,
                           [this, name, host = host.name, answer](Status bound) mutable {
                             if (AccessManager::in_force(bound))
                               parts_.event(Severity::info, "lun-bound", name,
                                            fmt::format("LUN {} is bound to host {}", name, host));
                             if (!bound) return answer.fail(bound.error());
                             answer.finish(fill_access(name, host, answer.response()));
                           });
      });
}

Result<std::string> PeerService::own_lun(const PairedHost& host,
                                         const std::string& name_or_naa) const {
  Result<const LunRecord*> record = parts_.luns.find(name_or_naa);
  if (!record) return fail(record.error());
  const std::optional<LunBinding>& binding = (*record)->binding;
  if (!binding)
    return fail(Errc::bound_to_another_host, "LUN {} is not bound to host {}", (*record)->name,
                host.name);
  if (binding->host != host.name)
    return fail(Errc::bound_to_another_host, "LUN {} is bound to another host", (*record)->name);
  return (*record)->name;
}

grpc::ServerUnaryReactor* PeerService::CloseLun(grpc::CallbackServerContext* context,
                                                const v1::LunRequest* request,
                                                v1::Empty* response) {
  return for_host(
      context, response, [this, request](const PairedHost& host, Answer<v1::Empty> answer) {
        Result<const LunRecord*> record = parts_.luns.find(request->lun());
        // Closed before, but its sessions may still be on their way out.
        if (record && !(*record)->binding)
          return parts_.access.unbind((*record)->name,
                                      [answer](Status unbound) mutable { answer.finish(unbound); });
        Result<std::string> name = own_lun(host, request->lun());
        if (!name) return answer.fail(name.error());
        parts_.access.unbind(*name, [this, name = *name, host, answer](Status unbound) mutable {
          if (AccessManager::in_force(unbound))
            parts_.event(Severity::info, "lun-unbound", name,
                         fmt::format("host {} let go of LUN {}", host.name, name));
          answer.finish(unbound);
        });
      });
}

grpc::ServerUnaryReactor* PeerService::DeleteLun(grpc::CallbackServerContext* context,
                                                 const v1::LunRequest* request,
                                                 v1::Empty* response) {
  return for_host(
      context, response, [this, request](const PairedHost& host, Answer<v1::Empty> answer) {
        Result<std::string> name = own_lun(host, request->lun());
        if (!name) return answer.fail(name.error());
        // A creation that its host gives up: what another one made is not its to delete.
        if (!request->request_id().empty() &&
            parts_.store.state().luns.at(*name).request_id != request->request_id())
          return answer.fail(
              {Errc::not_found, fmt::format("LUN {} was not made by that request", *name)});
        parts_.luns.remove(*name, [this, name = *name, host, answer](Status removed) mutable {
          if (removed)
            parts_.event(Severity::info, "lun-deleted", name,
                         fmt::format("host {} deleted LUN {}", host.name, name));
          answer.finish(removed);
        });
      });
}

grpc::ServerUnaryReactor* PeerService::ResizeLun(grpc::CallbackServerContext* context,
                                                 const v1::ResizeLunRequest* request,
                                                 v1::Lun* response) {
  return for_host(
      context, response, [this, request](const PairedHost& host, Answer<v1::Lun> answer) {
        Result<std::string> name = own_lun(host, request->lun());
        if (!name) return answer.fail(name.error());
        Status resized = parts_.luns.resize(*name, request->size_bytes());
        if (!resized) return answer.fail(resized.error());
        const LunRecord& record = parts_.store.state().luns.at(*name);
        parts_.event(Severity::info, "lun-resized", *name,
                     fmt::format("LUN {} now has {}", *name, config::size_text(record.size_bytes)));
        fill(parts_.luns.status(record), {}, answer.response());
        answer.ok();
      });
}

grpc::ServerWriteReactor<v1::Event>* PeerService::Watch(grpc::CallbackServerContext* context,
                                                        const v1::Empty*) {
  auto stream = std::make_shared<rpc::ServerStream<v1::Event>>();
  parts_.reactor.post([this, stream, caller = rpc::caller_of(*context)] {
    Result<PairedHost> host = host_of(caller);
    if (host)
      parts_.watchers.watch(host->name, stream);
    else
      stream->finish(rpc::to_grpc_status(host.error()));
  });
  return stream->start();
}

}  // namespace vjbod::target
