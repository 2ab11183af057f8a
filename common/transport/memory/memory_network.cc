// SPDX-License-Identifier: Apache-2.0
#include "common/transport/memory/memory_network.h"

#include <utility>

#include "common/iscsi/errc.h"

namespace vjbod::transport {

class MemoryListener final : public Listener {
 public:
  MemoryListener(MemoryNetwork& network, std::string local)
      : network_(network), local_(std::move(local)) {}
  ~MemoryListener() override { network_.listeners_.erase(local_); }
  std::string local() const override { return local_; }

 private:
  MemoryNetwork& network_;
  const std::string local_;
};

class MemoryConnectAttempt final : public ConnectAttempt {
 public:
  MemoryConnectAttempt(MemoryNetwork& network, Endpoint to, Duration timeout, Connector::Done done)
      : network_(network),
        to_(std::move(to)),
        done_(std::move(done)),
        timer_(network.reactor_, [this] { finish(); }) {
    hangs_ = network.answer_ == MemoryNetwork::Answer::hang || network.connect_time_ > timeout;
    timer_.arm_after(hangs_ ? timeout : network.connect_time_);
  }

 private:
  void finish() {
    Connector::Done done = std::exchange(done_, nullptr);
    if (hangs_) {
      done(fail(iscsi::Errc::timed_out, "No answer from {} in time.", text_of(to_)));
    } else {
      done(network_.connect(to_));  // this object may be gone now
    }
  }

  MemoryNetwork& network_;
  const Endpoint to_;
  Connector::Done done_;
  bool hangs_ = false;
  Timer timer_;
};

namespace {

class MemoryConnector final : public Connector {
 public:
  explicit MemoryConnector(MemoryNetwork& network) : network_(network) {}
  std::unique_ptr<ConnectAttempt> connect(const Endpoint& to, Duration timeout,
                                          Done done) override {
    return std::make_unique<MemoryConnectAttempt>(network_, to, timeout, std::move(done));
  }

 private:
  MemoryNetwork& network_;
};

}  // namespace

Result<std::unique_ptr<Listener>> MemoryNetwork::listen(const std::string& address, uint16_t port,
                                                        Accepted accepted) {
  Endpoint endpoint;
  endpoint.address = address;
  endpoint.port = port;
  const std::string local = text_of(endpoint);
  if (!listeners_.emplace(local, std::move(accepted)).second)
    return fail(system_code(EADDRINUSE), "{} is in use.", local);
  return std::make_unique<MemoryListener>(*this, local);
}

std::unique_ptr<Connector> MemoryNetwork::make_connector() {
  return std::make_unique<MemoryConnector>(*this);
}

Result<std::unique_ptr<DataMover>> MemoryNetwork::connect(const Endpoint& to) {
  const std::string remote = text_of(to);
  auto listener = listeners_.find(remote);
  if (answer_ == Answer::refuse || listener == listeners_.end())
    return fail(system_code(ECONNREFUSED), "{} refused the connection.", remote);
  const std::string source = to.source_address.empty() ? "memory" : to.source_address;
  MemoryPair pair = make_memory_pair(reactor_, link_options_,
                                     fmt::format("{}:{}", source, ++connections_), remote);
  std::erase_if(links_, [](const std::weak_ptr<MemoryLink>& link) { return link.expired(); });
  links_.push_back(pair.link);
  const Accepted accepted = listener->second;  // it may close its listener
  accepted(std::move(pair.target));
  return std::move(pair.initiator);
}

std::vector<std::shared_ptr<MemoryLink>> MemoryNetwork::links() {
  std::vector<std::shared_ptr<MemoryLink>> result;
  for (const auto& link : links_)
    if (auto alive = link.lock()) result.push_back(std::move(alive));
  return result;
}

}  // namespace vjbod::transport
