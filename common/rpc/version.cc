// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/version.h"

#include "common/config/values.h"
#include "common/rpc/errc.h"

namespace vjbod::rpc {

const char* program_version() {
  return VJBOD_VERSION;
}

v1::VersionInfo our_version() {
  v1::VersionInfo version;
  version.set_version(program_version());
  version.set_protocol_major(protocol_major);
  version.set_protocol_minor(protocol_minor);
  return version;
}

Status check_version(const v1::VersionInfo& theirs, std::string_view who) {
  if (theirs.protocol_major() == protocol_major) return {};
  return fail(Errc::version,
              "{} speaks version {} of the control protocol and this box version {} (programs {} "
              "and {}); bring both boxes to the same release",
              who, theirs.protocol_major(), protocol_major, config::printable(theirs.version(), 32),
              program_version());
}

}  // namespace vjbod::rpc
