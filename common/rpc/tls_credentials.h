// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 and nothing else, with certificates on both sides, trusted by fingerprint alone. A client
// sends no byte of a call before the server's fingerprint was compared; a server takes any client
// certificate and tells the service whose it is (caller_fingerprint), because an unpaired host must
// be able to pair.
#pragma once

#include <memory>
#include <optional>

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include "common/base/result.h"
#include "common/rpc/identity.h"

namespace vjbod::rpc {

// Forbids everything older than TLS 1.3 to the whole process, through OpenSSL's own configuration:
// gRPC 1.51 has no public setting for it. Checks that it took effect. Must come before the first
// credentials are made; the functions below call it and abort if it fails, so a daemon calls it
// first thing in main to be able to say why it does not start.
Status require_tls_1_3();

std::shared_ptr<grpc::ServerCredentials> make_server_credentials(const Identity& identity);

// The handshake fails unless the server's certificate has this fingerprint.
std::shared_ptr<grpc::ChannelCredentials> make_channel_credentials(const Identity& identity,
                                                                   const Fingerprint& server);

// Whose certificate the other side of a call has proved to own. Nothing: not a TLS connection.
std::optional<Fingerprint> caller_fingerprint(const grpc::AuthContext& context);

}  // namespace vjbod::rpc
