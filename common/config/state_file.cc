// SPDX-License-Identifier: Apache-2.0
#include "common/config/state_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/unique_fd.h"

namespace vjbod::config {

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "state"; }
  std::string message(int value) const override {
    switch (static_cast<StateErrc>(value)) {
      case StateErrc::damaged: return "state is damaged";
      case StateErrc::newer_version: return "state is from a newer version";
      case StateErrc::locked: return "state directory is in use";
      case StateErrc::not_usable: return "state directory is not usable";
    }
    return "unknown";
  }
};

std::string errno_text(int error) {
  return std::error_code(error, std::system_category()).message();
}

// A full disk is told apart from what permissions would mend.
std::error_code not_usable(int error) {
  return error == ENOSPC || error == EDQUOT ? system_code(error)
                                            : make_error_code(StateErrc::not_usable);
}

Status write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(system_code(errno), "{}", errno_text(errno));
    content.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

const std::error_category& state_error_category() {
  static const Category category;
  return category;
}

Result<StateDirectory> StateDirectory::open(std::string path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    ::mkdir(path.substr(0, slash).c_str(), 0755);  // what fails here fails below, too
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    const int error = errno;
    return fail(not_usable(error), "state directory {} cannot be made: {}", path,
                errno_text(error));
  }
  std::string lock_path = path + "/lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) {
    int error = errno;
    return fail(not_usable(error),
                "state directory {} cannot be written: {}; make it writable for this daemon, or "
                "choose another one with --state-dir",
                path, errno_text(error));
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(StateErrc::locked,
                "state directory {} is in use by another daemon; stop that one first, or choose "
                "another directory with --state-dir",
                path);
  return StateDirectory(std::move(path), lock.release());
}

StateDirectory::StateDirectory(StateDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_fd_(std::exchange(other.lock_fd_, -1)) {}

StateDirectory& StateDirectory::operator=(StateDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_fd_, other.lock_fd_);
  return *this;
}

StateDirectory::~StateDirectory() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

Status write_file_atomically(const std::string& directory, std::string_view name,
                             std::string_view content) {
  std::string path = fmt::format("{}/{}", directory, name);
  std::string temporary = path + ".new";
  auto failed = [&](std::string_view step, int error) {
    ::unlink(temporary.c_str());
    // A code of its own: to callers "no such file" would mean that what they name is not there.
    if (error == ENOENT || error == ENOTDIR)
      return fail(
          StateErrc::not_usable,
          "{} cannot be saved: its folder is gone; restart the daemon, which makes it again", path);
    return fail(system_code(error), "{} cannot be saved: {}: {}", path, step, errno_text(error));
  };
  ::unlink(temporary.c_str());  // of a save that was interrupted
  UniqueFd file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return failed("making the new file", errno);
  if (Status written = write_all(file.get(), content); !written)
    return failed("writing", written.error().code.value());
  if (::fsync(file.get()) != 0) return failed("syncing the file", errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("renaming", errno);
  UniqueFd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() || ::fsync(folder.get()) != 0) {
    // The new file is in place, but a power cut may bring the old one back: not saved, then.
    int error = errno;
    return fail(system_code(error), "{} cannot be saved: syncing the folder: {}", path,
                errno_text(error));
  }
  return {};
}

Result<std::string> read_file(const std::string& path, size_t bytes_max) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    int error = errno;
    return fail(system_code(error), "{} cannot be read: {}", path, errno_text(error));
  }
  std::string content;
  char buffer[16 * 1024];
  for (;;) {
    ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      int error = errno;
      return fail(system_code(error), "{} cannot be read: {}", path, errno_text(error));
    }
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
    if (content.size() > bytes_max)
      return fail(std::make_error_code(std::errc::file_too_large),
                  "{} cannot be read: it is larger than {} bytes", path, bytes_max);
  }
}

Error StateFile::damaged(std::string_view what) const {
  return Error{StateErrc::damaged,
               fmt::format("state file {} is damaged: {}; it was left as it is. Restore it from a "
                           "backup, or move it away to begin without any state",
                           path(), what)};
}

Result<nlohmann::json> StateFile::load() const {
  Result<std::string> text = read_file(path(), bytes_max);
  if (!text) {
    if (text.error().code == std::errc::no_such_file_or_directory) return nlohmann::json::object();
    return fail(StateErrc::not_usable, "state file {}", text.error().text);
  }
  nlohmann::json state = nlohmann::json::parse(*text, nullptr, false);
  if (state.is_discarded() || !state.is_object()) return fail(damaged("it is not a JSON object"));
  auto version = state.find("version");
  if (version == state.end() || !version->is_number_integer() || version->get<int64_t>() < 1)
    return fail(damaged("it has no version"));
  if (version->get<int64_t>() > version_)
    return fail(StateErrc::newer_version,
                "state file {} is of version {}, and this program knows versions up to {}; it was "
                "left as it is. Install the newer program again",
                path(), version->get<int64_t>(), version_);
  return state;
}

Status StateFile::save(nlohmann::json state) const {
  state["version"] = version_;
  return write_file_atomically(directory_, name_, state.dump(2) + "\n");
}

}  // namespace vjbod::config
