// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/errc.h"

#include <string>

namespace vjbod::iscsi {

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "iscsi"; }
  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::unknown_opcode: return "unknown-opcode";
      case Errc::wrong_direction: return "wrong-direction";
      case Errc::bad_field: return "bad-field";
      case Errc::data_too_long: return "data-too-long";
      case Errc::ahs_too_long: return "ahs-too-long";
      case Errc::header_digest: return "header-digest";
      case Errc::data_digest: return "data-digest";
      case Errc::bad_text: return "bad-text";
      case Errc::text_too_long: return "text-too-long";
      case Errc::bad_value: return "bad-value";
      case Errc::bad_name: return "bad-name";
      case Errc::negotiation: return "negotiation";
      case Errc::authentication: return "authentication";
      case Errc::bad_stage: return "bad-stage";
      case Errc::login_refused: return "login-refused";
      case Errc::target_not_found: return "target-not-found";
      case Errc::not_allowed: return "not-allowed";
      case Errc::unsupported_version: return "unsupported-version";
      case Errc::protocol: return "protocol";
      case Errc::bad_sequence_number: return "bad-sequence-number";
      case Errc::connection_lost: return "connection-lost";
      case Errc::timed_out: return "timed-out";
      case Errc::closed_locally: return "closed-locally";
    }
    return "unknown";
  }
};

}  // namespace

const std::error_category& error_category() {
  static const Category category;
  return category;
}

}  // namespace vjbod::iscsi
