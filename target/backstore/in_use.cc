// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/in_use.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace vjbod::backstore {

namespace {

// 0 when the kernel does not tell.
pid_t locking_process(dev_t device, ino_t inode) {
  // proc(5), /proc/locks: "1: FLOCK ADVISORY WRITE 1234 fe:00:56 0 EOF"
  std::string wanted = fmt::format("{:02x}:{:02x}:{}", major(device), minor(device), inode);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream fields(line);
    std::string number, type, advisory, access, place;
    pid_t process = 0;
    fields >> number >> type >> advisory >> access >> process >> place;
    if (type == "FLOCK" && place == wanted && process > 0) return process;
  }
  return 0;
}

// Empty when there is no such process.
std::string process_name(pid_t process) {
  std::string name;
  std::ifstream file(fmt::format("/proc/{}/comm", process));
  std::getline(file, name);
  return name;
}

}  // namespace

bool locked_by_living(dev_t device, ino_t inode) {
  pid_t process = locking_process(device, inode);
  return process != 0 && !process_name(process).empty();
}

std::string lock_holder(dev_t device, ino_t inode) {
  pid_t process = locking_process(device, inode);
  if (process == 0) return "another process";
  if (process == ::getpid()) return fmt::format("this daemon (process {})", process);
  std::string name = process_name(process);
  if (name.empty()) return fmt::format("process {}, which has ended but is not finished", process);
  return fmt::format("{} (process {})", name, process);
}

std::string device_user(dev_t device) {
  std::string wanted = fmt::format("{}:{}", major(device), minor(device));
  // proc(5), /proc/PID/mountinfo: id, parent, major:minor, root, mount point, …
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string id, parent, numbers, root, mount_point;
    fields >> id >> parent >> numbers >> root >> mount_point;
    if (numbers == wanted) return fmt::format("mounted on {}", mount_point);
  }
  std::string holders;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(
           fmt::format("/sys/dev/block/{}/holders", wanted), ignored)) {
    holders += holders.empty() ? "used by " : ", ";
    holders += entry.path().filename().string();
  }
  return holders;
}

}  // namespace vjbod::backstore
