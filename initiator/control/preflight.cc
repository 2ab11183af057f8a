// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/preflight.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "common/rpc/version.h"
#include "common/runtime/wall_clock.h"
#include "initiator/control/packet_probe.h"
#include "initiator/control/path_choice.h"

namespace vjbod::initiator {

namespace {

constexpr Duration probe_timeout = std::chrono::seconds(3);
constexpr Duration pools_timeout = std::chrono::seconds(10);
constexpr int64_t clock_difference_max_s = 5;  // more makes logs of two boxes hard to read together
constexpr uint64_t space_worth_a_warning_bytes = uint64_t{10} << 30;
constexpr uint32_t recommended_mtu = 9000;

void add(v1::PreflightResponse& response, const char* name, const char* result, std::string text) {
  v1::PreflightCheck& check = *response.add_checks();
  check.set_name(name);
  check.set_result(result);
  check.set_text(std::move(text));
}

v1::Interface interface_message(const RankedInterface& interface) {
  v1::Interface out;
  out.set_name(interface.name);
  for (const RankedAddress& address : interface.addresses) {
    v1::InterfaceAddress& one = *out.add_addresses();
    one.set_address(address.address);
    one.set_prefix_length(address.prefix_length);
    one.set_rdma_type(address.rdma_type);
  }
  out.set_mtu(interface.mtu);
  out.set_speed_mbps(interface.speed_mbps);
  out.set_up(interface.up);
  out.set_control_only(interface.carries_control);
  if (interface.rdma) {
    out.set_rdma_device(interface.rdma->device);
    out.set_rdma_port(interface.rdma->port);
    out.set_rdma_link_layer(interface.rdma->link_layer);
    out.set_rdma_link_up(interface.rdma->link_up);
    out.set_rdma_link_state(interface.rdma->link_state);
    out.set_rdma_regions_max(interface.rdma->regions_max);
    out.set_rdma_region_bytes_max(interface.rdma->region_bytes_max);
    out.set_rdma_memory_windows(interface.rdma->memory_windows);
  }
  return out;
}

const RankedInterface& by_name(const std::vector<RankedInterface>& all, const std::string& name) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const RankedInterface& one) { return one.name == name; });
}

void check_versions_and_clock(const v1::DescribeResponse& peer, v1::PreflightResponse& response) {
  add(response, "control", "ok",
      fmt::format("{} answers on the control channel", peer.target_name()));
  if (auto usable = rpc::check_version(peer.version(), peer.target_name()); !usable) {
    add(response, "versions", "failed", usable.error().text);
  } else {
    add(response, "versions", "ok",
        fmt::format("{} here, {} there", rpc::program_version(), peer.version().version()));
  }
  const int64_t here =
      std::chrono::duration_cast<std::chrono::seconds>(wall_now().time_since_epoch()).count();
  const int64_t difference = std::abs(here - peer.now().seconds());
  add(response, "clock", difference > clock_difference_max_s ? "warning" : "ok",
      fmt::format("the clocks differ by {} s", difference));
}

// The pair that a disk would use, with what is to be said of it; nothing when there is none.
std::optional<RankedPair> check_way(const std::vector<net::Interface>& ours,
                                    const v1::DescribeResponse& peer,
                                    const std::string& control_address,
                                    v1::PreflightResponse& response) {
  const auto pairs = rank_interface_pairs(ranking_input(ours, peer, control_address, {}));
  if (pairs.empty() || !pairs.front().usable) {
    add(response, "mtu", "warning", "no pair of interfaces shares a subnet; the way is not known");
    add(response, "rdma", "warning", "no pair of interfaces shares a subnet: iSER needs one");
    return std::nullopt;
  }
  const RankedPair& best = pairs.front();
  if (!best.equal_mtu) {
    add(response, "mtu", "failed",
        fmt::format(
            "{} here has MTU {}, {} of the peer {}: large transfers will hang; make them equal",
            best.host_interface, best.host_mtu, best.remote_interface, best.remote_mtu));
  } else {
    add(response, "mtu", best.host_mtu >= recommended_mtu ? "ok" : "warning",
        fmt::format(
            "MTU {} at both ends{}", best.host_mtu,
            best.host_mtu >= recommended_mtu ? "" : "; 9000 is recommended for a data network"));
  }
  if (best.iser)
    add(response, "rdma", "ok",
        fmt::format("iSER would be tried first, from {} to {}", best.host_interface,
                    best.remote_interface));
  else
    add(response, "rdma", "warning",
        fmt::format("iSER would not be tried: {}", best.no_iser->text));
  if (best.control) {
    add(response, "network", "warning",
        fmt::format("the data would share the subnet of {} with the control channel (management); "
                    "a network of its own is better",
                    best.host_address));
  }
  return best;
}

