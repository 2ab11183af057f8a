// SPDX-License-Identifier: Apache-2.0
// Both services over real gRPC on the loopback: who reaches what, and pairing from token to LUN.
#include "tests/unit/target/control/services_fixture.h"

namespace vjbod::target {
namespace {

TEST_F(ServicesTest, AnUnpairedCallerReachesNothingButPairing) {
  using Stub = v1::TargetPeer::Stub;
  v1::Empty empty;
  v1::DescribeResponse description;
  v1::ListPoolsResponse pools;
  v1::ListLunsResponse luns;
  v1::LunAccess access;
  v1::Lun lun;
  EXPECT_EQ(call(*peer_, &Stub::Describe, v1::DescribeRequest(), &description),
            Errc::authentication);
  EXPECT_EQ(call(*peer_, &Stub::ListPools, v1::Empty(), &pools), Errc::authentication);
  EXPECT_EQ(call(*peer_, &Stub::ListLuns, v1::Empty(), &luns), Errc::authentication);
  EXPECT_EQ(call(*peer_, &Stub::ProvisionLun, provision_request(), &access), Errc::authentication);
  EXPECT_EQ(call(*peer_, &Stub::OpenLun, v1::OpenLunRequest(), &access), Errc::authentication);
  EXPECT_EQ(call(*peer_, &Stub::CloseLun, v1::LunRequest(), &empty), Errc::authentication);
  EXPECT_EQ(call(*peer_, &Stub::DeleteLun, v1::LunRequest(), &empty), Errc::authentication);
  EXPECT_EQ(call(*peer_, &Stub::ResizeLun, v1::ResizeLunRequest(), &lun), Errc::authentication);
  EXPECT_EQ(call(*peer_, &Stub::Unpair, v1::Empty(), &empty), Errc::authentication);
  grpc::ClientContext context;
  auto watch = peer_->Watch(&context, v1::Empty());
  v1::Event event;
  EXPECT_FALSE(watch->Read(&event));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(ServicesTest, TheAdminCallsAreNotThereForOtherBoxes) {
  auto stub = v1::TargetAdmin::NewStub(
      rpc::make_peer_channel(host_, identity_.fingerprint, "127.0.0.1", peer_server_->port()));
  pair_host();
  v1::TargetStatus status;
  EXPECT_EQ(call(*stub, &v1::TargetAdmin::Stub::GetStatus, v1::Empty(), &status), Errc::version);
}

TEST_F(ServicesTest, FiveWrongTokensAndItIsGone) {
  const rpc::PairingToken token = make_token();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pair(*peer_, rpc::PairingSecret{}), Errc::authentication);
  EXPECT_EQ(pair(*peer_, token.secret), Errc::authentication);
}

TEST_F(ServicesTest, ATokenPairsOneHost) {
  const rpc::PairingToken token = make_token();
  EXPECT_EQ(token.fingerprint, identity_.fingerprint);
  EXPECT_EQ(token.port, peer_server_->port());
  EXPECT_FALSE(pair(*peer_, token.secret));
  auto other = connect(*rpc::make_identity("nas3"));
  EXPECT_EQ(pair(*other, token.secret, "nas3"), Errc::authentication);
}

TEST_F(ServicesTest, AHostWithAnotherProtocolIsRefusedAndItsTokenStaysGood) {
  const rpc::PairingToken token = make_token();
  v1::PairRequest request;
  request.set_secret(std::string(as_text(token.secret)));
  request.set_host_name("nas1");
  request.set_initiator_iqn("iqn.2026-11.io.vjbod:nas1");
  request.mutable_version()->set_protocol_major(99);
  v1::PairResponse response;
  EXPECT_EQ(call(*peer_, &v1::TargetPeer::Stub::Pair, request, &response), Errc::version);
  EXPECT_FALSE(pair(*peer_, token.secret));
}

TEST_F(ServicesTest, AHostileHostNameIsRefused) {
  EXPECT_EQ(pair(*peer_, make_token().secret, "../nas1"), Errc::usage);
  on_reactor([this] { EXPECT_TRUE(store_->state().hosts.empty()); });
}

TEST_F(ServicesTest, TheSameProvisionAgainGivesTheSameLunAndSecrets) {
  pair_host();
  const v1::LunAccess first = provision();
  const v1::LunAccess second = provision();
  EXPECT_EQ(first.lun().naa(), second.lun().naa());
  EXPECT_EQ(first.chap_secret(), second.chap_secret());
  EXPECT_EQ(first.lun().bound_to(), "nas1");
  EXPECT_EQ(first.portals_size(), 1);
  EXPECT_FALSE(first.chap_secret().empty());
  EXPECT_NE(first.chap_secret(), first.mutual_secret());
}

TEST_F(ServicesTest, AHostSeesAndTouchesItsOwnLunsOnly) {
  using Stub = v1::TargetPeer::Stub;
  pair_host();
  provision();
  rpc::Identity other_identity = *rpc::make_identity("nas3");
  auto other = connect(other_identity);
  ASSERT_FALSE(pair(*other, make_token().secret, "nas3"));
  v1::LunRequest request;
  request.set_lun("disk1");
  v1::OpenLunRequest open;
  open.set_lun("disk1");
  v1::ResizeLunRequest resize;
  resize.set_lun("disk1");
  resize.set_size_bytes(2 << 20);
  v1::Empty empty;
  v1::Lun lun;
  v1::LunAccess access;
  v1::ListLunsResponse luns;
  EXPECT_EQ(call(*other, &Stub::OpenLun, open, &access), Errc::bound_to_another_host);
  EXPECT_EQ(call(*other, &Stub::CloseLun, request, &empty), Errc::bound_to_another_host);
  EXPECT_EQ(call(*other, &Stub::DeleteLun, request, &empty), Errc::bound_to_another_host);
  EXPECT_EQ(call(*other, &Stub::ResizeLun, resize, &lun), Errc::bound_to_another_host);
  EXPECT_FALSE(call(*other, &Stub::ListLuns, v1::Empty(), &luns));
  EXPECT_EQ(luns.luns_size(), 0);
  EXPECT_FALSE(call(*peer_, &Stub::ListLuns, v1::Empty(), &luns));
  EXPECT_EQ(luns.luns_size(), 1);
}

TEST_F(ServicesTest, AClosedLunKeepsItsDataAndIsOpenedWithFreshSecrets) {
  using Stub = v1::TargetPeer::Stub;
  pair_host();
  const v1::LunAccess before = provision();
  v1::LunRequest request;
  request.set_lun("disk1");
  v1::Empty empty;
  EXPECT_FALSE(call(*peer_, &Stub::CloseLun, request, &empty));
  EXPECT_FALSE(call(*peer_, &Stub::CloseLun, request, &empty));
  v1::OpenLunRequest open;
  open.set_lun(before.lun().naa());
  v1::LunAccess after;
  EXPECT_FALSE(call(*peer_, &Stub::OpenLun, open, &after));
  EXPECT_EQ(after.lun().uuid(), before.lun().uuid());
  EXPECT_NE(after.chap_secret(), before.chap_secret());
}

TEST_F(ServicesTest, ADeletedLunIsGone) {
  using Stub = v1::TargetPeer::Stub;
  pair_host();
  provision();
  v1::LunRequest request;
  request.set_lun("disk1");
  v1::Empty empty;
  EXPECT_FALSE(call(*peer_, &Stub::DeleteLun, request, &empty)) << last_error_;
  EXPECT_EQ(call(*peer_, &Stub::DeleteLun, request, &empty), Errc::not_found);
  EXPECT_TRUE(std::filesystem::is_empty(dir_ / "pool"));
}

TEST_F(ServicesTest, AWatcherHearsOfItsLunAndOfItsUnpairing) {
  pair_host();
  provision();
  grpc::ClientContext context;
  context.set_deadline(wall_now() + std::chrono::seconds(30));
  auto watch = peer_->Watch(&context, v1::Empty());
  v1::Event event;
  ASSERT_TRUE(watch->Read(&event));
  EXPECT_EQ(event.kind(), "watching");
  v1::ResizeLunRequest resize;
  resize.set_lun("disk1");
  resize.set_size_bytes(2 << 20);
  v1::Lun lun;
  ASSERT_FALSE(call(*admin_, &v1::TargetAdmin::Stub::ResizeLun, resize, &lun));
  ASSERT_TRUE(watch->Read(&event));
  EXPECT_EQ(event.kind(), "lun-resized");
  EXPECT_EQ(event.object(), "disk1");
  v1::NameRequest unpair;
  unpair.set_name("nas1");
  v1::Empty empty;
  ASSERT_FALSE(call(*admin_, &v1::TargetAdmin::Stub::UnpairPeer, unpair, &empty));
  EXPECT_FALSE(watch->Read(&event));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  v1::ListPoolsResponse pools;
  EXPECT_EQ(call(*peer_, &v1::TargetPeer::Stub::ListPools, v1::Empty(), &pools),
            Errc::authentication);
}

TEST_F(ServicesTest, AWatcherDoesNotOutliveTheNameOfItsHost) {
  pair_host();
  grpc::ClientContext context;
  context.set_deadline(wall_now() + std::chrono::seconds(30));
  auto watch = peer_->Watch(&context, v1::Empty());
  v1::Event event;
  ASSERT_TRUE(watch->Read(&event));
  ASSERT_FALSE(pair(*peer_, make_token().secret, "new-name"));
  EXPECT_FALSE(watch->Read(&event));
  EXPECT_EQ(static_cast<Errc>(
                rpc::from_grpc_status(watch->Finish(), Callee::peer, "the target").code.value()),
            Errc::other);
}

TEST_F(ServicesTest, TheAdministratorDoesNotDeleteWhatAHostUses) {
  pair_host();
  provision();
  v1::LunRequest request;
  request.set_lun("disk1");
  v1::Empty empty;
  v1::Lun lun;
  EXPECT_EQ(call(*admin_, &v1::TargetAdmin::Stub::DeleteLun, request, &empty), Errc::busy);
  EXPECT_FALSE(call(*admin_, &v1::TargetAdmin::Stub::UnbindLun, request, &lun));
  EXPECT_FALSE(call(*admin_, &v1::TargetAdmin::Stub::DeleteLun, request, &empty)) << last_error_;
}

}  // namespace
}  // namespace vjbod::target
