// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/discovery.h"

#include <utility>

#include "common/iscsi/errc.h"
#include "common/iscsi/name.h"
#include "common/iscsi/text.h"

namespace vjbod::initiator {

using iscsi::Errc;

Result<std::vector<DiscoveredTarget>> parse_send_targets(std::string_view text) {
  std::vector<DiscoveredTarget> targets;
  if (text.empty()) return targets;
  if (text.back() != '\0') return fail(Errc::bad_text, "The list of targets is cut short.");
  while (!text.empty()) {
    const size_t end = text.find('\0');
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (pair.empty()) continue;  // padding
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos)
      return fail(Errc::bad_text, "The list of targets holds '{}', which is no pair.",
                  iscsi::printable(pair));
    const std::string_view key = pair.substr(0, equals);
    const std::string_view value = pair.substr(equals + 1);
    if (key == "TargetName") {
      if (auto name = iscsi::normalised_name(value); !name) return fail(std::move(name).error());
      if (targets.size() == discovered_targets_max)
        return fail(Errc::text_too_long, "The portal has more than {} targets.",
                    discovered_targets_max);
      targets.push_back({std::string(value), {}});
    } else if (key == "TargetAddress") {
      if (targets.empty())
        return fail(Errc::bad_text, "The list of targets begins with an address.");
      std::vector<std::string>& addresses = targets.back().addresses;
      if (addresses.size() < discovered_addresses_max) addresses.push_back(iscsi::printable(value));
    }
    // Other keys are for others.
  }
  return targets;
}

Discovery::Discovery(Reactor& reactor, const Connectors& connectors, const PathCandidate& portal,
                     SessionConfig session, Done done)
    : reactor_(reactor),
      connectors_(connectors),
      portal_(portal),
      config_(std::move(session)),
      done_(std::move(done)),
      result_(fail(Errc::connection_lost, "The portal gave no answer.")) {
  config_.target_name.clear();
}

Discovery::~Discovery() = default;

void Discovery::start() {
  transport::Connector* connector = connectors_.of(portal_.kind);
  if (connector == nullptr) {
    result_ = fail(Errc::connection_lost, "{} is not available on this host.",
                   transport::name_of(portal_.kind));
    over_ = true;
    return reactor_.defer(*this);
  }
  attempt_ = connector->connect(
      portal_.endpoint, config_.timers.connect_timeout,
      [this](Result<std::unique_ptr<transport::DataMover>> mover) {
        if (!mover) {
          result_ = fail(std::move(mover).error());
          over_ = true;
          return reactor_.defer(*this);
        }
        SessionEvents& events = *this;
        session_ = std::make_unique<Session>(
            reactor_, std::move(*mover), config_, 1,
            fmt::format("discovery {}", transport::text_of(portal_.endpoint)), events);
        session_->start();
      });
}

void Discovery::cancel() {
  if (session_) return session_->abort({Errc::closed_locally, "The discovery was cancelled."});
  attempt_.reset();
  result_ = fail(Errc::closed_locally, "The discovery was cancelled.");
  over_ = true;
  reactor_.defer(*this);
}

void Discovery::on_logged_in() {
  iscsi::TextBuilder text;
  text.add("SendTargets", "All");
  session_->send_text(text.take(), [this](Result<std::string> answer) {
    if (answer)
      result_ = parse_send_targets(*answer);
    else
      result_ = fail(std::move(answer).error());
    over_ = true;
    session_->close({Errc::closed_locally, "The discovery is over."});
  });
}

void Discovery::on_session_closed(const Error& reason, bool) {
  if (!over_) result_ = fail(reason);
  over_ = true;
  reactor_.defer(*this);
}

// Outside of the session's upcall, which is what may be destroyed now.
void Discovery::run_deferred() {
  session_.reset();
  attempt_.reset();
  Done done = std::exchange(done_, nullptr);
  if (done) done(std::move(result_));  // this object may be gone now
}

}  // namespace vjbod::initiator