void add_packets(const RankedPair& pair, const std::string& peer, const PacketProbeResult& result,
                 v1::PreflightResponse& response) {
  const std::string way = fmt::format("{} (MTU {}) and {} of {} (MTU {})", pair.host_interface,
                                      pair.host_mtu, pair.remote_interface, peer, pair.remote_mtu);
  if (!result.not_tried.empty())
    add(response, "payload", "warning",
        fmt::format("full-size packets were not tried: {}", result.not_tried));
  else if (result.full)
    add(response, "payload", "ok",
        fmt::format("packets of {} bytes pass both ways between {}", pair.host_mtu, way));
  else if (result.small)
    add(response, "payload", "failed",
        fmt::format("packets of {} bytes are lost between {}, smaller ones pass: an interface or a "
                    "switch on the way has a smaller MTU; make all of them equal",
                    pair.host_mtu, way));
  else
    add(response, "payload", "warning",
        fmt::format("full-size packets were not tried: no ping is answered between {}", way));
}

// What a disk with `--transport auto` would do.
std::string plan_text(const PathChoice& choice) {
  std::string text = "a disk would try ";
  const char* separator = "";
  for (const PathCandidate& path : choice.candidates) {
    text += fmt::format("{}{} to {}{}{}", separator, transport::name_of(path.kind),
                        transport::text_of(path.endpoint),
                        path.endpoint.interface_name.empty() ? "" : " over ",
                        path.endpoint.interface_name);
    separator = ", then ";
  }
  if (choice.no_iser)
    text += fmt::format("; not iSER ({}): {}", transport::rdma_reason_of(choice.no_iser->code),
                        choice.no_iser->text);
  return text;
}

void check_space(const Result<v1::ListPoolsResponse>& pools, v1::PreflightResponse& response) {
  if (!pools) {
    add(response, "space", "failed", pools.error().text);
    return;
  }
  if (pools->pools().empty()) add(response, "space", "failed", "the peer has no pool");
  for (const v1::Pool& pool : pools->pools()) {
    add(response, "space", pool.free_bytes() < space_worth_a_warning_bytes ? "warning" : "ok",
        fmt::format("pool {} has {} GiB free of {} GiB", pool.name(), pool.free_bytes() >> 30,
                    pool.size_bytes() >> 30));
  }
}

}  // namespace

