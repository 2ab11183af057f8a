// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/packet_probe.h"

#include <memory>
#include <utility>

#include "common/net/echo.h"

namespace vjbod::initiator {

namespace {

constexpr Duration answer_time = std::chrono::seconds(1);
constexpr uint32_t small_bytes =
    576;  // every way carries that (RFC 791), and IPv6's minimum is 1280
constexpr uint16_t packets_of_each = 3;  // one may get lost by itself

// Keeps itself alive until it is over.
class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(Reactor& reactor, net::Echo echo, const PacketProbe& probe,
      std::function<void(const PacketProbeResult&)> done)
      : reactor_(reactor),
        echo_(std::move(echo)),
        full_bytes_(probe.full_bytes),
        done_(std::move(done)),
        timer_(reactor, [this] { finish(); }) {}

  void start() {
    self_ = shared_from_this();
    timer_.arm_after(answer_time);
    news_ = reactor_.watch_readable(echo_.fd(), [this] { read(); });
    for (uint16_t i = 0; i < packets_of_each; ++i) {
      (void)echo_.send(i, small_bytes);
      (void)echo_.send(static_cast<uint16_t>(packets_of_each + i), full_bytes_);
    }
  }

 private:
  void read() {
    while (const auto answer = echo_.read()) {
      if (answer->packet_bytes == full_bytes_) result_.full = true;
      if (answer->packet_bytes == small_bytes) result_.small = true;
    }
    if (result_.full && result_.small) finish();
  }
  void finish() {
    auto done = std::exchange(done_, nullptr);
    if (!done) return;
    timer_.cancel();
    done(result_);
    // Not from inside the watch or the timer, which belong to this object.
    reactor_.post([self = std::move(self_)]() mutable { self.reset(); });
  }

  Reactor& reactor_;
  net::Echo echo_;
  const uint32_t full_bytes_;
  std::function<void(const PacketProbeResult&)> done_;
  PacketProbeResult result_;
  Timer timer_;
  std::unique_ptr<FdWatch> news_;
  std::shared_ptr<Run> self_;
};

}  // namespace

void probe_packets(Reactor& reactor, const PacketProbe& probe,
                   std::function<void(const PacketProbeResult&)> done) {
  auto echo = net::Echo::open(probe.remote_address, probe.host_address, probe.host_interface);
  if (!echo) {
    PacketProbeResult result;
    result.not_tried = echo.error().text;
    return done(result);
  }
  std::make_shared<Run>(reactor, std::move(*echo), probe, std::move(done))->start();
}

}  // namespace vjbod::initiator
