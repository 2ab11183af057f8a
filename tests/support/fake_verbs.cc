// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_verbs.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "common/base/check.h"
#include "common/transport/rdma_errc.h"

namespace vjbod::transport::rdma {

namespace {

constexpr Duration receiver_not_ready_pause = std::chrono::milliseconds(1);
constexpr size_t cm_request_private_bytes = 56;  // what RoCE carries, filled up with zeros

std::string endpoint(const std::string& address, uint16_t port) {
  return address + ":" + std::to_string(port);
}

bool within(ConstBytes inner, ConstBytes outer) {
  return inner.data() >= outer.data() && inner.data() + inner.size() <= outer.data() + outer.size();
}

std::vector<std::byte> as_carried(ConstBytes private_data) {
  std::vector<std::byte> carried(private_data.begin(), private_data.end());
  if (carried.size() < cm_request_private_bytes) carried.resize(cm_request_private_bytes);
  return carried;
}

}  // namespace

// --- memory ---

class FakeRegion final : public Region {
 public:
  FakeRegion(FakeDevice& device, uint32_t key, ConstBytes memory)
      : device_(device), key_(key), memory_(memory) {}
  ~FakeRegion() override {
    for (const auto& [key, window] : device_.bound_windows)
      VJBOD_CHECK(!within(window.memory, memory_), "a region goes while a window is bound to it");
    device_.regions.erase(key_);
    device_.registered_bytes -= memory_.size();
  }
  ConstBytes memory() const override { return memory_; }
  uint32_t local_key() const override { return key_; }
  uint32_t remote_key() const override { return key_; }

 private:
  FakeDevice& device_;
  const uint32_t key_;
  const ConstBytes memory_;
};

class FakeWindow final : public Window {
 public:
  FakeWindow(FakeDevice& device, uint32_t key) : device_(device), key_(key) { ++device_.windows; }
  ~FakeWindow() override {
    --device_.windows;
    device_.bound_windows.erase(bound_key);
  }
  uint32_t first_key() const override { return key_; }

  uint32_t bound_key = 0;

 private:
  FakeDevice& device_;
  const uint32_t key_;
};

class FakeDomain final : public Domain {
 public:
  FakeDomain(FakeNetwork& network, FakeDevice& device) : network_(network), device_(device) {}
  const DeviceFacts& device() const override { return device_.facts; }

  Result<std::unique_ptr<Region>> register_memory(ConstBytes memory, Access access) override {
    if (device_.registered_bytes + memory.size() > device_.memlock_bytes) {
      return fail(RdmaErrc::memlock, "Cannot register {} bytes: the limit is {} bytes.",
                  memory.size(), device_.memlock_bytes);
    }
    const uint32_t key = network_.next_key();
    device_.regions[key] = {this, memory, access};
    device_.registered_bytes += memory.size();
    ++device_.registrations;
    return std::make_unique<FakeRegion>(device_, key, memory);
  }
  Result<std::unique_ptr<Window>> make_window() override {
    VJBOD_CHECK(device_.facts.memory_windows, "the device has no windows");
    return std::make_unique<FakeWindow>(device_, network_.next_key());
  }

 private:
  FakeNetwork& network_;
  FakeDevice& device_;
};

// --- connections ---

struct FakeConnectionState : std::enable_shared_from_this<FakeConnectionState> {
  enum class State { idle, requested, connected, error, gone };
  struct Posted {
    SendRequest request;
    uint64_t sequence = 0;
    bool has_arrived = false;
  };

  using Domains = std::map<FakeDevice*, std::weak_ptr<Domain>>;
  FakeConnectionState(FakeNetwork& network_, std::vector<FakeDevice*> machine_,
                      std::shared_ptr<Domains> domains_)
      : network(network_), machine(std::move(machine_)), domains(std::move(domains_)) {}

  void report(CmReport report) {
    if (events != nullptr) events->on_cm(report);
  }
  void report_later(Duration delay, CmEvent event, CmFailure failure = CmFailure::none,
                    std::vector<std::byte> private_data = {}) {
    network.after(delay, [self = weak_from_this(), event, failure, data = std::move(private_data)] {
      if (auto alive = self.lock())
        alive->report({.event = event, .failure = failure, .detail = 0, .private_data = data});
    });
  }

