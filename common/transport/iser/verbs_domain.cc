// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/verbs_domain.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <net/if.h>
#include <sys/resource.h>

#include "common/transport/rdma_errc.h"

namespace vjbod::transport::rdma {

namespace {

constexpr size_t gids_max = 256;  // of a port

}  // namespace

Error memory_error(std::string_view what, int error_number, const std::string& device) {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (error_number == ENOMEM && limited) {
    return {RdmaErrc::memlock,
            fmt::format("{} with {} failed: the process may lock {} KiB of memory "
                        "(RLIMIT_MEMLOCK); raise LimitMEMLOCK= of its service.",
                        what, device, limit.rlim_cur / 1024)};
  }
  return {RdmaErrc::registration_failed,
          fmt::format("{} with {} failed: {}.", what, device, std::strerror(error_number))};
}

unsigned access_flags(Access access) {
  switch (access) {
    case Access::local: return IBV_ACCESS_LOCAL_WRITE;
    case Access::remote_read: return IBV_ACCESS_REMOTE_READ;
    case Access::remote_write: return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    case Access::window: return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
  }
  return 0;
}

Result<DeviceFacts> facts_of(ibv_context* device, uint8_t port) {
  DeviceFacts facts;
  facts.name = ibv_get_device_name(device->device);
  ibv_device_attr device_facts{};
  ibv_port_attr port_facts{};
  int error = ibv_query_device(device, &device_facts);
  if (error == 0) error = ibv_query_port(device, port, &port_facts);
  if (error != 0) {
    return fail(RdmaErrc::device_removed, "The RDMA device {} does not answer: {}.", facts.name,
                std::strerror(error));
  }
  facts.memory_windows = (device_facts.device_cap_flags &
                          (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0 &&
                         device_facts.max_mw > 0;
  facts.queue_requests_max = static_cast<uint32_t>(device_facts.max_qp_wr);
  facts.region_bytes_max = device_facts.max_mr_size;
  facts.message_bytes_max = port_facts.max_msg_sz;
  return facts;
}

std::string interface_of(ibv_context* device, uint8_t port, const ibv_gid& gid) {
  std::array<ibv_gid_entry, gids_max> entries{};
  const ssize_t count = ibv_query_gid_table(device, entries.data(), entries.size(), 0);
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<size_t>(i)];
    if (entry.port_num != port || std::memcmp(&entry.gid, &gid, sizeof gid) != 0) continue;
    std::array<char, IF_NAMESIZE> name{};
    if (if_indextoname(entry.ndev_ifindex, name.data()) != nullptr) return name.data();
  }
  return {};
}

Result<std::shared_ptr<VerbsDomain>> VerbsDomain::open(Reactor& reactor,
                                                       std::shared_ptr<OpenDevices> devices,
                                                       ibv_context* device, uint8_t port) {
  auto facts = facts_of(device, port);
  if (!facts) return fail(std::move(facts).error());
  std::shared_ptr<VerbsDomain> domain(new VerbsDomain(std::move(*facts), std::move(devices)));
  domain->context_ = device;
  domain->devices_->uses(domain.get(), device);
  domain->pd_ = ibv_alloc_pd(device);
  if (domain->pd_ != nullptr) domain->channel_ = ibv_create_comp_channel(device);
  if (domain->channel_ == nullptr) {
    return fail(RdmaErrc::no_resources, "The RDMA device {} gives no more protection domains: {}.",
                domain->facts_.name, std::strerror(errno));
  }
  const int fd = domain->channel_->fd;
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  domain->watch_ =
      reactor.watch_readable(fd, [self = domain.get()] { self->on_channel_readable(); });
  return domain;
}

VerbsDomain::~VerbsDomain() {
  watch_.reset();
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  if (pd_ != nullptr) ibv_dealloc_pd(pd_);
  devices_->done(this);
}

// Ends: a queue reports again only after it was armed again, which no sink does in here.
void VerbsDomain::on_channel_readable() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_, &queue, &context) == 0) {
    ibv_ack_cq_events(queue, 1);
    static_cast<CompletionSink*>(context)->on_cq_event();
  }
}

Result<std::unique_ptr<Region>> VerbsDomain::register_memory(ConstBytes memory, Access access) {
  auto* address = const_cast<std::byte*>(memory.data());
  ibv_mr* region = ibv_reg_mr(pd_, address, memory.size(), static_cast<int>(access_flags(access)));
  if (region == nullptr) {
    return fail(memory_error(fmt::format("Registering {} bytes of memory", memory.size()), errno,
                             facts_.name));
  }
  return std::make_unique<VerbsRegion>(region, memory);
}

Result<std::unique_ptr<Window>> VerbsDomain::make_window() {
  ibv_mw* window = ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
  if (window == nullptr) {
    return fail(RdmaErrc::no_resources, "The RDMA device {} gives no more memory windows: {}.",
                facts_.name, std::strerror(errno));
  }
  return std::make_unique<VerbsWindow>(window);
}

Result<ibv_cq*> VerbsDomain::make_completion_queue(uint32_t size, CompletionSink& sink) {
  ibv_cq* queue = ibv_create_cq(context_, static_cast<int>(size), &sink, channel_, 0);
  if (queue == nullptr) return fail(memory_error("Making a completion queue", errno, facts_.name));
  return queue;
}

}  // namespace vjbod::transport::rdma
