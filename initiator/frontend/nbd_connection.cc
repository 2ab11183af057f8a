// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_connection.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <poll.h>
#include <sys/socket.h>

#include "common/base/check.h"

namespace vjbod::initiator::nbd {

struct Connection::Socket
    : boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type> {
  using basic_stream_descriptor::basic_stream_descriptor;
};

struct Connection::ReadReady {
  using allocator_type = HandlerAllocator<>;
  allocator_type get_allocator() const { return allocator_type(connection->read_wait_memory_); }
  void operator()(const boost::system::error_code&) const {
    connection->read_waits_ = false;
    connection->on_readable();
  }
  Connection* connection;
};

struct Connection::WriteReady {
  using allocator_type = HandlerAllocator<>;
  allocator_type get_allocator() const { return allocator_type(connection->write_wait_memory_); }
  void operator()(const boost::system::error_code&) const {
    connection->write_waits_ = false;
    connection->on_writable();
  }
  Connection* connection;
};

Connection::Connection(int fd, std::string log_prefix, BlockDevice& device, AsioReactor& home,
                       AsioReactor& here, const ConnectionOptions& options, ConnectionOwner& owner)
    : device_(device),
      home_(home),
      here_(here),
      options_(options),
      owner_(owner),
      log_(std::move(log_prefix)),
      socket_(std::make_unique<Socket>(here.io_context(), fd)),
      deadline_(here, [this] { on_deadline(); }),
      idle_check_(here, [this] { on_idle_check(); }),
      handshake_(options.exported) {
  const int send_bytes = socket_send_bytes;
  // Failing costs speed only.
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);
}

Connection::~Connection() {
  VJBOD_CHECK(!read_waits_ && !write_waits_);
}

