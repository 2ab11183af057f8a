// SPDX-License-Identifier: Apache-2.0
// Calls to the two local daemons: one function per shape of call, errors as sentences with an exit
// code.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <grpcpp/client_context.h>

#include "common/base/result.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_map.h"
#include "tools/vjbod/options.h"
#include "vjbod/v1/host.grpc.pb.h"
#include "vjbod/v1/target.grpc.pb.h"

namespace vjbod::cli {

// How long a call may take when --timeout does not say.
inline constexpr Duration call_timeout_default = std::chrono::seconds(60);

// Why nobody answers at a control socket: not there, not ours to use, or nobody listens.
Error why_unreachable(const std::string& daemon, const std::string& socket);

template <typename Service>
class Client {
 public:
  using Stub = typename Service::Stub;
  template <typename Request, typename Response>
  using Unary = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);
  template <typename Request, typename Response>
  using Streaming = std::unique_ptr<grpc::ClientReader<Response>> (Stub::*)(grpc::ClientContext*,
                                                                            const Request&);

  // `daemon`: "host daemon", for messages.
  Client(std::string daemon, std::string socket, const Options& options)
      : daemon_(std::move(daemon)),
        socket_(socket),
        timeout_(options.timeout.value_or(call_timeout_default)),
        stub_(Service::NewStub(rpc::make_local_channel(socket))) {}

  template <typename Request, typename Response>
  Result<Response> call(Unary<Request, Response> method, const Request& request) {
    grpc::ClientContext context;
    set_deadline(context);
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) return fail(error_of(status));
    return response;
  }

  // Calls `each` for every message. `limited`: the usual timeout holds; else it runs until the
  // daemon or the user ends it.
  template <typename Request, typename Response>
  vjbod::Status stream(Streaming<Request, Response> method, const Request& request, bool limited,
                       const std::function<void(const Response&)>& each) {
    grpc::ClientContext context;
    if (limited) set_deadline(context);
    auto reader = (stub_.get()->*method)(&context, request);
    Response response;
    while (reader->Read(&response)) each(response);
    const grpc::Status status = reader->Finish();
    if (!status.ok()) return fail(error_of(status));
    return {};
  }

 private:
  void set_deadline(grpc::ClientContext& context) const {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout_));
  }

  Error error_of(const grpc::Status& status) const {
    Error error = rpc::from_grpc_status(status, rpc::Callee::local_daemon,
                                        "the " + daemon_ + " at " + socket_);
    return error.code == rpc::Errc::daemon_not_running ? why_unreachable(daemon_, socket_) : error;
  }

  std::string daemon_, socket_;
  Duration timeout_;
  std::unique_ptr<Stub> stub_;
};

using HostClient = Client<v1::HostAdmin>;
using TargetClient = Client<v1::TargetAdmin>;

}  // namespace vjbod::cli
