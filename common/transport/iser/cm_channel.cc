// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/cm_channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>

#include "common/transport/rdma_errc.h"

namespace vjbod::transport::rdma {

namespace {

constexpr size_t private_data_bytes_max = 256;
// InfiniBand specification, table 99: why a connection was rejected.
constexpr int no_such_service = 8;

}  // namespace

Error no_manager(int error_number) {
  return {RdmaErrc::no_rdma_device,
          fmt::format("The RDMA connection manager is not there ({}); load the kernel module "
                      "rdma_ucm.",
                      std::strerror(error_number))};
}

Result<std::shared_ptr<CmChannel>> CmChannel::open(Reactor& reactor, Reactor& disposal,
                                                   std::shared_ptr<OpenDevices> devices) {
  rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == nullptr) return fail(no_manager(errno));
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  std::shared_ptr<CmChannel> opened(new CmChannel(disposal, std::move(devices), channel));
  opened->watch_ =
      reactor.watch_readable(channel->fd, [self = opened.get()] { self->on_readable(); });
  return opened;
}

CmChannel::~CmChannel() {
  rdma_destroy_event_channel(channel_);
}

Result<rdma_cm_id*> CmChannel::make_id(CmSink& sink) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_, &id, &sink, RDMA_PS_TCP) != 0) return fail(no_manager(errno));
  return id;
}

void CmChannel::dispose(rdma_cm_id* id) {
  id->context = nullptr;
  disposal_.post([channel = shared_from_this(), id] {
    rdma_destroy_id(id);
    channel->devices_->done(id);
  });
}

void CmChannel::on_readable() {
  const auto alive = shared_from_this();
  rdma_cm_event* event = nullptr;
  while (watch_ != nullptr && rdma_get_cm_event(channel_, &event) == 0) {
    std::array<std::byte, private_data_bytes_max> private_data;
    const rdma_cm_event_type type = event->event;
    const int status = event->status;
    rdma_cm_id* const id = event->id;
    // A request's id is new and has its listener's owner.
    auto* sink = static_cast<CmSink*>(
        (type == RDMA_CM_EVENT_CONNECT_REQUEST ? event->listen_id : id)->context);
    const size_t size = std::min<size_t>(event->param.conn.private_data_len, private_data.size());
    const bool has_private_data = type == RDMA_CM_EVENT_CONNECT_REQUEST ||
                                  type == RDMA_CM_EVENT_ESTABLISHED ||
                                  type == RDMA_CM_EVENT_REJECTED;
    ConstBytes data;
    if (has_private_data && event->param.conn.private_data != nullptr && size > 0) {
      std::memcpy(private_data.data(), event->param.conn.private_data, size);
      data = ConstBytes(private_data).first(size);
    }
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) id->context = nullptr;
    rdma_ack_cm_event(event);
    devices_->uses(id, id->verbs);
    if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
      on_device_removed(id->verbs);
    else
      guard_device_of(*id);
    if (sink != nullptr)
      sink->on_cm_event(type, status, data, id);
    else if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
      dispose(id);
  }
}

void CmChannel::guard_device_of(rdma_cm_id& id) {
  const sockaddr* at = rdma_get_local_addr(&id);
  if (id.verbs == nullptr || at == nullptr || guards_.contains(id.verbs)) return;
  const bool v6 = at->sa_family == AF_INET6;
  sockaddr_storage any_port{};
  std::memcpy(&any_port, at, v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  if (v6)
    reinterpret_cast<sockaddr_in6&>(any_port).sin6_port = 0;
  else
    reinterpret_cast<sockaddr_in&>(any_port).sin_port = 0;
  rdma_cm_id* guard = nullptr;
  if (rdma_create_id(channel_, &guard, nullptr, RDMA_PS_TCP) != 0) return;
  const bool bound = rdma_bind_addr(guard, reinterpret_cast<sockaddr*>(&any_port)) == 0;
  if (!bound || guard->verbs != id.verbs) return dispose(guard);
  devices_->uses(guard, guard->verbs);
  guards_[guard->verbs] = guard;
}

void CmChannel::on_device_removed(ibv_context* device) {
  devices_->removed(device);
  const auto guard = guards_.find(device);
  if (guard == guards_.end()) return;
  dispose(guard->second);
  guards_.erase(guard);
}

void CmChannel::stop_watching() {
  watch_.reset();
  for (const auto& [device, guard] : guards_) dispose(guard);
  guards_.clear();
}

CmReport report_of(rdma_cm_event_type type, int status, ConstBytes private_data) {
  CmReport report;
  report.detail = status;
  report.private_data = private_data;
  switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: report.event = CmEvent::address_resolved; break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: report.event = CmEvent::route_resolved; break;
    case RDMA_CM_EVENT_ESTABLISHED: report.event = CmEvent::established; break;
    case RDMA_CM_EVENT_DISCONNECTED: report.event = CmEvent::disconnected; break;
    case RDMA_CM_EVENT_ADDR_CHANGE: report.event = CmEvent::address_changed; break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL: report.event = CmEvent::device_removed; break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      report.failure = status == -ENODEV ? CmFailure::no_device : CmFailure::unreachable;
      break;
    case RDMA_CM_EVENT_UNREACHABLE: report.failure = CmFailure::timed_out; break;
    case RDMA_CM_EVENT_REJECTED:
      report.failure = status == no_such_service || status == -ECONNREFUSED
                           ? CmFailure::nobody_listens
                           : CmFailure::refused;
      break;
    default: report.failure = CmFailure::other; break;
  }
  return report;
}

}  // namespace vjbod::transport::rdma
