// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/iser_connector.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/transport/rdma_errc.h"

namespace vjbod::transport {

namespace {

RdmaErrc code_of(rdma::CmFailure failure) {
  switch (failure) {
    case rdma::CmFailure::no_device: return RdmaErrc::no_rdma_device;
    case rdma::CmFailure::unreachable: return RdmaErrc::address_unreachable;
    case rdma::CmFailure::timed_out: return RdmaErrc::connect_timeout;
    case rdma::CmFailure::nobody_listens: return RdmaErrc::peer_has_no_iser;
    case rdma::CmFailure::none:
    case rdma::CmFailure::refused:
    case rdma::CmFailure::other: break;
  }
  return RdmaErrc::connect_rejected;
}

const char* sentence_of(RdmaErrc code) {
  switch (code) {
    case RdmaErrc::no_rdma_device: return "no RDMA device leads there";
    case RdmaErrc::address_unreachable: return "the address cannot be reached by RDMA";
    case RdmaErrc::connect_timeout: return "it does not answer the RDMA connect request";
    case RdmaErrc::peer_has_no_iser: return "it answers RDMA, but no iSER target listens there";
    default: return "it refused the RDMA connect request";
  }
}

class IserConnectAttempt final : public ConnectAttempt,
                                 private rdma::ConnectionEvents,
                                 private Deferred {
 public:
  IserConnectAttempt(IserPlace& place, const IserDataMover::Options& options, const Endpoint& to,
                     Duration timeout, Connector::Done done)
      : place_(place),
        options_(options),
        to_(to),
        done_(std::move(done)),
        given_up_at_(place.reactor().now() + timeout),
        deadline_(place.reactor(), [this] { timed_out(); }) {
    if (Status begun = begin(); !begun) {
      failure_ = std::move(begun).error();
      place_.reactor().defer(*this);
    }
  }
  ~IserConnectAttempt() override { abandon(); }

 private:
  enum class Step { address, route, connect };

  Status begin() {
    auto connection = place_.fabric().make_connection();
    if (!connection) return fail(std::move(connection).error());
    connection_ = std::move(*connection);
    connection_->set_events(this);
    allow(IserConnector::address_time_max);
    return connection_->resolve_address(to_.source_address, to_.address, to_.port,
                                        IserConnector::address_time_max);
  }
  void allow(Duration most) {
    deadline_.arm_at(std::min(given_up_at_, place_.reactor().now() + most));
  }
  void timed_out() {
    switch (step_) {
      case Step::address:
      case Step::route: return failed(RdmaErrc::address_unreachable);
      case Step::connect: return failed(RdmaErrc::connect_timeout);
    }
  }

  void on_completions() override {}
  void on_cm(const rdma::CmReport& report) override {
    switch (report.event) {
      case rdma::CmEvent::address_resolved: return on_address();
      case rdma::CmEvent::route_resolved: return on_route();
      case rdma::CmEvent::established: return on_established(report.private_data);
      case rdma::CmEvent::failed: return failed(code_of(report.failure), report.detail);
      case rdma::CmEvent::disconnected: return failed(RdmaErrc::connect_rejected);
      case rdma::CmEvent::address_changed: return failed(RdmaErrc::address_changed);
      case rdma::CmEvent::device_removed: return failed(RdmaErrc::device_removed);
    }
  }
  void on_address() {
    const rdma::DeviceFacts device = connection_->device();
    if (!to_.interface_name.empty() && !device.interface_name.empty() &&
        device.interface_name != to_.interface_name) {
      return finish(fail(RdmaErrc::wrong_device,
                         "iSER to {}: the RDMA device for this address, {}, belongs to {}, not to "
                         "the chosen interface {}.",
                         text_of(to_), device.name, device.interface_name, to_.interface_name));
    }
    step_ = Step::route;
    allow(IserConnector::route_time_max);
    take(connection_->resolve_route(IserConnector::route_time_max));
  }
  void on_route() {
    auto mover = IserDataMover::make(place_, std::move(connection_), Role::initiator, options_);
    if (!mover) return finish(fail(std::move(mover).error()));
    mover_ = std::move(*mover);
    step_ = Step::connect;
    allow(IserConnector::connect_time_max);
    take(mover_->connection().connect(encode_cm_private_data(mover_->private_data(std::nullopt))));
  }
  void on_established(ConstBytes private_data) {
    // Some targets answer without a header: then nothing of it was agreed on.
    const auto peer = decode_cm_private_data(private_data);
    mover_->established(peer ? *peer : CmPrivateData{});
    finish(std::unique_ptr<DataMover>(std::move(mover_)));
  }

  void take(const Status& status) {
    if (!status) finish(fail(status.error()));
  }
  void failed(RdmaErrc code, int detail = 0) {
    std::string from;
    if (!to_.source_address.empty()) from = " from " + to_.source_address;
    if (!to_.interface_name.empty()) from += " through " + to_.interface_name;
    const std::string number = detail == 0 ? "" : fmt::format(" ({})", detail);
    finish(fail(code, "iSER to {}{}: {}{}.", text_of(to_), from, sentence_of(code), number));
  }
  void run_deferred() override { finish(fail(std::move(failure_))); }
  void abandon() {
    if (connection_ != nullptr) connection_->set_events(nullptr);
    connection_.reset();
    mover_.reset();
  }
  void finish(Result<std::unique_ptr<DataMover>> result) {
    unlink();
    deadline_.cancel();
    abandon();
    Connector::Done done = std::move(done_);
    done(std::move(result));  // this object may be gone now
  }

  IserPlace& place_;
  const IserDataMover::Options options_;
  const Endpoint to_;
  Connector::Done done_;
  const TimePoint given_up_at_;
  Step step_ = Step::address;
  Error failure_;
  Timer deadline_;
  std::unique_ptr<rdma::Connection> connection_;  // until the mover has it
  std::unique_ptr<IserDataMover> mover_;
};

}  // namespace

std::unique_ptr<ConnectAttempt> IserConnector::connect(const Endpoint& to, Duration timeout,
                                                       Done done) {
  return std::make_unique<IserConnectAttempt>(place_, options_, to, timeout, std::move(done));
}

}  // namespace vjbod::transport
