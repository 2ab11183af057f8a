// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/host_daemon.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include <sys/stat.h>

#include "common/base/log.h"
#include "common/config/state_file.h"
#include "common/rpc/event_log.h"
#include "common/rpc/identity.h"
#include "common/rpc/tls_credentials.h"
#include "common/rpc/unix_server.h"
#include "common/rpc/version.h"
#include "common/runtime/asio_reactor.h"
#include "common/runtime/signals.h"
#include "common/runtime/wall_clock.h"
#include "initiator/control/admin_service.h"
#include "initiator/control/disk_manager.h"
#include "initiator/control/host_shard.h"
#include "initiator/control/host_state.h"
#include "initiator/control/peer_manager.h"

namespace vjbod::initiator {

namespace {

constexpr Duration control_grace = std::chrono::seconds(2);

uint64_t random_seed() {
  uint64_t seed = 0;
  fill_secure_random(std::as_writable_bytes(std::span(&seed, 1)));
  return seed;
}

std::string new_initiator_iqn() {
  std::array<std::byte, 6> bytes;
  fill_secure_random(bytes);
  return "iqn.2026-11.io.vjbod:host-" + to_hex(as_text(bytes));
}

Status make_socket_dir(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return fail(error, "the folder {} for NBD sockets cannot be made: {}", path, error.message());
  return {};
}

std::vector<std::unique_ptr<HostShard>> make_shards(const HostConfig& config) {
  const unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
  const unsigned count =
      config.limits.shards > 0 ? config.limits.shards : std::min<unsigned>(cpus, shards_max);
  std::vector<std::unique_ptr<HostShard>> shards;
  for (unsigned i = 0; i < count; ++i) {
    shards.push_back(std::make_unique<HostShard>(fmt::format("shard{}", i), -1, random_seed(),
                                                 config.limits.buffer_memory_bytes));
  }
  return shards;
}

}  // namespace

Status run_host_daemon(const HostConfig& config) {
  if (auto tls = rpc::require_tls_1_3(); !tls) return tls;
  auto directory = config::StateDirectory::open(config.state_dir);
  if (!directory) return fail(std::move(directory).error());
  auto state = HostState::load(config.state_dir);
  if (!state) return fail(std::move(state).error());
  const std::string iqn_before = state->initiator_iqn;
  if (!config.initiator_iqn.empty()) {
    state->initiator_iqn = config.initiator_iqn;
  } else if (state->initiator_iqn.empty()) {
    state->initiator_iqn = new_initiator_iqn();
  }
  if (state->initiator_iqn != iqn_before) {
    if (auto saved = state->save(); !saved) return saved;
  }
  auto identity = rpc::load_or_make_identity(config.state_dir, config.name);
  if (!identity) return fail(std::move(identity).error());
  if (auto made = make_socket_dir(config.exports.socket_dir); !made) return made;

  AsioReactor reactor(random_seed());
  auto shards = make_shards(config);
  std::vector<HostShard*> shard_list;
  for (auto& shard : shards) shard_list.push_back(shard.get());
  rpc::EventLog events;
  PeerManager peers(reactor, *identity, config.name, *state, events);
  DiskManager disks(reactor, config, *state, peers, events, shard_list);

  v1::HostStatus about;
  about.set_name(config.name);
  *about.mutable_version() = rpc::our_version();
  about.set_initiator_iqn(state->initiator_iqn);
  about.set_certificate_fingerprint(identity->fingerprint.to_text());
  about.mutable_started_at()->set_seconds(
      std::chrono::duration_cast<std::chrono::seconds>(wall_now().time_since_epoch()).count());
  AdminService service({reactor, peers, disks, events, *shard_list.front(), about});

  std::unique_ptr<rpc::UnixServer> server;
  Status started;
  bool stopping = false;
  auto stop = [&](int) {
    if (std::exchange(stopping, true)) return;
    events.add(rpc::Severity::info, "stopping", config.name, "vjbod-hostd is stopping", wall_now());
    events.close(
        Error{std::make_error_code(std::errc::operation_canceled), "the host daemon is stopping"});
    auto then = [&] { disks.shutdown([&reactor] { reactor.stop(); }); };
    server ? server->stop(control_grace, then) : then();
  };
  SignalWatch signals(reactor, {SIGTERM, SIGINT, SIGHUP}, [&](int signal) {
    if (signal == SIGHUP) {
      spdlog::info("SIGHUP: the host's configuration is read at start only; restart to change it");
      return;
    }
    stop(signal);
  });
  reactor.post([&] {
    auto listening = rpc::UnixServer::start(reactor, config.control_socket, {&service});
    if (!listening) {
      started = fail(std::move(listening).error());
      reactor.stop();
      return;
    }
    server = std::move(*listening);
    events.add(rpc::Severity::info, "started", config.name,
               fmt::format("vjbod-hostd {} on {}, {} disks", rpc::program_version(),
                           config.control_socket, disks.count()),
               wall_now());
    peers.start();
    disks.start();
  });
  reactor.run();
  return started;
}

}  // namespace vjbod::initiator