  void complete(const Completion& completion, uint64_t sequence) {
    VJBOD_CHECK(completions.size() < sizes.sends + sizes.receives, "the completion queue is full");
    completions.push_back({completion, sequence});
    if (!armed) return;
    armed = false;
    network.after(Duration(0), [self = weak_from_this()] {
      auto alive = self.lock();
      if (alive && alive->events != nullptr) alive->events->on_completions();
    });
  }
  void complete_send(const Posted& posted, Completion::Status status) {
    if (status == Completion::Status::success && !posted.request.signaled) return;
    Completion completion;
    completion.id = posted.request.id;
    completion.status = status;
    complete(completion, posted.sequence);
  }

  // Everything posted completes with an error: the first request with its own.
  void enter_error(Completion::Status first = Completion::Status::flushed) {
    if (state == State::error || state == State::gone) return;
    state = State::error;
    std::deque<Posted> flushed;
    flushed.swap(sends);
    for (const Posted& posted : flushed)
      complete_send(posted, std::exchange(first, Completion::Status::flushed));
    std::deque<ReceiveRequest> unused;
    unused.swap(receives);
    for (const ReceiveRequest& request : unused) {
      Completion completion;
      completion.receive = true;
      completion.id = request.id;
      completion.status = Completion::Status::flushed;
      complete(completion, 0);
    }
  }

  // --- requests that have arrived ---
  enum class Outcome { done, wait, broken };

  void run_sends() {
    while (!sends.empty() && sends.front().has_arrived && state == State::connected) {
      if (network.stalled_) return;
      const Posted posted = sends.front();
      const auto other = peer.lock();
      Outcome outcome = Outcome::broken;
      if (network.on_request && !network.on_request(posted.request)) {
        lose();
        if (other) other->lose();
        return;
      }
      Completion::Status status = Completion::Status::success;
      outcome = perform(posted.request, other, status);
      if (outcome == Outcome::wait) {
        ++device->receiver_not_ready;
        network.after(receiver_not_ready_pause, [self = weak_from_this()] {
          if (auto alive = self.lock()) alive->run_sends();
        });
        return;
      }
      ++network.requests;
      if (outcome == Outcome::broken) return enter_error(status);
      if (state != State::connected) return;
      sends.pop_front();
      complete_send(posted, Completion::Status::success);
    }
  }
  void lose() {
    enter_error(Completion::Status::retries);
    report_later(Duration(0), CmEvent::disconnected);
  }

  bool local_memory_is_valid(ConstBytes memory, uint32_t key, bool written) const {
    if (memory.empty()) return true;
    const auto region = device->regions.find(key);
    return region != device->regions.end() && region->second.domain == domain.get() &&
           within(memory, region->second.memory) &&
           !(written && region->second.access == Access::remote_read);
  }
  bool remote_memory_is_valid(ConstBytes memory, uint32_t key, Access access) const {
    if (const auto region = device->regions.find(key); region != device->regions.end()) {
      return region->second.domain == domain.get() && region->second.access == access &&
             within(memory, region->second.memory);
    }
    const auto window = device->bound_windows.find(key);
    return window != device->bound_windows.end() && window->second.connection == this &&
           window->second.access == access && within(memory, window->second.memory);
  }
  bool invalidate(uint32_t key) {
    const auto window = device->bound_windows.find(key);
    if (window == device->bound_windows.end() || window->second.connection != this) return false;
    device->bound_windows.erase(window);
    return true;
  }

