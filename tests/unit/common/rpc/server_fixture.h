// SPDX-License-Identifier: Apache-2.0
// A reactor on its own thread and a small service on it, for tests over real sockets.
#pragma once

#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "common/rpc/call_bridge.h"
#include "common/rpc/channel.h"
#include "common/rpc/event_log.h"
#include "common/rpc/server.h"
#include "common/runtime/asio_reactor.h"
#include "common/runtime/wall_clock.h"
#include "vjbod/v1/target.grpc.pb.h"

namespace vjbod::rpc {

class ReactorThread {
 public:
  ~ReactorThread() {
    reactor_.stop();
    thread_.join();
  }
  AsioReactor& reactor() { return reactor_; }
  // Runs on the reactor and waits for the result.
  template <typename Work>
  auto run(Work work) -> decltype(work()) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto result = task.get_future();
    reactor_.post([&task] { task(); });
    return result.get();
  }
  template <typename AnyServer>
  void stop(AnyServer& server) {
    std::promise<void> done;
    reactor_.post([&] { server.stop(std::chrono::seconds(1), [&done] { done.set_value(); }); });
    done.get_future().wait();
  }

 private:
  AsioReactor reactor_{1};
  std::thread thread_{[this] { reactor_.run(); }};
};

// GetStatus tells who called; DeleteLun always fails; Events gives the log.
class TestService final : public v1::TargetAdmin::CallbackService {
 public:
  explicit TestService(Reactor& reactor) : reactor_(reactor) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const v1::Empty*,
                                      v1::TargetStatus* response) override {
    Caller caller = caller_of(*context);
    return handle_call(reactor_, context, response, [this, caller](auto answer) {
      ++calls;
      answer.response().set_name(caller.address);
      if (caller.fingerprint)
        answer.response().set_certificate_fingerprint(caller.fingerprint->to_text());
      answer.ok();
    });
  }
  grpc::ServerUnaryReactor* DeleteLun(grpc::CallbackServerContext* context, const v1::LunRequest*,
                                      v1::Empty* response) override {
    return handle_call(reactor_, context, response, [](auto answer) {
      answer.fail({Errc::busy, "in use"});
    });
  }
  grpc::ServerUnaryReactor* UnbindLun(grpc::CallbackServerContext* context, const v1::LunRequest*,
                                      v1::Lun* response) override {
    return handle_call(reactor_, context, response, [](auto) {});  // forgets the call
  }
  grpc::ServerWriteReactor<v1::Event>* Events(grpc::CallbackServerContext*,
                                              const v1::EventsRequest* request) override {
    auto stream = std::make_shared<ServerStream<v1::Event>>();
    reactor_.post([this, stream, follow = request->follow()] { log.subscribe(stream, follow); });
    return stream->start();
  }

  EventLog log;
  int calls = 0;

 private:
  Reactor& reactor_;
};

inline void set_deadline(grpc::ClientContext& context) {
  context.set_deadline(wall_now() + std::chrono::seconds(10));
}

}  // namespace vjbod::rpc
