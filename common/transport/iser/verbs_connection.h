// SPDX-License-Identifier: Apache-2.0
// A connection over rdma-core: a connection manager's id, a queue pair and its completion queue.
#pragma once

#include <memory>
#include <string>

#include "common/runtime/reactor.h"
#include "common/transport/iser/cm_channel.h"
#include "common/transport/iser/verbs_domain.h"

namespace vjbod::transport::rdma {

// The reactor's domains, one for each device.
class VerbsDomains {
 public:
  virtual Result<std::shared_ptr<VerbsDomain>> domain_of(ibv_context* device, uint8_t port) = 0;

 protected:
  ~VerbsDomains() = default;
};

class VerbsConnection final : public Connection, private CmSink, CompletionSink, private Deferred {
 public:
  // The initiator's, with an id of its own.
  static Result<std::unique_ptr<VerbsConnection>> make(Reactor& reactor, VerbsDomains& domains,
                                                       std::shared_ptr<CmChannel> channel);
  // The target's: takes a request's id, which is on `channel` already.
  VerbsConnection(Reactor& reactor, VerbsDomains& domains, std::shared_ptr<CmChannel> channel,
                  rdma_cm_id* id);
  ~VerbsConnection() override;

  void set_events(ConnectionEvents* events) override { events_ = events; }
  Status resolve_address(const std::string& source, const std::string& address, uint16_t port,
                         Duration timeout) override;
  Status resolve_route(Duration timeout) override;
  Status connect(ConstBytes private_data) override;
  Status accept(ConstBytes private_data) override;
  Result<std::shared_ptr<Domain>> domain() override;
  DeviceFacts device() const override;
  Status make_queue(const QueueSizes& sizes) override;
  Status post_receives(std::span<const ReceiveRequest> requests) override;
  Status post_sends(std::span<const SendRequest> requests) override;
  size_t poll(std::span<Completion> into) override;
  void arm() override;
  void disconnect() override;
  void destroy_queue() override;
  std::string peer() const override;
  std::string local() const override;

 private:
  void on_cm_event(rdma_cm_event_type type, int status, ConstBytes private_data,
                   rdma_cm_id* id) override;
  void on_cq_event() override;
  void run_deferred() override;
  Status failed(std::string_view what) const;

  Reactor& reactor_;
  VerbsDomains& domains_;
  const std::shared_ptr<CmChannel> channel_;
  rdma_cm_id* id_ = nullptr;
  std::shared_ptr<VerbsDomain> domain_;
  ibv_cq* completion_queue_ = nullptr;
  ConnectionEvents* events_ = nullptr;
};

}  // namespace vjbod::transport::rdma
