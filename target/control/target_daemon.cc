// SPDX-License-Identifier: Apache-2.0
#include "target/control/target_daemon.h"

#include <csignal>
#include <cstdlib>
#include <future>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/random.h"
#include "common/config/state_file.h"
#include "common/config/values.h"
#include "common/iscsi/errc.h"
#include "common/net/address_watch.h"
#include "common/net/interfaces.h"
#include "common/rpc/server.h"
#include "common/rpc/tls_credentials.h"
#include "common/rpc/unix_server.h"
#include "common/rpc/version.h"
#include "common/runtime/asio_reactor.h"
#include "common/runtime/shard.h"
#include "common/runtime/signals.h"
#include "common/runtime/wall_clock.h"
#include "target/control/access_policy.h"
#include "target/control/admin_service.h"
#include "target/control/control_parts.h"
#include "target/control/iser_portals.h"
#include "target/control/peer_service.h"
#include "target/control/portal_listeners.h"

namespace vjbod::target {

namespace {

using rpc::Severity;

constexpr Duration call_grace = std::chrono::seconds(1);
// Addresses come in groups: one look for all of them.
constexpr Duration address_settling = std::chrono::milliseconds(300);
// How soon LUNs that could not be opened are tried again, and how long between tries in the end.
constexpr Duration lun_retry_min = std::chrono::seconds(5);
constexpr Duration lun_retry_max = std::chrono::minutes(1);

uint64_t random_seed() {
  uint64_t seed = 0;
  fill_secure_random({reinterpret_cast<std::byte*>(&seed), sizeof seed});
  return seed;
}

}  // namespace

struct TargetDaemon::Impl final : ServerEvents {
  Impl(TargetConfig config_, std::string config_path_)
      : config(std::move(config_)), config_path(std::move(config_path_)) {}

  // In the order in which they are needed; run() takes them down the other way round.
  TargetConfig config;
  const std::string config_path;
  AsioReactor control{random_seed()};
  std::optional<config::StateDirectory> directory;
  std::optional<rpc::Identity> identity;
  std::optional<StateStore> store;
  std::vector<std::unique_ptr<Shard>> shards;
  std::unique_ptr<TargetServer> server;
  std::unique_ptr<PortalListeners> listeners;  // made and destroyed on the home reactor
  std::unique_ptr<IserPortals> iser_portals;   // used on the home reactor
  std::optional<Serving> serving;
  std::optional<Pools> pools;
  std::optional<LunManager> luns;
  std::optional<AccessManager> access;
  PairingDesk pairing;
  rpc::EventLog events;
  HostWatchers watchers;
  std::optional<ControlParts> parts;
  std::optional<PeerService> peer_service;
  std::optional<AdminService> admin_service;
  std::unique_ptr<rpc::PeerServer> peer_server;
  std::unique_ptr<rpc::UnixServer> unix_server;
  std::unique_ptr<SignalWatch> signals;
  std::vector<ReachablePortal> listening;   // as of the last look
  std::vector<ReachablePortal> advertised;  // as hosts and initiators know it
  std::optional<net::AddressWatch> address_watch;
  std::unique_ptr<FdWatch> address_news;
  std::optional<Timer> address_timer;
  std::optional<Timer> stop_timer;
  std::optional<Timer> lun_timer;
  Duration lun_retry = lun_retry_min;
  int stops_left = 0;
  bool stopping = false;

  AsioReactor& home() { return shards.front()->reactor(); }

  // Waits for work on the home reactor; only while the control reactor does not run yet or any
  // more.
  template <typename Work>
  auto at_home(Work work) -> decltype(work()) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto result = task.get_future();
    home().post([&task] { task(); });
    return result.get();
  }

  Status start();
  Status open_state();
  void start_shards();
  Status open_portals();
  Status start_control();
  void renew_access();
  void renew_portals();
  void look_at_portals(bool retry);
  void watch_addresses();
  std::vector<ReachablePortal> reachable(const std::vector<ReachablePortal>& from) const;
  void on_signal(int signal);
  void reload();
  void retry_luns();
  void stop();
  void stopped_one();
  void take_down_iser();
  void tear_down();

