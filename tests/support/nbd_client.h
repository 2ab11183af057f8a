// SPDX-License-Identifier: Apache-2.0
// A plain blocking NBD client for tests, able to misbehave.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tests/support/nbd_replies.h"

namespace vjbod::test {

class NbdClient {
 public:
  explicit NbdClient(const std::string& path);
  ~NbdClient();
  NbdClient(const NbdClient&) = delete;
  NbdClient& operator=(const NbdClient&) = delete;

  bool connected() const { return connected_; }
  bool send(std::string_view bytes);
  // Exactly so many bytes; nothing when the server closes first or does not answer in 20 s.
  std::optional<std::string> receive(size_t bytes);
  // The server has closed, at once or within 20 s; what it sends before is thrown away.
  bool closed_by_server();
  // The server has received everything sent so far; false when it has not within 20 s.
  bool eventually_taken();
  void close();
  void end_sending();

  // Greeting and client flags.
  bool greet();
  struct Chosen {
    initiator::nbd::OptionReply result{};
    std::string message;
    uint64_t size_bytes = 0;
    uint16_t flags = 0;
  };
  void send_option(initiator::nbd::Option option, std::string_view data = {});
  // Sends GO (answered by receive_go()).
  void send_go();
  std::optional<Chosen> receive_go();
  // All of the above, with structured replies.
  std::optional<Chosen> handshake();

  uint64_t send_request(initiator::nbd::Command command, uint64_t offset, uint32_t length,
                        uint16_t flags = 0, std::string_view payload = {});
  // The next reply to end.
  std::optional<NbdReply> receive_reply();

 private:
  int fd_ = -1;
  bool connected_ = false;
  uint64_t next_cookie_ = 1;
  NbdReplyReader reader_;
};

}  // namespace vjbod::test
