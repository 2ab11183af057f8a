// SPDX-License-Identifier: Apache-2.0
#include "target/control/fault_rules.h"

#include "common/rpc/errc.h"

namespace vjbod::target {

namespace {

constexpr int errno_max = 4095;

template <typename Fault>
Result<backstore::OpMatch> match_of(const Fault& fault) {
  backstore::OpMatch match;
  match.offset_bytes = fault.first_byte();
  if (fault.length_bytes() != 0) match.length_bytes = fault.length_bytes();
  if (fault.operations().empty()) return match;
  match.kinds = {};
  for (const std::string& name : fault.operations()) {
    Result<backstore::OpKind> kind = backstore::op_kind_from_name(name);
    if (!kind) return fail(rpc::Errc::usage, "{}", kind.error().text);
    match.kinds.add(*kind);
  }
  return match;
}

}  // namespace

Status apply_fault(const v1::SetFaultRequest& request, const backstore::FilterControls& controls) {
  if (controls.delay == nullptr || controls.error == nullptr)
    return fail(rpc::Errc::permission, "LUN {} was opened without fault filters", request.lun());
  if (request.has_clear()) {
    controls.error->clear();
    controls.delay->clear();
    return {};
  }
  if (request.has_delay()) {
    Result<backstore::OpMatch> match = match_of(request.delay());
    if (!match) return fail(match.error());
    backstore::DelayRule rule{*match, std::nullopt};
    if (request.delay().delay_ms() != 0)
      rule.delay = std::chrono::milliseconds(request.delay().delay_ms());
    controls.delay->add(rule);
    return {};
  }
  if (request.has_error()) {
    Result<backstore::OpMatch> match = match_of(request.error());
    if (!match) return fail(match.error());
    backstore::ErrorRule rule{*match};
    if (request.error().errno_value() != 0) rule.error_number = request.error().errno_value();
    if (rule.error_number < 0 || rule.error_number > errno_max)
      return fail(rpc::Errc::usage, "{} is not an errno", rule.error_number);
    if (request.error().once()) rule.times = 1;
    controls.error->add(rule);
    return {};
  }
  return fail(rpc::Errc::usage, "the request names no fault");
}

}  // namespace vjbod::target
