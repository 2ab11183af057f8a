// SPDX-License-Identifier: Apache-2.0
// The transmission phase of one NBD connection without its socket: received bytes become requests
// to the disk, the disk's answers become bytes to send. The connection asks where to receive to and
// what to send; payload goes between the socket and the request's own buffer without another copy,
// except for small writes, many of which arrive in one receive.
//
// A client's request is cut into pieces, each with its own buffer and its own request to the disk.
// Requests are taken in order: the one that cannot be taken for lack of a slot or of memory stops
// the reading until others have finished. Since memory is the connection's own, something that will
// be finished is always under way then, and the largest request fits: nothing can block for ever.
// On the connection's thread.
#pragma once

#include <memory>
#include <string_view>

#include <sys/uio.h>

#include "common/runtime/buffer_pool.h"
#include "initiator/frontend/device_port.h"
#include "initiator/frontend/nbd_rules.h"

namespace vjbod::initiator::nbd {

class Transmission final : public DevicePortOwner {
 public:
  // Requests of one connection that are under way at the same time; more wait in the socket.
  static constexpr size_t requests_max = 128;
  // Each request has at least one piece; the rest is for large ones.
  static constexpr size_t piece_bytes_max = BufferPool::slab_bytes_max;
  // Of a write, or of a read whose pieces may go out as they come: small enough that one piece is
  // on its way to the disk or the client, and still in the cache, while the next is received.
  static constexpr size_t streamed_piece_bytes_max = size_t{256} << 10;
  static constexpr size_t pieces_max = requests_max + 2 * payload_bytes_max / piece_bytes_max;
  // Payload of one connection in memory: two of the largest requests.
  static constexpr size_t memory_bytes_max = 2 * size_t{payload_bytes_max};
  // Taken from the socket in one go, where requests and small payloads wait to be looked at.
  static constexpr size_t staging_bytes = size_t{256} << 10;
  // After a write larger than this, only the next header is received into the staging memory,
  // because its payload will likely be large too and should not be copied.
  static constexpr uint32_t copied_payload_bytes_max = 64 << 10;

  // `progress` is deferred on `reactor` whenever there is something to send or room again: then
  // call gather() and resume().
  Transmission(const BlockGeometry& geometry, bool structured_replies, Reactor& reactor,
               Deferred& progress);
  ~Transmission();  // idle() must hold

  // Before anything is received. The port must outlive the last request.
  void set_port(DevicePort& port) { port_ = &port; }

  // --- socket to disk ---
  // What came in behind the handshake; at most staging_bytes.
  void received_early(ConstBytes bytes);
  // Where to receive to: fills in `into` and returns how many are used; 0: do not receive now.
  size_t receive_targets(std::span<iovec, 2> into);
  // So many bytes were received to these places.
  void received(size_t bytes);
  // Goes on with what had to wait. True when more can be received.
  bool resume();
  // The client sends nothing more. What it has sent whole is still done and answered.
  void end_input();
  // As end_input(), and requests that wait for room are given up.
  void stop();
  bool input_ended() const { return input_ended_; }
  // Not empty: the client broke the protocol, a sentence; input has ended.
  std::string_view violation() const { return violation_; }

  // --- disk to socket ---
  // What to send next; fills in and returns how many are used.
  size_t gather(std::span<iovec> parts) const;
  void sent(size_t bytes);
  // Nobody listens any more: replies, queued ones and later ones, are dropped.
  void drop_replies();

  void on_port_done(PortRequest& request, int errno_value) override;

  // No request is under way and nothing is to be sent.
  bool idle() const { return requests_free_count_ == requests_max; }
  size_t requests_under_way() const { return requests_max - requests_free_count_; }
  uint64_t requests_taken() const { return requests_taken_; }
  // Gives back all memory that is not in use.
  void release_memory();
  size_t memory_bytes() const { return pool_.held_bytes(); }

 private:
  struct Request;
  struct Piece;
  struct PieceQueue {  // singly linked through Piece::next
    Piece* first = nullptr;
    Piece* last = nullptr;
    bool empty() const { return first == nullptr; }
    void push(Piece& piece);
    Piece& pop();
  };

  void process();
  bool begin(const RequestHeader& header);
  void refuse(Request& request, WireError error, std::string_view reason);
  void submit_plain(Request& request);
  bool issue_read();
  bool fill_write();
  bool skip_payload();
  void abandon(Request& request, WireError error);

  Request& take_request(const RequestHeader& header);
  Piece* take_piece(Request& request, size_t buffer_bytes);
  void submit(Piece& piece, size_t length_bytes);
  void free_piece(Piece& piece);
  void free_request_if_over(Request& request);
  void piece_done(Piece& piece);
  void finish_whole(Request& request, Piece& last);
  void queue_error(Piece& piece);
  void queue(Piece& piece);

  size_t staged() const { return staged_end_ - staged_begin_; }
  void unstage(size_t bytes) { staged_begin_ += bytes; }
  bool make_staging();

  const BlockGeometry geometry_;
  const bool structured_;
  Reactor& reactor_;
  Deferred& progress_;
  DevicePort* port_ = nullptr;

  BufferPool pool_;  // the staging memory and all pieces' buffers
  std::unique_ptr<Request[]> requests_;
  std::unique_ptr<Piece[]> pieces_;
  Request* requests_free_ = nullptr;
  size_t requests_free_count_ = requests_max;
  Piece* pieces_free_ = nullptr;
  uint64_t requests_taken_ = 0;

  Buffer staging_;
  size_t staged_begin_ = 0;
  size_t staged_end_ = 0;
  // At most one of these is set; it must be through before the next request is looked at.
  Request* reading_ = nullptr;   // pieces left to submit
  Request* writing_ = nullptr;   // payload left to receive
  Request* skipping_ = nullptr;  // refused write whose payload is still to come
  Piece* filling_ = nullptr;     // the piece of writing_ that is being received
  bool waits_for_room_ = false;
  bool expect_large_ = false;
  bool input_ended_ = false;
  std::string_view violation_;

  PieceQueue to_send_;
  size_t sent_of_first_ = 0;  // bytes of to_send_.first that are out
  bool replies_dropped_ = false;
};

}  // namespace vjbod::initiator::nbd
