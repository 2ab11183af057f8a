// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/transport_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <arpa/inet.h>

namespace vjbod::initiator {

namespace {

bool is_numeric(const std::string& address, int family) {
  std::array<unsigned char, sizeof(in6_addr)> binary{};
  return inet_pton(family, address.c_str(), binary.data()) == 1;
}

bool parse_port(const std::string& text, uint16_t& port) {
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && rest == end && port != 0;
}

}  // namespace

TransportPlan::TransportPlan(std::vector<PathCandidate> candidates)
    : candidates_(std::move(candidates)) {}

const PathCandidate* TransportPlan::next() {
  if (redirect_waits_) {
    redirect_waits_ = false;
    last_was_redirected_ = true;
    return &redirected_;
  }
  last_was_redirected_ = false;
  if (position_ >= candidates_.size()) {
    position_ = 0;
    return nullptr;
  }
  return &candidates_[position_++];
}

bool TransportPlan::has_other_than_rdma() const {
  return std::any_of(candidates_.begin(), candidates_.end(), [](const PathCandidate& candidate) {
    return candidate.kind != transport::Kind::iser;
  });
}

size_t TransportPlan::rdma_left() const {
  return static_cast<size_t>(std::count_if(
      candidates_.begin() + static_cast<std::ptrdiff_t>(position_), candidates_.end(),
      [](const PathCandidate& candidate) { return candidate.kind == transport::Kind::iser; }));
}

bool TransportPlan::redirect(const std::string& address) {
  if (last_was_redirected_ || position_ == 0) return false;
  PathCandidate to = candidates_[position_ - 1];
  if (!parse_numeric_address(address, to.endpoint.address, to.endpoint.port)) return false;
  redirected_ = std::move(to);
  redirect_waits_ = true;
  return true;
}

void TransportPlan::restart() {
  position_ = 0;
  redirect_waits_ = false;
  last_was_redirected_ = false;
}

bool parse_numeric_address(const std::string& text, std::string& address, uint16_t& port) {
  std::string host = text;
  std::string port_text = "3260";
  if (!text.empty() && text.front() == '[') {
    const size_t end = text.find(']');
    if (end == std::string::npos) return false;
    host = text.substr(1, end - 1);
    if (end + 1 < text.size()) {
      if (text[end + 1] != ':') return false;
      port_text = text.substr(end + 2);
    }
    if (!is_numeric(host, AF_INET6)) return false;
  } else {
    const size_t colon = text.find(':');
    if (colon != std::string::npos) {
      host = text.substr(0, colon);
      port_text = text.substr(colon + 1);
    }
    if (!is_numeric(host, AF_INET)) return false;
  }
  uint16_t parsed = 0;
  if (!parse_port(port_text, parsed)) return false;
  address = std::move(host);
  port = parsed;
  return true;
}

}  // namespace vjbod::initiator
