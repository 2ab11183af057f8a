// SPDX-License-Identifier: Apache-2.0
#include "target/control/config.h"

#include <algorithm>
#include <array>
#include <set>
#include <thread>

#include <unistd.h>

#include "common/config/config_reader.h"
#include "common/config/values.h"
#include "common/iscsi/name.h"

namespace vjbod::target {

namespace {

using config::ConfigReader;
using config::ConfigTable;

constexpr uint16_t iscsi_port = 3260;
constexpr uint16_t control_port = 7443;

// The host's own name without its domain, as far as it fits our grammar.
std::string default_name() {
  std::array<char, 256> buffer{};
  ::gethostname(buffer.data(), buffer.size() - 1);
  std::string name(buffer.data());
  name.resize(std::min({name.size(), name.find('.'), config::name_bytes_max}));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!config::is_name(std::string(1, c))) c = '-';
  }
  name.erase(0, name.find_first_not_of('-'));
  return name;
}

void read_address(ConfigTable& table, std::string_view key, uint16_t default_port,
                  std::string& address, uint16_t& port) {
  std::string text;
  if (!table.text(key, text)) return;
  Result<config::HostPort> parsed = config::parse_host_port(text, default_port);
  if (!parsed)
    table.reject(key, parsed.error().text);
  else if (!config::is_numeric_address(parsed->host))
    table.reject(key, "must be an IPv4 or IPv6 address of this box, not a name");
  else {
    address = parsed->host;
    port = parsed->port;
  }
}

void read_control(ConfigTable& root, TargetConfig& result) {
  std::optional<ConfigTable> control = root.table("control");
  if (!control) return;
  std::string address;
  uint16_t port = 0;
  read_address(*control, "listen", control_port, address, port);
  if (!address.empty()) result.control_listen = config::host_port_text(address, port);
}

void read_portals(ConfigTable& root, TargetConfig& result) {
  std::vector<ConfigTable> tables = root.tables("portal");
  if (tables.size() > TargetConfig::portals_max)
    root.reject("portal", fmt::format("more than {} portals", TargetConfig::portals_max));
  for (ConfigTable& table : tables) {
    PortalConfig portal;
    read_address(table, "address", iscsi_port, portal.address, portal.port);
    if (portal.address.empty()) table.reject("address", "is missing or wrong");
    if (table.texts("transports", portal.transports)) {
      bool known = std::all_of(portal.transports.begin(), portal.transports.end(),
                               [](const auto& t) { return t == "iscsi" || t == "iser"; });
      if (!known || portal.transports.empty())
        table.reject("transports", "allowed are \"iscsi\" and \"iser\"");
    }
    result.portals.push_back(std::move(portal));
  }
  if (result.portals.empty()) result.portals.push_back({.address = "::", .port = iscsi_port});
}

void read_pools(ConfigTable& root, TargetConfig& result) {
  std::vector<ConfigTable> tables = root.tables("pool");
  if (tables.size() > TargetConfig::pools_max)
    root.reject("pool", fmt::format("more than {} pools", TargetConfig::pools_max));
  std::set<std::string> names, paths;
  for (ConfigTable& table : tables) {
    PoolConfig pool;
    std::string kind = "directory";
    table.text("name", pool.name);
    table.text("kind", kind);
    table.text("path", pool.path);
    if (Status valid = config::check_name("pool name", pool.name); !valid)
      table.reject("name", valid.error().text);
    if (kind == "block")
      pool.kind = PoolConfig::Kind::block;
    else if (kind == "memory")
      pool.kind = PoolConfig::Kind::memory;
    else if (kind != "directory")
      table.reject("kind", "allowed are \"directory\", \"block\" and \"memory\"");
    const bool has_path = pool.kind != PoolConfig::Kind::memory;
    if (has_path && !pool.path.starts_with('/')) table.reject("path", "must be an absolute path");
    if (!has_path && !pool.path.empty()) table.reject("path", "a pool in memory has none");
    if (!names.insert(pool.name).second) table.reject("name", "another pool has this name");
    if (has_path && !paths.insert(pool.path).second)
      table.reject("path", "another pool has this path");
    result.pools.push_back(std::move(pool));
  }
}

void read_limits(ConfigTable& root, TargetConfig& result) {
  std::optional<ConfigTable> table = root.table("limits");
  if (!table) return;
  using std::chrono::hours, std::chrono::seconds;
  ServerLimits& limits = result.limits;
  table->number("connections", 1, 65535, limits.connections_max);
  table->number("connections_per_address", 1, 65535, limits.connections_per_address_max);
  table->duration("login_deadline", seconds(1), seconds(300), limits.login_deadline);
  table->duration("keepalive_idle", seconds(1), hours(1), limits.keepalive_idle);
  table->duration("keepalive_answer", seconds(1), hours(1), limits.keepalive_answer);
  table->duration("logout_grace", seconds(0), seconds(8), limits.logout_grace);
  table->number("command_window", 1, 1024, limits.command_window);
}

