// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/verbs_connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/transport/rdma_errc.h"
#include "common/transport/tcp/socket.h"

namespace vjbod::transport::rdma {

namespace {

constexpr uint64_t receive_mark = uint64_t{1} << 63;  // in a request's id
constexpr size_t post_batch_max = 32;
// Soft-RoCE reports an invalidation by the kernel's number of the flag, which is that of "IP
// checksum is good" here; a reliable connection has no such thing to report.
constexpr unsigned invalidation_flags = IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK;
// Both ends try again without end while the other one has no receive posted.
constexpr uint8_t receiver_not_ready_retries = 7;
constexpr uint8_t retries = 7;
// 4.096 us * 2^18, about a second for each of the retries: a dead peer shows within ten.
constexpr uint8_t acknowledge_timeout = 18;

rdma_conn_param parameters(ConstBytes private_data) {
  rdma_conn_param parameters{};
  parameters.private_data = private_data.data();
  parameters.private_data_len = static_cast<uint8_t>(private_data.size());
  parameters.responder_resources = RDMA_MAX_RESP_RES;
  parameters.initiator_depth = RDMA_MAX_INIT_DEPTH;
  parameters.flow_control = 1;
  parameters.retry_count = retries;
  parameters.rnr_retry_count = receiver_not_ready_retries;
  return parameters;
}

Completion::Status status_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS: return Completion::Status::success;
    case IBV_WC_WR_FLUSH_ERR: return Completion::Status::flushed;
    case IBV_WC_LOC_LEN_ERR: return Completion::Status::local_length;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR: return Completion::Status::remote_access;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR: return Completion::Status::retries;
    case IBV_WC_RNR_RETRY_EXC_ERR: return Completion::Status::receiver_not_ready;
    default: return Completion::Status::other;
  }
}

std::string name_of(const sockaddr* address) {
  SocketAddress copy;
  if (address == nullptr) return {};
  copy.length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&copy.storage, address, copy.length);
  return endpoint_text(copy);
}

void fill(const SendRequest& request, ibv_send_wr& work, ibv_sge& memory) {
  work = {};
  work.wr_id = request.id;
  if (request.signaled) work.send_flags = IBV_SEND_SIGNALED;
  if (!request.memory.empty() && request.kind != SendRequest::Kind::bind) {
    memory = {reinterpret_cast<uint64_t>(request.memory.data()),
              static_cast<uint32_t>(request.memory.size()), request.local_key};
    work.sg_list = &memory;
    work.num_sge = 1;
  }
  switch (request.kind) {
    case SendRequest::Kind::send: work.opcode = IBV_WR_SEND; break;
    case SendRequest::Kind::send_with_invalidate:
      work.opcode = IBV_WR_SEND_WITH_INV;
      work.invalidate_rkey = request.remote_key;
      break;
    case SendRequest::Kind::write:
    case SendRequest::Kind::read:
      work.opcode = request.kind == SendRequest::Kind::write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
      work.wr.rdma.remote_addr = request.remote_address;
      work.wr.rdma.rkey = request.remote_key;
      break;
    case SendRequest::Kind::bind:
      work.opcode = IBV_WR_BIND_MW;
      work.bind_mw.mw = static_cast<VerbsWindow*>(request.window)->get();
      work.bind_mw.rkey = request.remote_key;
      work.bind_mw.bind_info.mr = static_cast<const VerbsRegion*>(request.region)->get();
      work.bind_mw.bind_info.addr = reinterpret_cast<uint64_t>(request.memory.data());
      work.bind_mw.bind_info.length = request.memory.size();
      work.bind_mw.bind_info.mw_access_flags =
          request.access == Access::remote_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
      break;
    case SendRequest::Kind::invalidate:
      work.opcode = IBV_WR_LOCAL_INV;
      work.invalidate_rkey = request.remote_key;
      break;
  }
}

}  // namespace

Result<std::unique_ptr<VerbsConnection>> VerbsConnection::make(Reactor& reactor,
                                                               VerbsDomains& domains,
                                                               std::shared_ptr<CmChannel> channel) {
  CmChannel& owner = *channel;
  auto connection =
      std::make_unique<VerbsConnection>(reactor, domains, std::move(channel), nullptr);
  auto id = owner.make_id(*connection);
  if (!id) return fail(std::move(id).error());
  connection->id_ = *id;
  return connection;
}

