// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/signals.h"

#include <utility>

#include <pthread.h>
#include <sys/signalfd.h>

#include "common/base/check.h"

namespace vjbod {

namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

void block_signals(std::initializer_list<int> signals) {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set = set_of(signals);
  VJBOD_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
}

SignalWatch::SignalWatch(Reactor& reactor, std::initializer_list<int> signals,
                         std::function<void(int)> on_signal)
    : on_signal_(std::move(on_signal)) {
  sigset_t set = set_of(signals);
  fd_.reset(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  VJBOD_CHECK(fd_.valid(), "signalfd: errno {}", errno);
  watch_ = reactor.watch_readable(fd_.get(), [this] {
    signalfd_siginfo info{};
    while (::read(fd_.get(), &info, sizeof info) == sizeof info)
      on_signal_(static_cast<int>(info.ssi_signo));
  });
}

}  // namespace vjbod
