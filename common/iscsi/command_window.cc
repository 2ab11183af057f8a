// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/command_window.h"

#include "common/base/check.h"

namespace vjbod::iscsi {

CommandWindow::CommandWindow(SerialNumber first, uint32_t depth, uint32_t immediate_max)
    : exp_(first), max_(first + depth - 1), immediate_max_(immediate_max) {
  VJBOD_CHECK(depth >= 1 && depth < 1U << 31);
}

CommandWindow::Verdict CommandWindow::take(SerialNumber cmd_sn, bool immediate) {
  if (immediate) {
    if (immediate_unfinished_ == immediate_max_) return Verdict::too_many_immediate;
    ++immediate_unfinished_;
    return Verdict::accepted;
  }
  if (cmd_sn < exp_ || cmd_sn > max_) return Verdict::ignored;
  if (cmd_sn != exp_) return Verdict::hole;
  ++exp_;
  ++unfinished_;
  return Verdict::accepted;
}

void CommandWindow::finished(bool immediate) {
  if (immediate) {
    VJBOD_CHECK(immediate_unfinished_ > 0);
    --immediate_unfinished_;
  } else {
    VJBOD_CHECK(unfinished_ > 0);
    --unfinished_;
    ++max_;
  }
}

bool CommandCredit::update(SerialNumber exp_cmd_sn, SerialNumber max_cmd_sn) {
  if (max_cmd_sn < exp_cmd_sn - 1) return true;
  if (exp_cmd_sn > next_) return false;
  if (exp_cmd_sn > exp_) exp_ = exp_cmd_sn;
  if (max_cmd_sn > max_) max_ = max_cmd_sn;
  return true;
}

SerialNumber CommandCredit::take() {
  VJBOD_CHECK(room() > 0, "a command was sent into a closed window");
  const SerialNumber taken = next_;
  ++next_;
  return taken;
}

}  // namespace vjbod::iscsi
