// SPDX-License-Identifier: Apache-2.0
// Connectors and listeners of memory movers: a network within one reactor, whose connections can be
// refused, left hanging, delayed or severed. Owned by a test or a simulation; outlives everything
// made with it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/reactor.h"
#include "common/transport/connector.h"
#include "common/transport/memory/memory_data_mover.h"

namespace vjbod::transport {

class MemoryNetwork {
 public:
  using Accepted = std::function<void(std::unique_ptr<DataMover>)>;
  enum class Answer { accept, refuse, hang };  // hang: neither yes nor no until the deadline

  explicit MemoryNetwork(Reactor& reactor) : reactor_(reactor) {}
  MemoryNetwork(const MemoryNetwork&) = delete;
  MemoryNetwork& operator=(const MemoryNetwork&) = delete;

  // An error when the address is taken.
  Result<std::unique_ptr<Listener>> listen(const std::string& address, uint16_t port,
                                           Accepted accepted);
  std::unique_ptr<Connector> make_connector();

  // What connections made from now on are like.
  void set_answer(Answer answer) { answer_ = answer; }
  void set_connect_time(Duration time) { connect_time_ = time; }
  void set_link_options(const MemoryLinkOptions& options) { link_options_ = options; }
  // The links that somebody still uses, oldest first.
  std::vector<std::shared_ptr<MemoryLink>> links();

 private:
  friend class MemoryListener;
  friend class MemoryConnectAttempt;
  Result<std::unique_ptr<DataMover>> connect(const Endpoint& to);

  Reactor& reactor_;
  std::map<std::string, Accepted> listeners_;  // by text_of(endpoint)
  Answer answer_ = Answer::accept;
  Duration connect_time_{0};
  MemoryLinkOptions link_options_;
  std::vector<std::weak_ptr<MemoryLink>> links_;
  uint64_t connections_ = 0;
};

}  // namespace vjbod::transport
