// SPDX-License-Identifier: Apache-2.0
#include "common/net/address_watch.h"

#include <cerrno>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

namespace vjbod::net {

Result<AddressWatch> AddressWatch::open() {
  // rtnetlink(7): the multicast groups of links and addresses.
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    return fail(system_code(error),
                "changes of the network interfaces cannot be watched: {}; new addresses are "
                "noticed later",
                system_code(error).message());
  }
  return AddressWatch(std::move(socket));
}

void AddressWatch::read_empty() {
  char message[8192];
  // ENOBUFS tells of news that were lost, which is news as well.
  while (::recv(socket_.get(), message, sizeof message, 0) >= 0 || errno == EINTR ||
         errno == ENOBUFS) {
  }
}

}  // namespace vjbod::net
