// SPDX-License-Identifier: Apache-2.0
#include "common/transport/tcp/asio_stream.h"

#include <array>
#include <cerrno>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/socket.h>

namespace vjbod::transport {

namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

IoResult result_of(ssize_t moved) {
  if (moved > 0) return {.kind = IoResult::Kind::moved, .bytes = static_cast<size_t>(moved)};
  if (moved == 0) return {.kind = IoResult::Kind::ended};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {.kind = IoResult::Kind::failed, .error_number = errno};
}

}  // namespace

struct AsioStream::State {
  State(AsioReactor& reactor, int fd) : descriptor(reactor.io_context(), fd) {}

  template <bool reading>
  static void wait(const std::shared_ptr<State>& state) {
    bool& waiting = reading ? state->waiting_to_read : state->waiting_to_write;
    if (waiting || !state->descriptor.is_open()) return;
    waiting = true;
    state->descriptor.async_wait(reading ? Descriptor::wait_read : Descriptor::wait_write,
                                 [state](const boost::system::error_code&) {
                                   (reading ? state->waiting_to_read : state->waiting_to_write) =
                                       false;
                                   // An error of the socket comes out of the next read or write.
                                   if (!state->descriptor.is_open()) return;
                                   if constexpr (reading)
                                     state->events->on_readable();
                                   else
                                     state->events->on_writable();
                                 });
  }

  Descriptor descriptor;
  ByteStreamEvents* events = nullptr;
  bool waiting_to_read = false;
  bool waiting_to_write = false;
};

AsioStream::AsioStream(AsioReactor& reactor, Socket socket)
    : peer_(peer_name_of(socket.fd())), local_(local_name_of(socket.fd())) {
  state_ = std::make_shared<State>(reactor, socket.release());
}

AsioStream::~AsioStream() {
  close();
}

void AsioStream::set_events(ByteStreamEvents& events) {
  state_->events = &events;
}

IoResult AsioStream::read_some(Bytes first, Bytes second) {
  const int fd = state_->descriptor.native_handle();
  if (first.empty()) return result_of(recv(fd, second.data(), second.size(), 0));
  if (second.empty()) return result_of(recv(fd, first.data(), first.size(), 0));
  std::array<iovec, 2> pieces = {iovec{first.data(), first.size()},
                                 iovec{second.data(), second.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return result_of(recvmsg(fd, &message, 0));
}

IoResult AsioStream::write_some(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());  // only read
  message.msg_iovlen = pieces.size();
  return result_of(sendmsg(state_->descriptor.native_handle(), &message, MSG_NOSIGNAL));
}

void AsioStream::wait_readable() {
  State::wait<true>(state_);
}

void AsioStream::wait_writable() {
  State::wait<false>(state_);
}

void AsioStream::shutdown_send() {
  if (state_->descriptor.is_open()) ::shutdown(state_->descriptor.native_handle(), SHUT_WR);
}

void AsioStream::close() {
  boost::system::error_code ignored;
  state_->descriptor.close(ignored);
}

}  // namespace vjbod::transport
