// SPDX-License-Identifier: Apache-2.0
// Commands of the target box: vjbod target …
#include <charconv>
#include <memory>

#include "common/config/values.h"
#include "common/rpc/errc.h"
#include "tools/vjbod/client.h"
#include "tools/vjbod/disk_views.h"
#include "tools/vjbod/print.h"
#include "tools/vjbod/terminal.h"

namespace vjbod::cli {

namespace {

using Stub = v1::TargetAdmin::Stub;

TargetClient target(const Options& options) {
  return TargetClient("target daemon", options.target_socket, options);
}

std::vector<std::string> lun_columns() {
  return {"NAME", "POOL", "SIZE", "USED", "BLOCK", "BOUND-TO", "SESSIONS", "TARGET", "NOTE"};
}
std::vector<std::string> lun_row(const v1::Lun& lun) {
  return {lun.name(),
          lun.pool(),
          short_size(lun.size_bytes()),
          short_size(lun.allocated_bytes()),
          std::to_string(lun.block_size()),
          lun.bound_to(),
          std::to_string(lun.sessions()),
          lun.target_iqn(),
          lun.error()};
}

Outcome print_lun(const Options& options, const Result<v1::Lun>& lun) {
  if (!lun) return fail(lun.error());
  return print_list(options, "luns", std::vector<v1::Lun>{*lun}, lun_columns(), lun_row);
}

// A command whose argument is one name, and whose answer is nothing.
template <typename Request>
Outcome call_for_nothing(const Options& options, TargetClient::Unary<Request, v1::Empty> method,
                         const Request& request) {
  auto done = target(options).call(method, request);
  if (!done) return fail(std::move(done).error());
  return 0;
}

std::shared_ptr<std::string> argument(CLI::App* command, const char* name, const char* help) {
  auto value = std::make_shared<std::string>();
  command->add_option(name, *value, help)->required();
  return value;
}

void add_box_commands(CLI::App& app, Registry& registry) {
  const Options& options = registry.options();
  registry.add(
      app.add_subcommand("status", "The target daemon of this box"), [&options]() -> Outcome {
        auto status = target(options).call(&Stub::GetStatus, v1::Empty());
        if (!status) return fail(std::move(status).error());
        if (options.output == OutputFormat::json) {
          std::cout << dump(to_json(*status));
          return 0;
        }
        std::cout << fmt::format(
            "{}: vjbod-targetd {}, {} LUNs, {} sessions, {} peers\ncontrol {}, certificate {}\n",
            status->name(), status->version().version(), status->luns(), status->sessions(),
            status->peers(), status->control_address(), status->certificate_fingerprint());
        for (const v1::Portal& portal : status->portals()) {
          std::cout << fmt::format(
              "portal {}\n",
              config::host_port_text(portal.address(), static_cast<uint16_t>(portal.port())));
        }
        return 0;
      });

  auto* token =
      app.add_subcommand("pair-token", "Print a one-time token for `vjbod pair` on a host box");
  auto ttl = std::make_shared<std::string>();
  token->add_option("--ttl", *ttl, "How long it holds, such as 10m");
  registry.add(token, [&options, ttl]() -> Outcome {
    v1::CreatePairTokenRequest request;
    if (!ttl->empty()) {
      auto duration = config::parse_duration(*ttl);
      if (!duration || *duration < std::chrono::seconds(1))
        return fail(rpc::Errc::usage, "--ttl: give a time such as 10m");
      request.set_ttl_s(static_cast<uint32_t>(
          std::chrono::duration_cast<std::chrono::seconds>(*duration).count()));
    }
    auto answer = target(options).call(&Stub::CreatePairToken, request);
    if (!answer) return fail(std::move(answer).error());
    if (options.output == OutputFormat::json) {
      std::cout << dump(Json{{"schema", 1},
                             {"token", answer->token()},
                             {"expires_at", to_json(answer->expires_at())}});
    } else {
      std::cout << answer->token() << "\n";
    }
    return 0;
  });

  registry.add(app.add_subcommand("peers", "The hosts paired with this box"),
               [&options]() -> Outcome {
                 auto peers = target(options).call(&Stub::ListPeers, v1::Empty());
                 if (!peers) return fail(std::move(peers).error());
                 return print_list(options, "peers", peers->peers(),
                                   {"NAME", "STATE", "LUNS", "INITIATOR", "CERTIFICATE"},
                                   [](const v1::TargetPeerInfo& peer) -> std::vector<std::string> {
                                     return {peer.name(), peer.watching() ? "watching" : "away",
                                             std::to_string(peer.luns_size()), peer.initiator_iqn(),
                                             peer.certificate_fingerprint().substr(0, 16)};
                                   });
               });

  auto* unpair =
      app.add_subcommand("unpair", "End the pairing with a host, its sessions and its secrets");
  auto peer = argument(unpair, "name", "Name of the host");
  registry.add(unpair, [&options, peer]() -> Outcome {
    auto sure =
        confirm(options, fmt::format("End every session of {} and forget its secrets?", *peer));
    if (!sure) return fail(std::move(sure).error());
    v1::NameRequest request;
    request.set_name(*peer);
    return call_for_nothing(options, &Stub::UnpairPeer, request);
  });

  auto* events = app.add_subcommand("events", "What happened, oldest first");
  registry.add(events, [&options]() -> Outcome {
    std::vector<v1::Event> all;
    auto ended = target(options).stream<v1::EventsRequest, v1::Event>(
        &Stub::Events, v1::EventsRequest(), true,
        [&](const v1::Event& event) { all.push_back(event); });
    if (!ended) return fail(std::move(ended).error());
    return print_list(options, "events", all, {"TIME", "SEVERITY", "KIND", "OBJECT", "TEXT"},
                      event_row);
  });

  auto* pool = app.add_subcommand("pool", "Pools of this box");
  pool->require_subcommand(1);
  pool->fallthrough();
  registry.add(pool->add_subcommand("list", "The pools"), [&options]() -> Outcome {
    auto pools = target(options).call(&Stub::ListPools, v1::Empty());
    if (!pools) return fail(std::move(pools).error());
    return print_list(options, "pools", pools->pools(),
                      {"NAME", "KIND", "SIZE", "FREE", "LUNS", "PATH", "NOTE"},
                      [](const v1::Pool& one) -> std::vector<std::string> {
                        return {one.name(),
                                one.kind(),
                                short_size(one.size_bytes()),
                                short_size(one.free_bytes()),
                                std::to_string(one.lun_count()),
                                one.path(),
                                one.error()};
                      });
  });
}

void add_lun_commands(CLI::App& app, Registry& registry) {
  const Options& options = registry.options();
  auto* lun = app.add_subcommand("lun", "LUNs of this box");
  lun->require_subcommand(1);
  lun->fallthrough();

  struct CreateFlags {
    std::string name, pool, size;
    uint32_t block_size = 512;
    bool thick = false;
  };
  auto flags = std::make_shared<CreateFlags>();
  auto* create = lun->add_subcommand("create", "Make a LUN that no host uses yet");
  create->add_option("name", flags->name, "Its name")->required();
  create->add_option("--pool", flags->pool, "The pool to take the space from")->required();
  create->add_option("--size", flags->size, "Such as 10G")->required();
  create->add_option("--block-size", flags->block_size, "512 or 4096")
      ->check(CLI::IsMember({512, 4096}));
  create->add_flag("--thick", flags->thick, "Take all the space now");
  registry.add(create, [&options, flags]() -> Outcome {
    auto size = config::parse_size(flags->size);
    if (!size) return fail(rpc::Errc::usage, "--size: {}", size.error().text);
    v1::CreateLunRequest request;
    request.set_name(flags->name);
    request.set_pool(flags->pool);
    request.set_size_bytes(*size);
    request.set_block_size(flags->block_size);
    request.set_thick(flags->thick);
    return print_lun(options, target(options).call(&Stub::CreateLun, request));
  });

  registry.add(lun->add_subcommand("list", "The LUNs"), [&options]() -> Outcome {
    auto luns = target(options).call(&Stub::ListLuns, v1::Empty());
    if (!luns) return fail(std::move(luns).error());
    return print_list(options, "luns", luns->luns(), lun_columns(), lun_row);
  });

  auto* remove = lun->add_subcommand("delete", "Delete a LUN with all of its data");
  auto doomed = argument(remove, "name", "Name of the LUN");
  registry.add(remove, [&options, doomed]() -> Outcome {
    auto sure = confirm(options, fmt::format("Delete LUN {} and all of its data?", *doomed));
    if (!sure) return fail(std::move(sure).error());
    v1::LunRequest request;
    request.set_lun(*doomed);
    return call_for_nothing(options, &Stub::DeleteLun, request);
  });

  auto* resize = lun->add_subcommand("resize", "Grow a LUN; hosts that use it see it at once");
  auto resized = argument(resize, "name", "Name of the LUN");
  auto size_text = argument(resize, "size", "New size, such as 20G");
  registry.add(resize, [&options, resized, size_text]() -> Outcome {
    auto size = config::parse_size(*size_text);
    if (!size) return fail(rpc::Errc::usage, "{}", size.error().text);
    v1::ResizeLunRequest request;
    request.set_lun(*resized);
    request.set_size_bytes(*size);
    return print_lun(options, target(options).call(&Stub::ResizeLun, request));
  });

  auto* bind = lun->add_subcommand("bind", "Give a LUN to a paired host");
  auto bound = argument(bind, "name", "Name of the LUN");
  auto to = argument(bind, "peer", "Name of the host");
  registry.add(bind, [&options, bound, to]() -> Outcome {
    v1::BindLunRequest request;
    request.set_lun(*bound);
    request.set_peer(*to);
    return print_lun(options, target(options).call(&Stub::BindLun, request));
  });

  auto* unbind =
      lun->add_subcommand("unbind", "Take a LUN from its host; its sessions end, the data stay");
  auto freed = argument(unbind, "name", "Name of the LUN");
  registry.add(unbind, [&options, freed]() -> Outcome {
    v1::LunRequest request;
    request.set_lun(*freed);
    return print_lun(options, target(options).call(&Stub::UnbindLun, request));
  });
}

std::vector<std::string> initiator_row(const v1::Initiator& initiator) {
  std::string luns;
  for (const std::string& lun : initiator.luns()) luns += (luns.empty() ? "" : ",") + lun;
  return {initiator.iqn(),
          initiator.mutual_chap() ? "mutual-chap"
          : initiator.chap()      ? "chap"
                                  : "none",
          luns};
}

Outcome print_initiator(const Options& options, const Result<v1::Initiator>& initiator) {
  if (!initiator) return fail(initiator.error());
  return print_list(options, "initiators", std::vector<v1::Initiator>{*initiator},
                    {"IQN", "AUTHENTICATION", "LUNS"}, initiator_row);
}

void add_initiator_commands(CLI::App& app, Registry& registry) {
  const Options& options = registry.options();
  auto* initiator =
      app.add_subcommand("initiator", "Foreign initiators: ESXi, Windows, open-iscsi, QEMU");
  initiator->require_subcommand(1);
  initiator->fallthrough();

  struct AddFlags {
    std::string iqn, chap_user, chap_file, mutual_user, mutual_file;
  };
  auto flags = std::make_shared<AddFlags>();
  auto* add = initiator->add_subcommand("add", "Let an initiator in, with CHAP if a user is given");
  add->add_option("iqn", flags->iqn, "Its iSCSI name")->required();
  add->add_option("--chap-user", flags->chap_user, "Name it must prove");
  add->add_option("--chap-secret-file", flags->chap_file, "File with its secret, or - for stdin");
  add->add_option("--mutual-user", flags->mutual_user, "Name we prove to it");
  add->add_option("--mutual-secret-file", flags->mutual_file, "File with our secret");
  registry.add(add, [&options, flags]() -> Outcome {
    if (flags->chap_user.empty() != flags->chap_file.empty() ||
        flags->mutual_user.empty() != flags->mutual_file.empty()) {
      return fail(rpc::Errc::usage, "a user and its secret file go together");
    }
    v1::AddInitiatorRequest request;
    request.set_iqn(flags->iqn);
    request.set_chap_user(flags->chap_user);
    request.set_mutual_user(flags->mutual_user);
    if (!flags->chap_file.empty()) {
      auto secret = read_secret_file(flags->chap_file);
      if (!secret) return fail(std::move(secret).error());
      request.set_chap_secret(*secret);
    }
    if (!flags->mutual_file.empty()) {
      auto secret = read_secret_file(flags->mutual_file);
      if (!secret) return fail(std::move(secret).error());
      request.set_mutual_secret(*secret);
    }
    return print_initiator(options, target(options).call(&Stub::AddInitiator, request));
  });

  registry.add(initiator->add_subcommand("list", "The initiators"), [&options]() -> Outcome {
    auto all = target(options).call(&Stub::ListInitiators, v1::Empty());
    if (!all) return fail(std::move(all).error());
    return print_list(options, "initiators", all->initiators(), {"IQN", "AUTHENTICATION", "LUNS"},
                      initiator_row);
  });

  auto* remove = initiator->add_subcommand("remove", "Forget an initiator and end its sessions");
  auto removed = argument(remove, "iqn", "Its iSCSI name");
  registry.add(remove, [&options, removed]() -> Outcome {
    v1::NameRequest request;
    request.set_name(*removed);
    return call_for_nothing(options, &Stub::RemoveInitiator, request);
  });

  auto add_access = [&](const char* name, const char* help,
                        TargetClient::Unary<v1::InitiatorLunRequest, v1::Initiator> method) {
    auto* command = initiator->add_subcommand(name, help);
    auto iqn = argument(command, "iqn", "Its iSCSI name");
    auto lun = argument(command, "lun", "Name of the LUN");
    registry.add(command, [&options, iqn, lun, method]() -> Outcome {
      v1::InitiatorLunRequest request;
      request.set_iqn(*iqn);
      request.set_lun(*lun);
      return print_initiator(options, target(options).call(method, request));
    });
  };
  add_access("allow", "Let an initiator use a LUN", &Stub::AllowInitiator);
  add_access("deny", "Take a LUN from an initiator; its sessions with it end",
             &Stub::DenyInitiator);
}

void add_session_commands(CLI::App& app, Registry& registry) {
  const Options& options = registry.options();
  auto* portal = app.add_subcommand("portal", "Where this box listens for iSCSI");
  portal->require_subcommand(1);
  portal->fallthrough();
  registry.add(portal->add_subcommand("list", "The portals"), [&options]() -> Outcome {
    auto portals = target(options).call(&Stub::ListPortals, v1::Empty());
    if (!portals) return fail(std::move(portals).error());
    return print_list(
        options, "portals", portals->portals(), {"ADDRESS", "TRANSPORTS"},
        [](const v1::Portal& one) -> std::vector<std::string> {
          std::string transports;
          for (const std::string& name : one.transports())
            transports += (transports.empty() ? "" : ",") + name;
          return {config::host_port_text(one.address(), static_cast<uint16_t>(one.port())),
                  transports};
        });
  });

  auto* session = app.add_subcommand("session", "Sessions that are open now");
  session->require_subcommand(1);
  session->fallthrough();
  registry.add(session->add_subcommand("list", "The sessions"), [&options]() -> Outcome {
    auto sessions = target(options).call(&Stub::ListSessions, v1::Empty());
    if (!sessions) return fail(std::move(sessions).error());
    return print_list(
        options, "sessions", sessions->sessions(),
        {"ID", "INITIATOR", "TARGET", "CONNECTION", "FROM", "AUTHENTICATION", "READ", "WRITTEN"},
        [](const v1::TargetSession& one) -> std::vector<std::string> {
          return {one.id(),
                  one.initiator_iqn(),
                  one.target_iqn(),
                  one.transport(),
                  one.remote_address(),
                  one.authentication(),
                  short_size(one.read_bytes()),
                  short_size(one.write_bytes())};
        });
  });
  auto* kill = session->add_subcommand("kill", "End a session; its initiator may log in again");
  auto id = argument(kill, "id", "As in `session list`");
  registry.add(kill, [&options, id]() -> Outcome {
    v1::NameRequest request;
    request.set_name(*id);
    return call_for_nothing(options, &Stub::KillSession, request);
  });
}

void add_fault_commands(CLI::App& app, Registry& registry) {
  const Options& options = registry.options();
  auto* fault =
      app.add_subcommand("fault", "Faults of a LUN's backstore, for tests (allow_test_faults)");
  fault->require_subcommand(1);
  fault->fallthrough();
  struct Flags {
    std::string lun, operations;
    uint64_t first = 0, length = 0;
    uint32_t delay_ms = 0;
    int32_t errno_value = 5;
    bool once = false;
  };
  auto split = [](const std::string& text, auto* operations) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      operations->Add(text.substr(begin, end - begin));
      begin = end + 1;
    }
  };
  auto common = [](CLI::App* command, Flags& flags) {
    command->add_option("lun", flags.lun, "Name of the LUN")->required();
    command->add_option("--operations", flags.operations,
                        "read,write,flush,unmap,write_zeroes; all when not given");
    command->add_option("--first-byte", flags.first, "Where the fault begins");
    command->add_option("--length", flags.length, "How many bytes it covers; 0: to the end");
  };
  auto delay_flags = std::make_shared<Flags>();
  auto* delay = fault->add_subcommand("delay", "Hold I/O back");
  common(delay, *delay_flags);
  delay->add_option("--ms", delay_flags->delay_ms, "Milliseconds; 0: until cleared");
  registry.add(delay, [&options, delay_flags, split]() -> Outcome {
    v1::SetFaultRequest request;
    request.set_lun(delay_flags->lun);
    v1::DelayFault& one = *request.mutable_delay();
    split(delay_flags->operations, one.mutable_operations());
    one.set_first_byte(delay_flags->first);
    one.set_length_bytes(delay_flags->length);
    one.set_delay_ms(delay_flags->delay_ms);
    return call_for_nothing(options, &Stub::SetFault, request);
  });
  auto error_flags = std::make_shared<Flags>();
  auto* error = fault->add_subcommand("error", "Make I/O fail");
  common(error, *error_flags);
  error->add_option("--errno", error_flags->errno_value, "The error number (default 5, EIO)");
  error->add_flag("--once", error_flags->once, "Only the first time");
  registry.add(error, [&options, error_flags, split]() -> Outcome {
    v1::SetFaultRequest request;
    request.set_lun(error_flags->lun);
    v1::ErrorFault& one = *request.mutable_error();
    split(error_flags->operations, one.mutable_operations());
    one.set_first_byte(error_flags->first);
    one.set_length_bytes(error_flags->length);
    one.set_errno_value(error_flags->errno_value);
    one.set_once(error_flags->once);
    return call_for_nothing(options, &Stub::SetFault, request);
  });
  auto* trace = fault->add_subcommand("trace", "The last operations at a LUN's backstore");
  auto traced = argument(trace, "lun", "Name of the LUN");
  registry.add(trace, [&options, traced]() -> Outcome {
    v1::NameRequest request;
    request.set_name(*traced);
    auto answer = target(options).call(&Stub::TraceLun, request);
    if (!answer) return fail(std::move(answer).error());
    if (options.output == OutputFormat::json) {
      Json entries = Json::array();
      for (const std::string& entry : answer->entries()) entries.push_back(entry);
      std::cout << dump(
          Json{{"schema", 1}, {"finished", answer->finished()}, {"entries", entries}});
    } else {
      for (const std::string& entry : answer->entries()) std::cout << entry << "\n";
    }
    return 0;
  });
  auto* clear = fault->add_subcommand("clear", "End every fault of a LUN");
  auto lun = argument(clear, "lun", "Name of the LUN");
  registry.add(clear, [&options, lun]() -> Outcome {
    v1::SetFaultRequest request;
    request.set_lun(*lun);
    request.mutable_clear();
    return call_for_nothing(options, &Stub::SetFault, request);
  });
}

}  // namespace

void add_target_commands(CLI::App& app, Registry& registry) {
  auto* target = app.add_subcommand("target", "Commands of the target box, which gives the space");
  target->require_subcommand(1);
  target->fallthrough();
  add_box_commands(*target, registry);
  add_lun_commands(*target, registry);
  add_initiator_commands(*target, registry);
  add_session_commands(*target, registry);
  add_fault_commands(*target, registry);
}

}  // namespace vjbod::cli
