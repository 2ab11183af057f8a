// SPDX-License-Identifier: Apache-2.0
#include "common/transport/tcp/tcp_listener.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <netinet/in.h>

#include "common/transport/tcp/asio_stream.h"
#include "common/transport/tcp/tcp_data_mover.h"

namespace vjbod::transport {

namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

bool is_lack_of_resources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

Result<Socket> open_listening(const SocketAddress& address, const std::string& interface_name) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return fail(system_code(errno), "No socket: {}.", std::strerror(errno));
  const int on = 1, off = 0;
  (void)setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6)
    (void)setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (!interface_name.empty()) {
    auto bound = bind_to_interface(socket.fd(), interface_name);
    if (!bound) return fail(std::move(bound).error());
  }
  const std::string name = endpoint_text(address);
  if (::bind(socket.fd(), address.get(), address.length) != 0 ||
      ::listen(socket.fd(), TcpListener::backlog) != 0) {
    const int error = errno;
    if (error == EADDRINUSE) {
      return fail(system_code(error),
                  "Cannot listen on {}: another program uses this port. Stop it or choose another "
                  "port.",
                  name);
    }
    if (error == EADDRNOTAVAIL) {
      return fail(system_code(error), "Cannot listen on {}: no interface has this address.", name);
    }
    return fail(system_code(error), "Cannot listen on {}: {}.", name, std::strerror(error));
  }
  return socket;
}

}  // namespace

struct TcpListener::State {
  State(AsioReactor& reactor, int fd, TcpListenerEvents& events_)
      : descriptor(reactor.io_context(), fd),
        events(events_),
        retry(reactor, [this] { wait(self.lock()); }) {}

  static void wait(const std::shared_ptr<State>& state) {
    if (state->waiting || state->paused || !state->descriptor.is_open()) return;
    state->waiting = true;
    state->descriptor.async_wait(Descriptor::wait_read, [state](const boost::system::error_code&) {
      state->waiting = false;
      accept_some(state);
    });
  }

  static void accept_some(const std::shared_ptr<State>& state) {
    for (int i = 0; i < accepts_per_turn_max; ++i) {
      if (state->paused || !state->descriptor.is_open()) return;
      Socket socket(::accept4(state->descriptor.native_handle(), nullptr, nullptr,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        const int error = errno;
        if (error == EAGAIN || error == EWOULDBLOCK) break;
        if (!is_lack_of_resources(error)) continue;  // that connection died in the queue
        state->retry.arm_after(accept_retry);
        state->events.on_accept_trouble(
            {system_code(error),
             fmt::format("Cannot accept connections: {}.", std::strerror(error))});
        return;
      }
      const SocketAddress peer = peer_address_of(socket.fd());
      if (peer.length == 0) continue;  // gone already
      set_data_connection_options(socket.fd());
      state->events.on_accepted({std::move(socket), address_text(peer), endpoint_text(peer)});
    }
    wait(state);
  }

  Descriptor descriptor;
  TcpListenerEvents& events;
  bool waiting = false;
  bool paused = false;
  std::weak_ptr<State> self;
  Timer retry;
};

Result<std::unique_ptr<TcpListener>> TcpListener::open(AsioReactor& reactor,
                                                       const std::string& address, uint16_t port,
                                                       const std::string& interface_name,
                                                       TcpListenerEvents& events) {
  auto parsed = parse_address(address, port);
  if (!parsed) return fail(std::move(parsed).error());
  auto socket = open_listening(*parsed, interface_name);
  if (!socket && socket.error().code == system_code(EAFNOSUPPORT) && address == "::") {
    parsed = parse_address("0.0.0.0", port);
    socket = open_listening(*parsed, interface_name);
  }
  if (!socket) return fail(std::move(socket).error());
  return std::unique_ptr<TcpListener>(new TcpListener(reactor, std::move(*socket), events));
}

TcpListener::TcpListener(AsioReactor& reactor, Socket socket, TcpListenerEvents& events)
    : local_(local_name_of(socket.fd())) {
  state_ = std::make_shared<State>(reactor, socket.release(), events);
  state_->self = state_;
  State::wait(state_);
}

TcpListener::~TcpListener() {
  state_->retry.cancel();
  boost::system::error_code ignored;
  state_->descriptor.close(ignored);
}

void TcpListener::pause() {
  state_->paused = true;
}

void TcpListener::resume() {
  state_->paused = false;
  if (!state_->retry.armed()) State::wait(state_);
}

std::unique_ptr<DataMover> make_tcp_mover(AsioReactor& reactor, Socket socket) {
  return std::make_unique<TcpDataMover>(
      reactor, std::make_unique<AsioStream>(reactor, std::move(socket)), Role::target);
}

}  // namespace vjbod::transport
