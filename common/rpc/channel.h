// SPDX-License-Identifier: Apache-2.0
// Channels and servers with this project's settings: keepalive every 30 s that both ends agree on,
// bounded messages, no proxy, no name service but plain lookup, no retries behind our back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include "common/rpc/identity.h"
#include "common/runtime/clock.h"

namespace vjbod::rpc {

inline constexpr uint16_t default_control_port = 7443;
// The largest answer that a box gives (256 LUNs with their initiators) stays far below.
inline constexpr int answer_bytes_max = 4 * 1024 * 1024;
// No request is larger; strangers can send requests, too.
inline constexpr int request_bytes_max = 64 * 1024;
inline constexpr Duration keepalive_interval = std::chrono::seconds(30);
inline constexpr Duration keepalive_timeout = std::chrono::seconds(15);
inline constexpr Duration keepalive_interval_min = std::chrono::seconds(10);  // we tolerate
// How long a unary call may take that does nothing slow.
inline constexpr Duration call_timeout = std::chrono::seconds(10);

// To a target box; `address` is numeric or a name. The channel connects lazily, and again with a
// back-off of at most 30 s.
std::shared_ptr<grpc::Channel> make_peer_channel(const Identity& identity,
                                                 const Fingerprint& server,
                                                 const std::string& address, uint16_t port);
// To a daemon of this box.
std::shared_ptr<grpc::Channel> make_local_channel(const std::string& socket_path);

// Limits, keepalive and threads for any server of ours.
void apply_server_settings(grpc::ServerBuilder& builder);

}  // namespace vjbod::rpc
