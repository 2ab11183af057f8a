// SPDX-License-Identifier: Apache-2.0
// An NBD client: whatever it sends, in whatever cuts, every request that was taken is answered
// exactly once, memory stays bounded, and nothing is left when the client and the disk are done.
// The first two bytes of the input choose the disk's behaviour and the cuts.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/runtime/manual_reactor.h"
#include "initiator/frontend/nbd_handshake.h"
#include "initiator/frontend/nbd_transmission.h"
#include "tests/support/memory_block_device.h"

using namespace vjbod;
using namespace vjbod::initiator;
using namespace vjbod::initiator::nbd;

namespace {

// Just large enough for a request of more than one piece.
constexpr uint64_t disk_bytes = Transmission::streamed_piece_bytes_max + (8 << 10);
constexpr size_t handshake_output_max = 64 << 10;

// The connection's part, without a socket.
class Server final : public Deferred {
 public:
  Server(ConstBytes from_client, Random cuts, uint8_t behaviour)
      : input_(from_client),
        cuts_(cuts),
        device_(reactor_, test::full_geometry(disk_bytes)),
        slow_disk_((behaviour & 1) != 0),
        failing_disk_((behaviour & 2) != 0),
        vanishing_client_((behaviour & 4) != 0) {}

  void run() {
    if (!shake_hands()) return;
    transmission_.emplace(handshake_->geometry(), handshake_->structured_replies(), reactor_,
                          *this);
    port_.emplace(device_, *transmission_);
    transmission_->set_port(*port_);
    const size_t early = std::min<size_t>(input_.size(), cuts_.below(100));
    transmission_->received_early(input_.first(early));
    input_ = input_.subspan(early);
    if (slow_disk_) device_.hold();
    receive();
    reactor_.run_until_idle();
    if (vanishing_client_) {
      transmission_->stop();
      transmission_->drop_replies();
    }
    device_.release(failing_disk_ ? EIO : 0);
    reactor_.run_until_idle();
    transmission_->end_input();
    reactor_.run_until_idle();
    VJBOD_CHECK(transmission_->idle());
    if (handshake_->structured_replies() && !vanishing_client_) {
      VJBOD_CHECK(answers() == transmission_->requests_taken());
    }
    transmission_->release_memory();
    VJBOD_CHECK(transmission_->memory_bytes() <= Transmission::staging_bytes);
  }

 private:
  bool shake_hands() {
    handshake_.emplace(Export{"disk0", "fuzzed"});
    handshake_->set_geometry(device_.geometry());
    std::vector<std::byte> pending;
    for (;;) {
      handshake_->output().clear();
      const size_t taken = handshake_->consume(pending);
      VJBOD_CHECK(taken <= pending.size() && handshake_->output().size() < handshake_output_max);
      pending.erase(pending.begin(), pending.begin() + static_cast<ptrdiff_t>(taken));
      if (handshake_->phase() == Handshake::Phase::closed) return false;
      if (handshake_->phase() == Handshake::Phase::transmission) break;
      if (taken > 0) continue;
      VJBOD_CHECK(pending.size() < Handshake::input_bytes_max);
      const size_t more = std::min<size_t>(
          {input_.size(), 1 + cuts_.below(300), Handshake::input_bytes_max - pending.size()});
      if (more == 0) return false;
      pending.insert(pending.end(), input_.begin(), input_.begin() + static_cast<ptrdiff_t>(more));
      input_ = input_.subspan(more);
    }
    // Give back what was taken beyond the handshake.
    rest_.assign(pending.begin(), pending.end());
    rest_.insert(rest_.end(), input_.begin(), input_.end());
    input_ = rest_;
    return true;
  }

  void receive() {
    std::array<iovec, 2> targets;
    while (!input_.empty()) {
      const size_t count = transmission_->receive_targets(targets);
      if (count == 0) return;
      const size_t wanted = 1 + cuts_.below(5000);
      size_t moved = 0;
      for (size_t t = 0; t < count; ++t) {
        const size_t bytes = std::min({targets[t].iov_len, input_.size() - moved, wanted - moved});
        std::memcpy(targets[t].iov_base, input_.data() + moved, bytes);
        moved += bytes;
      }
      input_ = input_.subspan(moved);
      transmission_->received(moved);
      VJBOD_CHECK(transmission_->memory_bytes() <=
                  Transmission::memory_bytes_max + Transmission::staging_bytes);
    }
  }

  void run_deferred() override {
    std::array<iovec, 8> parts;
    size_t count = 0;
    while ((count = transmission_->gather(parts)) > 0) {
      size_t left = 1 + cuts_.below(100000);
      size_t moved = 0;
      for (size_t p = 0; p < count && left > 0; ++p) {
        const size_t bytes = std::min(parts[p].iov_len, left);
        const auto* from = static_cast<const std::byte*>(parts[p].iov_base);
        output_.insert(output_.end(), from, from + bytes);
        left -= bytes;
        moved += bytes;
      }
      transmission_->sent(moved);
    }
    if (transmission_->resume()) receive();
  }

  uint64_t answers() const {
    uint64_t count = 0;
    ByteReader reader{ConstBytes(output_)};
    while (reader.remaining() > 0) {
      const uint32_t magic = reader.u32();
      if (magic == simple_reply_magic) {
        reader.skip(simple_reply_bytes - sizeof magic);
        ++count;
        continue;
      }
      VJBOD_CHECK(magic == structured_reply_magic);
      if ((reader.u16() & 1) != 0) ++count;
      reader.skip(sizeof(uint16_t) + sizeof(uint64_t));
      reader.skip(reader.u32());
    }
    VJBOD_CHECK(reader.ok());
    return count;
  }

  ConstBytes input_;
  std::vector<std::byte> rest_;
  Random cuts_;
  ManualReactor reactor_;
  test::MemoryBlockDevice device_;
  const bool slow_disk_;
  const bool failing_disk_;
  const bool vanishing_client_;
  std::optional<Handshake> handshake_;
  std::optional<Transmission> transmission_;
  std::optional<DevicePort> port_;
  std::vector<std::byte> output_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const ConstBytes stream(reinterpret_cast<const std::byte*>(data + 2), size - 2);
  Server(stream, Random(data[1]), data[0]).run();
  return 0;
}