void run_preflight(Reactor& reactor, PeerManager& peers, HostShard& shard, const std::string& peer,
                   std::function<void(Result<v1::PreflightResponse>)> done) {
  auto record = peers.record(peer);
  if (!record) {
    done(fail(record.error()));
    return;
  }
  const std::string control_address = (*record)->address;
  peers.describe(peer, [&reactor, &peers, &shard, peer, control_address,
                        done = std::move(done)](Result<v1::DescribeResponse> described) {
    auto response = std::make_shared<v1::PreflightResponse>();
    if (!described) {
      add(*response, "control", "failed", described.error().text);
      done(std::move(*response));
      return;
    }
    check_versions_and_clock(*described, *response);
    auto ours = net::list_interfaces();
    if (!ours) {
      add(*response, "data-path", "failed", ours.error().text);
      done(std::move(*response));
      return;
    }
    const auto pair = check_way(*ours, *described, control_address, *response);
    auto choice = choose_paths(*ours, *described, control_address, {});
    auto list_pools = [&peers, peer, response, done] {
      auto link = peers.link(peer);
      if (!link) {
        done(fail(link.error()));
        return;
      }
      (*link)->call<v1::Empty, v1::ListPoolsResponse>(
          &PeerLink::Service::Stub::async_interface::ListPools, v1::Empty(), pools_timeout,
          [response, done](Result<v1::ListPoolsResponse> pools) {
            check_space(pools, *response);
            done(std::move(*response));
          });
    };
    auto finish = [&reactor, pair, peer, response, list_pools] {
      if (!pair) return list_pools();
      probe_packets(
          reactor, {pair->host_interface, pair->host_address, pair->remote_address, pair->host_mtu},
          [pair, peer, response, list_pools](const PacketProbeResult& result) {
            add_packets(*pair, peer, result, *response);
            list_pools();
          });
    };
    if (!choice) {
      add(*response, "data-path", "failed", choice.error().text);
      finish();
      return;
    }
    add(*response, "plan", "ok", plan_text(*choice));
    // iSCSI: what every way falls back to.
    const transport::Endpoint endpoint = choice->candidates.back().endpoint;
    shard.shard.reactor().post([&reactor, &shard, endpoint, response, finish] {
      auto attempt = std::make_shared<std::unique_ptr<transport::ConnectAttempt>>();
      *attempt = shard.tcp.connect(
          endpoint, probe_timeout,
          [&reactor, &shard, endpoint, response, finish,
           attempt](Result<std::unique_ptr<transport::DataMover>> mover) {
            const std::string failure = mover ? "" : mover.error().text;
            shard.shard.reactor().post([attempt] { attempt->reset(); });
            reactor.post([endpoint, response, finish, failure] {
              add(*response, "data-path", failure.empty() ? "ok" : "failed",
                  failure.empty()
                      ? fmt::format("{} accepts connections{}", transport::text_of(endpoint),
                                    endpoint.interface_name.empty()
                                        ? ""
                                        : " over " + endpoint.interface_name)
                      : failure);
              finish();
            });
          });
    });
  });
}

void list_interface_pairs(PeerManager& peers, const std::string& peer,
                          std::function<void(Result<v1::ListInterfacePairsResponse>)> done) {
  auto record = peers.record(peer);
  if (!record) {
    done(fail(record.error()));
    return;
  }
  const std::string control_address = (*record)->address;
  peers.describe(
      peer, [control_address, done = std::move(done)](Result<v1::DescribeResponse> described) {
        auto ours = net::list_interfaces();
        if (!described || !ours) {
          done(fail(described ? ours.error() : described.error()));
          return;
        }
        const RankingInput input = ranking_input(*ours, *described, control_address, {});
        v1::ListInterfacePairsResponse response;
        for (const RankedPair& pair : rank_interface_pairs(input)) {
          v1::InterfacePair& out = *response.add_pairs();
          out.set_rank(static_cast<uint32_t>(response.pairs_size()));
          *out.mutable_host() = interface_message(by_name(input.host, pair.host_interface));
          *out.mutable_remote() = interface_message(by_name(input.remote, pair.remote_interface));
          out.set_host_address(pair.host_address);
          out.set_remote_address(pair.remote_address);
          out.set_usable(pair.usable);
          out.set_iser(pair.iser);
          if (pair.no_iser) {
            out.set_iser_reason_code(std::string(transport::rdma_reason_of(pair.no_iser->code)));
            out.set_iser_reason_text(pair.no_iser->text);
          }
          out.set_explanation(pair.explanation);
        }
        done(std::move(response));
      });
}

}  // namespace vjbod::initiator
