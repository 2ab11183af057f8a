// SPDX-License-Identifier: Apache-2.0
// Commands of the host box about its disks.
#include <charconv>
#include <memory>
#include <optional>
#include <thread>

#include "common/config/values.h"
#include "common/rpc/errc.h"
#include "tools/vjbod/client.h"
#include "tools/vjbod/disk_views.h"
#include "tools/vjbod/print.h"
#include "tools/vjbod/terminal.h"

namespace vjbod::cli {

namespace {

// How often `wait` looks. The daemon is on this box, and a look costs it nothing.
constexpr Duration wait_poll_interval = std::chrono::milliseconds(200);
constexpr Duration wait_timeout_default = std::chrono::seconds(30);

HostClient host(const Options& options) {
  return HostClient("host daemon", options.host_socket, options);
}

// The options that create, attach and edit share, as typed.
struct DiskFlags {
  std::string host_interface, remote_interface, transport, backend, on_loss, io_timeout;
  std::string header_digest, data_digest, upgrade;
  CLI::App* command = nullptr;

  void add_to(CLI::App* to) {
    command = to;
    to->add_option("--host-interface", host_interface,
                   "Use this interface of this box; \"\" for any");
    to->add_option("--remote-interface", remote_interface,
                   "Use this interface of the peer; \"\" for any");
    to->add_option("--transport", transport, "auto (iSER when available), iser or iscsi")
        ->check(CLI::IsMember({"auto", "iser", "iscsi"}));
    to->add_option("--backend", backend, "auto, ublk, nbd or socket")
        ->check(CLI::IsMember({"auto", "ublk", "nbd", "socket"}));
    to->add_option("--on-loss", on_loss,
                   "queue or fail: what I/O does while the connection is lost")
        ->check(CLI::IsMember({"queue", "fail"}));
    to->add_option("--io-timeout", io_timeout,
                   "How long queued I/O waits, such as 600s; 0 for ever");
    to->add_option("--header-digest", header_digest, "on or off: CRC32C over headers")
        ->check(CLI::IsMember({"on", "off"}));
    to->add_option("--upgrade", upgrade,
                   "manual or idle: when a disk that fell back to iSCSI goes to iSER again")
        ->check(CLI::IsMember({"manual", "idle"}));
    to->add_option("--data-digest", data_digest, "on or off: CRC32C over data")
        ->check(CLI::IsMember({"on", "off"}));
  }
  bool given(const char* name) const { return command->count(name) > 0; }