VerbsConnection::VerbsConnection(Reactor& reactor, VerbsDomains& domains,
                                 std::shared_ptr<CmChannel> channel, rdma_cm_id* id)
    : reactor_(reactor), domains_(domains), channel_(std::move(channel)), id_(id) {
  if (id_ != nullptr) id_->context = static_cast<CmSink*>(this);
}

VerbsConnection::~VerbsConnection() {
  destroy_queue();
  if (id_ != nullptr) channel_->dispose(id_);
}

Status VerbsConnection::failed(std::string_view what) const {
  const int error = errno;
  const RdmaErrc code = error == ENODEV ? RdmaErrc::no_rdma_device
                        : error == EADDRNOTAVAIL || error == ENETUNREACH || error == EHOSTUNREACH
                            ? RdmaErrc::address_unreachable
                            : RdmaErrc::no_resources;
  return fail(code, "{} failed: {}.", what, std::strerror(error));
}

Status VerbsConnection::resolve_address(const std::string& source, const std::string& address,
                                        uint16_t port, Duration timeout) {
  auto to = parse_address(address, port);
  if (!to) return fail(std::move(to).error());
  SocketAddress from;
  if (!source.empty()) {
    auto parsed = parse_address(source, 0);
    if (!parsed) return fail(std::move(parsed).error());
    from = *parsed;
  }
  auto* from_address = source.empty() ? nullptr : reinterpret_cast<sockaddr*>(&from.storage);
  const int limit_ms = static_cast<int>(timeout / std::chrono::milliseconds(1));
  if (rdma_resolve_addr(id_, from_address, reinterpret_cast<sockaddr*>(&to->storage), limit_ms) !=
      0)
    return failed("Finding the RDMA device for " + address);
  return {};
}

Status VerbsConnection::resolve_route(Duration timeout) {
  uint8_t patience = acknowledge_timeout;
  (void)rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &patience,
                        sizeof patience);
  const int limit_ms = static_cast<int>(timeout / std::chrono::milliseconds(1));
  if (rdma_resolve_route(id_, limit_ms) != 0) return failed("Finding the RDMA route");
  return {};
}

Status VerbsConnection::connect(ConstBytes private_data) {
  rdma_conn_param wanted = parameters(private_data);
  if (rdma_connect(id_, &wanted) != 0) return failed("The RDMA connect request");
  return {};
}

Status VerbsConnection::accept(ConstBytes private_data) {
  uint8_t patience = acknowledge_timeout;
  (void)rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &patience,
                        sizeof patience);
  rdma_conn_param wanted = parameters(private_data);
  if (rdma_accept(id_, &wanted) != 0) return failed("Accepting an RDMA connection");
  return {};
}

Result<std::shared_ptr<Domain>> VerbsConnection::domain() {
  if (domain_ == nullptr) {
    if (id_->verbs == nullptr)
      return fail(RdmaErrc::no_rdma_device, "There is no RDMA device yet.");
    auto found = domains_.domain_of(id_->verbs, id_->port_num);
    if (!found) return fail(std::move(found).error());
    domain_ = std::move(*found);
  }
  return std::shared_ptr<Domain>(domain_);
}

DeviceFacts VerbsConnection::device() const {
  DeviceFacts facts;
  if (id_->verbs == nullptr) return facts;
  if (auto known = facts_of(id_->verbs, id_->port_num)) facts = std::move(*known);
  facts.interface_name = interface_of(id_->verbs, id_->port_num, id_->route.addr.addr.ibaddr.sgid);
  return facts;
}

Status VerbsConnection::make_queue(const QueueSizes& sizes) {
  if (auto found = domain(); !found) return fail(std::move(found).error());
  auto queue = domain_->make_completion_queue(sizes.sends + sizes.receives, *this);
  if (!queue) return fail(std::move(queue).error());
  completion_queue_ = *queue;
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completion_queue_;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = sizes.sends;
  wanted.cap.max_recv_wr = sizes.receives;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  if (rdma_create_qp(id_, domain_->protection_domain(), &wanted) != 0) {
    Error error = memory_error("Making a queue pair", errno, domain_->device().name);
    if (error.code == RdmaErrc::registration_failed) error.code = RdmaErrc::no_resources;
    return fail(std::move(error));
  }
  return {};
}

