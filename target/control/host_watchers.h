// SPDX-License-Identifier: Apache-2.0
// The Watch calls of paired hosts: each hears of its own LUNs and of nothing else. On the control
// reactor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/rpc/server_stream.h"
#include "vjbod/v1/common.pb.h"

namespace vjbod::target {

class HostWatchers {
 public:
  static constexpr size_t per_host_max = 4;  // the oldest makes way for a new one
  using Stream = std::shared_ptr<rpc::ServerStream<v1::Event>>;

  // The first event is "watching": from then on nothing is missed.
  void watch(const std::string& host, const Stream& stream);
  void notify(const std::string& host, std::string_view kind, std::string_view object,
              std::string text);
  void notify_all(std::string_view kind, std::string_view object, const std::string& text);
  bool watching(const std::string& host) const;
  // Ends the streams of a host, or of all hosts.
  void close(const std::string& host, const Error& reason);
  void close_all(const Error& reason);

 private:
  struct Watcher {
    std::string host;
    Stream stream;
  };
  v1::Event make_event(std::string_view kind, std::string_view object, std::string text);

  std::vector<Watcher> watchers_;  // oldest first
  uint64_t next_sequence_ = 1;
};

}  // namespace vjbod::target
