// SPDX-License-Identifier: Apache-2.0
// Commands of the host box about other boxes: pairing, what a peer has, and how it can be reached.
#include <fstream>
#include <memory>

#include "common/config/values.h"
#include "common/rpc/errc.h"
#include "tools/vjbod/client.h"
#include "tools/vjbod/print.h"
#include "tools/vjbod/terminal.h"

namespace vjbod::cli {

namespace {

HostClient host(const Options& options) {
  return HostClient("host daemon", options.host_socket, options);
}

// The token on its own line of a file, of stdin, or typed.
Result<std::string> read_token(const std::string& file) {
  if (file.empty() || file == "-") return ask_secret("token (from `vjbod target pair-token`): ");
  std::ifstream in(file);
  std::string line;
  if (!in || !std::getline(in, line) || line.empty()) {
    return fail(rpc::Errc::usage,
                "{} holds no token; `vjbod target pair-token` on the other box prints one", file);
  }
  return line;
}

void add_pair(CLI::App& app, Registry& registry) {
  auto* command = app.add_subcommand("pair", "Pair with a target box, with the token it printed");
  auto address = std::make_shared<std::string>(), file = std::make_shared<std::string>();
  command->add_option("address", *address, "ADDRESS[:PORT] of its control channel")->required();
  command->add_option("--token-file", *file, "File that holds the token; else it is asked for");
  registry.add(command, [&options = registry.options(), address, file]() -> Outcome {
    auto where = config::parse_host_port(*address, rpc::default_control_port);
    if (!where) return fail(rpc::Errc::usage, "{}", where.error().text);
    auto token = read_token(*file);
    if (!token) return fail(std::move(token).error());
    v1::HostPairRequest request;
    request.set_address(where->host);
    request.set_port(where->port);
    request.set_token(*token);
    auto peer = host(options).call(&v1::HostAdmin::Stub::Pair, request);
    if (!peer) return fail(std::move(peer).error());
    if (options.output == OutputFormat::json) {
      std::cout << dump(Json{{"schema", 1}, {"peer", to_json(*peer)}});
    } else {
      std::cout << fmt::format(
          "paired with {} at {}\n", peer->name(),
          config::host_port_text(peer->address(), static_cast<uint16_t>(peer->port())));
    }
    return 0;
  });
}

// What a person should know of a peer now.
std::string peer_note(const v1::HostPeer& peer) {
  std::string note = peer.reachable() ? "" : peer.last_error();
  for (const v1::PendingFarewell& pending : peer.pending())
    note += fmt::format("{}to be told that LUN {} is {}", note.empty() ? "" : "; ", pending.lun(),
                        pending.action() == "delete" ? "deleted" : "no longer used");
  return note;
}

void add_peers(CLI::App& app, Registry& registry) {
  auto* command = app.add_subcommand("peers", "The boxes this one is paired with");
  registry.add(command, [&options = registry.options()]() -> Outcome {
    auto peers = host(options).call(&v1::HostAdmin::Stub::ListPeers, v1::Empty());
    if (!peers) return fail(std::move(peers).error());
    return print_list(
        options, "peers", peers->peers(), {"NAME", "ADDRESS", "STATE", "DISKS", "VERSION", "NOTE"},
        [](const v1::HostPeer& peer) -> std::vector<std::string> {
          return {peer.name(),
                  config::host_port_text(peer.address(), static_cast<uint16_t>(peer.port())),
                  peer.reachable() ? "reachable" : "unreachable",
                  std::to_string(peer.disks()),
                  peer.version().version(),
                  peer_note(peer)};
        });
  });
}

void add_unpair(CLI::App& app, Registry& registry) {
  auto* command =
      app.add_subcommand("unpair", "End the pairing with a box; it must have no disks here");
  auto peer = std::make_shared<std::string>();
  auto force = std::make_shared<bool>(false);
  command->add_option("peer", *peer, "Name of the peer")->required();
  command->add_flag("--force", *force, "Forget it here even if it cannot be reached");
  registry.add(command, [&options = registry.options(), peer, force]() -> Outcome {
    v1::UnpairRequest request;
    request.set_peer(*peer);
    request.set_force(*force);
    auto done = host(options).call(&v1::HostAdmin::Stub::Unpair, request);
    if (!done) return fail(std::move(done).error());
    return 0;
  });
}

v1::PeerRequest peer_request(const std::string& peer) {
  v1::PeerRequest request;
  request.set_peer(peer);
  return request;
}

std::string with_address(const v1::Interface& interface, const std::string& address) {
  return address.empty() ? interface.name() : interface.name() + " " + address;
}

void add_interfaces(CLI::App& app, Registry& registry) {
  auto* command =
      app.add_subcommand("interfaces", "Pairs of interfaces to a peer, best first, and why");
  auto peer = std::make_shared<std::string>();
  command->add_option("peer", *peer, "Name of the peer")->required();
  registry.add(command, [&options = registry.options(), peer]() -> Outcome {
    auto list = host(options).call(&v1::HostAdmin::Stub::ListInterfacePairs, peer_request(*peer));
    if (!list) return fail(std::move(list).error());
    if (options.output == OutputFormat::json) {
      Json json = list_json("pairs", list->pairs());
      std::cout << dump(Json{{"schema", 1},
                             {"interfaces", {{"peer", *peer}, {"pairs", json["pairs"]}}},
                             {"pairs", json["pairs"]}});
      return 0;
    }
    return print_list(
        options, "pairs", list->pairs(), {"RANK", "HOST", "REMOTE", "USABLE", "ISER", "WHY"},
        [](const v1::InterfacePair& pair) -> std::vector<std::string> {
          return {std::to_string(pair.rank()),
                  with_address(pair.host(), pair.host_address()),
                  with_address(pair.remote(), pair.remote_address()),
                  pair.usable() ? "yes" : "no",
                  pair.iser() ? "yes" : "no",
                  pair.explanation() + (pair.iser() || pair.iser_reason_text().empty()
                                            ? ""
                                            : "; no iSER: " + pair.iser_reason_text())};
        });
  });
}

void add_preflight(CLI::App& app, Registry& registry) {
  auto* command =
      app.add_subcommand("preflight", "Check in advance what a disk of this peer would meet");
  auto peer = std::make_shared<std::string>();
  command->add_option("peer", *peer, "Name of the peer")->required();
  registry.add(command, [&options = registry.options(), peer]() -> Outcome {
    auto checks = host(options).call(&v1::HostAdmin::Stub::Preflight, peer_request(*peer));
    if (!checks) return fail(std::move(checks).error());
    auto printed = print_list(options, "checks", checks->checks(), {"CHECK", "RESULT", "TEXT"},
                              [](const v1::PreflightCheck& check) -> std::vector<std::string> {
                                return {check.name(), check.result(), check.text()};
                              });
    if (!printed) return printed;
    for (const auto& check : checks->checks()) {
      if (check.result() == "failed") return static_cast<int>(rpc::Errc::other);
    }
    return 0;
  });
}

void add_pools(CLI::App& app, Registry& registry) {
  auto* command = app.add_subcommand("pools", "The pools of a peer");
  auto peer = std::make_shared<std::string>();
  command->add_option("peer", *peer, "Name of the peer")->required();
  registry.add(command, [&options = registry.options(), peer]() -> Outcome {
    auto pools = host(options).call(&v1::HostAdmin::Stub::ListPeerPools, peer_request(*peer));
    if (!pools) return fail(std::move(pools).error());
    return print_list(options, "pools", pools->pools(), {"NAME", "KIND", "SIZE", "FREE", "LUNS"},
                      [](const v1::Pool& pool) -> std::vector<std::string> {
                        return {pool.name(), pool.kind(), short_size(pool.size_bytes()),
                                short_size(pool.free_bytes()), std::to_string(pool.lun_count())};
                      });
  });
}

void add_luns(CLI::App& app, Registry& registry) {
  auto* command = app.add_subcommand("luns", "The LUNs of a peer that this box uses or may use");
  auto peer = std::make_shared<std::string>();
  command->add_option("peer", *peer, "Name of the peer")->required();
  registry.add(command, [&options = registry.options(), peer]() -> Outcome {
    auto luns = host(options).call(&v1::HostAdmin::Stub::ListPeerLuns, peer_request(*peer));
    if (!luns) return fail(std::move(luns).error());
    return print_list(options, "luns", luns->luns(),
                      {"NAME", "POOL", "SIZE", "BLOCK", "BOUND-TO", "NAA"},
                      [](const v1::Lun& lun) -> std::vector<std::string> {
                        return {lun.name(),
                                lun.pool(),
                                short_size(lun.size_bytes()),
                                std::to_string(lun.block_size()),
                                lun.bound_to(),
                                lun.naa()};
                      });
  });
}

}  // namespace

void add_peer_commands(CLI::App& app, Registry& registry) {
  add_pair(app, registry);
  add_peers(app, registry);
  add_unpair(app, registry);
  add_interfaces(app, registry);
  add_preflight(app, registry);
  add_pools(app, registry);
  add_luns(app, registry);
}

}  // namespace vjbod::cli
