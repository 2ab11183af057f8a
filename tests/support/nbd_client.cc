// SPDX-License-Identifier: Apache-2.0
#include "tests/support/nbd_client.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace vjbod::test {

using namespace initiator::nbd;

NbdClient::NbdClient(const std::string& path) {
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval timeout{20, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

NbdClient::~NbdClient() {
  close();
}

void NbdClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool NbdClient::eventually_taken() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end) {
    int unread_bytes = 0;
    if (ioctl(fd_, SIOCOUTQ, &unread_bytes) == 0 && unread_bytes == 0) return true;
    std::this_thread::yield();
  }
  return false;
}

void NbdClient::end_sending() {
  shutdown(fd_, SHUT_WR);
}

bool NbdClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::optional<std::string> NbdClient::receive(size_t bytes) {
  std::string text(bytes, '\0');
  size_t got = 0;
  while (got < bytes) {
    const ssize_t received = recv(fd_, text.data() + got, bytes - got, 0);
    if (received <= 0) return std::nullopt;
    got += static_cast<size_t>(received);
  }
  return text;
}

bool NbdClient::closed_by_server() {
  std::array<char, 4096> thrown_away;
  for (;;) {
    const ssize_t received = recv(fd_, thrown_away.data(), thrown_away.size(), 0);
    if (received == 0 || (received < 0 && errno == ECONNRESET)) return true;
    if (received < 0) return false;
  }
}

bool NbdClient::greet() {
  const auto greeting = receive(greeting_bytes);
  return greeting && *greeting == as_text(encode_greeting()) &&
         send(std::string_view("\0\0\0\3", 4));
}

void NbdClient::send_option(Option option, std::string_view data) {
  send(as_text(encode_option_header({option, static_cast<uint32_t>(data.size())})));
  send(data);
}

void NbdClient::send_go() {
  send_option(Option::go, std::string_view("\0\0\0\0\0\0", 6));
}

std::optional<NbdClient::Chosen> NbdClient::receive_go() {
  Chosen chosen;
  for (;;) {
    const auto header = receive(option_reply_header_bytes);
    if (!header) return std::nullopt;
    const auto reply =
        decode_option_reply_header(as_bytes(*header).first<option_reply_header_bytes>());
    const auto data = receive(reply->length_bytes);
    if (!data) return std::nullopt;
    if (reply->type == OptionReply::info) {
      ByteReader reader(as_bytes(*data));
      if (static_cast<Info>(reader.u16()) == Info::export_) {
        chosen.size_bytes = reader.u64();
        chosen.flags = reader.u16();
      }
      continue;
    }
    chosen.result = reply->type;
    chosen.message = *data;
    return chosen;
  }
}

std::optional<NbdClient::Chosen> NbdClient::handshake() {
  if (!greet()) return std::nullopt;
  send_option(Option::structured_reply);
  if (!receive(option_reply_header_bytes)) return std::nullopt;
  send_go();
  return receive_go();
}

uint64_t NbdClient::send_request(Command command, uint64_t offset, uint32_t length, uint16_t flags,
                                 std::string_view payload) {
  const uint64_t cookie = next_cookie_++;
  if (command == Command::read) reader_.expect_read(cookie, {offset, length});
  send(as_text(encode_request({flags, command, cookie, offset, length})));
  send(payload);
  return cookie;
}

std::optional<NbdReply> NbdClient::receive_reply() {
  std::array<char, 65536> bytes;
  while (reader_.replies.empty()) {
    const ssize_t received = recv(fd_, bytes.data(), bytes.size(), 0);
    if (received <= 0) return std::nullopt;
    if (!reader_.feed({bytes.data(), static_cast<size_t>(received)})) return std::nullopt;
  }
  NbdReply reply = std::move(reader_.replies.front());
  reader_.replies.erase(reader_.replies.begin());
  return reply;
}

}  // namespace vjbod::test