  Outcome perform(const SendRequest& request, const std::shared_ptr<FakeConnectionState>& other,
                  Completion::Status& status) {
    using Kind = SendRequest::Kind;
    status = Completion::Status::other;
    if (request.kind == Kind::bind) {
      const auto region = device->regions.find(request.region->local_key());
      const bool valid = region != device->regions.end() &&
                         region->second.access == Access::window &&
                         region->second.domain == domain.get() && !request.memory.empty() &&
                         within(request.memory, region->second.memory);
      auto* window = static_cast<FakeWindow*>(request.window);
      const bool free = !device->bound_windows.contains(window->bound_key);
      if (!valid || !free || request.remote_key == window->bound_key) return Outcome::broken;
      window->bound_key = request.remote_key;
      device->bound_windows[request.remote_key] = {domain.get(), this, request.memory,
                                                   request.access};
      return Outcome::done;
    }
    if (request.kind == Kind::invalidate)
      return invalidate(request.remote_key) ? Outcome::done : Outcome::broken;
    if (!local_memory_is_valid(request.memory, request.local_key, request.kind == Kind::read))
      return Outcome::broken;
    status = Completion::Status::retries;
    if (!other || other->state != State::connected) return Outcome::broken;
    if (request.kind == Kind::write || request.kind == Kind::read) {
      auto* address = reinterpret_cast<std::byte*>(request.remote_address);
      const Bytes remote(address, request.memory.size());
      const Access access =
          request.kind == Kind::write ? Access::remote_write : Access::remote_read;
      if (!other->remote_memory_is_valid(remote, request.remote_key, access)) {
        status = Completion::Status::remote_access;
        other->enter_error();
        return Outcome::broken;
      }
      auto* local = const_cast<std::byte*>(request.memory.data());
      if (request.kind == Kind::write)
        std::memcpy(address, local, remote.size());
      else
        std::memcpy(local, address, remote.size());
      return Outcome::done;
    }
    return deliver(request, *other, status);
  }

  Outcome deliver(const SendRequest& request, FakeConnectionState& other,
                  Completion::Status& status) {
    if (other.receives.empty()) return Outcome::wait;
    const ReceiveRequest receive = other.receives.front();
    other.receives.pop_front();
    Completion completion;
    completion.receive = true;
    completion.id = receive.id;
    std::vector<std::byte> message(request.memory.begin(), request.memory.end());
    if (network.on_message) network.on_message(message);
    if (message.size() > receive.memory.size()) {
      completion.status = Completion::Status::local_length;
      other.complete(completion, 0);
      other.enter_error();
      return Outcome::broken;
    }
    if (!other.local_memory_is_valid(receive.memory, receive.local_key, true)) {
      completion.status = Completion::Status::other;
      other.complete(completion, 0);
      other.enter_error();
      return Outcome::broken;
    }
    std::memcpy(receive.memory.data(), message.data(), message.size());
    completion.bytes = static_cast<uint32_t>(message.size());
    if (request.kind == SendRequest::Kind::send_with_invalidate) {
      if (!other.invalidate(request.remote_key)) {
        status = Completion::Status::remote_access;
        completion.status = Completion::Status::other;
        other.complete(completion, 0);
        other.enter_error();
        return Outcome::broken;
      }
      completion.invalidated = true;
      completion.key = request.remote_key;
    }
    other.complete(completion, 0);
    return Outcome::done;
  }

  FakeNetwork& network;
  std::vector<FakeDevice*> machine;
  std::shared_ptr<Domains> domains;  // of the fabric
  FakeDevice* device = nullptr;
  std::shared_ptr<Domain> domain;
  ConnectionEvents* events = nullptr;
  std::weak_ptr<FakeConnectionState> peer;
  State state = State::idle;
  std::string local_address, peer_address;
  uint16_t peer_port = 0;
  bool has_queue = false;
  bool armed = false;
  QueueSizes sizes;
  uint64_t posted_sends = 0;   // ever
  uint64_t retired_sends = 0;  // up to here the slots are free again
  std::deque<Posted> sends;
  std::deque<ReceiveRequest> receives;
  std::deque<std::pair<Completion, uint64_t>> completions;
};

using State = FakeConnectionState::State;

class FakeIncoming final : public Incoming {
 public:
  FakeIncoming(FakeNetwork& network, std::shared_ptr<FakeConnectionState> initiator,
               FakeDevice& device, std::string from, std::vector<std::byte> private_data)
      : network_(network),
        initiator_(std::move(initiator)),
        device_(device),
        from_(std::move(from)),
        private_data_(std::move(private_data)) {}
  ~FakeIncoming() override { refuse({}); }
  ConstBytes private_data() const override { return private_data_; }
  std::string peer_address() const override { return from_; }
  std::string peer() const override { return from_ + ":40000"; }
  void refuse(ConstBytes private_data) override {
    if (auto initiator = std::exchange(initiator_, nullptr)) {
      initiator->report_later(network_.delay_, CmEvent::failed, CmFailure::refused,
                              as_carried(private_data));
    }
  }
  std::shared_ptr<FakeConnectionState> take_initiator() {
    return std::exchange(initiator_, nullptr);
  }
  FakeDevice& device() { return device_; }

