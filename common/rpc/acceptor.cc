// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/acceptor.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/base/log.h"
#include "common/config/values.h"
#include "common/net/port_user.h"
#include "common/rpc/errc.h"

namespace vjbod::rpc {

namespace {

constexpr int backlog = 128;
constexpr int accepts_per_turn_max = 32;  // then other work of the reactor has its turn

std::string errno_text(int error) {
  return system_code(error).message();
}

tl::unexpected<Error> cannot_listen(std::string_view where, int error) {
  return fail(system_code(error), "cannot listen on {}: {}", where, errno_text(error));
}

// Nobody answers on a socket that its daemon left behind.
bool somebody_listens(const sockaddr_un& address) {
  UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return true;
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return true;
  return errno != ECONNREFUSED && errno != ENOENT;
}

}  // namespace

Result<UniqueFd> listen_on_tcp(const std::string& listen) {
  Result<config::HostPort> where = config::parse_host_port(listen, 0);
  if (!where) return fail(where.error());
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  std::string port = std::to_string(where->port);
  if (int error = getaddrinfo(where->host.c_str(), port.c_str(), &hints, &found); error != 0)
    return fail(Errc::usage, "cannot listen on {}: {}", listen, gai_strerror(error));
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> address(found, freeaddrinfo);

  UniqueFd fd(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return cannot_listen(listen, errno);
  int on = 1, off = 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->ai_family == AF_INET6)  // [::] takes IPv4 too
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(fd.get(), address->ai_addr, address->ai_addrlen) != 0 ||
      ::listen(fd.get(), backlog) != 0) {
    const int error = errno;
    if (error == EADDRINUSE)
      return fail(Errc::busy,
                  "the control channel's address {} is in use by {}; stop it or choose another "
                  "address",
                  listen, net::port_user(where->port));
    return cannot_listen(listen, error);
  }
  return fd;
}

Result<UniqueFd> listen_on_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(Errc::usage, "control socket path \"{}\" must have 1 to {} bytes", path,
                sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, path.data(), path.size());

  if (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0) {
    std::string folder = path.substr(0, slash);
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
      return fail(system_code(errno), "folder {} of the control socket cannot be made: {}", folder,
                  errno_text(errno));
  }
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode))
      return fail(Errc::usage, "{} is there and is not a socket; choose another control socket",
                  path);
    if (somebody_listens(address))
      return fail(Errc::busy,
                  "another daemon listens on {}; stop it first, or choose another path "
                  "with --control-socket",
                  path);
    ::unlink(path.c_str());
  }
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // The kernel gives the new file the mode of the socket: nobody else gets in, not even for the
  // moment between bind and chmod.
  if (!fd.valid() || ::fchmod(fd.get(), 0600) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(fd.get(), backlog) != 0)
    return cannot_listen(path, errno);
  return fd;
}

uint16_t local_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

Result<std::string> remote_address(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST] = {};
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text, sizeof text, nullptr,
                    0, NI_NUMERICHOST) != 0)
    return fail(system_code(errno), "a connection was gone before it was accepted");
  return std::string(text);
}

Result<std::string> trusted_local_user(int fd) {
  ucred caller{};
  socklen_t size = sizeof caller;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &caller, &size) != 0)
    return fail(system_code(errno), "the caller of the control socket is unknown: {}",
                errno_text(errno));
  if (caller.uid != 0 && caller.uid != ::geteuid())
    return fail(Errc::permission, "user {} (process {}) may not use the control socket", caller.uid,
                caller.pid);
  return std::to_string(caller.uid);
}

Acceptor::Acceptor(Reactor& reactor, UniqueFd listening, Sink sink, ConnectionTable limits,
                   Identify identify)
    : reactor_(reactor),
      listening_(std::move(listening)),
      sink_(std::move(sink)),
      connections_(std::move(limits)),
      identify_(std::move(identify)),
      spare_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      watch_(reactor.watch_readable(listening_.get(), [this] { accept_all(); })) {}

void Acceptor::accept_all() {
  for (int i = 0; i < accepts_per_turn_max; ++i) {
    UniqueFd connection(
        ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid()) {
      hand_over(std::move(connection));
    } else if (errno == EMFILE || errno == ENFILE) {
      refuse_one();
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;  // EAGAIN: no more for now
    }
  }
}

void Acceptor::hand_over(UniqueFd connection) {
  Result<std::string> who = identify_(connection.get());
  if (!who) {
    log::warn("control connection refused: {}", who.error().text);
    return;
  }
  if (!connections_.admit(connection.get(), *who)) {
    note_limit(*who);
    return;
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = listening_.get();
  parameters.fd = connection.release();
  sink_->HandleNewConnection(&parameters);
}

void Acceptor::note_limit(const std::string& who) {
  ++refused_;
  const TimePoint now = reactor_.now();
  if (limit_told_ && now - *limit_told_ < limit_told_interval) return;
  limit_told_ = now;
  log::warn("control connections from {} are refused: too many are open ({} refused so far)", who,
            refused_);
}

void Acceptor::refuse_one() {
  spare_.reset();
  UniqueFd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
  spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace vjbod::rpc
