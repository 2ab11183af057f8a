// SPDX-License-Identifier: Apache-2.0
#include "target/control/admin_service.h"

#include <charconv>

#include "common/base/random.h"
#include "common/config/values.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/name.h"
#include "common/rpc/pairing_token.h"
#include "common/rpc/timestamp.h"
#include "common/rpc/version.h"
#include "common/runtime/wall_clock.h"
#include "target/control/fault_rules.h"
#include "target/control/wire.h"

namespace vjbod::target {

using rpc::Answer;
using rpc::Errc;
using rpc::handle_call;
using rpc::Severity;

AdminService::Unary* AdminService::GetStatus(Context* context, const v1::Empty*,
                                             v1::TargetStatus* response) {
  return handle_call(parts_.reactor, context, response, [this](Answer<v1::TargetStatus> answer) {
    parts_.serving.list_sessions([this, answer](const auto& sessions) mutable {
      v1::TargetStatus& status = answer.response();
      const TargetState& state = parts_.store.state();
      status.set_name(parts_.config.name);
      *status.mutable_version() = rpc::our_version();
      status.set_certificate_fingerprint(parts_.identity.fingerprint.to_text());
      *status.mutable_started_at() = rpc::to_timestamp(parts_.started_at);
      status.set_luns(static_cast<uint32_t>(state.luns.size()));
      status.set_sessions(static_cast<uint32_t>(sessions.size()));
      status.set_peers(static_cast<uint32_t>(state.hosts.size()));
      auto control = parts_.control_addresses();
      if (!control.empty())
        status.set_control_address(
            config::host_port_text(control.front().address, control.front().port));
      for (const ReachablePortal& portal : parts_.portals()) fill(portal, *status.add_portals());
      answer.ok();
    });
  });
}

AdminService::Unary* AdminService::CreatePairToken(Context* context,
                                                   const v1::CreatePairTokenRequest* request,
                                                   v1::PairToken* response) {
  return handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    answer.finish(create_token(request->ttl_s(), answer.response()));
  });
}

Status AdminService::create_token(uint32_t ttl_s, v1::PairToken& response) {
  const Duration ttl = ttl_s == 0 ? PairingDesk::ttl_default : std::chrono::seconds(ttl_s);
  if (ttl > PairingDesk::ttl_max)
    return fail(Errc::usage, "a pairing token can be good for 24 hours at the most");
  rpc::PairingToken token;
  for (const ReachablePortal& address : parts_.control_addresses()) {
    if (token.addresses.size() == rpc::token_addresses_max) break;
    token.addresses.push_back(address.address);
    token.port = address.port;
  }
  if (token.addresses.empty())
    return fail(Errc::other, "this box has no address that another one could reach");
  token.fingerprint = parts_.identity.fingerprint;
  token.secret = parts_.pairing.offer(parts_.reactor.now(), ttl, fill_secure_random);
  Result<std::string> text = rpc::encode_token(token);
  if (!text) return fail(text.error());
  response.set_token(*text);
  *response.mutable_expires_at() = rpc::to_timestamp(wall_now() + ttl);
  return {};
}

AdminService::Unary* AdminService::ListPeers(Context* context, const v1::Empty*,
                                             v1::ListTargetPeersResponse* response) {
  return handle_call(parts_.reactor, context, response, [this](auto answer) {
    for (const auto& [name, host] : parts_.store.state().hosts)
      fill(host, parts_.store.state(), parts_.watchers.watching(name),
           *answer.response().add_peers());
    answer.ok();
  });
}

AdminService::Unary* AdminService::UnpairPeer(Context* context, const v1::NameRequest* request,
                                              v1::Empty* response) {
  return handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    const std::string name = request->name();
    parts_.access.remove_host(name, [this, name, answer](Status removed) mutable {
      if (AccessManager::in_force(removed)) {
        parts_.pairing.forget_used();
        parts_.watchers.close(name, {Errc::authentication, "the host is not paired any more"});
        parts_.event(Severity::info, "unpaired", name, fmt::format("host {} unpaired here", name));
      }
      answer.finish(removed);
    });
  });
}

