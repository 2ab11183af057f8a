// SPDX-License-Identifier: Apache-2.0
// From gRPC's threads to the reactor and back. A service method of the callback API does nothing
// but return handle_call(...): the work runs on the reactor, where all objects live, and answers
// now or later, from there. gRPC threads never wait and never touch an object.
//
//   grpc::ServerUnaryReactor* ListPools(grpc::CallbackServerContext* context, const v1::Empty*,
//                                       v1::ListPoolsResponse* response) override {
//     return rpc::handle_call(reactor_, context, response, [this](auto answer) {
//       pools_.describe(answer.response());
//       answer.ok();
//     });
//   }
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "common/base/result.h"
#include "common/rpc/status_map.h"
#include "common/rpc/tls_credentials.h"
#include "common/runtime/reactor.h"

namespace vjbod::rpc {

// Who is at the other end of a call.
struct Caller {
  std::string address;  // "10.0.0.1:41234", "[fe80::1]:41234" or "unix"
  std::optional<Fingerprint> fingerprint;
};
Caller caller_of(const grpc::ServerContextBase& context);

// The answer to one unary call. Copies are the same answer; the first ok() or fail() counts. When
// all copies are gone without either, the caller gets an error: no call is ever forgotten. The
// request and the response live until then.
template <typename Response>
class Answer {
 public:
  Answer(grpc::ServerUnaryReactor* call, Response* response)
      : state_(std::make_shared<State>(call, response)) {}

  Response& response() { return *state_->response; }
  void ok() { state_->finish(grpc::Status::OK); }
  void fail(const Error& error) { state_->finish(to_grpc_status(error)); }
  // ok() or fail(), by the result.
  template <typename T>
  void finish(const Result<T>& result) {
    result ? ok() : fail(result.error());
  }

 private:
  struct State {
    State(grpc::ServerUnaryReactor* call_, Response* response_)
        : call(call_), response(response_) {}
    ~State() {
      finish(to_grpc_status(Error{Errc::other, "the daemon is stopping; ask again later"}));
    }
    void finish(const grpc::Status& status) {
      if (call != nullptr) std::exchange(call, nullptr)->Finish(status);
    }
    grpc::ServerUnaryReactor* call;
    Response* response;
  };
  std::shared_ptr<State> state_;
};

// `work(Answer<Response>)` runs on the reactor. What it captures must outlive the server.
template <typename Response, typename Work>
grpc::ServerUnaryReactor* handle_call(Reactor& reactor, grpc::CallbackServerContext* context,
                                      Response* response, Work work) {
  grpc::ServerUnaryReactor* call = context->DefaultReactor();
  Answer<Response> answer(call, response);
  reactor.post(
      [work = std::move(work), answer = std::move(answer)]() mutable { work(std::move(answer)); });
  return call;
}

}  // namespace vjbod::rpc
