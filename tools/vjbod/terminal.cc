// SPDX-License-Identifier: Apache-2.0
#include "tools/vjbod/terminal.h"

#include <cerrno>
#include <cstring>
#include <iostream>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "common/rpc/errc.h"

namespace vjbod::cli {

namespace {

// Turns the echo off for as long as it lives.
class NoEcho {
 public:
  NoEcho() {
    active_ = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!active_) return;
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
  }
  ~NoEcho() {
    if (!active_) return;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
    std::cerr << '\n';
  }
  NoEcho(const NoEcho&) = delete;
  NoEcho& operator=(const NoEcho&) = delete;

 private:
  termios before_{};
  bool active_ = false;
};

std::string first_line(std::string text) {
  text.erase(std::min(text.find_first_of("\r\n"), text.size()));
  return text;
}

}  // namespace

Result<std::string> ask_secret(std::string_view prompt) {
  if (isatty(STDIN_FILENO)) std::cerr << prompt << std::flush;
  std::string line;
  {
    NoEcho quiet;
    std::getline(std::cin, line);
  }
  line = first_line(line);
  if (line.empty()) return fail(rpc::Errc::usage, "nothing was given for \"{}\"", prompt);
  return line;
}

Result<std::string> read_secret_file(const std::string& path) {
  if (path == "-") return ask_secret("secret: ");
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(system_code(errno), "{}: {}", path, std::strerror(errno));
  struct stat about {};
  std::string text(secret_file_bytes_max + 1, '\0');
  const bool open_to_others =
      fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && (about.st_mode & 077) != 0;
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  if (open_to_others) {
    return fail(rpc::Errc::permission,
                "{} can be read by others (mode {:04o}); make it your own first: chmod 600 {}",
                path, about.st_mode & 07777, path);
  }
  if (got < 0) return fail(system_code(errno), "{}: {}", path, std::strerror(errno));
  if (static_cast<size_t>(got) > secret_file_bytes_max) {
    return fail(rpc::Errc::usage, "{} is longer than {} bytes", path, secret_file_bytes_max);
  }
  text.resize(static_cast<size_t>(got));
  text = first_line(std::move(text));
  if (text.empty()) return fail(rpc::Errc::usage, "the first line of {} is empty", path);
  return text;
}

Status confirm(const Options& options, std::string_view question) {
  if (options.yes) return {};
  if (!isatty(STDIN_FILENO)) {
    return fail(rpc::Errc::usage, "{} Not done: say --yes to go ahead without being asked",
                question);
  }
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return fail(rpc::Errc::other, "not done");
}

void show_progress(const Options& options, std::string_view step, std::string_view text) {
  if (options.progress == ProgressFormat::json) {
    std::cerr << nlohmann::ordered_json{{"step", step}, {"text", text}}.dump(
                     -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
              << std::endl;
  } else if (isatty(STDERR_FILENO)) {
    std::cerr << text << std::endl;
  }
}

}  // namespace vjbod::cli
