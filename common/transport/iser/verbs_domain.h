// SPDX-License-Identifier: Apache-2.0
// One RDMA device as one reactor uses it, over libibverbs: its facts, a protection domain, memory,
// and the channel that says which completion queues have something.
#pragma once

#include <memory>
#include <string>

#include <infiniband/verbs.h>

#include "common/runtime/reactor.h"
#include "common/transport/iser/open_devices.h"
#include "common/transport/iser/verbs_api.h"

namespace vjbod::transport::rdma {

// A completion queue's owner, its cq_context.
class CompletionSink {
 public:
  // Only takes note; neither arms the queue nor destroys anything in here.
  virtual void on_cq_event() = 0;

 protected:
  ~CompletionSink() = default;
};

class VerbsDomain final : public Domain {
 public:
  static Result<std::shared_ptr<VerbsDomain>> open(Reactor& reactor,
                                                   std::shared_ptr<OpenDevices> devices,
                                                   ibv_context* device, uint8_t port);
  ~VerbsDomain() override;

  const DeviceFacts& device() const override { return facts_; }
  Result<std::unique_ptr<Region>> register_memory(ConstBytes memory, Access access) override;
  Result<std::unique_ptr<Window>> make_window() override;

  // `sink` outlives the queue.
  Result<ibv_cq*> make_completion_queue(uint32_t size, CompletionSink& sink);
  ibv_pd* protection_domain() const { return pd_; }

 private:
  VerbsDomain(DeviceFacts facts, std::shared_ptr<OpenDevices> devices)
      : facts_(std::move(facts)), devices_(std::move(devices)) {}
  void on_channel_readable();

  const DeviceFacts facts_;
  const std::shared_ptr<OpenDevices> devices_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  std::unique_ptr<FdWatch> watch_;
};

// Its type 2 memory window.
class VerbsWindow final : public Window {
 public:
  explicit VerbsWindow(ibv_mw* window) : window_(window), first_key_(window->rkey) {}
  ~VerbsWindow() override { ibv_dealloc_mw(window_); }
  uint32_t first_key() const override { return first_key_; }
  ibv_mw* get() const { return window_; }

 private:
  ibv_mw* const window_;
  const uint32_t first_key_;
};

class VerbsRegion final : public Region {
 public:
  VerbsRegion(ibv_mr* region, ConstBytes memory) : region_(region), memory_(memory) {}
  ~VerbsRegion() override { ibv_dereg_mr(region_); }
  ConstBytes memory() const override { return memory_; }
  uint32_t local_key() const override { return region_->lkey; }
  uint32_t remote_key() const override { return region_->rkey; }
  ibv_mr* get() const { return region_; }

 private:
  ibv_mr* const region_;
  const ConstBytes memory_;
};

Result<DeviceFacts> facts_of(ibv_context* device, uint8_t port);
// The network interface that the device's address `gid` stands for; empty when it does not say.
std::string interface_of(ibv_context* device, uint8_t port, const ibv_gid& gid);
unsigned access_flags(Access access);
// What a failed call that needs locked memory means.
Error memory_error(std::string_view what, int error_number, const std::string& device);

}  // namespace vjbod::transport::rdma