 private:
  FakeNetwork& network_;
  std::shared_ptr<FakeConnectionState> initiator_;
  FakeDevice& device_;
  const std::string from_;
  const std::vector<std::byte> private_data_;
};

class FakeAcceptor final : public Acceptor {
 public:
  FakeAcceptor(FakeNetwork& network, FakeDevice& device_, std::string local,
               AcceptorEvents& events_)
      : events(events_), device(device_), network_(network), local_(std::move(local)) {
    network_.acceptors_[local_] = this;
  }
  ~FakeAcceptor() override { network_.acceptors_.erase(local_); }
  std::string local() const override { return local_; }

  AcceptorEvents& events;
  FakeDevice& device;

 private:
  FakeNetwork& network_;
  const std::string local_;
};

class FakeConnection final : public Connection {
 public:
  explicit FakeConnection(std::shared_ptr<FakeConnectionState> state) : state_(std::move(state)) {}
  ~FakeConnection() override {
    leave();
    destroy_queue();
    state_->events = nullptr;
  }
  void set_events(ConnectionEvents* events) override { state_->events = events; }

  Status resolve_address(const std::string& source, const std::string& address, uint16_t port,
                         Duration timeout) override {
    FakeConnectionState& s = *state_;
    s.peer_address = address;
    s.peer_port = port;
    if (network().hang_address_) return {};
    for (FakeDevice* device : s.machine) {
      const bool has_source =
          source.empty() || std::ranges::find(device->addresses, source) != device->addresses.end();
      if (!device->present || !has_source) continue;
      s.device = device;
      s.local_address = source.empty() ? device->addresses.front() : source;
      break;
    }
    if (s.device == nullptr) {
      s.report_later(Duration(0), CmEvent::failed, CmFailure::no_device);
      return {};
    }
    const bool known = std::ranges::any_of(network().devices_, [&](const auto& device) {
      return device->present &&
             std::ranges::find(device->addresses, address) != device->addresses.end();
    });
    if (known)
      s.report_later(network().delay_, CmEvent::address_resolved);
    else
      s.report_later(timeout, CmEvent::failed, CmFailure::unreachable);
    return {};
  }
  Status resolve_route(Duration) override {
    state_->report_later(network().delay_, CmEvent::route_resolved);
    return {};
  }
  Status connect(ConstBytes private_data) override {
    if (!state_->has_queue) return fail(RdmaErrc::no_resources, "There is no queue.");
    state_->state = State::requested;
    if (network().hang_connect_) return {};
    const std::string to = endpoint(state_->peer_address, state_->peer_port);
    network().after(network().delay_, [state = state_, to, data = as_carried(private_data)] {
      if (state->state != State::requested) return;
      const auto acceptor = state->network.acceptors_.find(to);
      if (acceptor == state->network.acceptors_.end())
        return state->report_later(state->network.delay_, CmEvent::failed,
                                   CmFailure::nobody_listens);
      FakeAcceptor& there = *acceptor->second;
      there.events.on_incoming(std::make_unique<FakeIncoming>(state->network, state, there.device,
                                                              state->local_address, data));
    });
    return {};
  }
  Status accept(ConstBytes private_data) override {
    if (!state_->has_queue) return fail(RdmaErrc::no_resources, "There is no queue.");
    auto initiator = state_->peer.lock();
    if (!initiator || initiator->state != State::requested) {
      state_->report_later(Duration(0), CmEvent::failed, CmFailure::timed_out);
      return {};
    }
    initiator->peer = state_;
    initiator->state = state_->state = State::connected;
    state_->report_later(2 * network().delay_, CmEvent::established);
    initiator->report_later(network().delay_, CmEvent::established, CmFailure::none,
                            as_carried(private_data));
    return {};
  }

