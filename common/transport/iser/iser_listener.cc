// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/iser_listener.h"

#include <algorithm>
#include <utility>

#include "common/transport/rdma_errc.h"

namespace vjbod::transport {

// --- IserListener ---

Result<std::unique_ptr<IserListener>> IserListener::open(IserPlace& place,
                                                         const std::string& address, uint16_t port,
                                                         IserListenerEvents& events) {
  std::unique_ptr<IserListener> listener(new IserListener(events));
  auto acceptor = place.fabric().listen(address, port, backlog, *listener);
  if (!acceptor) return fail(std::move(acceptor).error());
  listener->acceptor_ = std::move(*acceptor);
  return listener;
}

void IserListener::on_incoming(std::unique_ptr<rdma::Incoming> incoming) {
  std::string address = incoming->peer_address();
  auto private_data = decode_cm_private_data(incoming->private_data());
  if (!private_data) {
    incoming->refuse({});
    return events_.on_bad_request(address, private_data.error());
  }
  events_.on_requested({std::move(incoming), *private_data, std::move(address)});
}

void IserListener::on_acceptor_lost(const Error& reason) {
  events_.on_listener_lost(*this, reason);
}

// --- IserReception ---

class IserReception::Pending final : private rdma::ConnectionEvents, private Deferred {
 public:
  Pending(IserReception& owner, IserRequest request, Done done)
      : owner_(owner),
        peer_(request.private_data),
        done_(std::move(done)),
        deadline_(owner.place_.reactor(), [this] {
          end(fail(RdmaErrc::connect_timeout, "The RDMA connect request was not completed."));
        }) {
    deadline_.arm_after(accept_time_max);
    if (Status begun = begin(std::move(request.incoming)); !begun)
      end(fail(std::move(begun).error()));
  }

 private:
  Status begin(std::unique_ptr<rdma::Incoming> incoming) {
    IserPlace& place = owner_.place_;
    auto mover = IserDataMover::make(place, place.fabric().adopt(std::move(incoming)), Role::target,
                                     owner_.options_);
    if (!mover) return fail(std::move(mover).error());
    mover_ = std::move(*mover);
    mover_->connection().set_events(this);
    return mover_->connection().accept(encode_cm_private_data(mover_->private_data(peer_)));
  }
  void on_completions() override {}
  void on_cm(const rdma::CmReport& report) override {
    if (report.event != rdma::CmEvent::established)
      return end(fail(RdmaErrc::connect_rejected, "The RDMA connection was not completed ({}).",
                      report.detail));
    mover_->established(peer_);
    end(std::unique_ptr<DataMover>(std::move(mover_)));
  }
  // Told from the loop, at the end of the turn.
  void end(Result<std::unique_ptr<DataMover>> result) {
    if (ended_) return;
    ended_ = true;
    deadline_.cancel();
    if (mover_ != nullptr) mover_->connection().set_events(nullptr);
    result_ = std::move(result);
    owner_.place_.reactor().defer(*this);
  }
  void run_deferred() override {
    Done done = std::move(done_);
    auto result = std::move(result_);
    auto& all = owner_.pending_;
    all.remove_if([this](const auto& pending) { return pending.get() == this; });
    done(std::move(result));  // this object is gone
  }

  IserReception& owner_;
  const CmPrivateData peer_;
  Done done_;
  std::unique_ptr<IserDataMover> mover_;
  bool ended_ = false;
  Result<std::unique_ptr<DataMover>> result_;
  Timer deadline_;
};

IserReception::IserReception(IserPlace& place, const IserDataMover::Options& options)
    : place_(place), options_(options) {}

IserReception::~IserReception() = default;

void IserReception::receive(IserRequest request, Done done) {
  pending_.push_back(std::make_unique<Pending>(*this, std::move(request), std::move(done)));
}

}  // namespace vjbod::transport
