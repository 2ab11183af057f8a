// SPDX-License-Identifier: Apache-2.0
#include "common/net/address_watch.h"

#include <cerrno>
#include <string_view>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace vjbod::net {

namespace {

constexpr uint32_t kernel_events_group = 1;  // of NETLINK_KOBJECT_UEVENT; 2 is udev's own
constexpr std::string_view rdma_subsystem = "SUBSYSTEM=infiniband";

UniqueFd open_netlink(int protocol, uint32_t groups) {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (socket.valid() &&
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return UniqueFd();
  return socket;
}

bool watch(const UniqueFd& both, const UniqueFd& one) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  return epoll_ctl(both.get(), EPOLL_CTL_ADD, one.get(), &wanted) == 0;
}

}  // namespace

Result<AddressWatch> AddressWatch::open() {
  UniqueFd both(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd addresses =
      open_netlink(NETLINK_ROUTE, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
  if (!both.valid() || !addresses.valid() || !watch(both, addresses)) {
    const int error = errno;
    return fail(system_code(error),
                "changes of the network interfaces cannot be watched: {}; new addresses are "
                "noticed later",
                system_code(error).message());
  }
  UniqueFd devices = open_netlink(NETLINK_KOBJECT_UEVENT, kernel_events_group);
  if (devices.valid()) (void)watch(both, devices);
  return AddressWatch(std::move(addresses), std::move(devices), std::move(both));
}

bool AddressWatch::read_empty() {
  char message[8192];
  bool news = false;
  for (;;) {
    const ssize_t got = ::recv(addresses_.get(), message, sizeof message, 0);
    // ENOBUFS tells of news that were lost, which is news as well.
    if (got < 0 && errno != EINTR && errno != ENOBUFS) break;
    news = true;
  }
  while (devices_.valid()) {
    const ssize_t got = ::recv(devices_.get(), message, sizeof message, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != ENOBUFS) break;
    news |= got < 0 || std::string_view(message, static_cast<size_t>(got)).find(rdma_subsystem) !=
                           std::string_view::npos;
  }
  return news;
}

}  // namespace vjbod::net
