// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include "common/base/log.h"

namespace vjbod::rpc {

void forward_grpc_log() {
  gpr_set_log_function([](gpr_log_func_args* line) { log::debug("[grpc] {}", line->message); });
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
}

}  // namespace vjbod::rpc
