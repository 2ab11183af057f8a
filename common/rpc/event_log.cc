// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/event_log.h"

#include "common/base/log.h"
#include "common/rpc/timestamp.h"

namespace vjbod::rpc {

namespace {

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::info: return "info";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "info";
}

LogLevel log_level(Severity severity) {
  switch (severity) {
    case Severity::info: return LogLevel::info;
    case Severity::warning: return LogLevel::warn;
    case Severity::error: return LogLevel::error;
  }
  return LogLevel::info;
}

}  // namespace

void EventLog::add(Severity severity, std::string_view kind, std::string_view object,
                   std::string text, WallTime at) {
  log::write(log_level(severity), {}, "[{}] {}: {}", fmt::make_format_args(object, kind, text));
  v1::Event event;
  event.set_sequence(next_sequence_++);
  *event.mutable_at() = to_timestamp(at);
  event.set_kind(std::string(kind));
  event.set_severity(name_of(severity));
  event.set_object(std::string(object));
  event.set_text(std::move(text));
  std::erase_if(watchers_, [&](const Stream& watcher) { return !watcher->write(event); });
  events_.push_back(std::move(event));
  if (events_.size() > events_max) events_.pop_front();
}

void EventLog::subscribe(const Stream& stream, bool follow) {
  for (const v1::Event& event : events_) stream->write(event);
  if (follow)
    watch(stream);
  else
    stream->finish(grpc::Status::OK);
}

void EventLog::watch(const Stream& stream) {
  std::erase_if(watchers_, [](const Stream& watcher) { return watcher->closed(); });
  if (watchers_.size() >= watchers_max) {
    stream->finish(to_grpc_status(Error{
        Errc::busy, fmt::format("{} others watch already, which is the limit; try again later",
                                watchers_max)}));
    return;
  }
  watchers_.push_back(stream);
}

void EventLog::close(const Error& reason) {
  for (const Stream& watcher : watchers_) watcher->finish(to_grpc_status(reason));
  watchers_.clear();
}

}  // namespace vjbod::rpc