void read_performance(ConfigTable& root, TargetConfig& result) {
  std::optional<ConfigTable> table = root.table("performance");
  if (!table) return;
  table->number("shards", 0, TargetConfig::shards_max, result.shards);
  table->flag("pin_shards", result.pin_shards);
  table->size("buffer_memory", TargetConfig::shard_memory_bytes_min, uint64_t{1} << 40,
              result.buffer_memory_bytes);
  table->flag("io_uring", result.use_io_uring);
  std::string cache;
  if (table->text("cache", cache)) {
    Result<backstore::CacheMode> mode = backstore::cache_mode_from_name(cache);
    if (mode)
      result.cache = *mode;
    else
      table->reject("cache", mode.error().text);
  }
}

void read_chap(ConfigTable& root, TargetConfig& result) {
  std::optional<ConfigTable> table = root.table("chap");
  if (!table) return;
  std::vector<std::string> names;
  if (!table->texts("algorithms", names)) return;
  constexpr std::pair<std::string_view, iscsi::ChapAlgorithm> known[] = {
      {"sha3-256", iscsi::ChapAlgorithm::sha3_256},
      {"sha256", iscsi::ChapAlgorithm::sha256},
      {"sha1", iscsi::ChapAlgorithm::sha1},
      {"md5", iscsi::ChapAlgorithm::md5}};
  result.chap_algorithms.clear();
  for (const std::string& name : names) {
    auto found = std::find_if(std::begin(known), std::end(known),
                              [&](const auto& entry) { return entry.first == name; });
    if (found == std::end(known)) {
      table->reject("algorithms", "allowed are \"sha3-256\", \"sha256\", \"sha1\" and \"md5\"");
      return;
    }
    result.chap_algorithms.push_back(found->second);
  }
  if (result.chap_algorithms.empty()) table->reject("algorithms", "at least one is needed");
}

void read_names(ConfigTable& root, TargetConfig& result) {
  result.name = default_name();
  root.text("name", result.name);
  if (Status valid = config::check_name("box name", result.name); !valid)
    root.reject("name", valid.error().text);
  root.text("iqn_prefix", result.iqn_prefix);
  Result<std::string> longest =
      iscsi::normalised_name(target_iqn(result, std::string(config::name_bytes_max, 'x')));
  if (!longest)
    root.reject("iqn_prefix", longest.error().text);
  else
    result.iqn_prefix = longest->substr(0, result.iqn_prefix.size());
  root.text("state_dir", result.state_dir);
  if (!result.state_dir.starts_with('/')) root.reject("state_dir", "must be an absolute path");
  root.text("control_socket", result.control_socket);
  if (!result.control_socket.starts_with('/'))
    root.reject("control_socket", "must be an absolute path");
  constexpr std::string_view levels[] = {"trace", "debug", "info", "warn", "error"};
  root.text("log_level", result.log_level);
  if (std::find(std::begin(levels), std::end(levels), result.log_level) == std::end(levels))
    root.reject("log_level", "allowed are trace, debug, info, warn and error");
}

void settle(TargetConfig& config) {
  if (config.shards == 0)
    config.shards =
        std::clamp<size_t>(std::thread::hardware_concurrency(), 1, TargetConfig::shards_auto_max);
  config.buffer_memory_bytes =
      std::max(config.buffer_memory_bytes, config.shards * TargetConfig::shard_memory_bytes_min);
}

Result<TargetConfig> read(Result<ConfigReader> reader) {
  if (!reader) return fail(reader.error());
  TargetConfig result;
  ConfigTable root = reader->root();
  read_names(root, result);
  read_control(root, result);
  read_portals(root, result);
  read_pools(root, result);
  read_limits(root, result);
  read_performance(root, result);
  read_chap(root, result);
  root.flag("allow_test_faults", result.allow_test_faults);
  if (Status valid = reader->finish(); !valid) return fail(valid.error());
  settle(result);
  return result;
}

}  // namespace

std::string target_iqn(const TargetConfig& config, std::string_view lun_name) {
  return fmt::format("{}:{}.{}", config.iqn_prefix, config.name, lun_name);
}

Result<TargetConfig> load_config(const std::string& path) {
  return read(ConfigReader::open(path));
}

Result<TargetConfig> parse_config(std::string_view text, const std::string& file_name) {
  return read(ConfigReader::parse(text, file_name));
}

const char* name_of(PoolConfig::Kind kind) {
  switch (kind) {
    case PoolConfig::Kind::directory: return "directory";
    case PoolConfig::Kind::block: return "block";
    case PoolConfig::Kind::memory: return "memory";
  }
  return "directory";
}

}  // namespace vjbod::target