void Connection::start() {
  ucred peer{};
  socklen_t size = sizeof peer;
  (void)getsockopt(socket_->native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  log_.info("client connected: process {}, user {}", peer.pid, peer.uid);
  deadline_.arm_after(options_.handshake_time_max);
  progress_handshake();
  finish_if_over();
}

// --- handshake ---

void Connection::progress_handshake() {
  size_t used = 0;
  while (socket_->is_open() && send_handshake_output()) {
    if (handshake_->phase() == Handshake::Phase::closed) {
      if (!handshake_->close_reason().empty()) log_.warn("closed: {}", handshake_->close_reason());
      close_socket();
      return;
    }
    if (handshake_->phase() == Handshake::Phase::transmission) {
      handshake_input_.erase(handshake_input_.begin(), handshake_input_.begin() + used);
      begin_transmission();
      return;
    }
    if (handshake_->phase() == Handshake::Phase::waiting_for_geometry) {
      deadline_.arm_after(options_.geometry_wait_max);
      log_.info("the client waits for the disk's size, which is not known yet");
      break;
    }
    const size_t taken = handshake_->consume(ConstBytes(handshake_input_).subspan(used));
    used += taken;
    if (taken == 0 && handshake_->phase() != Handshake::Phase::waiting_for_geometry) {
      wait_readable();
      break;
    }
  }
  handshake_input_.erase(handshake_input_.begin(), handshake_input_.begin() + used);
}

bool Connection::send_handshake_output() {
  std::vector<std::byte>& output = handshake_->output();
  while (!output.empty()) {
    const ssize_t sent =
        send(socket_->native_handle(), output.data(), output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (!failed(errno)) wait_writable();
      return false;
    }
    output.erase(output.begin(), output.begin() + sent);
  }
  return true;
}

void Connection::receive_handshake() {
  const size_t before = handshake_input_.size();
  handshake_input_.resize(Handshake::input_bytes_max);
  const ssize_t received = recv(socket_->native_handle(), handshake_input_.data() + before,
                                handshake_input_.size() - before, MSG_DONTWAIT);
  handshake_input_.resize(before + std::max<ssize_t>(received, 0));
  if (received < 0 && !failed(errno)) {
    wait_readable();
  } else if (received == 0) {
    log_.info("client left during the handshake");
    close_socket();
  } else if (received > 0) {
    progress_handshake();
  }
}

void Connection::begin_transmission() {
  deadline_.cancel();
  const BlockGeometry& geometry = handshake_->geometry();
  transmission_.emplace(geometry, handshake_->structured_replies(), here_, *this);
  if (&home_ == &here_) {
    port_.emplace(device_, *transmission_);
  } else {
    port_.emplace(device_, home_, here_, *transmission_);
  }
  transmission_->set_port(*port_);
  log_.info("client uses the disk: {} bytes, structured replies {}", geometry.size_bytes,
            handshake_->structured_replies() ? "on" : "off");
  const std::vector<std::byte> early = std::move(handshake_input_);
  handshake_input_ = {};
  handshake_.reset();
  transmission_->received_early(early);
  receive_requests();
}

void Connection::set_geometry(const BlockGeometry& geometry) {
  if (!handshake_) return;
  const bool waited = handshake_->phase() == Handshake::Phase::waiting_for_geometry;
  handshake_->set_geometry(geometry);
  if (waited) progress_handshake();
  finish_if_over();
}

void Connection::on_deadline() {
  if (handshake_ && handshake_->phase() == Handshake::Phase::waiting_for_geometry) {
    handshake_->refuse_waiting(OptionReply::error_unknown,
                               "the disk was never reached yet, so its size is not known");
    deadline_.arm_after(options_.handshake_time_max);
    progress_handshake();
  } else if (socket_->is_open()) {
    log_.warn("closed: {}", stopping_ ? "requests were still under way when the export ended"
                                      : "the client did not finish the handshake in time");
    close_socket();
  }
  finish_if_over();
}

// --- transmission ---

void Connection::receive_requests() {
  for (int i = 0; i < receives_per_turn; ++i) {
    std::array<iovec, 2> targets;
    const size_t count = transmission_->receive_targets(targets);
    if (count == 0) break;  // goes on in run_deferred(), when there is room
    size_t wanted = 0;
    for (size_t t = 0; t < count; ++t) wanted += targets[t].iov_len;
    msghdr message{};
    message.msg_iov = targets.data();
    message.msg_iovlen = count;
    const ssize_t received = recvmsg(socket_->native_handle(), &message, MSG_DONTWAIT);
    if (received < 0) {
      if (!failed(errno)) wait_readable();
      break;
    }
    if (received == 0) {
      transmission_->end_input();
      break;
    }
    if (!idle_check_.armed()) idle_check_.arm_after(options_.idle_after);
    transmission_->received(static_cast<size_t>(received));
    if (static_cast<size_t>(received) < wanted || i + 1 == receives_per_turn) {
      wait_readable();
      break;
    }
  }
  if (!transmission_->violation().empty() && socket_->is_open()) {
    log_.warn("closed: {}", transmission_->violation());
    close_socket();
  }
  close_if_over();
}

void Connection::send_replies() {
  std::array<iovec, parts_per_send> parts;
  while (socket_->is_open() && !write_waits_) {
    const size_t count = transmission_->gather(parts);
    if (count == 0) return;
    size_t wanted = 0;
    for (size_t p = 0; p < count; ++p) wanted += parts[p].iov_len;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = sendmsg(socket_->native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (!failed(errno)) wait_writable();
      return;
    }
    transmission_->sent(static_cast<size_t>(sent));
    if (static_cast<size_t>(sent) < wanted) wait_writable();
  }
}

// Answers of this turn leave together; then what had to wait for room goes on.
void Connection::run_deferred() {
  send_replies();
  if (transmission_->resume() && socket_->is_open() && !read_waits_) receive_requests();
  close_if_over();
  finish_if_over();
}

void Connection::stop() {
  if (stopping_) return;
  stopping_ = true;
  if (handshake_) {
    handshake_->refuse_waiting(OptionReply::error_shutdown, "the disk is being detached");
    if (socket_->is_open()) (void)send_handshake_output();
    close_socket();
  } else {
    transmission_->stop();
    deadline_.arm_after(options_.stop_grace);
    here_.defer(*this);
  }
  finish_if_over();
}

void Connection::hang_up() {
  stopping_ = true;
  if (transmission_) send_replies();
  close_socket();
  finish_if_over();
}

// --- readiness ---

void Connection::wait_readable() {
  if (read_waits_ || !socket_->is_open()) return;
  read_waits_ = true;
  socket_->async_wait(boost::asio::posix::descriptor_base::wait_read, ReadReady{this});
}

void Connection::wait_writable() {
  if (write_waits_ || !socket_->is_open()) return;
  write_waits_ = true;
  socket_->async_wait(boost::asio::posix::descriptor_base::wait_write, WriteReady{this});
}

void Connection::on_readable() {
  if (socket_->is_open()) {
    if (handshake_) {
      receive_handshake();
    } else {
      receive_requests();
    }
  }
  finish_if_over();
}

void Connection::on_writable() {
  if (socket_->is_open()) {
    if (handshake_) {
      progress_handshake();
    } else {
      here_.defer(*this);
    }
  }
  finish_if_over();
}

void Connection::on_idle_check() {
  if (!socket_->is_open()) return;
  const uint64_t requests = transmission_->requests_taken();
  if (requests == requests_at_last_check_ && transmission_->idle()) {
    transmission_->release_memory();  // and sleep until something is received
    return;
  }
  requests_at_last_check_ = requests;
  idle_check_.arm_after(options_.idle_after);
}

// --- the end ---

// False: nothing is wrong, the socket is full or empty.
bool Connection::failed(int errno_value) {
  if (errno_value == EAGAIN || errno_value == EWOULDBLOCK || errno_value == EINTR) return false;
  if (errno_value != EPIPE && errno_value != ECONNRESET) {
    log_.warn("closed: the socket failed: {}", system_code(errno_value).message());
  }
  close_socket();
  return true;
}

bool Connection::client_gone() const {
  if (!socket_->is_open()) return true;
  pollfd state{socket_->native_handle(), POLLRDHUP, 0};
  return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Connection::close_socket() {
  if (!socket_->is_open()) return;
  deadline_.cancel();
  idle_check_.cancel();
  boost::system::error_code ignored;
  socket_->close(ignored);
  if (transmission_) {
    transmission_->stop();
    transmission_->drop_replies();
    if (const size_t left = transmission_->requests_under_way(); left > 0) {
      log_.info("{} requests are under way; their replies will be dropped", left);
    }
  }
}

void Connection::close_if_over() {
  if (transmission_ && transmission_->input_ended() && transmission_->idle()) close_socket();
}

void Connection::finish_if_over() {
  if (finished_ || socket_->is_open() || read_waits_ || write_waits_) return;
  if (transmission_ && !transmission_->idle()) return;
  finished_ = true;
  unlink();
  deadline_.cancel();
  idle_check_.cancel();
  log_.info("client disconnected");
  owner_.on_connection_finished(*this);
}

}  // namespace vjbod::initiator::nbd
