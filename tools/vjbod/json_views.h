// SPDX-License-Identifier: Apache-2.0
// The JSON that scripts read ("schema": 1). Fields are only ever added. Integers are bytes or
// seconds, times RFC 3339, what is not known is null. Secrets are in none of these messages.
#pragma once

#include <nlohmann/json.hpp>

#include "vjbod/v1/common.pb.h"
#include "vjbod/v1/host.pb.h"
#include "vjbod/v1/target.pb.h"

namespace vjbod::cli {

using Json = nlohmann::ordered_json;

Json to_json(const v1::Disk& disk);
Json to_json(const v1::Lun& lun);
Json to_json(const v1::Pool& pool);
Json to_json(const v1::Interface& interface);
Json to_json(const v1::InterfacePair& pair);
Json to_json(const v1::PreflightCheck& check);
Json to_json(const v1::Portal& portal);
Json to_json(const v1::Event& event);
Json to_json(const v1::TargetSession& session);
Json to_json(const v1::Initiator& initiator);
Json to_json(const v1::TargetPeerInfo& peer);
Json to_json(const v1::HostPeer& peer);
Json to_json(const v1::TargetStatus& status);

Json to_json(const google::protobuf::Timestamp& time);

// {"schema": 1, NAME: [...]}
template <typename Messages>
Json list_json(const char* name, const Messages& messages) {
  Json list = Json::array();
  for (const auto& message : messages) list.push_back(to_json(message));
  return Json{{"schema", 1}, {name, std::move(list)}};
}

std::string dump(const Json& json);  // one object, indented, with a newline; hostile bytes replaced

}  // namespace vjbod::cli
