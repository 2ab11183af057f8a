// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/device_port.h"

namespace vjbod::initiator {

class DevicePort::Local final : public BlockRequestOwner {
 public:
  Local(BlockDevice& device, DevicePortOwner& owner) : device_(device), owner_(owner) {}

  void submit(PortRequest& request) {
    request.owner = this;
    device_.submit(request);
  }
  void on_request_done(BlockRequest& request, int errno_value) override {
    owner_.on_port_done(static_cast<PortRequest&>(request), errno_value);
  }

 private:
  BlockDevice& device_;
  DevicePortOwner& owner_;
};

class DevicePort::Crossing {
 public:
  Crossing(BlockDevice& device, AsioReactor& home, AsioReactor& here, DevicePortOwner& owner)
      : at_home_(device, home, *this),
        at_port_(owner),
        to_home_(home, at_home_),
        to_port_(here, at_port_) {}

  void submit(PortRequest& request) { to_home_.add(request); }
  void flush() { to_home_.send(); }

 private:
  // Everything here runs on the disk's thread.
  class AtHome final : public HandoverReceiver, public BlockRequestOwner, public Deferred {
   public:
    AtHome(BlockDevice& device, Reactor& home, Crossing& crossing)
        : device_(device), home_(home), crossing_(crossing) {}

    void on_handed_over(HandoverNode& node) override {
      auto& request = static_cast<PortRequest&>(node);
      request.owner = this;
      device_.submit(request);
    }
    // What is done in one turn goes back together at its end.
    void on_request_done(BlockRequest& block_request, int errno_value) override {
      auto& request = static_cast<PortRequest&>(block_request);
      request.errno_value = errno_value;
      crossing_.to_port_.add(request);
      home_.defer(*this);
    }
    void run_deferred() override { crossing_.to_port_.send(); }

   private:
    BlockDevice& device_;
    Reactor& home_;
    Crossing& crossing_;
  };

  // On the port's thread.
  class AtPort final : public HandoverReceiver {
   public:
    explicit AtPort(DevicePortOwner& owner) : owner_(owner) {}
    void on_handed_over(HandoverNode& node) override {
      auto& request = static_cast<PortRequest&>(node);
      owner_.on_port_done(request, request.errno_value);
    }

   private:
    DevicePortOwner& owner_;
  };

  AtHome at_home_;
  AtPort at_port_;
  Handover to_home_;
  Handover to_port_;
};

DevicePort::DevicePort(BlockDevice& device, DevicePortOwner& owner)
    : local_(std::make_unique<Local>(device, owner)) {}

DevicePort::DevicePort(BlockDevice& device, AsioReactor& home, AsioReactor& here,
                       DevicePortOwner& owner)
    : crossing_(std::make_unique<Crossing>(device, home, here, owner)) {}

DevicePort::~DevicePort() = default;

void DevicePort::submit(PortRequest& request) {
  if (local_) {
    local_->submit(request);
  } else {
    crossing_->submit(request);
  }
}

void DevicePort::flush() {
  if (crossing_) crossing_->flush();
}

}  // namespace vjbod::initiator