  Result<std::shared_ptr<Domain>> domain() override {
    auto& known = (*state_->domains)[state_->device];
    if (!state_->domain) state_->domain = known.lock();
    if (!state_->domain)
      known = state_->domain = std::make_shared<FakeDomain>(network(), *state_->device);
    return state_->domain;
  }
  DeviceFacts device() const override { return state_->device->facts; }
  Status make_queue(const QueueSizes& sizes) override {
    if (!domain()) return fail(RdmaErrc::no_resources, "There is no domain.");
    const uint32_t limit = state_->device->facts.queue_requests_max;
    if (sizes.sends > limit || sizes.receives > limit)
      return fail(RdmaErrc::no_resources, "The queue takes {} requests at the most.", limit);
    state_->sizes = sizes;
    state_->has_queue = true;
    ++state_->device->queues;
    return {};
  }
  Status post_receives(std::span<const ReceiveRequest> requests) override {
    for (const ReceiveRequest& request : requests) {
      VJBOD_CHECK(state_->receives.size() < state_->sizes.receives, "the receive queue is full");
      state_->receives.push_back(request);
    }
    flush_if_in_error();
    return {};
  }
  Status post_sends(std::span<const SendRequest> requests) override {
    for (const SendRequest& request : requests) {
      VJBOD_CHECK(state_->posted_sends - state_->retired_sends < state_->sizes.sends,
                  "the send queue is full");
      state_->sends.push_back({request, ++state_->posted_sends, false});
    }
    flush_if_in_error();
    network().after(network().delay_, [self = std::weak_ptr(state_), last = state_->posted_sends] {
      auto state = self.lock();
      if (!state) return;
      for (auto& posted : state->sends)
        if (posted.sequence <= last) posted.has_arrived = true;
      state->run_sends();
    });
    return {};
  }
  size_t poll(std::span<Completion> into) override {
    size_t count = 0;
    while (count < into.size() && !state_->completions.empty()) {
      const auto& [completion, sequence] = state_->completions.front();
      if (!completion.receive) state_->retired_sends = sequence;
      into[count++] = completion;
      state_->completions.pop_front();
    }
    return count;
  }
  void arm() override { state_->armed = true; }
  void disconnect() override { leave(); }
  void destroy_queue() override {
    if (!state_->has_queue) return;
    leave();
    state_->has_queue = false;
    state_->state = State::gone;
    --state_->device->queues;
    state_->completions.clear();
    state_->armed = false;
    std::erase_if(state_->device->bound_windows,
                  [this](const auto& window) { return window.second.connection == state_.get(); });
  }
  std::string peer() const override { return endpoint(state_->peer_address, state_->peer_port); }
  std::string local() const override { return state_->local_address + ":3260"; }

 private:
  FakeNetwork& network() { return state_->network; }
  void flush_if_in_error() {
    if (state_->state != State::error) return;
    state_->state = State::connected;  // so that it happens again
    state_->enter_error();
  }
  void leave() {
    if (state_->state == State::requested) state_->state = State::error;
    if (state_->state == State::gone) return;
    const bool was_connected = state_->state == State::connected;
    state_->enter_error();
    auto other = state_->peer.lock();
    if (was_connected && other && !network().stalled_)
      other->report_later(network().delay_, CmEvent::disconnected);
  }

  std::shared_ptr<FakeConnectionState> state_;
};

class FakeFabric final : public Fabric {
 public:
  FakeFabric(FakeNetwork& network, std::vector<FakeDevice*> devices)
      : network_(network), devices_(std::move(devices)) {}

