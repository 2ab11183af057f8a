// SPDX-License-Identifier: Apache-2.0
#include "common/transport/rdma_errc.h"

#include <string>

namespace vjbod::transport {

namespace {

std::string_view name_of(RdmaErrc code) {
  switch (code) {
    case RdmaErrc::no_rdma_device: return "no-rdma-device";
    case RdmaErrc::wrong_device: return "wrong-device";
    case RdmaErrc::rdma_link_down: return "rdma-link-down";
    case RdmaErrc::no_gid: return "no-gid";
    case RdmaErrc::address_unreachable: return "address-unreachable";
    case RdmaErrc::connect_timeout: return "connect-timeout";
    case RdmaErrc::connect_rejected: return "connect-rejected";
    case RdmaErrc::peer_has_no_iser: return "peer-has-no-iser";
    case RdmaErrc::memlock: return "memlock";
    case RdmaErrc::registration_failed: return "registration-failed";
    case RdmaErrc::no_resources: return "no-rdma-resources";
    case RdmaErrc::login_rejected: return "login-rejected";
    case RdmaErrc::device_removed: return "device-removed";
    case RdmaErrc::address_changed: return "address-changed";
    case RdmaErrc::bad_private_data: return "bad-private-data";
    case RdmaErrc::bad_header: return "bad-iser-header";
    case RdmaErrc::bad_length: return "bad-iser-length";
    case RdmaErrc::out_of_state: return "out-of-state";
    case RdmaErrc::bad_key: return "bad-key";
    case RdmaErrc::transfer_failed: return "transfer-failed";
    case RdmaErrc::no_common_subnet: return "no-subnet";
  }
  return "unknown";
}

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "rdma"; }
  std::string message(int code) const override {
    return std::string(name_of(static_cast<RdmaErrc>(code)));
  }
};

}  // namespace

const std::error_category& rdma_error_category() {
  static const Category category;
  return category;
}

std::string_view rdma_reason_of(const std::error_code& code) {
  if (code.category() != rdma_error_category()) return {};
  return name_of(static_cast<RdmaErrc>(code.value()));
}

}  // namespace vjbod::transport
