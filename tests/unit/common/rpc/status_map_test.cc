// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/status_map.h"

#include <gtest/gtest.h>

namespace vjbod::rpc {
namespace {

TEST(StatusMap, EveryKindSurvivesTheWayThere) {
  for (int kind = 1; kind <= 17; ++kind) {
    Error error{static_cast<Errc>(kind), "LUN disk1 is in use"};
    Error back = from_grpc_status(to_grpc_status(error), Callee::peer, "nas2");
    EXPECT_EQ(back.code, error.code) << kind;
    EXPECT_EQ(back.text, error.text);
  }
}

TEST(StatusMap, ErrnoValuesHaveTheirKind) {
  EXPECT_EQ(kind_of(system_code(ENOSPC)), Errc::no_space);
  EXPECT_EQ(kind_of(system_code(EDQUOT)), Errc::no_space);
  EXPECT_EQ(kind_of(system_code(EACCES)), Errc::permission);
  EXPECT_EQ(kind_of(system_code(EIO)), Errc::other);
}

TEST(StatusMap, UnavailableDependsOnWhoWasCalled) {
  grpc::Status unavailable(grpc::StatusCode::UNAVAILABLE, "connection refused");
  EXPECT_EQ(from_grpc_status(unavailable, Callee::peer, "nas2").code, Errc::peer_unreachable);
  EXPECT_EQ(from_grpc_status(unavailable, Callee::local_daemon, "it").code,
            Errc::daemon_not_running);
}

// Whether a LUN was made by a call that ended under way is not known: the same as after a loss.
TEST(StatusMap, ACallThatEndedUnderWayIsALostPeer) {
  for (const auto code :
       {grpc::StatusCode::CANCELLED, grpc::StatusCode::INTERNAL, grpc::StatusCode::ABORTED})
    EXPECT_EQ(from_grpc_status(grpc::Status(code, "ended"), Callee::peer, "nas2").code,
              Errc::peer_unreachable);
}

TEST(StatusMap, HostileDetailsAreNotBelieved) {
  v1::ErrorDetail detail;
  detail.set_kind(static_cast<v1::ErrorKind>(4711));
  grpc::Status status(grpc::StatusCode::NOT_FOUND, "x", detail.SerializeAsString());
  EXPECT_EQ(from_grpc_status(status, Callee::peer, "nas2").code, Errc::not_found);
  grpc::Status garbage(grpc::StatusCode::NOT_FOUND, "x", "\xff\xff\xff");
  EXPECT_EQ(from_grpc_status(garbage, Callee::peer, "nas2").code, Errc::not_found);
}

TEST(StatusMap, ControlCharactersOfAPeerDoNotReachTheTerminal) {
  Error error{Errc::busy, "a\x1b[31mb"};
  EXPECT_EQ(from_grpc_status(to_grpc_status(error), Callee::peer, "nas2").text, "a?[31mb");
}

}  // namespace
}  // namespace vjbod::rpc