  Result<std::unique_ptr<Connection>> make_connection() override {
    auto state = std::make_shared<FakeConnectionState>(network_, devices_, domains_);
    network_.connections_.push_back(state);
    return std::make_unique<FakeConnection>(std::move(state));
  }
  Result<std::unique_ptr<Acceptor>> listen(const std::string& address, uint16_t port, int,
                                           AcceptorEvents& events) override {
    for (FakeDevice* device : devices_) {
      if (!device->present) continue;
      if (std::ranges::find(device->addresses, address) == device->addresses.end()) continue;
      return std::make_unique<FakeAcceptor>(network_, *device, endpoint(address, port), events);
    }
    return fail(RdmaErrc::no_rdma_device, "No RDMA device has the address {}.", address);
  }
  Status hand_over(Incoming&, Fabric&) override { return {}; }
  std::unique_ptr<Connection> adopt(std::unique_ptr<Incoming> incoming) override {
    auto& request = static_cast<FakeIncoming&>(*incoming);
    auto state = std::make_shared<FakeConnectionState>(network_, devices_, domains_);
    network_.connections_.push_back(state);
    state->device = &request.device();
    state->peer_address = request.peer_address();
    state->peer_port = 40000;
    state->local_address = state->device->addresses.front();
    if (auto initiator = request.take_initiator()) state->peer = initiator;
    return std::make_unique<FakeConnection>(std::move(state));
  }

 private:
  FakeNetwork& network_;
  const std::vector<FakeDevice*> devices_;
  const std::shared_ptr<FakeConnectionState::Domains> domains_ =
      std::make_shared<FakeConnectionState::Domains>();
};

// --- the network ---

FakeNetwork::~FakeNetwork() = default;

FakeDevice& FakeNetwork::add_device(DeviceFacts facts, std::vector<std::string> addresses) {
  if (facts.queue_requests_max == 0) facts.queue_requests_max = 4096;
  if (facts.message_bytes_max == 0) facts.message_bytes_max = 8u << 20;
  if (facts.region_bytes_max == 0) facts.region_bytes_max = uint64_t{1} << 40;
  devices_.push_back(std::make_unique<FakeDevice>(std::move(facts), std::move(addresses)));
  return *devices_.back();
}

std::unique_ptr<Fabric> FakeNetwork::make_fabric(std::vector<FakeDevice*> devices) {
  return std::make_unique<FakeFabric>(*this, std::move(devices));
}

void FakeNetwork::after(Duration delay, std::function<void()> work) {
  due_.emplace(reactor_.now() + delay, std::move(work));
  timer_.arm_at(due_.begin()->first);
}

void FakeNetwork::run_due() {
  const TimePoint now = reactor_.now();
  std::vector<std::function<void()>> ready;
  while (!due_.empty() && due_.begin()->first <= now) {
    ready.push_back(std::move(due_.begin()->second));
    due_.erase(due_.begin());
  }
  for (auto& work : ready) work();
  if (!due_.empty()) timer_.arm_at(due_.begin()->first);
}

void FakeNetwork::resume() {
  stalled_ = false;
  for (const auto& weak : connections_)
    if (auto state = weak.lock()) state->run_sends();
}

void FakeNetwork::sever() {
  for (const auto& weak : connections_) {
    auto state = weak.lock();
    if (state && state->state == State::connected) state->lose();
  }
}

void FakeNetwork::remove(FakeDevice& device) {
  device.present = false;
  for (const auto& weak : connections_) {
    auto state = weak.lock();
    if (!state || state->device != &device || state->state == State::gone) continue;
    state->enter_error();
    state->report_later(Duration(0), CmEvent::device_removed);
  }
  std::vector<FakeAcceptor*> lost;
  for (const auto& [local, acceptor] : acceptors_)
    if (&acceptor->device == &device) lost.push_back(acceptor);
  for (FakeAcceptor* acceptor : lost)
    acceptor->events.on_acceptor_lost({RdmaErrc::device_removed, "The device was removed."});
}

void FakeNetwork::move_address_of(FakeDevice& device) {
  for (const auto& weak : connections_) {
    auto state = weak.lock();
    if (state && state->device == &device) state->report_later({}, CmEvent::address_changed);
  }
}

void FakeNetwork::request_connection(const std::string& address, uint16_t port,
                                     ConstBytes private_data) {
  const auto acceptor = acceptors_.find(endpoint(address, port));
  VJBOD_CHECK(acceptor != acceptors_.end());
  FakeAcceptor& there = *acceptor->second;
  there.events.on_incoming(std::make_unique<FakeIncoming>(
      *this, nullptr, there.device, "10.9.9.9",
      std::vector<std::byte>(private_data.begin(), private_data.end())));
}

}  // namespace vjbod::transport::rdma
