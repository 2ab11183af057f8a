// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/call_bridge.h"

namespace vjbod::rpc {

namespace {

// gRPC writes "ipv4:10.0.0.1:41234", "ipv6:%5Bfe80::1%5D:41234" and "unix:".
std::string address_text(std::string peer) {
  if (peer.starts_with("unix")) return "unix";
  for (std::string_view scheme : {"ipv4:", "ipv6:"})
    if (peer.starts_with(scheme)) peer.erase(0, scheme.size());
  for (auto [from, to] : {std::pair{"%5B", "["}, std::pair{"%5D", "]"}, std::pair{"%25", "%"}})
    for (size_t at; (at = peer.find(from)) != std::string::npos;) peer.replace(at, 3, to);
  return peer;
}

}  // namespace

Caller caller_of(const grpc::ServerContextBase& context) {
  std::shared_ptr<const grpc::AuthContext> authentication = context.auth_context();
  return Caller{address_text(context.peer()),
                authentication != nullptr ? caller_fingerprint(*authentication) : std::nullopt};
}

}  // namespace vjbod::rpc
