// SPDX-License-Identifier: Apache-2.0
// Process signals as events of a reactor, through a signalfd: no handler runs between two
// instructions of anybody. Block them first thing in main, before any thread exists, so that every
// thread inherits it.
#pragma once

#include <csignal>
#include <functional>
#include <initializer_list>
#include <memory>

#include "common/base/unique_fd.h"
#include "common/runtime/reactor.h"

namespace vjbod {

// SIGPIPE is ignored too: a closed connection is an error of a call, not of the process.
void block_signals(std::initializer_list<int> signals);

// Owner: a daemon's composition root. On the reactor's thread. The signals must be blocked.
class SignalWatch {
 public:
  SignalWatch(Reactor& reactor, std::initializer_list<int> signals,
              std::function<void(int signal)> on_signal);

 private:
  UniqueFd fd_;
  std::function<void(int)> on_signal_;
  std::unique_ptr<FdWatch> watch_;
};

}  // namespace vjbod
