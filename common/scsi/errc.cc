// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/errc.h"

#include <string>

namespace vjbod::scsi {

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "scsi"; }
  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::unknown_opcode: return "unknown-opcode";
      case Errc::unknown_service_action: return "unknown-service-action";
      case Errc::short_cdb: return "short-cdb";
      case Errc::short_data: return "short-data";
      case Errc::bad_data: return "bad-data";
    }
    return "unknown";
  }
};

}  // namespace

const std::error_category& error_category() {
  static const Category category;
  return category;
}

}  // namespace vjbod::scsi
