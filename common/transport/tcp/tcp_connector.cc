// SPDX-License-Identifier: Apache-2.0
#include "common/transport/tcp/tcp_connector.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <netinet/in.h>

#include "common/iscsi/errc.h"
#include "common/transport/tcp/asio_stream.h"
#include "common/transport/tcp/socket.h"
#include "common/transport/tcp/tcp_data_mover.h"

namespace vjbod::transport {

namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

std::string way_text(const Endpoint& to) {
  std::string text = text_of(to);
  if (!to.source_address.empty()) text += " from " + to.source_address;
  if (!to.interface_name.empty()) text += " through " + to.interface_name;
  return text;
}

// A socket whose connect() is under way or done.
Result<Socket> begin_connect(const Endpoint& to) {
  auto address = parse_address(to.address, to.port);
  if (!address) return fail(std::move(address).error());
  Socket socket(::socket(address->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return fail(system_code(errno), "No socket: {}.", std::strerror(errno));
  set_data_connection_options(socket.fd());
  if (!to.interface_name.empty()) {
    auto bound = bind_to_interface(socket.fd(), to.interface_name);
    if (!bound) return fail(std::move(bound).error());
  }
  if (!to.source_address.empty()) {
    auto source = parse_address(to.source_address, 0);
    if (!source) return fail(std::move(source).error());
    if (source->family() != address->family()) {
      return fail(std::make_error_code(std::errc::address_family_not_supported),
                  "{} and the source address {} are of different kinds (IPv4 and IPv6).",
                  text_of(to), to.source_address);
    }
    if (::bind(socket.fd(), source->get(), source->length) != 0) {
      return fail(system_code(errno), "Cannot use the source address {}: {}.", to.source_address,
                  std::strerror(errno));
    }
  }
  if (::connect(socket.fd(), address->get(), address->length) != 0 && errno != EINPROGRESS) {
    return fail(system_code(errno), "Cannot connect to {}: {}.", way_text(to),
                std::strerror(errno));
  }
  return socket;
}

class TcpConnectAttempt final : public ConnectAttempt, private Deferred {
 public:
  TcpConnectAttempt(AsioReactor& reactor, const Endpoint& to, Duration timeout,
                    Connector::Done done)
      : reactor_(reactor), to_(to), done_(std::move(done)), deadline_(reactor, [this, timeout] {
          finish(fail(iscsi::Errc::timed_out, "No answer from {} within {} s.", way_text(to_),
                      std::chrono::duration<double>(timeout).count()));
        }) {
    Result<Socket> socket = begin_connect(to);
    if (!socket) {
      failure_ = std::move(socket).error();
      reactor_.defer(*this);
      return;
    }
    deadline_.arm_after(timeout);
    wait_ = std::make_shared<Wait>(this, Descriptor(reactor.io_context(), socket->release()));
    wait_->descriptor.async_wait(Descriptor::wait_write,
                                 [wait = wait_](const boost::system::error_code& error) {
                                   if (!error && wait->attempt != nullptr)
                                     wait->attempt->on_connected();
                                 });
  }
  ~TcpConnectAttempt() override { abandon(); }

 private:
  // Shared with the wait that is pending, which Asio delivers even after a close.
  struct Wait {
    Wait(TcpConnectAttempt* attempt_, Descriptor descriptor_)
        : attempt(attempt_), descriptor(std::move(descriptor_)) {}
    TcpConnectAttempt* attempt;
    Descriptor descriptor;
  };

  void run_deferred() override { finish(fail(std::move(failure_))); }

  void abandon() {
    if (wait_ == nullptr) return;
    wait_->attempt = nullptr;
    boost::system::error_code ignored;
    wait_->descriptor.close(ignored);
    wait_ = nullptr;
  }

  void on_connected() {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(wait_->descriptor.native_handle(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      return finish(fail(system_code(error), "Cannot connect to {}: {}.", way_text(to_),
                         std::strerror(error)));
    }
    Socket socket(wait_->descriptor.release());
    finish(std::make_unique<TcpDataMover>(
        reactor_, std::make_unique<AsioStream>(reactor_, std::move(socket)), Role::initiator));
  }

  void finish(Result<std::unique_ptr<DataMover>> result) {
    deadline_.cancel();
    abandon();
    Connector::Done done = std::move(done_);
    done(std::move(result));  // this object may be gone now
  }

  AsioReactor& reactor_;
  const Endpoint to_;
  Connector::Done done_;
  Error failure_;
  Timer deadline_;
  std::shared_ptr<Wait> wait_;
};

}  // namespace

std::unique_ptr<ConnectAttempt> TcpConnector::connect(const Endpoint& to, Duration timeout,
                                                      Done done) {
  return std::make_unique<TcpConnectAttempt>(reactor_, to, timeout, std::move(done));
}

}  // namespace vjbod::transport
