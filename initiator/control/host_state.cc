// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/host_state.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <nlohmann/json.hpp>

#include "common/config/values.h"
#include "common/iscsi/name.h"

namespace vjbod::initiator {

using nlohmann::json;

std::string to_hex(std::string_view bytes) {
  std::string digits;
  for (char c : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return digits;
}

std::optional<std::string> from_hex(std::string_view digits) {
  auto value = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = value(digits[i]), low = value(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

namespace {

// Reading throws nlohmann's exceptions on a wrong shape; load() turns them into one error.
struct WrongShape : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename Integer>
Integer read_number(const json& from, const char* key) {
  const json& value = from.at(key);
  constexpr uint64_t maximum = std::numeric_limits<Integer>::max();
  if (!value.is_number_unsigned() || value.get<uint64_t>() > maximum)
    throw WrongShape(fmt::format("\"{}\" is not a number up to {}", key, maximum));
  return value.get<Integer>();
}

// An object or null would pass for an empty list, and what was in it would be forgotten.
const json& read_list(const json& from, const char* key) {
  const json& value = from.at(key);
  if (!value.is_array()) throw WrongShape(fmt::format("\"{}\" is not a list", key));
  return value;
}

// One of the tokens.
std::string read_token(const json& from, const char* key,
                       std::initializer_list<std::string_view> tokens) {
  std::string value = from.at(key);
  if (std::find(tokens.begin(), tokens.end(), value) == tokens.end())
    throw WrongShape(fmt::format("\"{}\" is \"{}\"", key, config::printable(value, 40)));
  return value;
}

std::string read_name(const json& from, const char* key, bool may_be_empty = false) {
  std::string value = from.at(key);
  if (!config::is_name(value) && !(may_be_empty && value.empty()))
    throw WrongShape(fmt::format("\"{}\" is not a name", key));
  return value;
}

std::string read_interface(const json& from, const char* key) {
  std::string value = from.at(key);
  if (!value.empty() && !config::check_interface_name(key, value))
    throw WrongShape(fmt::format("\"{}\" is not the name of an interface", key));
  return value;
}

json chap_json(const std::optional<StoredChap>& chap) {
  if (!chap) return nullptr;
  return {{"user", chap->user}, {"secret", to_hex(chap->secret)}};
}

std::optional<StoredChap> read_chap(const json& from) {
  if (from.is_null()) return std::nullopt;
  auto secret = from_hex(from.at("secret").get<std::string>());
  if (!secret) throw WrongShape("a secret is not hexadecimal");
  return StoredChap{from.at("user").get<std::string>(), std::move(*secret)};
}

json choices_json(const DiskChoices& choices) {
  return {{"host_interface", choices.host_interface},
          {"remote_interface", choices.remote_interface},
          {"transport", choices.transport},
          {"backend", choices.backend},
          {"on_loss", choices.on_loss},
          {"io_timeout_s", choices.io_timeout_s},
          {"header_digest", choices.header_digest},
          {"data_digest", choices.data_digest},
          {"upgrade", choices.upgrade}};
}

DiskChoices read_choices(const json& from) {
  DiskChoices choices;
  choices.host_interface = read_interface(from, "host_interface");
  choices.remote_interface = read_interface(from, "remote_interface");
  choices.transport = read_token(from, "transport", {"auto", "iser", "iscsi"});
  choices.backend = read_token(from, "backend", {"", "auto", "ublk", "nbd", "socket"});
  choices.on_loss = read_token(from, "on_loss", {"queue", "fail"});
  choices.io_timeout_s = read_number<uint32_t>(from, "io_timeout_s");
  choices.header_digest = from.at("header_digest");
  choices.data_digest = from.at("data_digest");
  if (from.contains("upgrade")) choices.upgrade = read_token(from, "upgrade", {"manual", "idle"});
  return choices;
}

json identity_json(const std::optional<DiskIdentity>& identity) {
  if (!identity) return nullptr;
  return {{"naa", identity->naa},
          {"serial", identity->serial},
          {"size_bytes", identity->size_bytes},
          {"block_bytes", identity->block_bytes}};
}

std::optional<DiskIdentity> read_identity(const json& from) {
  if (from.is_null()) return std::nullopt;
  return DiskIdentity{from.at("naa"), from.at("serial"), read_number<uint64_t>(from, "size_bytes"),
                      read_number<uint32_t>(from, "block_bytes")};
}

json geometry_json(const std::optional<BlockGeometry>& geometry) {
  if (!geometry) return nullptr;
  return {{"size_bytes", geometry->size_bytes},
          {"block_bytes", geometry->block_bytes},
          {"physical_block_bytes", geometry->physical_block_bytes},
          {"transfer_bytes_max", geometry->transfer_bytes_max},
          {"transfer_bytes_optimal", geometry->transfer_bytes_optimal},
          {"read_only", geometry->read_only},
          {"volatile_cache", geometry->volatile_cache},
          {"force_unit_access", geometry->force_unit_access},
          {"trim", geometry->trim},
          {"trim_granularity_bytes", geometry->trim_granularity_bytes},
          {"trim_bytes_max", geometry->trim_bytes_max},
          {"write_zeroes", geometry->write_zeroes},
          {"fast_write_zeroes", geometry->fast_write_zeroes}};
}

std::optional<BlockGeometry> read_geometry(const json& from) {
  if (from.is_null()) return std::nullopt;
  BlockGeometry geometry;
  geometry.size_bytes = read_number<decltype(geometry.size_bytes)>(from, "size_bytes");
  geometry.block_bytes = read_number<decltype(geometry.block_bytes)>(from, "block_bytes");
  geometry.physical_block_bytes =
      read_number<decltype(geometry.physical_block_bytes)>(from, "physical_block_bytes");
  geometry.transfer_bytes_max =
      read_number<decltype(geometry.transfer_bytes_max)>(from, "transfer_bytes_max");
  geometry.transfer_bytes_optimal =
      read_number<decltype(geometry.transfer_bytes_optimal)>(from, "transfer_bytes_optimal");
  geometry.read_only = from.at("read_only");
  geometry.volatile_cache = from.at("volatile_cache");
  geometry.force_unit_access = from.at("force_unit_access");
  geometry.trim = from.at("trim");
  geometry.trim_granularity_bytes =
      read_number<decltype(geometry.trim_granularity_bytes)>(from, "trim_granularity_bytes");
  geometry.trim_bytes_max = read_number<decltype(geometry.trim_bytes_max)>(from, "trim_bytes_max");
  geometry.write_zeroes = from.at("write_zeroes");
  geometry.fast_write_zeroes = from.at("fast_write_zeroes");
  if (geometry.block_bytes < 512 || (geometry.block_bytes & (geometry.block_bytes - 1)) != 0) {
    throw WrongShape("a block size is not a power of two of at least 512");
  }
  return geometry;
}

json disk_json(const DiskRecord& disk) {
  json portals = json::array();
  for (const PortalRecord& portal : disk.portals) {
    portals.push_back({{"address", portal.address},
                       {"port", portal.port},
                       {"source_address", portal.source_address},
                       {"interface_name", portal.interface_name},
                       {"transport", portal.transport}});
  }
  return {{"name", disk.name},
          {"uuid", disk.uuid},
          {"phase", disk.phase == DiskRecord::Phase::ready ? "ready" : "creating"},
          {"wanted_connected", disk.wanted_connected},
          {"peer", disk.peer},
          {"pool", disk.pool},
          {"lun_name", disk.lun_name},
          {"size_bytes", disk.size_bytes},
          {"block_size", disk.block_size},
          {"thick", disk.thick},
          {"target_iqn", disk.target_iqn},
          {"lun_number", disk.lun_number},
          {"portals", std::move(portals)},
          {"chap", chap_json(disk.chap)},
          {"mutual", chap_json(disk.mutual)},
          {"isid", disk.isid},
          {"choices", choices_json(disk.choices)},
          {"identity", identity_json(disk.identity)},
          {"geometry", geometry_json(disk.geometry)}};
}

DiskRecord read_disk(const json& from) {
  DiskRecord disk;
  disk.name = read_name(from, "name");
  disk.uuid = read_name(from, "uuid");
  // Nothing is guessed here: a disk that seems to be a creation gone wrong may lose its LUN.
  disk.phase = read_token(from, "phase", {"creating", "ready"}) == "ready"
                   ? DiskRecord::Phase::ready
                   : DiskRecord::Phase::creating;
  disk.wanted_connected = from.at("wanted_connected");
  disk.peer = read_name(from, "peer", true);
  disk.pool = read_name(from, "pool", true);
  disk.lun_name = read_name(from, "lun_name", true);
  disk.size_bytes = read_number<uint64_t>(from, "size_bytes");
  disk.block_size = read_number<uint32_t>(from, "block_size");
  disk.thick = from.at("thick");
  disk.target_iqn = from.at("target_iqn");
  if (!disk.target_iqn.empty() && !iscsi::normalised_name(disk.target_iqn))
    throw WrongShape("\"target_iqn\" is not an iSCSI name");
  disk.lun_number = read_number<uint16_t>(from, "lun_number");
  for (const json& portal : read_list(from, "portals")) {
    disk.portals.push_back({portal.at("address"), read_number<uint16_t>(portal, "port"),
                            portal.at("source_address"), read_interface(portal, "interface_name"),
                            portal.contains("transport")
                                ? read_token(portal, "transport", {"iscsi", "iser"})
                                : "iscsi"});
  }
  disk.chap = read_chap(from.at("chap"));
  disk.mutual = read_chap(from.at("mutual"));
  disk.isid = from.at("isid");
  if (disk.isid.size() != 12 || !from_hex(disk.isid)) throw WrongShape("an ISID is not an ISID");
  disk.choices = read_choices(from.at("choices"));
  disk.identity = read_identity(from.at("identity"));
  disk.geometry = read_geometry(from.at("geometry"));
  return disk;
}

const char* ending_text(FarewellRecord::Ending ending) {
  return ending == FarewellRecord::Ending::deleted ? "deleted" : "let-go";
}

json farewell_json(const std::string& id, const FarewellRecord& farewell) {
  return {{"id", id},
          {"peer", farewell.peer},
          {"lun", farewell.lun},
          {"lun_name", farewell.lun_name},
          {"request_id", farewell.request_id},
          {"ending", ending_text(farewell.ending)},
          {"since", farewell.since}};
}

FarewellRecord read_farewell(const json& from) {
  FarewellRecord farewell;
  farewell.peer = read_name(from, "peer");
  farewell.lun = read_name(from, "lun");
  farewell.lun_name = read_name(from, "lun_name");
  farewell.request_id = read_name(from, "request_id", true);
  farewell.ending = read_token(from, "ending", {"let-go", "deleted"}) == "deleted"
                        ? FarewellRecord::Ending::deleted
                        : FarewellRecord::Ending::let_go;
  farewell.since = from.at("since");
  return farewell;
}

}  // namespace

Result<HostState> HostState::load(const std::string& state_dir) {
  HostState state(config::StateFile(state_dir, "host.json", version));
  auto loaded = state.file_.load();
  if (!loaded) return fail(std::move(loaded).error());
  if (loaded->empty()) return state;
  try {
    state.initiator_iqn = loaded->at("initiator_iqn");
    if (!iscsi::normalised_name(state.initiator_iqn))
      throw WrongShape("\"initiator_iqn\" is not an iSCSI name");
    for (const json& peer : read_list(*loaded, "peers")) {
      PeerRecord record;
      record.name = read_name(peer, "name");
      record.address = peer.at("address");
      record.port = read_number<uint16_t>(peer, "port");
      auto fingerprint = rpc::parse_fingerprint(peer.at("fingerprint").get<std::string>());
      if (!fingerprint) throw WrongShape("a fingerprint is not a fingerprint");
      record.fingerprint = *fingerprint;
      record.paired_at = peer.at("paired_at");
      std::string name = record.name;
      if (!state.peers.emplace(std::move(name), std::move(record)).second)
        throw WrongShape("a peer is there twice");
    }
    for (const json& disk : read_list(*loaded, "disks")) {
      DiskRecord record = read_disk(disk);
      std::string name = record.name;
      if (!state.disks.emplace(std::move(name), std::move(record)).second)
        throw WrongShape("a disk is there twice");
    }
    if (!loaded->contains("farewells")) return state;  // there were none before
    for (const json& farewell : read_list(*loaded, "farewells"))
      state.farewells[farewell.at("id")] = read_farewell(farewell);
  } catch (const std::exception& error) {
    return fail(state.file_.damaged(error.what()));
  }
  return state;
}

Status HostState::save() const {
  json peers_json = json::array(), disks_json = json::array(), farewells_json = json::array();
  for (const auto& [name, peer] : peers) {
    peers_json.push_back({{"name", peer.name},
                          {"address", peer.address},
                          {"port", peer.port},
                          {"fingerprint", peer.fingerprint.to_text()},
                          {"paired_at", peer.paired_at}});
  }
  for (const auto& [name, disk] : disks) disks_json.push_back(disk_json(disk));
  for (const auto& [id, farewell] : farewells)
    farewells_json.push_back(farewell_json(id, farewell));
  return file_.save({{"initiator_iqn", initiator_iqn},
                     {"peers", std::move(peers_json)},
                     {"disks", std::move(disks_json)},
                     {"farewells", std::move(farewells_json)}});
}

Status HostState::change(const std::function<void(HostState&)>& edit) {
  auto before = std::tuple(initiator_iqn, peers, disks, farewells);
  edit(*this);
  Status saved = save();
  if (!saved) std::tie(initiator_iqn, peers, disks, farewells) = std::move(before);
  return saved;
}

}  // namespace vjbod::initiator
