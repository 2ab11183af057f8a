// SPDX-License-Identifier: Apache-2.0
// A listening Unix stream socket in the file system: made with the right mode before anybody can
// connect, replacing a socket file only when nobody listens on it, removed again when it is still
// ours. One thread at a time.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>
#include <sys/un.h>

#include "common/base/result.h"

namespace vjbod::initiator {

class UnixListener {
 public:
  // The kernel's limit for the path of a socket, without the terminating zero.
  static constexpr size_t path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;
  static constexpr int backlog = 128;

  struct Options {
    std::string path;
    mode_t mode = 0600;
    std::optional<uid_t> owner = {};  // default: whoever the daemon runs as
    std::optional<gid_t> group = {};
  };

  static Result<UnixListener> open(const Options& options);
  UnixListener(UnixListener&& other) noexcept;
  UnixListener& operator=(UnixListener&&) = delete;
  ~UnixListener();  // closes and removes the file

  int fd() const { return fd_; }
  // A connected, non-blocking descriptor, the caller's; or -1 with errno.
  int accept() const;

 private:
  UnixListener(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  int fd_ = -1;
  std::string path_;
  bool have_file_ = false;  // the file below is ours
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace vjbod::initiator
