// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/host_daemon.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <sys/stat.h>

#include "common/base/log.h"
#include "common/config/state_file.h"
#include "common/net/address_watch.h"
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

// Addresses come in groups: one look for all of them.
constexpr Duration address_settling = std::chrono::milliseconds(300);
constexpr Duration control_grace = std::chrono::seconds(1);
// From SIGTERM to the exit, whatever hangs.
constexpr Duration stop_deadline = std::chrono::seconds(9);

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

std::vector<std::unique_ptr<HostShard>> make_shards(const HostConfig& config, Reactor& disposal) {
  const unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
  const unsigned count =
      config.limits.shards > 0 ? config.limits.shards : std::min<unsigned>(cpus, shards_max);
  std::vector<std::unique_ptr<HostShard>> shards;
  const auto devices = std::make_shared<transport::rdma::OpenDevices>();
  for (unsigned i = 0; i < count; ++i) {
    shards.push_back(std::make_unique<HostShard>(fmt::format("shard{}", i), -1, random_seed(),
                                                 config.limits.buffer_memory_bytes, disposal,
                                                 devices));
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
  auto shards = make_shards(config, reactor);
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

  Timer address_timer(reactor, [&] {
    disks.leave_dead_interfaces();
    disks.addresses_changed("");
  });
  auto address_watch = net::AddressWatch::open();
  if (!address_watch) log::warn("{}", address_watch.error().text);
  std::unique_ptr<FdWatch> address_news;
  if (address_watch) {
    address_news = reactor.watch_readable(address_watch->fd(), [&] {
      if (!address_watch->read_empty()) return;
      if (!address_timer.armed()) address_timer.arm_after(address_settling);
    });
  }
  std::unique_ptr<rpc::UnixServer> server;
  Status started;
  bool stopping = false;
  Timer stop_timer(reactor, [] {
    // What was answered is at the targets; nothing of it is in this process.
    log::warn("some disks did not close in time; leaving all the same");
    std::_Exit(0);
  });
  size_t stops_left = 3;
  auto stopped_one = [&] {
    if (--stops_left == 0) reactor.stop();
  };
  auto stop = [&](int) {
    if (std::exchange(stopping, true)) return;
    stop_timer.arm_after(stop_deadline);
    address_news.reset();
    address_timer.cancel();
    events.add(rpc::Severity::info, "stopping", config.name, "vjbod-hostd is stopping", wall_now());
    events.close(
        Error{std::make_error_code(std::errc::operation_canceled), "the host daemon is stopping"});
    // Calls to peers end with the disks: those that wait for an answer here get one.
    disks.shutdown([&] {
      stopped_one();
      peers.shutdown(stopped_one);
    });
    server ? server->stop(control_grace, stopped_one) : stopped_one();
  };
  SignalWatch signals(reactor, {SIGTERM, SIGINT, SIGHUP}, [&](int signal) {
    if (signal == SIGHUP) {
      log::info("SIGHUP: the host's configuration is read at start only; restart to change it");
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
