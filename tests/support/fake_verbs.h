// SPDX-License-Identifier: Apache-2.0
// RDMA devices, the network between them and the connection manager, in memory and on one reactor's
// time: reliable connections with the rules that matter to iSER. Requests of a connection happen in
// order, when they arrive; a message without a posted receive waits (RNR); one longer than the
// posted memory, a key that is not valid for the direction, range, domain or connection, or a
// missing region is an error of the queue, which flushes everything. Test code: it allocates and
// calls functions as it likes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/reactor.h"
#include "common/transport/iser/verbs_api.h"

namespace vjbod::transport::rdma {

class FakeNetwork;
struct FakeConnectionState;
class FakeAcceptor;

// One port of one machine.
class FakeDevice {
 public:
  FakeDevice(DeviceFacts facts_, std::vector<std::string> addresses_)
      : facts(std::move(facts_)), addresses(std::move(addresses_)) {}

  DeviceFacts facts;
  std::vector<std::string> addresses;
  bool present = true;
  // Bytes that may be registered at a time, as RLIMIT_MEMLOCK has it.
  uint64_t memlock_bytes = ~uint64_t{0};

  // What exists now: for tests that look for leaks.
  struct RegionEntry {
    const void* domain;
    ConstBytes memory;
    Access access;
  };
  struct WindowEntry {
    const void* domain;
    const FakeConnectionState* connection;
    ConstBytes memory;
    Access access;
  };
  std::map<uint32_t, RegionEntry> regions;        // by key
  std::map<uint32_t, WindowEntry> bound_windows;  // by key
  size_t windows = 0;
  size_t queues = 0;
  uint64_t registered_bytes = 0;
  uint64_t registrations = 0;  // ever
  uint64_t receiver_not_ready = 0;
};

class FakeNetwork {
 public:
  explicit FakeNetwork(Reactor& reactor)
      : reactor_(reactor), timer_(reactor, [this] { run_due(); }) {}
  ~FakeNetwork();

  FakeDevice& add_device(DeviceFacts facts, std::vector<std::string> addresses);
  // A machine with these devices.
  std::unique_ptr<Fabric> make_fabric(std::vector<FakeDevice*> devices);

  void set_delay(Duration delay) { delay_ = delay; }
  // Nothing arrives, nobody is told, until resume().
  void stall() { stalled_ = true; }
  void resume();
  // All connections are lost, both ends are told.
  void sever();
  // The device vanishes, with everything on it.
  void remove(FakeDevice& device);
  void move_address_of(FakeDevice& device);  // everybody on it hears address_changed
  // Steps of a connection that never end from now on.
  void hang_address_resolution(bool hang) { hang_address_ = hang; }
  void hang_connects(bool hang) { hang_connect_ = hang; }
  // A message of anybody to whoever listens there; what the answer is does not matter.
  void request_connection(const std::string& address, uint16_t port, ConstBytes private_data);
  // Called before each request of a queue happens; false: the connection breaks there instead.
  std::function<bool(const SendRequest&)> on_request;
  // Changes messages on their way: what a hostile peer could send.
  std::function<void(std::vector<std::byte>&)> on_message;
  uint64_t requests = 0;  // that happened

 private:
  friend struct FakeConnectionState;
  friend class FakeConnection;
  friend class FakeFabric;
  friend class FakeAcceptor;
  friend class FakeIncoming;
  friend class FakeDomain;

  void after(Duration delay, std::function<void()> work);
  void run_due();
  uint32_t next_key() { return last_key_ += 0x100; }

  Reactor& reactor_;
  Timer timer_;
  std::multimap<TimePoint, std::function<void()>> due_;
  Duration delay_{0};
  bool stalled_ = false;
  bool hang_address_ = false;
  bool hang_connect_ = false;
  uint32_t last_key_ = 0x1000;
  std::vector<std::unique_ptr<FakeDevice>> devices_;
  std::vector<std::weak_ptr<FakeConnectionState>> connections_;
  std::map<std::string, FakeAcceptor*> acceptors_;  // by "address:port"
};

}  // namespace vjbod::transport::rdma
