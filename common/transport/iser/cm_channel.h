// SPDX-License-Identifier: Apache-2.0
// The connection manager's events for one reactor, over librdmacm, and the ids that they are about.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include <rdma/rdma_cma.h>

#include "common/runtime/reactor.h"
#include "common/transport/iser/open_devices.h"
#include "common/transport/iser/verbs_api.h"

namespace vjbod::transport::rdma {

// The owner of an id, its context.
class CmSink {
 public:
  // The event is acknowledged already; `private_data` holds what came with it. May destroy
  // anything.
  virtual void on_cm_event(rdma_cm_event_type type, int status, ConstBytes private_data,
                           rdma_cm_id* id) = 0;

 protected:
  ~CmSink() = default;
};

class CmChannel : public std::enable_shared_from_this<CmChannel> {
 public:
  static Result<std::shared_ptr<CmChannel>> open(Reactor& reactor, Reactor& disposal,
                                                 std::shared_ptr<OpenDevices> devices);
  ~CmChannel();

  Result<rdma_cm_id*> make_id(CmSink& sink);
  // Nobody hears of it from here on. Destroying may wait, so it happens on the disposal reactor.
  void dispose(rdma_cm_id* id);
  // No more events: before the reactor goes.
  void stop_watching();
  rdma_event_channel* get() const { return channel_; }
  OpenDevices& devices() { return *devices_; }

 private:
  CmChannel(Reactor& disposal, std::shared_ptr<OpenDevices> devices, rdma_event_channel* channel)
      : disposal_(disposal), devices_(std::move(devices)), channel_(channel) {}
  void on_readable();
  void guard_device_of(rdma_cm_id& id);
  void on_device_removed(ibv_context* device);

  Reactor& disposal_;
  const std::shared_ptr<OpenDevices> devices_;
  rdma_event_channel* const channel_;
  std::unique_ptr<FdWatch> watch_;
  // An id for each device seen, which is told when the device is removed while no connection is.
  std::map<ibv_context*, rdma_cm_id*> guards_;
};

// "No RDMA connection can be made on this machine: ..."
Error no_manager(int error_number);
// What an event says, as the rest of this folder sees it.
CmReport report_of(rdma_cm_event_type type, int status, ConstBytes private_data);

}  // namespace vjbod::transport::rdma
