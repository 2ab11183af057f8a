// SPDX-License-Identifier: Apache-2.0
#include "tools/vjbod/help.h"

#include <string_view>

namespace vjbod::cli {

namespace {

struct Example {
  std::string_view command;
  std::string_view text;  // lines, indented
};

constexpr Example examples[] = {
    {"pair",
     "  vjbod pair 10.0.0.2                        asks for the token\n"
     "  vjbod pair nas2.lan:7443 --token-file -    reads it from stdin\n"},
    {"unpair", "  vjbod unpair nas2\n"},
    {"interfaces", "  vjbod interfaces nas2\n"},
    {"preflight", "  vjbod preflight nas2\n"},
    {"pools", "  vjbod pools nas2\n"},
    {"luns", "  vjbod luns nas2\n"},
    {"create",
     "  vjbod create disk1 --peer nas2 --pool tank --size 1T\n"
     "  vjbod create disk2 --peer nas2 --pool tank --size 500G --host-interface eth1\n"},
    {"attach",
     "  vjbod attach disk1 --peer nas2 --lun disk1\n"
     "  vjbod attach old --portal 10.0.1.9 --target iqn.2001-04.com.example:t1 --lun 0\n"},
    {"list", "  vjbod list\n  vjbod list -H --columns name,state\n"},
    {"status", "  vjbod status disk1 -v\n  vjbod status -o json\n"},
    {"connect", "  vjbod connect disk1\n"},
    {"disconnect", "  vjbod disconnect disk1\n"},
    {"reconnect", "  vjbod reconnect disk1\n"},
    {"edit", "  vjbod edit disk1 --on-loss fail\n  vjbod edit disk1 --host-interface \"\"\n"},
    {"detach", "  vjbod detach disk1\n"},
    {"delete", "  vjbod delete disk1 --yes\n"},
    {"events", "  vjbod events --follow\n"},
    {"check", "  vjbod check || echo \"look at: vjbod list\"\n"},
    {"wait", "  vjbod wait disk1 --state connected --timeout 5m\n"},
    {"target pair-token", "  vjbod target pair-token --ttl 10m\n"},
    {"target unpair", "  vjbod target unpair nas1\n"},
    {"target lun create", "  vjbod target lun create db --pool tank --size 100G\n"},
    {"target lun delete", "  vjbod target lun delete db --yes\n"},
    {"target lun resize", "  vjbod target lun resize db 200G\n"},
    {"target lun bind", "  vjbod target lun bind db nas1\n"},
    {"target lun unbind", "  vjbod target lun unbind db\n"},
    {"target initiator add",
     "  vjbod target initiator add iqn.1993-08.org.debian:01:4f --chap-user u --chap-secret-file "
     "secret\n"},
    {"target initiator allow", "  vjbod target initiator allow iqn.1993-08.org.debian:01:4f db\n"},
    {"target session kill", "  vjbod target session kill 7\n"},
};

constexpr std::string_view common =
    "Every command also takes -o table|json, -H, --columns, --timeout, --no-wait, -y, --progress\n"
    "json, --host-socket and --target-socket: see `vjbod --help`. The manual is vjbod(8).";

}  // namespace

void add_footers(CLI::App& app, const std::string& path) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    const std::string words = path.empty() ? command->get_name() : path + " " + command->get_name();
    std::string footer;
    for (const Example& example : examples) {
      if (example.command != words) continue;
      footer.append("Examples:\n").append(example.text);
    }
    footer.append(common);
    command->footer(footer);
    add_footers(*command, words);
  }
}

}  // namespace vjbod::cli
