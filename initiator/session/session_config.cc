// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/session_config.h"

namespace vjbod::initiator {

SessionConfig SessionConfig::copy() const {
  SessionConfig out;
  out.initiator_name = initiator_name;
  out.target_name = target_name;
  out.isid = isid;
  if (chap) out.chap = chap->copy();
  if (mutual) out.mutual = mutual->copy();
  out.chap_algorithms = chap_algorithms;
  out.chap_md5_retry = chap_md5_retry;
  out.fence_lun = fence_lun;
  out.header_digest = header_digest;
  out.data_digest = data_digest;
  out.timers = timers;
  out.fill_random = fill_random;
  return out;
}

}  // namespace vjbod::initiator
