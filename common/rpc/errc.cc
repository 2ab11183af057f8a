// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/errc.h"

#include <string>

namespace vjbod::rpc {

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "control"; }
  std::string message(int value) const override { return name_of(static_cast<Errc>(value)); }
};

}  // namespace

const std::error_category& error_category() {
  static const Category category;
  return category;
}

const char* name_of(Errc code) {
  switch (code) {
    case Errc::other: return "other";
    case Errc::usage: return "usage";
    case Errc::not_found: return "not-found";
    case Errc::already_exists: return "already-exists";
    case Errc::busy: return "busy";
    case Errc::permission: return "permission";
    case Errc::daemon_not_running: return "daemon-not-running";
    case Errc::peer_unreachable: return "peer-unreachable";
    case Errc::timeout: return "timeout";
    case Errc::authentication: return "authentication";
    case Errc::bound_to_another_host: return "bound-to-another-host";
    case Errc::identity_mismatch: return "identity-mismatch";
    case Errc::no_space: return "no-space";
    case Errc::iser_unavailable: return "iser-unavailable";
    case Errc::no_backend: return "no-backend";
    case Errc::version: return "version";
    case Errc::partial: return "partial";
  }
  return "other";
}

}  // namespace vjbod::rpc