  Result<v1::DiskOptions> parse() const {
    v1::DiskOptions options;
    if (given("--host-interface")) options.set_host_interface(host_interface);
    if (given("--remote-interface")) options.set_remote_interface(remote_interface);
    if (given("--transport")) options.set_transport(transport_of(transport));
    if (given("--backend")) options.set_backend(backend);
    if (given("--on-loss")) options.set_on_loss(on_loss);
    if (given("--upgrade")) options.set_upgrade(upgrade);
    if (given("--header-digest")) options.set_header_digest(header_digest == "on");
    if (given("--data-digest")) options.set_data_digest(data_digest == "on");
    if (given("--io-timeout")) {
      auto timeout = config::parse_duration(io_timeout);
      if (!timeout) return fail(rpc::Errc::usage, "--io-timeout: {}", timeout.error().text);
      options.set_io_timeout_s(static_cast<uint32_t>(
          std::chrono::duration_cast<std::chrono::seconds>(*timeout).count()));
    }
    return options;
  }
  static v1::Transport transport_of(const std::string& text) {
    if (text == "iser") return v1::TRANSPORT_ISER;
    if (text == "iscsi") return v1::TRANSPORT_ISCSI;
    return v1::TRANSPORT_AUTO;
  }
};

Outcome print_disk(const Options& options, const v1::Disk& disk) {
  if (options.output == OutputFormat::json) {
    std::cout << dump(Json{{"schema", 1}, {"disks", Json::array({to_json(disk)})}});
  } else {
    std::cout << fmt::format("{} is {}{}{}\n", disk.name(), disk.state(),
                             disk.device().empty() ? "" : " at ", disk.device());
  }
  return 0;
}

Result<std::vector<v1::Disk>> list(const Options& options, const std::string& disk) {
  v1::ListDisksRequest request;
  request.set_disk(disk);
  auto disks = host(options).call(&v1::HostAdmin::Stub::ListDisks, request);
  if (!disks) return fail(std::move(disks).error());
  return std::vector<v1::Disk>(disks->disks().begin(), disks->disks().end());
}

// Waits until what was asked for has come to its end: connected, or refused.
Outcome settle(const Options& options, v1::Disk& disk) {
  const auto deadline =
      std::chrono::steady_clock::now() + options.timeout.value_or(wait_timeout_default);
  const auto moving = [&disk] {
    return disk.state() == "connecting" || disk.state() == "reconnecting" ||
           disk.state() == "recovering";
  };
  while (!options.no_wait && moving()) {
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(rpc::Errc::timeout, "disk {} goes on {}, but has not got through in time: {}",
                  disk.name(), disk.state(), disk.note());
    std::this_thread::sleep_for(wait_poll_interval);
    auto now = list(options, disk.name());
    if (!now) return fail(std::move(now).error());
    if (now->empty()) return fail(rpc::Errc::not_found, "disk {} is gone", disk.name());
    disk = std::move(now->front());
  }
  if (disk.failure() != v1::ERROR_KIND_UNSPECIFIED)
    return fail(static_cast<rpc::Errc>(disk.failure()), "disk {} is {}: {}", disk.name(),
                disk.state(), disk.last_error());
  return print_disk(options, disk);
}

// Runs a create or an attach to its end, showing the steps.
template <typename Request>
Outcome run_long(const Options& options, HostClient::Streaming<Request, v1::DiskProgress> method,
                 const Request& request) {
  std::optional<v1::Disk> disk;
  auto ended = host(options).stream<Request, v1::DiskProgress>(
      method, request, true, [&](const v1::DiskProgress& progress) {
        show_progress(options, progress.step(), progress.text());
        if (progress.has_disk()) disk = progress.disk();
      });
  if (!ended) return fail(std::move(ended).error());
  if (!disk)
    return fail(rpc::Errc::other, "the host daemon ended the call without saying how the disk is");
  return print_disk(options, *disk);
}

void add_create(CLI::App& app, Registry& registry) {
  struct Flags {
    std::string disk, peer, pool, size;
    uint32_t block_size = 512;
    bool thick = false;
    DiskFlags common;
  };
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("create", "Make a new LUN on a peer and attach it as a disk");
  command->add_option("disk", flags->disk, "Name of the new disk")->required();
  command->add_option("--peer", flags->peer, "The box that gives the space")->required();
  command->add_option("--pool", flags->pool, "Its pool")->required();
  command->add_option("--size", flags->size, "Such as 10G; K, M, G, T, P are powers of 1024")
      ->required();
  command->add_option("--block-size", flags->block_size, "512 or 4096")
      ->check(CLI::IsMember({512, 4096}));
  command->add_flag("--thick", flags->thick, "Take all the space now");
  flags->common.add_to(command);
  registry.add(command, [&options = registry.options(), flags]() -> Outcome {
    auto size = config::parse_size(flags->size);
    if (!size) return fail(rpc::Errc::usage, "--size: {}", size.error().text);
    auto chosen = flags->common.parse();
    if (!chosen) return fail(std::move(chosen).error());
    v1::CreateDiskRequest request;
    request.set_disk(flags->disk);
    request.set_peer(flags->peer);
    request.set_pool(flags->pool);
    request.set_size_bytes(*size);
    request.set_block_size(flags->block_size);
    request.set_thick(flags->thick);
    *request.mutable_options() = *chosen;
    request.set_no_wait(options.no_wait);
    return run_long<v1::CreateDiskRequest>(options, &v1::HostAdmin::Stub::CreateDisk, request);
  });
}

void add_attach(CLI::App& app, Registry& registry) {
  struct Flags {
    std::string disk, peer, lun, portal, target;
    std::string chap_user, chap_file, mutual_user, mutual_file;
    DiskFlags common;
  };
  auto flags = std::make_shared<Flags>();
  auto* command =
      app.add_subcommand("attach", "Attach an existing LUN of a peer, or of any iSCSI target");
  command->add_option("disk", flags->disk, "Name of the new disk")->required();
  command->add_option("--peer", flags->peer, "A paired box");
  command
      ->add_option("--lun", flags->lun,
                   "With --peer: name or NAA of the LUN; with --portal: its number")
      ->required();
  command->add_option("--portal", flags->portal, "ADDR[:PORT] of any iSCSI target");
  command->add_option("--target", flags->target, "Its iSCSI name");
  command->add_option("--chap-user", flags->chap_user, "Name for CHAP");
  command->add_option("--chap-secret-file", flags->chap_file,
                      "File with the secret on its first line, or - for stdin");
  command->add_option("--mutual-user", flags->mutual_user,
                      "Name the target must prove (mutual CHAP)");
  command->add_option("--mutual-secret-file", flags->mutual_file, "File with the target's secret");
  flags->common.add_to(command);
  registry.add(command, [&options = registry.options(), flags]() -> Outcome {
    if (flags->peer.empty() == flags->portal.empty()) {
      return fail(
          rpc::Errc::usage,
          "say either --peer PEER, for a paired box, or --portal ADDR --target IQN, for any other");
    }
    auto chosen = flags->common.parse();
    if (!chosen) return fail(std::move(chosen).error());
    v1::AttachDiskRequest request;
    request.set_disk(flags->disk);
    *request.mutable_options() = *chosen;
    request.set_no_wait(options.no_wait);
    if (!flags->peer.empty()) {
      request.mutable_peer_lun()->set_peer(flags->peer);
      request.mutable_peer_lun()->set_lun(flags->lun);
      return run_long<v1::AttachDiskRequest>(options, &v1::HostAdmin::Stub::AttachDisk, request);
    }
    auto portal = config::parse_host_port(flags->portal, 3260);
    if (!portal) return fail(rpc::Errc::usage, "--portal: {}", portal.error().text);
    if (flags->target.empty()) return fail(rpc::Errc::usage, "--portal needs --target IQN");
    uint32_t number = 0;
    const auto [end, error] =
        std::from_chars(flags->lun.data(), flags->lun.data() + flags->lun.size(), number);
    if (error != std::errc() || end != flags->lun.data() + flags->lun.size()) {
      return fail(rpc::Errc::usage, "--lun: with --portal it is a number, such as 0");
    }
    v1::ForeignTarget& foreign = *request.mutable_foreign();
    foreign.set_address(portal->host);
    foreign.set_port(portal->port);
    foreign.set_target_iqn(flags->target);
    foreign.set_lun_number(number);
    foreign.set_chap_user(flags->chap_user);
    foreign.set_mutual_user(flags->mutual_user);
    if (flags->chap_user.empty() != flags->chap_file.empty()) {
      return fail(rpc::Errc::usage, "--chap-user and --chap-secret-file go together");
    }
    if (flags->mutual_user.empty() != flags->mutual_file.empty()) {
      return fail(rpc::Errc::usage, "--mutual-user and --mutual-secret-file go together");
    }
    if (!flags->chap_file.empty()) {
      auto secret = read_secret_file(flags->chap_file);
      if (!secret) return fail(std::move(secret).error());
      foreign.set_chap_secret(*secret);
    }
    if (!flags->mutual_file.empty()) {
      auto secret = read_secret_file(flags->mutual_file);
      if (!secret) return fail(std::move(secret).error());
      foreign.set_mutual_secret(*secret);
    }
    return run_long<v1::AttachDiskRequest>(options, &v1::HostAdmin::Stub::AttachDisk, request);
  });
}

Outcome print_disks(const Options& options, const std::vector<v1::Disk>& disks) {
  return print_list(options, "disks", disks, disk_columns(), disk_row);
}

void add_list_and_status(CLI::App& app, Registry& registry) {
  auto* list_command = app.add_subcommand("list", "The disks of this box");
  registry.add(list_command, [&options = registry.options()]() -> Outcome {
    auto disks = list(options, "");
    if (!disks) return fail(std::move(disks).error());
    return print_disks(options, *disks);
  });
  auto* status = app.add_subcommand("status", "One disk or all, and with -v everything about them");
  auto disk = std::make_shared<std::string>();
  auto verbose = std::make_shared<bool>(false);
  status->add_option("disk", *disk, "Name of the disk");
  status->add_flag("-v,--verbose", *verbose, "Everything, with the last state changes");
  registry.add(status, [&options = registry.options(), disk, verbose]() -> Outcome {
    auto disks = list(options, *disk);
    if (!disks) return fail(std::move(disks).error());
    if (!*verbose || options.output == OutputFormat::json) return print_disks(options, *disks);
    for (const v1::Disk& one : *disks) std::cout << disk_details(one);
    return 0;
  });
}

template <typename Request>
void add_simple(CLI::App& app, Registry& registry, const char* name, const char* help,
                HostClient::Unary<Request, v1::Disk> method) {
  auto* command = app.add_subcommand(name, help);
  auto disk = std::make_shared<std::string>();
  command->add_option("disk", *disk, "Name of the disk")->required();
  registry.add(command, [&options = registry.options(), disk, method]() -> Outcome {
    Request request;
    request.set_disk(*disk);
    auto answer = host(options).call(method, request);
    if (!answer) return fail(std::move(answer).error());
    return settle(options, *answer);
  });
}

void add_reconnect_and_edit(CLI::App& app, Registry& registry) {
  auto* reconnect =
      app.add_subcommand("reconnect", "A new session under load, without an I/O error");
  auto disk = std::make_shared<std::string>(), transport = std::make_shared<std::string>();
  reconnect->add_option("disk", *disk, "Name of the disk")->required();
  reconnect->add_option("--transport", *transport, "auto or iscsi, from now on; iser: go there now")
      ->check(CLI::IsMember({"auto", "iser", "iscsi"}));
  registry.add(reconnect, [&options = registry.options(), disk, transport]() -> Outcome {
    v1::ReconnectDiskRequest request;
    request.set_disk(*disk);
    if (!transport->empty()) request.set_transport(DiskFlags::transport_of(*transport));
    auto answer = host(options).call(&v1::HostAdmin::Stub::ReconnectDisk, request);
    if (!answer) return fail(std::move(answer).error());
    auto outcome = settle(options, *answer);
    const v1::Fallback& fallback = answer->fallback();
    if (outcome && request.transport() == v1::TRANSPORT_ISER && fallback.active())
      return fail(rpc::Errc::iser_unavailable, "disk {} goes on over iSCSI; iSER failed ({}): {}",
                  answer->name(), fallback.reason_code(), fallback.reason_text());
    return outcome;
  });

  auto* edit = app.add_subcommand("edit", "Change how a disk is connected");
  auto name = std::make_shared<std::string>();
  auto flags = std::make_shared<DiskFlags>();
  edit->add_option("disk", *name, "Name of the disk")->required();
  flags->add_to(edit);
  registry.add(edit, [&options = registry.options(), name, flags]() -> Outcome {
    auto chosen = flags->parse();
    if (!chosen) return fail(std::move(chosen).error());
    v1::EditDiskRequest request;
    request.set_disk(*name);
    *request.mutable_options() = *chosen;
    auto answer = host(options).call(&v1::HostAdmin::Stub::EditDisk, request);
    if (!answer) return fail(std::move(answer).error());
    // Only these need a new session; the change itself is made, however the disk is.
    const bool new_session = flags->given("--host-interface") ||
                             flags->given("--remote-interface") || flags->given("--transport") ||
                             flags->given("--header-digest") || flags->given("--data-digest");
    const bool failed_before = answer->failure() != v1::ERROR_KIND_UNSPECIFIED;
    return new_session && !failed_before ? settle(options, *answer) : print_disk(options, *answer);
  });
}

void add_detach_and_delete(CLI::App& app, Registry& registry) {
  auto* detach =
      app.add_subcommand("detach", "Forget a disk; the LUN and its data stay on the peer");
  auto disk = std::make_shared<std::string>();
  auto force = std::make_shared<bool>(false);
  detach->add_option("disk", *disk, "Name of the disk")->required();
  detach->add_flag("--force", *force, "Even if the device is in use; what waits then fails");
  registry.add(detach, [&options = registry.options(), disk, force]() -> Outcome {
    v1::DetachDiskRequest request;
    request.set_disk(*disk);
    request.set_force(*force);
    auto answer = host(options).call(&v1::HostAdmin::Stub::DetachDisk, request);
    if (!answer) return fail(std::move(answer).error());
    return 0;
  });

  auto* destroy =
      app.add_subcommand("delete", "Detach a disk and delete its LUN on the peer, with all data");
  auto doomed = std::make_shared<std::string>();
  destroy->add_option("disk", *doomed, "Name of the disk")->required();
  registry.add(destroy, [&options = registry.options(), doomed]() -> Outcome {
    auto sure =
        confirm(options, fmt::format("Delete disk {} and all of its data on the peer?", *doomed));
    if (!sure) return fail(std::move(sure).error());
    v1::DiskRequest request;
    request.set_disk(*doomed);
    auto answer = host(options).call(&v1::HostAdmin::Stub::DeleteDisk, request);
    if (!answer) return fail(std::move(answer).error());
    return 0;
  });
}

void add_events(CLI::App& app, Registry& registry) {
  auto* command = app.add_subcommand("events", "What happened, oldest first");
  auto follow = std::make_shared<bool>(false);
  command->add_flag("--follow", *follow, "Go on with what happens from now on");
  registry.add(command, [&options = registry.options(), follow]() -> Outcome {
    v1::HostEventsRequest request;
    request.set_follow(*follow);
    std::vector<v1::Event> events;
    const bool live = *follow;
    auto ended = host(options).stream<v1::HostEventsRequest, v1::Event>(
        &v1::HostAdmin::Stub::Events, request, !live || options.timeout.has_value(),
        [&](const v1::Event& event) {
          if (!live) {
            events.push_back(event);
          } else if (options.output == OutputFormat::json) {
            std::cout << to_json(event).dump(-1, ' ', false, Json::error_handler_t::replace)
                      << std::endl;
          } else {
            std::string line;
            for (const std::string& cell : event_row(event))
              line += (line.empty() ? "" : "  ") + config::printable(cell, 4096);
            std::cout << line << std::endl;
          }
        });
    if (!ended) return fail(std::move(ended).error());
    if (live) return 0;
    return print_list(options, "events", events, {"TIME", "SEVERITY", "KIND", "OBJECT", "TEXT"},
                      event_row);
  });
}

void add_check(CLI::App& app, Registry& registry) {
  auto* command = app.add_subcommand(
      "check", "0: all connected as wanted; 1: degraded; 2: a disk is down; 3: unknown");
  registry.add(command, [&options = registry.options()]() -> Outcome {
    auto disks = list(options, "");
    if (!disks) {
      std::cerr << "vjbod: " << disks.error().text << "\n";
      return 3;
    }
    int worst = 0;
    for (const v1::Disk& disk : *disks) {
      const int health = disk_health(disk);
      worst = std::max(worst, health);
      if (health > 0) {
        std::cout << fmt::format("{}: {}{}{}\n", disk.name(), disk.state(),
                                 disk.note().empty() ? "" : ", ", disk.note());
      }
    }
    if (worst == 0) std::cout << "all disks are connected as wanted\n";
    return worst;
  });
}

void add_wait(CLI::App& app, Registry& registry) {
  auto* command = app.add_subcommand("wait", "Wait until a disk is in a state");
  auto disk = std::make_shared<std::string>();
  auto state = std::make_shared<std::string>("connected");
  command->add_option("disk", *disk, "Name of the disk")->required();
  command->add_option("--state", *state, "The state to wait for")
      ->check(CLI::IsMember(disk_states()));
  registry.add(command, [&options = registry.options(), disk, state]() -> Outcome {
    const auto deadline =
        std::chrono::steady_clock::now() + options.timeout.value_or(wait_timeout_default);
    for (;;) {
      auto disks = list(options, *disk);
      if (!disks) return fail(std::move(disks).error());
      if (!disks->empty() && disks->front().state() == *state) return 0;
      if (std::chrono::steady_clock::now() >= deadline) {
        const std::string note = disks->empty() ? "" : disks->front().note();
        return fail(rpc::Errc::timeout, "{} is still {}, not {}{}{}", *disk,
                    disks->empty() ? "unknown" : disks->front().state(), *state,
                    note.empty() ? "" : ": ", note);
      }
      std::this_thread::sleep_for(wait_poll_interval);
    }
  });
}

// In the contract of the command line, in later versions of the program.
void add_later(CLI::App& app, Registry& registry, const char* name, const char* help) {
  auto* command = app.add_subcommand(name, help);
  auto ignored = std::make_shared<std::vector<std::string>>();
  command->add_option("arguments", *ignored, "As in later versions");
  registry.add(command, [name, ignored]() -> Outcome {
    return fail(rpc::Errc::other, "{} is not available yet in this version", name);
  });
}

}  // namespace

void add_disk_commands(CLI::App& app, Registry& registry) {
  add_create(app, registry);
  add_attach(app, registry);
  add_list_and_status(app, registry);
  add_simple<v1::DiskRequest>(app, registry, "connect", "Open the sessions of a disk",
                              &v1::HostAdmin::Stub::ConnectDisk);
  add_simple<v1::DiskRequest>(app, registry, "disconnect",
                              "Close the sessions of a disk; its configuration stays",
                              &v1::HostAdmin::Stub::DisconnectDisk);
  add_reconnect_and_edit(app, registry);
  add_detach_and_delete(app, registry);
  add_events(app, registry);
  add_check(app, registry);
  add_wait(app, registry);
  add_later(app, registry, "resize", "Grow a disk (later version)");
  add_later(app, registry, "recover", "Attach what a lost host had (later version)");
}

}  // namespace vjbod::cli
