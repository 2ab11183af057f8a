// SPDX-License-Identifier: Apache-2.0
#include "target/control/host_watchers.h"

#include <algorithm>

#include "common/rpc/timestamp.h"
#include "common/runtime/wall_clock.h"

namespace vjbod::target {

void HostWatchers::watch(const std::string& host, const Stream& stream) {
  std::erase_if(watchers_, [](const Watcher& watcher) { return watcher.stream->closed(); });
  auto of_host = [&](const Watcher& watcher) { return watcher.host == host; };
  if (std::count_if(watchers_.begin(), watchers_.end(), of_host) >=
      static_cast<std::ptrdiff_t>(per_host_max)) {
    auto oldest = std::find_if(watchers_.begin(), watchers_.end(), of_host);
    oldest->stream->finish(rpc::to_grpc_status(
        Error{rpc::Errc::other, "a newer Watch call took the place of this one"}));
    watchers_.erase(oldest);
  }
  if (stream->write(make_event("watching", host, ""))) watchers_.push_back({host, stream});
}

void HostWatchers::notify(const std::string& host, std::string_view kind, std::string_view object,
                          std::string text) {
  v1::Event event = make_event(kind, object, std::move(text));
  std::erase_if(watchers_, [&](const Watcher& watcher) {
    return watcher.host == host && !watcher.stream->write(event);
  });
}

void HostWatchers::notify_all(std::string_view kind, std::string_view object,
                              const std::string& text) {
  v1::Event event = make_event(kind, object, text);
  std::erase_if(watchers_, [&](const Watcher& watcher) { return !watcher.stream->write(event); });
}

bool HostWatchers::watching(const std::string& host) const {
  return std::any_of(watchers_.begin(), watchers_.end(), [&](const Watcher& watcher) {
    return watcher.host == host && !watcher.stream->closed();
  });
}

void HostWatchers::close(const std::string& host, const Error& reason) {
  std::erase_if(watchers_, [&](const Watcher& watcher) {
    if (watcher.host != host) return false;
    watcher.stream->finish(rpc::to_grpc_status(reason));
    return true;
  });
}

void HostWatchers::close_all(const Error& reason) {
  for (const Watcher& watcher : watchers_) watcher.stream->finish(rpc::to_grpc_status(reason));
  watchers_.clear();
}

v1::Event HostWatchers::make_event(std::string_view kind, std::string_view object,
                                   std::string text) {
  v1::Event event;
  event.set_sequence(next_sequence_++);
  *event.mutable_at() = rpc::to_timestamp(wall_now());
  event.set_kind(std::string(kind));
  event.set_severity("info");
  event.set_object(std::string(object));
  event.set_text(std::move(text));
  return event;
}

}  // namespace vjbod::target