AdminService::Unary* AdminService::ListPools(Context* context, const v1::Empty*,
                                             v1::ListPoolsResponse* response) {
  return handle_call(parts_.reactor, context, response, [this](auto answer) {
    for (const PoolStatus& pool : parts_.pools.list())
      fill(pool, parts_.store.state(), true, *answer.response().add_pools());
    answer.ok();
  });
}

AdminService::Unary* AdminService::CreateLun(Context* context, const v1::CreateLunRequest* request,
                                             v1::Lun* response) {
  return handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    LunSpecification specification;
    specification.name = request->name();
    specification.pool = request->pool();
    specification.size_bytes = request->size_bytes();
    if (request->block_size() != 0) specification.block_size = request->block_size();
    specification.thick = request->thick();
    const bool existed = parts_.store.state().luns.contains(request->name());
    Status created = parts_.luns.create(std::move(specification));
    if (created && !existed)
      parts_.event(Severity::info, "lun-created", request->name(),
                   fmt::format("LUN {} of {} made in pool {}", request->name(),
                               config::size_text(request->size_bytes()), request->pool()));
    answer_lun(created, request->name(), answer);
  });
}

void AdminService::answer_lun(const Status& status, const std::string& name,
                              Answer<v1::Lun>& answer) {
  if (!status) return answer.fail(status.error());
  // It may have been deleted while the call waited for sessions to end.
  Result<const LunRecord*> record = parts_.luns.find(name);
  if (!record) return answer.fail(record.error());
  fill(parts_.luns.status(**record), {}, answer.response());
  answer.ok();
}

AdminService::Unary* AdminService::ListLuns(Context* context, const v1::Empty*,
                                            v1::ListLunsResponse* response) {
  return handle_call(parts_.reactor, context, response,
                     [this](Answer<v1::ListLunsResponse> answer) {
                       parts_.serving.list_sessions([this, answer](const auto& sessions) mutable {
                         const SessionCounts counts = count_sessions(sessions);
                         for (const auto& [name, lun] : parts_.store.state().luns)
                           fill(parts_.luns.status(lun), counts, *answer.response().add_luns());
                         answer.ok();
                       });
                     });
}

AdminService::Unary* AdminService::DeleteLun(Context* context, const v1::LunRequest* request,
                                             v1::Empty* response) {
  return handle_call(parts_.reactor, context, response, [this, request](Answer<v1::Empty> answer) {
    Result<const LunRecord*> record = parts_.luns.find(request->lun());
    if (!record) return answer.fail(record.error());
    delete_lun((*record)->name, std::move(answer));
  });
}

void AdminService::delete_lun(const std::string& name, Answer<v1::Empty> answer) {
  const LunRecord& record = parts_.store.state().luns.at(name);
  if (record.binding)
    return answer.fail({Errc::busy, fmt::format("LUN {} is bound to the host {}; detach it there, "
                                                "or unbind it first: vjbod target lun unbind {}",
                                                name, record.binding->host, name)});
  parts_.serving.list_sessions(
      [this, name, target = record.target_iqn, answer](const auto& sessions) mutable {
        const SessionCounts counts = count_sessions(sessions);
        if (counts.contains(target))
          return answer.fail({Errc::busy, fmt::format("LUN {} is in use by {} sessions; end them "
                                                      "first (see: vjbod target session list)",
                                                      name, counts.at(target))});
        parts_.luns.remove(name, [this, name, answer](Status removed) mutable {
          if (removed)
            parts_.event(Severity::info, "lun-deleted", name, fmt::format("LUN {} deleted", name));
          answer.finish(removed);
        });
      });
}

AdminService::Unary* AdminService::ResizeLun(Context* context, const v1::ResizeLunRequest* request,
                                             v1::Lun* response) {
  return handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    Result<const LunRecord*> record = parts_.luns.find(request->lun());
    if (!record) return answer.fail(record.error());
    const std::string name = (*record)->name;
    const std::string host = (*record)->binding ? (*record)->binding->host : "";
    Status resized = parts_.luns.resize(name, request->size_bytes());
    if (resized) {
      std::string text =
          fmt::format("LUN {} now has {}", name, config::size_text(request->size_bytes()));
      if (!host.empty()) parts_.watchers.notify(host, "lun-resized", name, text);
      parts_.event(Severity::info, "lun-resized", name, std::move(text));
    }
    answer_lun(resized, name, answer);
  });
}

