// SPDX-License-Identifier: Apache-2.0
// What happened, for people and programs: the last events in a ring, and everybody who watches. On
// the reactor thread of its owner.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/rpc/server_stream.h"
#include "common/runtime/clock.h"
#include "vjbod/v1/common.pb.h"

namespace vjbod::rpc {

enum class Severity { info, warning, error };

class EventLog {
 public:
  static constexpr size_t events_max = 1000;  // older ones are forgotten
  static constexpr size_t watchers_max = 64;  // one more is told that there are too many
  using Stream = std::shared_ptr<ServerStream<v1::Event>>;

  EventLog() = default;
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Also logs it. `kind`: a stable token ("paired"); `object`: what it is about ("disk1").
  void add(Severity severity, std::string_view kind, std::string_view object, std::string text,
           WallTime at);

  // Sends what is remembered, and with `follow` everything from then on; else ends the stream.
  void subscribe(const Stream& stream, bool follow);
  // From now on only.
  void watch(const Stream& stream);
  // Ends every stream, for a daemon that stops.
  void close(const Error& reason);

  const std::deque<v1::Event>& events() const { return events_; }

 private:
  std::deque<v1::Event> events_;
  std::vector<Stream> watchers_;
  uint64_t next_sequence_ = 1;
};

}  // namespace vjbod::rpc
