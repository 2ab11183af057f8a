// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/channel.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/resource_quota.h>

#include "common/config/values.h"
#include "common/rpc/tls_credentials.h"

namespace vjbod::rpc {

namespace {

// Memory for the buffers of all connections of one server; gRPC slows callers down beyond it.
constexpr size_t server_buffers_bytes_max = 16 * 1024 * 1024;
constexpr int metadata_bytes_max = 16 * 1024;
constexpr int streams_per_connection_max = 32;
constexpr Duration handshake_timeout = std::chrono::seconds(15);
constexpr Duration idle_connection_max = std::chrono::minutes(5);  // without any call
constexpr Duration reconnect_backoff_min = std::chrono::seconds(1);
constexpr Duration reconnect_backoff_max = std::chrono::seconds(30);

int milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

grpc::ChannelArguments common_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, answer_bytes_max);
  arguments.SetInt(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, request_bytes_max);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, metadata_bytes_max);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // never another channel's connection
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, milliseconds(reconnect_backoff_min));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, milliseconds(reconnect_backoff_max));
  return arguments;
}

}  // namespace

std::shared_ptr<grpc::Channel> make_peer_channel(const Identity& identity,
                                                 const Fingerprint& server,
                                                 const std::string& address, uint16_t port) {
  grpc::ChannelArguments arguments = common_arguments();
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(keepalive_interval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(keepalive_timeout));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit but the interval
  return grpc::CreateCustomChannel("dns:///" + config::host_port_text(address, port),
                                   make_channel_credentials(identity, server), arguments);
}

std::shared_ptr<grpc::Channel> make_local_channel(const std::string& socket_path) {
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(),
                                   common_arguments());
}

void apply_server_settings(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(request_bytes_max);
  builder.SetMaxSendMessageSize(answer_bytes_max);
  // Windows stay at HTTP/2's 64 KiB: no caller makes us buffer more.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.SetResourceQuota(grpc::ResourceQuota("server").Resize(server_buffers_bytes_max));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, metadata_bytes_max);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, streams_per_connection_max);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, milliseconds(handshake_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds(idle_connection_max));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(keepalive_interval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(keepalive_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             milliseconds(keepalive_interval_min));
}

}  // namespace vjbod::rpc
