// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/farewells.h"

#include <utility>

#include "common/config/values.h"
#include "common/rpc/errc.h"
#include "common/runtime/wall_clock.h"

namespace vjbod::initiator {

namespace {

using Ending = FarewellRecord::Ending;

constexpr Duration close_timeout = std::chrono::seconds(3);
constexpr Duration delete_timeout = std::chrono::seconds(30);
// A peer that is there but refuses, for example because the LUN is busy.
constexpr Duration retry_interval = std::chrono::seconds(30);

std::string naa_digits(const std::string& naa) {
  return naa.starts_with("naa.") ? naa.substr(4) : naa;
}

// The peer has nothing of ours left to end. Only what says so of the LUN, or of us: whatever keeps
// the peer from doing it has to be tried again.
bool nothing_left(const Error& error) {
  return error.code == rpc::Errc::not_found || error.code == rpc::Errc::bound_to_another_host ||
         error.code == rpc::Errc::authentication;
}

}  // namespace

Farewells::Farewells(Reactor& reactor, HostState& state, PeerManager& peers, rpc::EventLog& events)
    : reactor_(reactor),
      state_(state),
      peers_(peers),
      events_(events),
      retry_timer_(reactor, [this] { retry(); }) {}

FarewellRecord Farewells::of(const DiskRecord& disk, Ending ending) {
  // An interrupted creation leaves no LUN behind. An interrupted attach is of a LUN that was there
  // before, with its data.
  const bool gives_up_creation = disk.phase == DiskRecord::Phase::creating && disk.size_bytes != 0;
  FarewellRecord farewell;
  farewell.peer = disk.peer;
  farewell.lun = disk.identity ? naa_digits(disk.identity->naa) : disk.lun_name;
  farewell.lun_name = disk.lun_name;
  if (gives_up_creation) farewell.request_id = disk.uuid;
  farewell.ending = gives_up_creation ? Ending::deleted : ending;
  farewell.since = rfc3339(wall_now());
  return farewell;
}

void Farewells::tell(const std::string& id, Told told) {
  const auto found = state_.farewells.find(id);
  if (found == state_.farewells.end()) return told({});
  const FarewellRecord& farewell = found->second;
  const bool deletes = farewell.ending == Ending::deleted;
  auto link = peers_.link(farewell.peer);
  if (!link) return told(fail(link.error()));
  if (on_their_way_.contains(id))
    return told(fail(rpc::Errc::busy, "{} is being told already", farewell.peer));
  if (!deletes && !(*link)->reachable()) {  // not worth waiting for
    return answered(
        id, fail(rpc::Errc::peer_unreachable, "{} cannot be reached now", farewell.peer), told);
  }
  on_their_way_.insert(id);
  const PeerLink::Method<v1::LunRequest, v1::Empty> delete_lun =
      &PeerLink::Service::Stub::async_interface::DeleteLun;
  const PeerLink::Method<v1::LunRequest, v1::Empty> close_lun =
      &PeerLink::Service::Stub::async_interface::CloseLun;
  v1::LunRequest request;
  request.set_lun(farewell.lun);
  request.set_request_id(farewell.request_id);
  (*link)->call<v1::LunRequest, v1::Empty>(
      deletes ? delete_lun : close_lun, request, deletes ? delete_timeout : close_timeout,
      [this, id, told = std::move(told)](Result<v1::Empty> answer) {
        on_their_way_.erase(id);
        answered(id, answer, told);
      });
}

void Farewells::answered(const std::string& id, const Result<v1::Empty>& answer, const Told& told) {
  const auto found = state_.farewells.find(id);
  if (found == state_.farewells.end()) return told({});
  FarewellRecord& farewell = found->second;
  auto event = [&](rpc::Severity severity, const char* kind, std::string text) {
    events_.add(severity, kind, farewell.peer, std::move(text), wall_now());
  };
  if (!answer && !nothing_left(answer.error())) {
    if (farewell.last_error.empty())
      event(rpc::Severity::warning, "peer-not-told",
            fmt::format("{} could not be told that LUN {} is {} here: {}; it is told as soon as "
                        "possible",
                        farewell.peer, farewell.lun_name,
                        farewell.ending == Ending::deleted ? "deleted" : "no longer used",
                        answer.error().text));
    farewell.last_error = answer.error().text;
    if (!retry_timer_.armed()) retry_timer_.arm_after(retry_interval);
    return told(fail(answer.error()));
  }
  vjbod::Status outcome;
  if (!answer && farewell.ending == Ending::deleted &&
      answer.error().code != rpc::Errc::not_found) {
    outcome = fail(answer.error());
    event(rpc::Severity::warning, "lun-not-deleted",
          fmt::format("LUN {} stays on {}: {}", farewell.lun_name, farewell.peer,
                      answer.error().text));
  } else if (!farewell.last_error.empty()) {
    event(rpc::Severity::info, "peer-told",
          fmt::format("{} knows that LUN {} is no longer used here", farewell.peer,
                      farewell.lun_name));
  }
  // What cannot be taken out of the state is told again, which changes nothing at the peer.
  vjbod::Status saved = state_.change([&](HostState& state) { state.farewells.erase(id); });
  if (!saved)
    events_.add(rpc::Severity::error, "state-not-saved", id, saved.error().text, wall_now());
  told(std::move(outcome));
}

void Farewells::tell_all(const std::string& peer) {
  std::vector<std::string> ids;
  for (const auto& [id, farewell] : state_.farewells)
    if (farewell.peer == peer) ids.push_back(id);
  for (const std::string& id : ids) tell(id, [](vjbod::Status) {});
}

void Farewells::retry() {
  std::set<std::string> waiting;
  for (const auto& [id, farewell] : state_.farewells) waiting.insert(farewell.peer);
  for (const std::string& peer : waiting) {
    auto link = peers_.link(peer);
    if (link && (*link)->reachable()) tell_all(peer);
  }
  if (!state_.farewells.empty()) retry_timer_.arm_after(retry_interval);
}

Result<std::map<std::string, FarewellRecord>> Farewells::take_back(const std::string& peer,
                                                                   const std::string& lun) {
  const std::string digits = lun.starts_with("0x") ? lun.substr(2) : naa_digits(lun);
  return take_back_if([&](const FarewellRecord& farewell) {
    return farewell.peer == peer && (farewell.lun_name == lun || farewell.lun == digits);
  });
}

Result<std::map<std::string, FarewellRecord>> Farewells::take_back_unnamed(const std::string& peer,
                                                                           const std::string& lun) {
  return take_back_if([&](const FarewellRecord& farewell) {
    return farewell.peer == peer && farewell.lun_name == lun && farewell.lun == lun &&
           farewell.ending == Ending::let_go;
  });
}

Result<std::map<std::string, FarewellRecord>> Farewells::take_back_if(
    const std::function<bool(const FarewellRecord&)>& concerned) {
  std::map<std::string, FarewellRecord> taken;
  for (const auto& [id, farewell] : state_.farewells) {
    if (!concerned(farewell)) continue;
    if (on_their_way_.contains(id))
      return fail(rpc::Errc::busy, "{} is being told just now that LUN {} is {}; try again",
                  farewell.peer, farewell.lun_name,
                  farewell.ending == Ending::deleted ? "deleted" : "no longer used here");
    taken.emplace(id, farewell);
  }
  for (const auto& [id, farewell] : taken) state_.farewells.erase(id);
  return taken;
}

void Farewells::put_back(std::map<std::string, FarewellRecord> taken) {
  state_.farewells.merge(taken);
  if (!state_.farewells.empty() && !retry_timer_.armed()) retry_timer_.arm_after(retry_interval);
}

}  // namespace vjbod::initiator
