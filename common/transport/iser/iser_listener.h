// SPDX-License-Identifier: Apache-2.0
// Takes iSER connect requests on one reactor and hands them out, so that the owner can look at the
// peer's address, refuse (by dropping the request), and choose the place that the mover is to live
// at: hand_over() here, then IserReception::receive() there.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "common/transport/connector.h"
#include "common/transport/iser/iser_data_mover.h"
#include "common/transport/iser/iser_place.h"

namespace vjbod::transport {

struct IserRequest {
  std::unique_ptr<rdma::Incoming> incoming;
  CmPrivateData private_data;
  std::string peer_address;  // "10.0.0.2": for caps per address
};

class IserListenerEvents {
 public:
  virtual void on_requested(IserRequest request) = 0;
  // Refused: its private data is no iSER.
  virtual void on_bad_request(const std::string& peer_address, const Error& reason) = 0;
  // The device went away, or the address moved. The listener gets nothing any more; destroy it, but
  // not from inside this call.
  virtual void on_listener_lost(Listener& listener, const Error& reason) = 0;

 protected:
  ~IserListenerEvents() = default;
};

class IserListener final : public Listener, private rdma::AcceptorEvents {
 public:
  static constexpr int backlog = 256;  // requests that wait in the kernel

  // `address` is numeric and, unless it is a wildcard, one of an RDMA device. On the place's
  // reactor, as everything here.
  static Result<std::unique_ptr<IserListener>> open(IserPlace& place, const std::string& address,
                                                    uint16_t port, IserListenerEvents& events);

  std::string local() const override { return acceptor_->local(); }

 private:
  explicit IserListener(IserListenerEvents& events) : events_(events) {}
  void on_incoming(std::unique_ptr<rdma::Incoming> incoming) override;
  void on_acceptor_lost(const Error& reason) override;

  IserListenerEvents& events_;
  std::unique_ptr<rdma::Acceptor> acceptor_;
};

// Makes movers of requests, on their place's reactor.
class IserReception {
 public:
  using Done = std::function<void(Result<std::unique_ptr<DataMover>>)>;
  static constexpr Duration accept_time_max = std::chrono::seconds(3);

  explicit IserReception(IserPlace& place, const IserDataMover::Options& options = {});
  ~IserReception();

  // Accepts; `done` gets the mover, not started yet, when the connection stands, or why it does
  // not. From the reactor's loop, within accept_time_max. Not called any more once this is gone.
  void receive(IserRequest request, Done done);

 private:
  class Pending;

  IserPlace& place_;
  const IserDataMover::Options options_;
  std::list<std::unique_ptr<Pending>> pending_;
};

}  // namespace vjbod::transport