Status VerbsConnection::post_receives(std::span<const ReceiveRequest> requests) {
  std::array<ibv_recv_wr, post_batch_max> work;
  std::array<ibv_sge, post_batch_max> memory;
  VJBOD_CHECK(!requests.empty() && requests.size() <= work.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const ReceiveRequest& request = requests[i];
    memory[i] = {reinterpret_cast<uint64_t>(request.memory.data()),
                 static_cast<uint32_t>(request.memory.size()), request.local_key};
    work[i] = {};
    work[i].wr_id = request.id | receive_mark;
    work[i].sg_list = &memory[i];
    work[i].num_sge = 1;
    work[i].next = i + 1 < requests.size() ? &work[i + 1] : nullptr;
  }
  ibv_recv_wr* refused = nullptr;
  if (const int error = ibv_post_recv(id_->qp, work.data(), &refused); error != 0) {
    errno = error;
    return failed("Posting a receive");
  }
  return {};
}

Status VerbsConnection::post_sends(std::span<const SendRequest> requests) {
  std::array<ibv_send_wr, post_batch_max> work;
  std::array<ibv_sge, post_batch_max> memory;
  VJBOD_CHECK(!requests.empty() && requests.size() <= work.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    fill(requests[i], work[i], memory[i]);
    work[i].next = i + 1 < requests.size() ? &work[i + 1] : nullptr;
  }
  ibv_send_wr* refused = nullptr;
  if (const int error = ibv_post_send(id_->qp, work.data(), &refused); error != 0) {
    errno = error;
    return failed("Posting a request");
  }
  // The next binding of a window is told from this one by its key.
  for (const SendRequest& request : requests)
    if (request.kind == SendRequest::Kind::bind)
      static_cast<VerbsWindow*>(request.window)->get()->rkey = request.remote_key;
  return {};
}

size_t VerbsConnection::poll(std::span<Completion> into) {
  if (completion_queue_ == nullptr) return 0;
  std::array<ibv_wc, post_batch_max> work;
  const int most = static_cast<int>(std::min(into.size(), work.size()));
  const int count = ibv_poll_cq(completion_queue_, most, work.data());
  for (int i = 0; i < count; ++i) {
    const ibv_wc& from = work[static_cast<size_t>(i)];
    Completion& to = into[static_cast<size_t>(i)];
    to = {};
    to.status = status_of(from.status);
    to.receive = (from.wr_id & receive_mark) != 0;
    to.id = from.wr_id & ~receive_mark;
    to.vendor_status = static_cast<int>(from.status);
    if (from.status != IBV_WC_SUCCESS || !to.receive) continue;
    to.bytes = from.byte_len;
    to.invalidated = (from.wc_flags & invalidation_flags) != 0;
    if (to.invalidated) to.key = from.invalidated_rkey;
  }
  return count > 0 ? static_cast<size_t>(count) : 0;
}

void VerbsConnection::arm() {
  if (completion_queue_ != nullptr) (void)ibv_req_notify_cq(completion_queue_, 0);
}

void VerbsConnection::disconnect() {
  if (id_->qp != nullptr) (void)rdma_disconnect(id_);
}

void VerbsConnection::destroy_queue() {
  unlink();
  if (id_ != nullptr && id_->qp != nullptr) rdma_destroy_qp(id_);
  if (completion_queue_ != nullptr) ibv_destroy_cq(std::exchange(completion_queue_, nullptr));
}

std::string VerbsConnection::peer() const {
  return name_of(rdma_get_peer_addr(id_));
}

std::string VerbsConnection::local() const {
  return name_of(rdma_get_local_addr(id_));
}

void VerbsConnection::on_cm_event(rdma_cm_event_type type, int status, ConstBytes private_data,
                                  rdma_cm_id*) {
  if (type == RDMA_CM_EVENT_TIMEWAIT_EXIT || type == RDMA_CM_EVENT_CONNECT_RESPONSE) return;
  if (events_ != nullptr) events_->on_cm(report_of(type, status, private_data));
}

void VerbsConnection::on_cq_event() {
  reactor_.defer(*this);
}

void VerbsConnection::run_deferred() {
  if (events_ != nullptr) events_->on_completions();
}

}  // namespace vjbod::transport::rdma