AdminService::Unary* AdminService::BindLun(Context* context, const v1::BindLunRequest* request,
                                           v1::Lun* response) {
  return handle_call(parts_.reactor, context, response, [this, request](Answer<v1::Lun> answer) {
    Result<const LunRecord*> record = parts_.luns.find(request->lun());
    if (!record) return answer.fail(record.error());
    const std::string name = (*record)->name;
    // Bound to this host already: its secrets stay as they are.
    if ((*record)->binding && (*record)->binding->host == request->peer())
      return answer_lun({}, name, answer);
    parts_.access.bind(name, request->peer(),
                       [this, name, host = request->peer(), answer](Status bound) mutable {
                         if (AccessManager::in_force(bound)) {
                           std::string text = fmt::format("LUN {} is bound to host {}", name, host);
                           parts_.watchers.notify(host, "lun-bound", name, text);
                           parts_.event(Severity::info, "lun-bound", name, std::move(text));
                         }
                         answer_lun(bound, name, answer);
                       });
  });
}

AdminService::Unary* AdminService::UnbindLun(Context* context, const v1::LunRequest* request,
                                             v1::Lun* response) {
  return handle_call(parts_.reactor, context, response, [this, request](Answer<v1::Lun> answer) {
    Result<const LunRecord*> record = parts_.luns.find(request->lun());
    if (!record) return answer.fail(record.error());
    const std::string name = (*record)->name;
    const std::string host = (*record)->binding ? (*record)->binding->host : "";
    parts_.access.unbind(name, [this, name, host, answer](Status unbound) mutable {
      if (AccessManager::in_force(unbound) && !host.empty()) {
        std::string text = fmt::format("LUN {} is not bound to host {} any more", name, host);
        parts_.watchers.notify(host, "lun-unbound", name, text);
        parts_.event(Severity::info, "lun-unbound", name, std::move(text));
      }
      answer_lun(unbound, name, answer);
    });
  });
}

AdminService::Unary* AdminService::AddInitiator(Context* context,
                                                const v1::AddInitiatorRequest* request,
                                                v1::Initiator* response) {
  return handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    ForeignInitiator initiator;
    initiator.iqn = request->iqn();
    if (!request->chap_user().empty() || !request->chap_secret().empty())
      initiator.chap = {request->chap_user(), iscsi::Secret(request->chap_secret())};
    if (!request->mutual_user().empty() || !request->mutual_secret().empty())
      initiator.mutual = {request->mutual_user(), iscsi::Secret(request->mutual_secret())};
    answer_initiator(parts_.access.add_initiator(std::move(initiator)), request->iqn(), answer);
  });
}

void AdminService::answer_initiator(const Status& status, const std::string& iqn,
                                    Answer<v1::Initiator>& answer) {
  if (!status) return answer.fail(status.error());
  // It may have been removed while the call waited for sessions to end.
  const auto& initiators = parts_.store.state().initiators;
  Result<std::string> name = iscsi::normalised_name(iqn);
  const auto found = name ? initiators.find(*name) : initiators.end();
  if (found == initiators.end())
    return answer.fail({Errc::not_found, fmt::format("the initiator {} was removed meanwhile",
                                                     config::printable(iqn))});
  fill(found->second, parts_.store.state(), answer.response());
  answer.ok();
}

AdminService::Unary* AdminService::ListInitiators(Context* context, const v1::Empty*,
                                                  v1::ListInitiatorsResponse* response) {
  return handle_call(parts_.reactor, context, response, [this](auto answer) {
    for (const auto& [iqn, initiator] : parts_.store.state().initiators)
      fill(initiator, parts_.store.state(), *answer.response().add_initiators());
    answer.ok();
  });
}

