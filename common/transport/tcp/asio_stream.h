// SPDX-License-Identifier: Apache-2.0
// A ByteStream over a connected stream socket, on an AsioReactor. Reads and writes are plain
// non-blocking system calls; Asio only says when they are worth trying.
#pragma once

#include <memory>
#include <string>

#include "common/runtime/asio_reactor.h"
#include "common/transport/tcp/byte_stream.h"
#include "common/transport/tcp/socket.h"

namespace vjbod::transport {

class AsioStream final : public ByteStream {
 public:
  // On the reactor's thread. The socket is connected and non-blocking.
  AsioStream(AsioReactor& reactor, Socket socket);
  ~AsioStream() override;

  void set_events(ByteStreamEvents& events) override;
  IoResult read_some(Bytes first, Bytes second) override;
  IoResult write_some(std::span<const iovec> pieces) override;
  void wait_readable() override;
  void wait_writable() override;
  void shutdown_send() override;
  void close() override;
  std::string peer() const override { return peer_; }
  std::string local() const override { return local_; }

 private:
  struct State;  // shared with the waits that are pending, which Asio delivers even after a close

  std::shared_ptr<State> state_;
  const std::string peer_, local_;
};

}  // namespace vjbod::transport
