// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/directory_pool.h"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "target/backstore/errc.h"
#include "target/backstore/in_use.h"

namespace vjbod::backstore {

namespace {

constexpr std::string_view suffix = ".lun";
// Of a file that create() has not finished, where the file system cannot make nameless files.
constexpr std::string_view unfinished_suffix = ".lun.new";

tl::unexpected<Error> failure(const char* what, const std::string& path, int error) {
  return fail(errc_of(error), "cannot {} {}: {}", what, path, system_code(error).message());
}

Status check_name(std::string_view name) {
  bool good = !name.empty() && name.size() <= DirectoryPool::name_bytes_max &&
              std::all_of(name.begin(), name.end(), [](char c) {
                return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
              });
  if (good) return {};
  return fail(Errc::bad_config, "a LUN file's name is 1 to {} of a-z, 0-9 and -",
              DirectoryPool::name_bytes_max);
}

std::string file_name_of(std::string_view name) {
  return std::string(name) + std::string(suffix);
}

// The names of all entries of a directory that end so.
Result<std::vector<std::string>> entries(int directory, const std::string& path,
                                         std::string_view end) {
  // A description of its own, so that two listings do not share a place in it.
  int fd = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::unique_ptr<DIR, int (*)(DIR*)> stream(fd < 0 ? nullptr : ::fdopendir(fd), &::closedir);
  if (!stream) {
    int error = errno;
    if (fd >= 0) ::close(fd);
    return failure("list", path, error);
  }
  std::vector<std::string> found;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    std::string_view name = entry->d_name;
    if (name.size() > end.size() && name.ends_with(end)) found.emplace_back(name);
  }
  if (errno != 0) return failure("list", path, errno);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Result<DirectoryPool> DirectoryPool::open(const std::string& path) {
  UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    int error = errno;
    if (error == ENOENT)
      return fail(Errc::not_found, "the pool's directory {} does not exist; make it, or mount it",
                  path);
    return failure("open the pool's directory", path, error);
  }
  if (::faccessat(directory.get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    return failure("make files in the pool's directory", path, errno);
  auto unfinished = entries(directory.get(), path, unfinished_suffix);
  if (!unfinished) return fail(unfinished.error());
  for (const std::string& name : *unfinished) ::unlinkat(directory.get(), name.c_str(), 0);
  return DirectoryPool(path, std::move(directory));
}

std::string DirectoryPool::path_of(std::string_view name) const {
  return path_ + "/" + file_name_of(name);
}

Result<std::string> DirectoryPool::create(std::string_view name, uint64_t size_bytes, bool thick) {
  if (Status good = check_name(name); !good) return fail(good.error());
  std::string file_name = file_name_of(name);
  if (::faccessat(directory_.get(), file_name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
    return fail(Errc::already_exists, "{} is there already", path_of(name));
  // A nameless file is gone by itself when anything fails from here on.
  UniqueFd file(::openat(directory_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return create_under(file_name, file, size_bytes, thick);
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
    return failure("make a file in", path_, errno);

  std::string unfinished = std::string(name) + std::string(unfinished_suffix);
  ::unlinkat(directory_.get(), unfinished.c_str(), 0);
  file = UniqueFd(::openat(directory_.get(), unfinished.c_str(),
                           O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return failure("make a file in", path_, errno);
  auto created = create_under(file_name, file, size_bytes, thick);
  ::unlinkat(directory_.get(), unfinished.c_str(), 0);
  return created;
}

Result<std::string> DirectoryPool::create_under(const std::string& file_name, const UniqueFd& file,
                                                uint64_t size_bytes, bool thick) const {
  std::string path = path_ + "/" + file_name;
  auto size = static_cast<off_t>(size_bytes);
  if (size <= 0) return fail(Errc::size, "a LUN cannot have {} bytes", size_bytes);
  if (thick) {
    auto room = space();
    if (!room) return fail(room.error());
    if (room->free_bytes < size_bytes)
      return fail(Errc::no_space, "pool {} has {} bytes free, a thick LUN of {} does not fit",
                  path_, room->free_bytes, size_bytes);
    if (::fallocate(file.get(), 0, 0, size) != 0)
      return failure("allocate all space of", path, errno);
  } else if (::ftruncate(file.get(), size) != 0) {
    return failure("set the size of", path, errno);
  }
  if (::fsync(file.get()) != 0) return failure("write out", path, errno);
  // Unlike a rename, a link never replaces what is there.
  std::string from = fmt::format("/proc/self/fd/{}", file.get());
  if (::linkat(AT_FDCWD, from.c_str(), directory_.get(), file_name.c_str(), AT_SYMLINK_FOLLOW) != 0)
    return failure("name", path, errno);
  if (Status synced = sync(); !synced) {
    ::unlinkat(directory_.get(), file_name.c_str(), 0);
    return fail(synced.error());
  }
  return path;
}

Status DirectoryPool::remove(std::string_view name) {
  if (Status good = check_name(name); !good) return good;
  std::string file_name = file_name_of(name);
  UniqueFd file(
      ::openat(directory_.get(), file_name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return failure("open", path_of(name), errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    struct stat status {};
    ::fstat(file.get(), &status);
    return fail(Errc::in_use, "cannot delete {}: it is in use by {}", path_of(name),
                lock_holder(status.st_dev, status.st_ino));
  }
  if (::unlinkat(directory_.get(), file_name.c_str(), 0) != 0)
    return failure("delete", path_of(name), errno);
  return sync();
}

Result<DirectoryPool::Space> DirectoryPool::space() const {
  struct statvfs file_system {};
  if (::fstatvfs(directory_.get(), &file_system) != 0) return failure("examine", path_, errno);
  Space space;
  space.total_bytes = uint64_t{file_system.f_blocks} * file_system.f_frsize;
  space.free_bytes = uint64_t{file_system.f_bavail} * file_system.f_frsize;
  auto luns = entries(directory_.get(), path_, suffix);
  if (!luns) return fail(luns.error());
  for (const std::string& name : *luns) {
    struct stat status {};
    if (::fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    space.allocated_bytes += static_cast<uint64_t>(status.st_blocks) * 512;
    ++space.lun_count;
  }
  return space;
}

Result<std::vector<std::string>> DirectoryPool::names() const {
  auto found = entries(directory_.get(), path_, suffix);
  if (!found) return found;
  for (std::string& name : *found) name.resize(name.size() - suffix.size());
  return found;
}

Status DirectoryPool::sync() const {
  if (::fsync(directory_.get()) != 0) return failure("write out directory", path_, errno);
  return {};
}

}  // namespace vjbod::backstore
