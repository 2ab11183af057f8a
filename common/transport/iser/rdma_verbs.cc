// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/rdma_verbs.h"

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "common/transport/iser/verbs_connection.h"
#include "common/transport/rdma_errc.h"
#include "common/transport/tcp/socket.h"

namespace vjbod::transport::rdma {

namespace {

class VerbsIncoming final : public Incoming {
 public:
  VerbsIncoming(std::shared_ptr<CmChannel> channel, rdma_cm_id* id, ConstBytes private_data)
      : channel_(std::move(channel)),
        id_(id),
        private_data_(private_data.begin(), private_data.end()) {
    if (const sockaddr* address = rdma_get_peer_addr(id)) {
      peer_.length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
      std::memcpy(&peer_.storage, address, peer_.length);
    }
  }
  ~VerbsIncoming() override { refuse({}); }

  ConstBytes private_data() const override { return private_data_; }
  std::string peer_address() const override { return address_text(peer_); }
  std::string peer() const override { return endpoint_text(peer_); }
  void refuse(ConstBytes private_data) override {
    if (id_ == nullptr) return;
    (void)rdma_reject(id_, private_data.data(), static_cast<uint8_t>(private_data.size()));
    channel_->dispose(take());
  }

  Status move_to(std::shared_ptr<CmChannel> channel) {
    if (rdma_migrate_id(id_, channel->get()) != 0) {
      return fail(RdmaErrc::no_resources, "A connection of {} cannot move to its thread: {}.",
                  peer(), std::strerror(errno));
    }
    channel_ = std::move(channel);
    return {};
  }
  rdma_cm_id* take() { return std::exchange(id_, nullptr); }

 private:
  std::shared_ptr<CmChannel> channel_;
  rdma_cm_id* id_;
  const std::vector<std::byte> private_data_;
  SocketAddress peer_;
};

class VerbsAcceptor final : public Acceptor, private CmSink {
 public:
  VerbsAcceptor(std::shared_ptr<CmChannel> channel, AcceptorEvents& events)
      : channel_(std::move(channel)), events_(events) {}
  ~VerbsAcceptor() override {
    if (id_ != nullptr) channel_->dispose(id_);
  }
  Status listen(const SocketAddress& at, const std::string& where, int backlog) {
    auto id = channel_->make_id(*this);
    if (!id) return fail(std::move(id).error());
    id_ = *id;
    SocketAddress address = at;
    auto* bound = reinterpret_cast<sockaddr*>(&address.storage);
    if (rdma_bind_addr(id_, bound) != 0 || rdma_listen(id_, backlog) != 0) {
      const int error = errno;
      const bool no_device = error == ENODEV || error == EADDRNOTAVAIL;
      return fail(no_device ? RdmaErrc::no_rdma_device : RdmaErrc::no_resources,
                  "iSER cannot listen on {}: {}.", where,
                  no_device ? "no RDMA device has this address" : std::strerror(error));
    }
    channel_->devices().uses(id_, id_->verbs);
    local_ = where;
    return {};
  }
  std::string local() const override { return local_; }

 private:
  void on_cm_event(rdma_cm_event_type type, int, ConstBytes private_data, rdma_cm_id* id) override {
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      events_.on_incoming(std::make_unique<VerbsIncoming>(channel_, id, private_data));
    } else if (type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
      events_.on_acceptor_lost(
          {RdmaErrc::device_removed, fmt::format("The RDMA device of {} was removed.", local_)});
    } else if (type == RDMA_CM_EVENT_ADDR_CHANGE) {
      events_.on_acceptor_lost(
          {RdmaErrc::address_changed, fmt::format("{} has moved to another device.", local_)});
    }
  }

  const std::shared_ptr<CmChannel> channel_;
  AcceptorEvents& events_;
  rdma_cm_id* id_ = nullptr;
  std::string local_;
};

class VerbsFabric final : public Fabric, private VerbsDomains {
 public:
  VerbsFabric(Reactor& reactor, Reactor& disposal, std::shared_ptr<OpenDevices> devices)
      : reactor_(reactor), disposal_(disposal), devices_(std::move(devices)) {}
  ~VerbsFabric() override {
    if (channel_ != nullptr) channel_->stop_watching();
  }

  Result<std::unique_ptr<Connection>> make_connection() override {
    if (Status open = open_channel(); !open) return fail(std::move(open).error());
    auto made = VerbsConnection::make(reactor_, *this, channel_);
    if (!made) return fail(std::move(made).error());
    return std::unique_ptr<Connection>(std::move(*made));
  }
  Result<std::unique_ptr<Acceptor>> listen(const std::string& address, uint16_t port, int backlog,
                                           AcceptorEvents& events) override {
    if (Status open = open_channel(); !open) return fail(std::move(open).error());
    const auto at = parse_address(address, port);
    if (!at) return fail(at.error());
    auto acceptor = std::make_unique<VerbsAcceptor>(channel_, events);
    Status listening = acceptor->listen(*at, endpoint_text(*at), backlog);
    if (!listening) return fail(std::move(listening).error());
    return std::unique_ptr<Acceptor>(std::move(acceptor));
  }
  Status hand_over(Incoming& incoming, Fabric& to) override {
    auto& other = static_cast<VerbsFabric&>(to);
    if (other.channel_ == nullptr)
      return fail(RdmaErrc::no_resources, "The thread for an RDMA connection has no channel.");
    return static_cast<VerbsIncoming&>(incoming).move_to(other.channel_);
  }
  std::unique_ptr<Connection> adopt(std::unique_ptr<Incoming> incoming) override {
    rdma_cm_id* const id = static_cast<VerbsIncoming&>(*incoming).take();
    VerbsDomains& domains = *this;
    return std::make_unique<VerbsConnection>(reactor_, domains, channel_, id);
  }
  Status prepare() override { return open_channel(); }

 private:
  Status open_channel() {
    if (channel_ != nullptr) return {};
    auto opened = CmChannel::open(reactor_, disposal_, devices_);
    if (!opened) return fail(std::move(opened).error());
    channel_ = std::move(*opened);
    return {};
  }
  Result<std::shared_ptr<VerbsDomain>> domain_of(ibv_context* device, uint8_t port) override {
    std::erase_if(domains_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<VerbsDomain>& known = domains_[{device, port}];
    std::shared_ptr<VerbsDomain> domain = known.lock();
    if (domain == nullptr) {
      auto opened = VerbsDomain::open(reactor_, devices_, device, port);
      if (!opened) return fail(std::move(opened).error());
      known = domain = std::move(*opened);
    }
    return domain;
  }

  Reactor& reactor_;
  Reactor& disposal_;
  const std::shared_ptr<OpenDevices> devices_;
  std::shared_ptr<CmChannel> channel_;
  std::map<std::pair<ibv_context*, uint8_t>, std::weak_ptr<VerbsDomain>> domains_;
};

}  // namespace

std::unique_ptr<Fabric> make_verbs_fabric(Reactor& reactor, Reactor& disposal,
                                          std::shared_ptr<OpenDevices> devices) {
  return std::make_unique<VerbsFabric>(reactor, disposal, std::move(devices));
}

}  // namespace vjbod::transport::rdma
