// SPDX-License-Identifier: Apache-2.0
#include "initiator/config.h"

#include <algorithm>
#include <array>

#include <unistd.h>

#include "common/config/config_reader.h"
#include "common/config/values.h"
#include "common/iscsi/name.h"

namespace vjbod::initiator {

namespace {

// The host's own name as far as our grammar goes: the part before the first dot, in lower case.
std::string default_name() {
  std::array<char, 256> buffer{};
  if (gethostname(buffer.data(), buffer.size() - 1) != 0) return "host";
  std::string name(buffer.data());
  name.erase(std::min(name.find('.'), name.size()));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return config::is_name(name) ? name : "host";
}

void read_path(config::ConfigTable& table, const char* key, std::string& path) {
  if (table.text(key, path) && !path.starts_with('/'))
    table.reject(key, "must be an absolute path");
}

}  // namespace

Result<HostConfig> read_host_config(const std::string& path) {
  auto file = config::ConfigReader::open(path);
  if (!file) return fail(std::move(file).error());
  HostConfig host;
  host.name = default_name();
  config::ConfigTable root = file->root();
  if (root.text("name", host.name) && !config::is_name(host.name)) {
    root.reject("name", "a name is lower-case letters, digits and hyphens, at most 63");
  }
  read_path(root, "state_dir", host.state_dir);
  read_path(root, "control_socket", host.control_socket);
  static constexpr std::array<std::string_view, 6> levels = {"trace", "debug", "info",
                                                             "warn",  "error", "off"};
  if (root.text("log_level", host.log_level) &&
      std::find(levels.begin(), levels.end(), host.log_level) == levels.end()) {
    root.reject("log_level", "use trace, debug, info, warn, error or off");
  }
  if (root.text("initiator_iqn", host.initiator_iqn)) {
    if (auto checked = iscsi::normalised_name(host.initiator_iqn); !checked) {
      root.reject("initiator_iqn", checked.error().text);
    } else {
      host.initiator_iqn = *checked;
    }
  }
  if (auto exports = root.table("export")) {
    static constexpr std::array<std::string_view, 4> backends = {"auto", "ublk", "nbd", "socket"};
    if (exports->text("backend", host.exports.backend) &&
        std::find(backends.begin(), backends.end(), host.exports.backend) == backends.end()) {
      exports->reject("backend", "use auto, ublk, nbd or socket");
    }
    read_path(*exports, "socket_dir", host.exports.socket_dir);
  }
  if (auto limits = root.table("limits")) {
    limits->number("shards", 0, shards_max, host.limits.shards);
    limits->size("buffer_memory", uint64_t{16} << 20, uint64_t{1} << 40,
                 host.limits.buffer_memory_bytes);
    limits->number("disks_max", 1, 4096, host.limits.disks_max);
    limits->duration("connect_timeout", std::chrono::milliseconds(100), std::chrono::minutes(5),
                     host.limits.connect_timeout);
    limits->duration("keepalive_idle", std::chrono::seconds(1), std::chrono::minutes(10),
                     host.limits.keepalive_idle);
    limits->duration("keepalive_timeout", std::chrono::seconds(1), std::chrono::minutes(10),
                     host.limits.keepalive_timeout);
  }
  if (auto finished = file->finish(); !finished) return fail(std::move(finished).error());
  return host;
}

}  // namespace vjbod::initiator
