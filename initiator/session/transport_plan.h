// SPDX-License-Identifier: Apache-2.0
// Which way to a target is tried next. Pure. The transport belongs to the attempt, not to the
// disk: every candidate says its own, and a round of tries goes through all of them in order of
// preference. Each new round, and each reconnect, begins with the best again.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/transport/connector.h"

namespace vjbod::initiator {

struct PathCandidate {
  transport::Kind kind = transport::Kind::iscsi;
  transport::Endpoint endpoint;
};

class TransportPlan {
 public:
  explicit TransportPlan(std::vector<PathCandidate> candidates);

  bool empty() const { return candidates_.empty(); }
  // Whether there is something to fall back to from RDMA.
  bool has_other_than_rdma() const;
  // Ways by RDMA that this round has not tried yet.
  size_t rdma_left() const;
  const std::vector<PathCandidate>& candidates() const { return candidates_; }
  // The next way to try, or null at the end of a round; the call after that begins a new round.
  const PathCandidate* next();
  // A target answered the last candidate with "moved temporarily" (RFC 7143 section 11.13.5):
  // next() gives that address once, bound to the same interface and source address. False when the
  // last candidate was a redirection itself, or the address makes no sense: it is not followed.
  bool redirect(const std::string& address);
  // Begins again with the best candidate.
  void restart();

 private:
  std::vector<PathCandidate> candidates_;
  size_t position_ = 0;
  PathCandidate redirected_;
  bool redirect_waits_ = false;
  bool last_was_redirected_ = false;
};

// "10.0.0.2:3260", "[fe80::1]:3260", with or without port; nothing when it is not a numeric
// address. Host names are not followed: who may be contacted is not a matter for a name service.
bool parse_numeric_address(const std::string& text, std::string& address, uint16_t& port);

}  // namespace vjbod::initiator