  // ServerEvents, on the home reactor.
  void on_session_opened(const SessionInfo& session) override;
  void on_session_closed(const SessionInfo& session, const Error& reason) override;
  void on_login_failed(const std::string& remote_address, const Error& reason) override;
};

Status TargetDaemon::Impl::open_state() {
  Result<config::StateDirectory> opened = config::StateDirectory::open(config.state_dir);
  if (!opened) return fail(opened.error());
  directory.emplace(std::move(*opened));
  Result<rpc::Identity> box = rpc::load_or_make_identity(directory->path(), config.name);
  if (!box) return fail(box.error());
  identity = std::move(*box);
  Result<StateStore> state = StateStore::open(directory->path());
  if (!state) return fail(state.error());
  store.emplace(std::move(*state));
  return {};
}

void TargetDaemon::Impl::start_shards() {
  std::vector<SessionPlace> places;
  for (size_t i = 0; i < config.shards; ++i) {
    shards.push_back(std::make_unique<Shard>(
        fmt::format("shard{}", i), config.pin_shards ? static_cast<int>(i) : -1, random_seed(),
        config.buffer_memory_bytes / config.shards));
    places.push_back({&shards.back()->reactor(), &shards.back()->buffers()});
  }
  server = std::make_unique<TargetServer>(home(), std::move(places), config.limits, *this);
  serving.emplace(control, home(), *server);
}

Status TargetDaemon::Impl::open_portals() {
  std::vector<AsioReactor*> reactors;
  for (const auto& shard : shards) reactors.push_back(&shard->reactor());
  Status opened = at_home([&] {
    listeners = std::make_unique<PortalListeners>(
        home(), reactors, *server, config.portals,
        [this] { control.post([this] { look_at_portals(false); }); });
    Status result = listeners->open();
    listening = listeners->listening();
    if (result) {
      iser_portals = std::make_unique<IserPortals>(reactors, control, *server, config.portals);
      iser_portals->open();
    }
    return result;
  });
  renew_portals();
  return opened;
}

void TargetDaemon::Impl::renew_access() {
  serving->set_access(std::make_shared<const AccessPolicy>(store->state(), luns->open_targets(),
                                                           config.chap_algorithms));
}

std::vector<ReachablePortal> TargetDaemon::Impl::reachable(
    const std::vector<ReachablePortal>& from) const {
  Result<std::vector<net::Interface>> interfaces = net::list_interfaces();
  if (!interfaces) {
    log::warn("{}", interfaces.error().text);
    return reachable_portals(from, {});
  }
  std::vector<ReachablePortal> portals = reachable_portals(from, *interfaces);
  std::vector<ReachablePortal> configured;
  for (const PortalConfig& portal : config.portals) {
    const auto speaks = [&](const char* transport) {
      return std::ranges::count(portal.transports, transport) > 0;
    };
    configured.push_back({portal.address, portal.port, speaks("iscsi"), speaks("iser")});
  }
  mark_transports(configured, *interfaces, portals);
  return portals;
}

void TargetDaemon::Impl::renew_portals() {
  std::vector<ReachablePortal> now = reachable(listening);
  if (now == advertised) return;
  advertised = std::move(now);
  std::vector<std::string> texts, shown;
  for (const ReachablePortal& portal : advertised) {
    texts.push_back(config::host_port_text(portal.address, portal.port));
    shown.push_back(texts.back() + (portal.iser ? " (also by iSER)" : ""));
  }
  if (parts)  // else it is the first time, and nobody is there to be told
    parts->event(
        Severity::info, "portals-changed", config.name,
        fmt::format("this box can be reached at {}",
                    shown.empty() ? "no address" : fmt::to_string(fmt::join(shown, ", "))));
  watchers.notify_all("portals-changed", config.name, "its addresses have changed");
  serving->set_advertised_portals(std::move(texts));
}

// `retry`: also tries the portals that wait for their address.
void TargetDaemon::Impl::look_at_portals(bool retry) {
  home().post([this, retry] {
    if (!listeners) return;  // stopping
    if (retry) listeners->retry();
    if (retry && iser_portals) iser_portals->open();
    control.post([this, now = listeners->listening()] {
      listening = now;
      renew_portals();
    });
  });
}

