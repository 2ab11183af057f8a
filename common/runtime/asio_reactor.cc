// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/asio_reactor.h"

#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace vjbod {

namespace {

// Bounds a turn, so that an event that is always ready again (a flood on one connection) cannot
// hold up timers and the responses of all the others.
constexpr int events_per_turn_max = 256;

class AsioFdWatch final : public FdWatch {
 public:
  AsioFdWatch(boost::asio::io_context& io_context, int fd, std::function<void()> on_readable)
      : state_(std::make_shared<State>(io_context, fd, std::move(on_readable))) {
    State::wait(state_);
  }
  ~AsioFdWatch() override {
    state_->watching = false;
    boost::system::error_code ignored;
    state_->descriptor.cancel(ignored);
    state_->descriptor.release();  // the caller's
  }

 private:
  // Shared with the pending wait, which Asio delivers even after a cancel.
  struct State {
    State(boost::asio::io_context& io_context, int fd, std::function<void()> callback)
        : descriptor(io_context, fd), on_readable(std::move(callback)) {}

    static void wait(const std::shared_ptr<State>& state) {
      state->descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                                   [state](const boost::system::error_code& error) {
                                     if (error || !state->watching) return;
                                     state->on_readable();
                                     if (state->watching) wait(state);
                                   });
    }

    boost::asio::posix::stream_descriptor descriptor;
    std::function<void()> on_readable;
    bool watching = true;
  };

  std::shared_ptr<State> state_;
};

TimePoint read_clock() {
  return std::chrono::steady_clock::now();
}

}  // namespace

struct AsioReactor::Loop {
  boost::asio::io_context io_context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_guard{
      io_context.get_executor()};
  boost::asio::steady_timer wakeup{io_context};
};

AsioReactor::AsioReactor(uint64_t random_seed)
    : Reactor(random_seed), loop_(std::make_unique<Loop>()) {}

AsioReactor::~AsioReactor() = default;

boost::asio::io_context& AsioReactor::io_context() {
  return loop_->io_context;
}

TimePoint AsioReactor::now() const {
  if (now_) return *now_;
  const TimePoint now = read_clock();
  if (running_) now_ = now;
  return now;
}

void AsioReactor::post(std::function<void()> work) {
  boost::asio::post(loop_->io_context, std::move(work));
}

void AsioReactor::stop() {
  post([this] { stopping_ = true; });
}

std::unique_ptr<FdWatch> AsioReactor::watch_readable(int fd, std::function<void()> on_readable) {
  return std::make_unique<AsioFdWatch>(loop_->io_context, fd, std::move(on_readable));
}

void AsioReactor::arm_wakeup() {
  auto next = timers().next_deadline();
  if (!next || wakeup_at_ <= *next) return;  // an early wake-up finds nothing due and arms again
  wakeup_at_ = *next;
  loop_->wakeup.expires_at(wakeup_at_);
  loop_->wakeup.async_wait([this](const boost::system::error_code& error) {
    if (!error) wakeup_at_ = TimePoint::max();
  });
}

void AsioReactor::turn() {
  now_.reset();
  if (!has_deferred()) {
    arm_wakeup();
    loop_->io_context.run_one();
  }
  for (int i = 0; i < events_per_turn_max && loop_->io_context.poll_one() > 0; ++i) {
  }
  now_ = read_clock();
  timers().run_due(*now_);
  run_deferred();
}

void AsioReactor::run() {
  owner_ = std::this_thread::get_id();
  running_ = true;
  while (!stopping_) turn();
  bool done = false;  // with what was posted before
  boost::asio::post(loop_->io_context, [&done] { done = true; });
  while (!done) loop_->io_context.run_one();
  run_deferred();
  running_ = false;
  now_.reset();
}

bool AsioReactor::run_until(const std::function<bool()>& done, Duration limit) {
  owner_ = std::this_thread::get_id();
  running_ = true;
  const TimePoint end = read_clock() + limit;
  Timer wakeup(*this, [] {});
  wakeup.arm_at(end);
  bool is_done = done();
  while (!is_done && read_clock() < end) {
    turn();
    is_done = done();
  }
  running_ = false;
  now_.reset();
  return is_done;
}

}  // namespace vjbod
