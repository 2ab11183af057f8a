// SPDX-License-Identifier: Apache-2.0
#include "tools/vjbod/client.h"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/rpc/errc.h"

namespace vjbod::cli {

namespace {

// What a connect comes to: 0 or an errno.
int try_connect(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  const int error =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  close(fd);
  return error;
}

}  // namespace

Error why_unreachable(const std::string& daemon, const std::string& socket_path) {
  const std::string program = daemon == "host daemon" ? "vjbod-hostd" : "vjbod-targetd";
  const std::string option = daemon == "host daemon" ? "--host-socket" : "--target-socket";
  const int error = try_connect(socket_path);
  switch (error) {
    case EACCES:
    case EPERM:
      return {
          rpc::Errc::permission,
          fmt::format("{} may be used by its owner only, and you are not: run this as root or as "
                      "the user that runs {}",
                      socket_path, program)};
    case ENOENT:
    case ENOTDIR:
      return {rpc::Errc::daemon_not_running,
              fmt::format("the {} is not running: there is no {}; start {}, or say by {} where its "
                          "socket is",
                          daemon, socket_path, program, option)};
    case ECONNREFUSED:
      return {rpc::Errc::daemon_not_running,
              fmt::format("the {} is not running: nobody listens on {}; start {}", daemon,
                          socket_path, program)};
    case 0:
      return {
          rpc::Errc::daemon_not_running,
          fmt::format("the {} at {} ended the connection; is it stopping?", daemon, socket_path)};
    default:
      return {rpc::Errc::daemon_not_running,
              fmt::format("the {} at {} cannot be reached: {}", daemon, socket_path,
                          std::strerror(error))};
  }
}

}  // namespace vjbod::cli