AdminService::Unary* AdminService::RemoveInitiator(Context* context, const v1::NameRequest* request,
                                                   v1::Empty* response) {
  return handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.access.remove_initiator(request->name(),
                                   [answer](Status removed) mutable { answer.finish(removed); });
  });
}

AdminService::Unary* AdminService::AllowInitiator(Context* context,
                                                  const v1::InitiatorLunRequest* request,
                                                  v1::Initiator* response) {
  return handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    answer_initiator(parts_.access.allow(request->iqn(), request->lun()), request->iqn(), answer);
  });
}

AdminService::Unary* AdminService::DenyInitiator(Context* context,
                                                 const v1::InitiatorLunRequest* request,
                                                 v1::Initiator* response) {
  return handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    parts_.access.deny(request->iqn(), request->lun(),
                       [this, iqn = request->iqn(), answer](Status denied) mutable {
                         answer_initiator(denied, iqn, answer);
                       });
  });
}

AdminService::Unary* AdminService::ListPortals(Context* context, const v1::Empty*,
                                               v1::ListPortalsResponse* response) {
  return handle_call(parts_.reactor, context, response, [this](auto answer) {
    for (const ReachablePortal& portal : parts_.portals())
      fill(portal, *answer.response().add_portals());
    answer.ok();
  });
}

AdminService::Unary* AdminService::ListSessions(Context* context, const v1::Empty*,
                                                v1::ListSessionsResponse* response) {
  return handle_call(parts_.reactor, context, response,
                     [this](Answer<v1::ListSessionsResponse> answer) {
                       parts_.serving.list_sessions([this, answer](const auto& sessions) mutable {
                         for (const SessionInfo& session : sessions)
                           fill(session, parts_.store.state(), parts_.reactor.now(),
                                *answer.response().add_sessions());
                         answer.ok();
                       });
                     });
}

AdminService::Unary* AdminService::KillSession(Context* context, const v1::NameRequest* request,
                                               v1::Empty* response) {
  return handle_call(parts_.reactor, context, response, [this, request](auto answer) {
    const std::string& text = request->name();
    SessionId session = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), session);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty())
      return answer.fail({Errc::usage,
                          "a session is named by its number, as in `vjbod target "
                          "session list`"});
    parts_.serving.end_session(session,
                               {iscsi::Errc::closed_locally, "the administrator ended the session"},
                               [answer](Status ended) mutable { answer.finish(ended); });
  });
}

grpc::ServerWriteReactor<v1::Event>* AdminService::Events(Context*,
                                                          const v1::EventsRequest* request) {
  auto stream = std::make_shared<rpc::ServerStream<v1::Event>>();
  parts_.reactor.post(
      [this, stream, follow = request->follow()] { parts_.events.subscribe(stream, follow); });
  return stream->start();
}

AdminService::Unary* AdminService::SetFault(Context* context, const v1::SetFaultRequest* request,
                                            v1::Empty* response) {
  return handle_call(parts_.reactor, context, response,
                     [this, request](auto answer) { answer.finish(set_fault(*request)); });
}

AdminService::Unary* AdminService::TraceLun(Context* context, const v1::NameRequest* request,
                                            v1::LunTrace* response) {
  return handle_call(
      parts_.reactor, context, response, [this, request](Answer<v1::LunTrace> answer) {
        Result<backstore::FilterControls> controls = parts_.luns.fault_controls(request->name());
        if (!controls) return answer.fail(controls.error());
        answer.response().set_finished(controls->trace->finished_ops());
        for (const backstore::TraceEntry& entry : controls->trace->entries())
          answer.response().add_entries(backstore::text_of(entry));
        answer.ok();
      });
}

Status AdminService::set_fault(const v1::SetFaultRequest& request) {
  Result<backstore::FilterControls> controls = parts_.luns.fault_controls(request.lun());
  if (!controls) return fail(controls.error());
  Status set = apply_fault(request, *controls);
  if (set)
    parts_.event(Severity::warning, "fault-set", request.lun(),
                 fmt::format("the faults of LUN {} were changed for a test", request.lun()));
  return set;
}

}  // namespace vjbod::target