void TargetDaemon::Impl::watch_addresses() {
  Result<net::AddressWatch> opened = net::AddressWatch::open();
  if (!opened) return log::warn("{}", opened.error().text);
  address_watch.emplace(std::move(*opened));
  address_timer.emplace(control, [this] { look_at_portals(true); });
  address_news = control.watch_readable(address_watch->fd(), [this] {
    if (!address_watch->read_empty()) return;
    if (!address_timer->armed()) address_timer->arm_after(address_settling);
  });
}

Status TargetDaemon::Impl::start_control() {
  parts.emplace(ControlParts{
      config, *identity, control, *serving, *store, *pools, *luns, *access, pairing, events,
      watchers, wall_now(), [this] { return reachable(listening); },
      [this] {
        Result<config::HostPort> address = config::parse_host_port(config.control_listen, 0);
        return reachable({{address->host, peer_server->port()}});
      }});
  peer_service.emplace(*parts);
  admin_service.emplace(*parts);
  Result<std::unique_ptr<rpc::PeerServer>> peers =
      rpc::PeerServer::start(control, config.control_listen, *identity, {&*peer_service});
  if (!peers) return fail(peers.error());
  peer_server = std::move(*peers);
  Result<std::unique_ptr<rpc::UnixServer>> local =
      rpc::UnixServer::start(control, config.control_socket, {&*admin_service});
  if (!local) return fail(local.error());
  unix_server = std::move(*local);
  return {};
}

Status TargetDaemon::Impl::start() {
  if (Status only_1_3 = rpc::require_tls_1_3(); !only_1_3) return only_1_3;
  if (Status opened = open_state(); !opened) return opened;
  start_shards();
  pools.emplace(config.pools);
  luns.emplace(config, *store, *pools, *serving, [this] { renew_access(); });
  access.emplace(*store, *serving, [this] { renew_access(); });
  for (const std::string& remark : luns->open_all())
    events.add(Severity::error, "lun-failed", config.name, remark, wall_now());
  if (Status opened = open_portals(); !opened) return opened;
  if (Status started = start_control(); !started) return started;
  watch_addresses();
  signals =
      std::make_unique<SignalWatch>(control, std::initializer_list<int>{SIGTERM, SIGINT, SIGHUP},
                                    [this](int signal) { on_signal(signal); });
  lun_timer.emplace(control, [this] { retry_luns(); });
  lun_timer->arm_after(lun_retry);
  parts->event(
      Severity::info, "started", config.name,
      fmt::format("vjbod-targetd {} serves {} LUNs, fingerprint {}", rpc::program_version(),
                  luns->open_targets().size(), identity->fingerprint.to_text()));
  return {};
}

void TargetDaemon::Impl::on_signal(int signal) {
  if (signal == SIGHUP) return reload();
  if (!stopping) return stop();
  log::warn("stopping already");
}

// The log level, the limits of nothing that runs, and what could not be opened before. Everything
// else needs a restart, which the log says.
void TargetDaemon::Impl::reload() {
  Result<TargetConfig> fresh = load_config(config_path);
  if (!fresh) {
    parts->event(Severity::error, "reload-failed", config.name,
                 fmt::format("the configuration stays as it was: {}", fresh.error().text));
    return;
  }
  if (fresh->log_level != config.log_level) {
    if (set_log_level(fresh->log_level)) config.log_level = fresh->log_level;
  }
  retry_luns();
  look_at_portals(true);
  parts->event(Severity::info, "reloaded", config.name,
               "configuration read again: the log level is in force, failed LUNs were tried "
               "again; other changes need a restart");
}

// A pool's disk may come after the daemon, and a daemon that was killed may hold its files for a
// while.
void TargetDaemon::Impl::retry_luns() {
  if (stopping) return;
  for (const std::string& name : luns->retry_failed())
    parts->event(Severity::info, "lun-served", name, fmt::format("LUN {} is served again", name));
  lun_timer->arm_after(lun_retry);
  lun_retry = std::min(lun_retry * 2, lun_retry_max);
}

