// SPDX-License-Identifier: Apache-2.0
// A stream of messages to a caller, fed from the reactor. gRPC writes one message at a time; the
// rest waits in a bounded queue, and a caller that does not keep up loses the stream, not the
// daemon its memory.
//
//   auto stream = std::make_shared<rpc::ServerStream<v1::Event>>();
//   reactor_.post([this, stream] { events_.subscribe(stream, follow); });
//   return stream->start();
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <grpcpp/support/server_callback.h>

#include "common/base/result.h"
#include "common/rpc/status_map.h"

namespace vjbod::rpc {

template <typename Message>
class ServerStream : public std::enable_shared_from_this<ServerStream<Message>> {
 public:
  static constexpr size_t queue_max = 4096;  // messages that may wait for a slow caller

  // For the service method to return. Once.
  grpc::ServerWriteReactor<Message>* start() {
    auto* writer = new Writer(this->shared_from_this());
    std::unique_lock lock(mutex_);
    writer_ = writer;
    pump(lock);
    return writer;
  }

  // Any thread. False: the caller is gone, or was too slow and has lost the stream.
  bool write(Message message) {
    std::unique_lock lock(mutex_);
    if (closed_ || finish_) return false;
    if (queue_.size() >= queue_max) {
      queue_.clear();
      finish_ = to_grpc_status(Error{Errc::other, "too slow to take the messages; call again"});
      pump(lock);
      return false;
    }
    queue_.push_back(std::move(message));
    pump(lock);
    return true;
  }

  // Any thread. Ends the stream after what waits.
  void finish(const grpc::Status& status) {
    std::unique_lock lock(mutex_);
    if (closed_ || finish_) return;
    finish_ = status;
    pump(lock);
  }

  // Any thread. The caller is gone, or the stream was ended.
  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_ || finish_.has_value();
  }

 private:
  // What gRPC holds; deletes itself when gRPC is done with it.
  class Writer final : public grpc::ServerWriteReactor<Message> {
   public:
    explicit Writer(std::shared_ptr<ServerStream> stream) : stream_(std::move(stream)) {}
    void OnWriteDone(bool ok) override { stream_->on_written(ok); }
    void OnCancel() override { stream_->on_cancel(); }
    void OnDone() override {
      stream_->on_done();
      delete this;
    }

   private:
    std::shared_ptr<ServerStream> stream_;
  };

  // Starts what can be started. Calls gRPC without the lock: it may call back at once.
  void pump(std::unique_lock<std::mutex>& lock) {
    if (writer_ == nullptr || writing_ || finished_) return;
    Writer* writer = writer_;
    if (!queue_.empty() && !closed_) {
      current_ = std::move(queue_.front());
      queue_.pop_front();
      writing_ = true;
      lock.unlock();
      writer->StartWrite(&current_);
    } else if (finish_ || closed_) {
      finished_ = true;
      grpc::Status status = finish_.value_or(grpc::Status::CANCELLED);
      lock.unlock();
      writer->Finish(status);
    }
  }
  void on_written(bool ok) {
    std::unique_lock lock(mutex_);
    writing_ = false;
    if (!ok) closed_ = true;
    pump(lock);
  }
  void on_cancel() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    pump(lock);
  }
  void on_done() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    writer_ = nullptr;
  }

  mutable std::mutex mutex_;
  Writer* writer_ = nullptr;  // between start() and OnDone
  std::deque<Message> queue_;
  Message current_;                     // being written; gRPC reads it
  std::optional<grpc::Status> finish_;  // to be sent after the queue
  bool writing_ = false, finished_ = false, closed_ = false;
};

}  // namespace vjbod::rpc
