// SPDX-License-Identifier: Apache-2.0
#include "target/control/control_parts.h"

#include "common/runtime/wall_clock.h"

namespace vjbod::target {

void ControlParts::event(rpc::Severity severity, std::string_view kind, std::string_view object,
                         std::string text) {
  events.add(severity, kind, object, std::move(text), wall_now());
}

}  // namespace vjbod::target