void TargetDaemon::Impl::stop() {
  stopping = true;
  lun_timer.reset();
  address_news.reset();
  address_timer.reset();
  log::info("stopping: sessions are logged out");
  stop_timer.emplace(control, [] {
    // Every acknowledged write is out of this process's memory: nothing is lost by leaving now.
    log::warn("some sessions did not end in time; leaving all the same");
    std::_Exit(0);
  });
  stop_timer->arm_after(stop_deadline - std::chrono::seconds(1));
  // For the rest of the way down, when no reactor runs any more.
  std::signal(SIGALRM, [](int) { ::_exit(0); });
  ::alarm(std::chrono::duration_cast<std::chrono::seconds>(stop_deadline).count());
  const Error reason{rpc::Errc::other, "the target daemon stops"};
  watchers.notify_all("stopping", config.name, reason.text);
  watchers.close_all(reason);
  events.close(reason);
  stops_left = 3;
  peer_server->stop(call_grace, [this] { stopped_one(); });
  unix_server->stop(call_grace, [this] { stopped_one(); });
  home().post([this] {
    listeners.reset();
    if (iser_portals) iser_portals->close();
    server->shutdown([this] { control.post([this] { stopped_one(); }); });
  });
}

void TargetDaemon::Impl::stopped_one() {
  if (--stops_left == 0) control.stop();
}

// No session is left, so nobody uses the shards' parts of it.
void TargetDaemon::Impl::take_down_iser() {
  if (!iser_portals) return;
  const auto work = at_home([this] { return iser_portals->take_down(); });
  for (size_t i = 0; i < work.size(); ++i) {
    std::packaged_task<void()> task(work[i]);
    auto done = task.get_future();
    shards[i]->reactor().post([&task] { task(); });
    done.get();
  }
  at_home([this] { iser_portals.reset(); });
}

// After the control reactor has stopped, or when starting failed half way.
void TargetDaemon::Impl::tear_down() {
  signals.reset();
  lun_timer.reset();
  address_news.reset();
  address_timer.reset();
  stop_timer.reset();
  unix_server.reset();
  peer_server.reset();
  admin_service.reset();
  peer_service.reset();
  if (!shards.empty()) {
    at_home([this] {
      listeners.reset();
      if (iser_portals) iser_portals->close();
    });
    parts.reset();
    access.reset();
    luns.reset();
    serving.reset();
    take_down_iser();
    at_home([this] { server.reset(); });
    for (auto shard = shards.rbegin(); shard != shards.rend(); ++shard) shard->reset();
  }
  shards.clear();
}

void TargetDaemon::Impl::on_session_opened(const SessionInfo& session) {
  if (session.discovery) return;
  control.post([this, session] {
    events.add(
        Severity::info, "session-opened", session.target_name,
        fmt::format("{} from {} over {}, session {}", config::printable(session.initiator_name),
                    session.remote_address, transport::name_of(session.transport), session.id),
        wall_now());
  });
}

void TargetDaemon::Impl::on_session_closed(const SessionInfo& session, const Error& reason) {
  if (session.discovery) return;
  control.post([this, session, reason] {
    const bool planned = reason.code == iscsi::Errc::closed_locally;
    events.add(planned ? Severity::info : Severity::warning, "session-closed", session.target_name,
               fmt::format("{} from {}, session {}: {}", config::printable(session.initiator_name),
                           session.remote_address, session.id, reason.text),
               wall_now());
  });
}

void TargetDaemon::Impl::on_login_failed(const std::string& remote_address, const Error& reason) {
  control.post([this, remote_address, reason] {
    events.add(Severity::warning, "login-failed", remote_address,
               fmt::format("a login from {} failed: {}", remote_address, reason.text), wall_now());
  });
}

TargetDaemon::TargetDaemon(TargetConfig config, std::string config_path)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(config_path))) {}

TargetDaemon::~TargetDaemon() = default;

Status TargetDaemon::run() {
  Status started = impl_->start();
  if (started) {
    impl_->control.run();
    log::info("stopped");
  }
  impl_->tear_down();
  return started;
}

}  // namespace vjbod::target
