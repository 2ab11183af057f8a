// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/unix_listener.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vjbod::initiator {

namespace {

std::string reason_of(int errno_value) {
  return system_code(errno_value).message();
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int new_socket() {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

// Makes room for the socket file: a socket that nobody listens on is left over from a process that
// was killed.
Status remove_stale(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return fail(system_code(errno), "cannot look at {}: {}", path, reason_of(errno));
  }
  if (!S_ISSOCK(status.st_mode)) {
    return fail(system_code(EEXIST),
                "{} exists and is not a socket; remove it or choose another path", path);
  }
  const int probe = new_socket();
  if (probe < 0) return fail(system_code(errno), "cannot make a socket: {}", reason_of(errno));
  const sockaddr_un address = address_of(path);
  const int connected =
      connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  ::close(probe);
  // EAGAIN: somebody listens, with a full backlog.
  if (connected == 0 || connected == EAGAIN) {
    return fail(system_code(EADDRINUSE), "another process listens on {}", path);
  }
  if (connected != ECONNREFUSED) {
    return fail(system_code(connected), "cannot find out whether {} is in use: {}", path,
                reason_of(connected));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return fail(system_code(errno), "cannot remove the stale socket {}: {}", path,
                reason_of(errno));
  }
  return {};
}

}  // namespace

Result<UnixListener> UnixListener::open(const Options& options) {
  const std::string& path = options.path;
  if (path.empty() || path.size() > path_bytes_max || path.find('\0') != std::string::npos) {
    return fail(
        system_code(ENAMETOOLONG),
        "the socket path {} has {} bytes; allowed are 1 to {}, so choose a shorter directory", path,
        path.size(), path_bytes_max);
  }
  if (Status stale = remove_stale(path); !stale) return fail(std::move(stale).error());
  const int fd = new_socket();
  if (fd < 0) return fail(system_code(errno), "cannot make a socket: {}", reason_of(errno));
  UnixListener listener(fd, path);
  const sockaddr_un address = address_of(path);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(system_code(errno), "cannot bind a socket to {}: {}", path, reason_of(errno));
  }
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    return fail(system_code(errno), "cannot look at {}: {}", path, reason_of(errno));
  }
  listener.have_file_ = true;
  listener.device_ = status.st_dev;
  listener.inode_ = status.st_ino;
  // Nobody can connect before listen(), so the mode that bind() gave is never in force.
  if (chmod(path.c_str(), options.mode) != 0) {
    return fail(system_code(errno), "cannot set the mode of {}: {}", path, reason_of(errno));
  }
  if (options.owner || options.group) {
    const uid_t owner = options.owner.value_or(static_cast<uid_t>(-1));
    const gid_t group = options.group.value_or(static_cast<gid_t>(-1));
    if (lchown(path.c_str(), owner, group) != 0) {
      return fail(system_code(errno), "cannot set the owner of {}: {}", path, reason_of(errno));
    }
  }
  if (listen(fd, backlog) != 0) {
    return fail(system_code(errno), "cannot listen on {}: {}", path, reason_of(errno));
  }
  return listener;
}

UnixListener::UnixListener(UnixListener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      have_file_(std::exchange(other.have_file_, false)),
      device_(other.device_),
      inode_(other.inode_) {}

UnixListener::~UnixListener() {
  if (fd_ >= 0) ::close(fd_);
  if (!have_file_) return;
  struct stat status {};
  const bool still_ours =
      lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
  if (still_ours) unlink(path_.c_str());
}

int UnixListener::accept() const {
  return accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

}  // namespace vjbod::initiator
