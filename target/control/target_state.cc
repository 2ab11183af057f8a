// SPDX-License-Identifier: Apache-2.0
#include "target/control/target_state.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "common/config/values.h"
#include "common/iscsi/name.h"
#include "common/rpc/errc.h"
#include "common/runtime/wall_clock.h"

namespace vjbod::target {

namespace {

using nlohmann::json;

// Secrets may hold any byte and JSON may not: hexadecimal.
std::string hex(ConstBytes bytes) {
  std::string text;
  for (std::byte b : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return text;
}

json to_json(const iscsi::ChapCredentials& credentials) {
  return {{"user", credentials.user}, {"secret", hex(credentials.secret.bytes())}};
}

json to_json(const LunRecord& lun) {
  json result = {{"name", lun.name},
                 {"uuid", uuid_text(lun.uuid)},
                 {"target_iqn", lun.target_iqn},
                 {"pool", lun.pool},
                 {"size_bytes", lun.size_bytes},
                 {"block_size", lun.block_size},
                 {"thick", lun.thick},
                 {"request_id", lun.request_id},
                 {"created_at", rfc3339(lun.created_at)},
                 {"allowed_initiators", lun.allowed_initiators}};
  if (lun.binding)
    result["binding"] = {{"host", lun.binding->host},
                         {"chap", to_json(lun.binding->chap)},
                         {"mutual", to_json(lun.binding->mutual)}};
  return result;
}

json to_json(const ForeignInitiator& initiator) {
  json result = {{"iqn", initiator.iqn}};
  if (initiator.chap) result["chap"] = to_json(*initiator.chap);
  if (initiator.mutual) result["mutual"] = to_json(*initiator.mutual);
  return result;
}

json to_json(const PairedHost& host) {
  return {{"name", host.name},
          {"fingerprint", host.fingerprint.to_text()},
          {"initiator_iqn", host.initiator_iqn},
          {"paired_at", rfc3339(host.paired_at)}};
}

// Reads one object; the first thing that is wrong is kept and everything after it gives defaults.
class Reader {
 public:
  Reader(const json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) reject("is not an object");
  }

  std::string text(const char* key) {
    const json* value = find(key, true);
    if (value == nullptr) return {};
    if (!value->is_string()) return reject(key, "is not a text"), std::string();
    return value->get<std::string>();
  }
  uint64_t number(const char* key) {
    const json* value = find(key, true);
    if (value == nullptr) return 0;
    if (!value->is_number_unsigned()) return reject(key, "is not a whole number"), 0;
    return value->get<uint64_t>();
  }
  bool flag(const char* key) {
    const json* value = find(key, true);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return reject(key, "is not true or false"), false;
    return value->get<bool>();
  }
  std::string name(const char* key) {
    std::string value = text(key);
    if (ok() && !config::is_name(value)) reject(key, "is not a name");
    return value;
  }
  std::string iqn(const char* key) { return checked_iqn(key, text(key)); }
  std::set<std::string> iqns(const char* key) {
    std::set<std::string> result;
    const json* value = find(key, true);
    if (value == nullptr) return result;
    if (!value->is_array()) return reject(key, "is not a list"), result;
    for (const json& entry : *value) {
      if (!entry.is_string()) return reject(key, "holds something that is not a text"), result;
      result.insert(checked_iqn(key, entry.get<std::string>()));
    }
    return result;
  }
  WallTime time(const char* key) {
    Result<WallTime> value = parse_rfc3339(text(key));
    if (ok() && !value) reject(key, "is not a time");
    return value ? *value : WallTime{};
  }
  rpc::Fingerprint fingerprint(const char* key) {
    Result<rpc::Fingerprint> value = rpc::parse_fingerprint(text(key));
    if (ok() && !value) reject(key, "is not a fingerprint");
    return value ? *value : rpc::Fingerprint{};
  }
  scsi::UnitUuid uuid(const char* key) {
    std::optional<scsi::UnitUuid> value = parse_uuid(text(key));
    if (ok() && !value) reject(key, "is not a UUID");
    return value.value_or(scsi::UnitUuid{});
  }
  std::optional<iscsi::ChapCredentials> credentials(const char* key) {
    const json* value = find(key, false);
    if (value == nullptr) return std::nullopt;
    Reader inner(*value, path_ + "." + key);
    iscsi::ChapCredentials result{inner.text("user"), inner.secret("secret")};
    if (inner.ok() && (result.user.empty() || result.user.size() > iscsi::chap_name_bytes_max))
      inner.reject("user", "has a wrong length");
    take_error(inner);
    return result;
  }
  // A part that may be missing.
  std::optional<Reader> part(const char* key) {
    const json* value = find(key, false);
    if (value == nullptr) return std::nullopt;
    return Reader(*value, path_ + "." + key);
  }
  void reject(const char* key, std::string_view what) {
    reject(fmt::format("\"{}\" {}", key, what));
  }
  void take_error(const Reader& other) {
    if (ok() && !other.ok()) error_ = other.error_;
  }
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  void reject(const std::string& what) {
    if (ok()) error_ = path_ + ": " + what;
  }
  const json* find(const char* key, bool required) {
    if (!ok()) return nullptr;
    auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    if (required) reject(key, "is missing");
    return nullptr;
  }
  std::string checked_iqn(const char* key, std::string value) {
    Result<std::string> normalised = iscsi::normalised_name(value);
    if (ok() && (!normalised || *normalised != value)) reject(key, "is not an iSCSI name");
    return value;
  }
  iscsi::Secret secret(const char* key) {
    std::string digits = text(key), bytes;
    auto value_of = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    bool valid =
        digits.size() % 2 == 0 && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
    for (size_t i = 0; valid && i < digits.size(); i += 2)
      bytes += static_cast<char>(value_of(digits[i]) << 4 | value_of(digits[i + 1]));
    if (ok() && (bytes.empty() || bytes.size() > iscsi::chap_secret_bytes_max))
      reject(key, "is not a secret");
    return iscsi::Secret(bytes);
  }

  const json& object_;
  std::string path_;
  std::string error_;
};

LunRecord read_lun(Reader& reader) {
  LunRecord lun;
  lun.name = reader.name("name");
  lun.uuid = reader.uuid("uuid");
  lun.target_iqn = reader.iqn("target_iqn");
  lun.pool = reader.name("pool");
  lun.size_bytes = reader.number("size_bytes");
  lun.block_size = static_cast<uint32_t>(std::min<uint64_t>(reader.number("block_size"), 65536));
  lun.thick = reader.flag("thick");
  lun.request_id = reader.text("request_id");
  lun.created_at = reader.time("created_at");
  lun.allowed_initiators = reader.iqns("allowed_initiators");
  if (reader.ok() && !config::check_lun_size(lun.size_bytes, lun.block_size))
    reader.reject("size_bytes", "does not fit the block size");
  if (std::optional<Reader> part = reader.part("binding")) {
    LunBinding binding;
    binding.host = part->name("host");
    std::optional<iscsi::ChapCredentials> chap = part->credentials("chap");
    std::optional<iscsi::ChapCredentials> mutual = part->credentials("mutual");
    if (!chap || !mutual) {
      part->reject("chap", "or \"mutual\" is missing");
    } else {
      binding.chap = std::move(*chap);
      binding.mutual = std::move(*mutual);
      lun.binding = std::move(binding);
    }
    reader.take_error(*part);
  }
  return lun;
}

ForeignInitiator read_initiator(Reader& reader) {
  ForeignInitiator initiator;
  initiator.iqn = reader.iqn("iqn");
  initiator.chap = reader.credentials("chap");
  initiator.mutual = reader.credentials("mutual");
  if (initiator.mutual && !initiator.chap) reader.reject("mutual", "is there without \"chap\"");
  return initiator;
}

PairedHost read_host(Reader& reader) {
  PairedHost host;
  host.name = reader.name("name");
  host.fingerprint = reader.fingerprint("fingerprint");
  host.initiator_iqn = reader.iqn("initiator_iqn");
  host.paired_at = reader.time("paired_at");
  return host;
}

DoomedFile read_doomed(Reader& reader) {
  DoomedFile doomed{reader.name("pool"), reader.text("file")};
  if (reader.ok() && !parse_uuid(doomed.file)) reader.reject("file", "is not a UUID");
  return doomed;
}

// Calls `take(entry)` for each entry of a list; it returns false for one that is there twice.
template <typename Read, typename Take>
Status read_list(const json& state, const char* key, Read read, Take take) {
  auto list = state.find(key);
  if (list == state.end()) return fail(rpc::Errc::other, "\"{}\" is missing", key);
  if (!list->is_array()) return fail(rpc::Errc::other, "\"{}\" is not a list", key);
  size_t index = 0;
  for (const json& entry : *list) {
    Reader reader(entry, fmt::format("{}[{}]", key, index++));
    auto value = read(reader);
    if (!reader.ok()) return fail(rpc::Errc::other, "{}", reader.error());
    if (!take(std::move(value)))
      return fail(rpc::Errc::other, "{}[{}] is there twice", key, index - 1);
  }
  return {};
}

// Each LUN has its own target and its own file, and belongs to a host that is known.
Status check_whole(const TargetState& state) {
  std::set<std::string> iqns;
  std::set<scsi::UnitUuid> uuids;
  for (const auto& [name, lun] : state.luns) {
    if (!iqns.insert(lun.target_iqn).second || !uuids.insert(lun.uuid).second)
      return fail(rpc::Errc::other, "LUN {} has the target or the UUID of another one", name);
    if (lun.binding && !state.hosts.contains(lun.binding->host))
      return fail(rpc::Errc::other, "LUN {} is bound to the unknown host {}", name,
                  lun.binding->host);
  }
  return {};
}

}  // namespace

json to_json(const TargetState& state) {
  json result = {{"luns", json::array()},
                 {"initiators", json::array()},
                 {"hosts", json::array()},
                 {"doomed", json::array()}};
  for (const auto& [name, lun] : state.luns) result["luns"].push_back(to_json(lun));
  for (const auto& [iqn, initiator] : state.initiators)
    result["initiators"].push_back(to_json(initiator));
  for (const auto& [name, host] : state.hosts) result["hosts"].push_back(to_json(host));
  for (const DoomedFile& file : state.doomed)
    result["doomed"].push_back({{"pool", file.pool}, {"file", file.file}});
  return result;
}

Result<TargetState> state_from_json(const json& json) {
  TargetState state;
  if (json.empty()) return state;  // nothing was saved yet
  Status luns = read_list(json, "luns", read_lun, [&](LunRecord lun) {
    std::string key = lun.name;
    return state.luns.emplace(std::move(key), std::move(lun)).second;
  });
  if (!luns) return fail(luns.error());
  Status initiators = read_list(json, "initiators", read_initiator, [&](ForeignInitiator entry) {
    std::string key = entry.iqn;
    return state.initiators.emplace(std::move(key), std::move(entry)).second;
  });
  if (!initiators) return fail(initiators.error());
  Status hosts = read_list(json, "hosts", read_host, [&](PairedHost host) {
    std::string key = host.name;
    return state.hosts.emplace(std::move(key), std::move(host)).second;
  });
  if (!hosts) return fail(hosts.error());
  Status doomed = read_list(json, "doomed", read_doomed, [&](DoomedFile file) {
    return state.doomed.insert(std::move(file)).second;
  });
  if (!doomed) return fail(doomed.error());
  if (Status whole = check_whole(state); !whole) return fail(whole.error());
  return state;
}

std::string uuid_text(const scsi::UnitUuid& uuid) {
  const std::string digits = hex(uuid);
  const std::string_view all = digits;
  return fmt::format("{}-{}-{}-{}-{}", all.substr(0, 8), all.substr(8, 4), all.substr(12, 4),
                     all.substr(16, 4), all.substr(20));
}

std::optional<scsi::UnitUuid> parse_uuid(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (text.size() != 36) return std::nullopt;
  scsi::UnitUuid uuid{};
  size_t nibble = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    size_t value = digits.find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    uuid[nibble / 2] |= static_cast<std::byte>(nibble % 2 == 0 ? value << 4 : value);
    ++nibble;
  }
  return uuid;
}

}  // namespace vjbod::target
