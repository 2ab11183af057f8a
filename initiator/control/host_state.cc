// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/host_state.h"

#include "common/config/values.h"

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
          {"data_digest", choices.data_digest}};
}

DiskChoices read_choices(const json& from) {
  DiskChoices choices;
  choices.host_interface = from.at("host_interface");
  choices.remote_interface = from.at("remote_interface");
  choices.transport = from.at("transport");
  choices.backend = from.at("backend");
  choices.on_loss = from.at("on_loss");
  choices.io_timeout_s = from.at("io_timeout_s");
  choices.header_digest = from.at("header_digest");
  choices.data_digest = from.at("data_digest");
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
  return DiskIdentity{from.at("naa"), from.at("serial"), from.at("size_bytes"),
                      from.at("block_bytes")};
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
  geometry.size_bytes = from.at("size_bytes");
  geometry.block_bytes = from.at("block_bytes");
  geometry.physical_block_bytes = from.at("physical_block_bytes");
  geometry.transfer_bytes_max = from.at("transfer_bytes_max");
  geometry.transfer_bytes_optimal = from.at("transfer_bytes_optimal");
  geometry.read_only = from.at("read_only");
  geometry.volatile_cache = from.at("volatile_cache");
  geometry.force_unit_access = from.at("force_unit_access");
  geometry.trim = from.at("trim");
  geometry.trim_granularity_bytes = from.at("trim_granularity_bytes");
  geometry.trim_bytes_max = from.at("trim_bytes_max");
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
                       {"interface_name", portal.interface_name}});
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
  disk.name = from.at("name");
  if (!config::is_name(disk.name)) throw WrongShape("a disk's name is not a name");
  disk.uuid = from.at("uuid");
  disk.phase = from.at("phase") == "ready" ? DiskRecord::Phase::ready : DiskRecord::Phase::creating;
  disk.wanted_connected = from.at("wanted_connected");
  disk.peer = from.at("peer");
  disk.pool = from.at("pool");
  disk.lun_name = from.at("lun_name");
  disk.size_bytes = from.at("size_bytes");
  disk.block_size = from.at("block_size");
  disk.thick = from.at("thick");
  disk.target_iqn = from.at("target_iqn");
  disk.lun_number = from.at("lun_number");
  for (const json& portal : from.at("portals")) {
    disk.portals.push_back({portal.at("address"), portal.at("port"), portal.at("source_address"),
                            portal.at("interface_name")});
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

}  // namespace

Result<HostState> HostState::load(const std::string& state_dir) {
  HostState state(config::StateFile(state_dir, "host.json", version));
  auto loaded = state.file_.load();
  if (!loaded) return fail(std::move(loaded).error());
  if (loaded->empty()) return state;
  try {
    state.initiator_iqn = loaded->at("initiator_iqn");
    for (const json& peer : loaded->at("peers")) {
      PeerRecord record;
      record.name = peer.at("name");
      record.address = peer.at("address");
      record.port = peer.at("port");
      auto fingerprint = rpc::parse_fingerprint(peer.at("fingerprint").get<std::string>());
      if (!fingerprint) throw WrongShape("a fingerprint is not a fingerprint");
      record.fingerprint = *fingerprint;
      record.paired_at = peer.at("paired_at");
      state.peers[record.name] = std::move(record);
    }
    for (const json& disk : loaded->at("disks")) {
      DiskRecord record = read_disk(disk);
      state.disks[record.name] = std::move(record);
    }
  } catch (const std::exception& error) {
    return fail(state.file_.damaged(error.what()));
  }
  return state;
}

Status HostState::save() const {
  json peers_json = json::array(), disks_json = json::array();
  for (const auto& [name, peer] : peers) {
    peers_json.push_back({{"name", peer.name},
                          {"address", peer.address},
                          {"port", peer.port},
                          {"fingerprint", peer.fingerprint.to_text()},
                          {"paired_at", peer.paired_at}});
  }
  for (const auto& [name, disk] : disks) disks_json.push_back(disk_json(disk));
  return file_.save({{"initiator_iqn", initiator_iqn},
                     {"peers", std::move(peers_json)},
                     {"disks", std::move(disks_json)}});
}

}  // namespace vjbod::initiator
