// SPDX-License-Identifier: Apache-2.0
// TLS with pinned fingerprints over real sockets on the loopback.
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "common/rpc/tls_credentials.h"
#include "tests/unit/common/rpc/server_fixture.h"

namespace vjbod::rpc {
namespace {

class PeerServerTest : public testing::Test {
 protected:
  PeerServerTest() {
    auto started = thread_.run([&] {
      return PeerServer::start(thread_.reactor(), "127.0.0.1:0", identity_, {&service_});
    });
    EXPECT_TRUE(started) << started.error().text;
    server_ = std::move(*started);
  }
  ~PeerServerTest() override {
    thread_.stop(*server_);
    server_.reset();
  }

  std::unique_ptr<v1::TargetAdmin::Stub> stub(const Identity& client, const Fingerprint& expected) {
    return v1::TargetAdmin::NewStub(
        make_peer_channel(client, expected, "127.0.0.1", server_->port()));
  }
  // The TLS version that was agreed on, or 0 when the handshake fails.
  int shake_hands(int version) {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    // This process forbids old versions to itself, too; here they are wanted.
    SSL_CTX_clear_options(context, SSL_OP_NO_TLSv1_2 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_TLSv1);
    SSL_CTX_set_min_proto_version(context, version);
    SSL_CTX_set_max_proto_version(context, version);
    BIO* pem = BIO_new_mem_buf(client_.certificate_pem.data(), -1);
    X509* certificate = PEM_read_bio_X509(pem, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context, certificate);
    X509_free(certificate);
    BIO_free(pem);
    pem = BIO_new_mem_buf(client_.private_key_pem.data(), -1);
    EVP_PKEY* key = PEM_read_bio_PrivateKey(pem, nullptr, nullptr, nullptr);
    SSL_CTX_use_PrivateKey(context, key);
    EVP_PKEY_free(key);
    BIO_free(pem);
    BIO* connection = BIO_new_ssl_connect(context);
    BIO_set_conn_hostname(connection, fmt::format("127.0.0.1:{}", server_->port()).c_str());
    int agreed = 0;
    if (BIO_do_handshake(connection) == 1) {
      SSL* ssl = nullptr;
      BIO_get_ssl(connection, &ssl);
      agreed = SSL_version(ssl);
    }
    BIO_free_all(connection);
    SSL_CTX_free(context);
    return agreed;
  }

  ReactorThread thread_;
  TestService service_{thread_.reactor()};
  Identity identity_ = *make_identity("nas2");
  Identity client_ = *make_identity("nas1");
  std::unique_ptr<PeerServer> server_;
};

TEST_F(PeerServerTest, ServiceLearnsTheFingerprintOfItsCaller) {
  auto channel = stub(client_, identity_.fingerprint);
  grpc::ClientContext context;
  set_deadline(context);
  v1::TargetStatus status;

  grpc::Status result = channel->GetStatus(&context, {}, &status);

  ASSERT_TRUE(result.ok()) << result.error_message();
  EXPECT_EQ(status.certificate_fingerprint(), client_.fingerprint.to_text());
  EXPECT_TRUE(status.name().starts_with("127.0.0.1:")) << status.name();
}

TEST_F(PeerServerTest, NoCallReachesAServerWithAnotherFingerprint) {
  auto channel = stub(client_, make_identity("nas2")->fingerprint);
  grpc::ClientContext context;
  set_deadline(context);
  v1::TargetStatus status;

  grpc::Status result = channel->GetStatus(&context, {}, &status);

  ASSERT_FALSE(result.ok());
  Error error = from_grpc_status(result, Callee::peer, "nas2");
  EXPECT_EQ(error.code, Errc::identity_mismatch) << error.text;
  EXPECT_EQ(thread_.run([&] { return service_.calls; }), 0);
}

TEST_F(PeerServerTest, OnlyTls13IsSpoken) {
  EXPECT_EQ(shake_hands(TLS1_3_VERSION), TLS1_3_VERSION);
  EXPECT_EQ(shake_hands(TLS1_2_VERSION), 0);
  EXPECT_EQ(shake_hands(TLS1_1_VERSION), 0);
}

TEST_F(PeerServerTest, ClientWithoutACertificateReachesNothing) {
  auto options = grpc::experimental::TlsChannelCredentialsOptions();
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  auto channel = v1::TargetAdmin::NewStub(grpc::CreateChannel(
      fmt::format("127.0.0.1:{}", server_->port()), grpc::experimental::TlsCredentials(options)));
  grpc::ClientContext context;
  set_deadline(context);
  v1::TargetStatus status;

  EXPECT_FALSE(channel->GetStatus(&context, {}, &status).ok());
  EXPECT_EQ(thread_.run([&] { return service_.calls; }), 0);
}

TEST_F(PeerServerTest, AFailureArrivesWithItsKind) {
  auto channel = stub(client_, identity_.fingerprint);
  grpc::ClientContext context;
  set_deadline(context);
  v1::Empty empty;
  grpc::Status result = channel->DeleteLun(&context, {}, &empty);
  EXPECT_EQ(from_grpc_status(result, Callee::peer, "nas2").code, Errc::busy);
}

TEST_F(PeerServerTest, AForgottenCallIsAnsweredAllTheSame) {
  auto channel = stub(client_, identity_.fingerprint);
  grpc::ClientContext context;
  set_deadline(context);
  v1::Lun lun;
  grpc::Status result = channel->UnbindLun(&context, {}, &lun);
  EXPECT_EQ(from_grpc_status(result, Callee::peer, "nas2").code, Errc::other);
}

TEST_F(PeerServerTest, APortInUseIsNamed) {
  std::string address = fmt::format("127.0.0.1:{}", server_->port());
  auto second = thread_.run(
      [&] { return PeerServer::start(thread_.reactor(), address, identity_, {&service_}); });
  ASSERT_FALSE(second);
  EXPECT_EQ(kind_of(second.error().code), Errc::busy);
  EXPECT_NE(second.error().text.find(address), std::string::npos);
}

TEST_F(PeerServerTest, AFollowerGetsWhatWasAndWhatComes) {
  thread_.run([&] { service_.log.add(Severity::info, "paired", "nas1", "one", wall_now()); });
  auto channel = stub(client_, identity_.fingerprint);
  grpc::ClientContext context;
  set_deadline(context);
  v1::EventsRequest request;
  request.set_follow(true);
  auto reader = channel->Events(&context, request);

  v1::Event event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.text(), "one");
  thread_.run([&] { service_.log.add(Severity::info, "paired", "nas1", "two", wall_now()); });
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.text(), "two");
  EXPECT_EQ(event.sequence(), 2U);
  thread_.run([&] { service_.log.close({Errc::other, "the daemon stops"}); });
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_message(), "the daemon stops");
}

TEST_F(PeerServerTest, AWatcherThatWentAwayIsForgotten) {
  auto channel = stub(client_, identity_.fingerprint);
  {
    grpc::ClientContext context;
    set_deadline(context);
    v1::EventsRequest request;
    request.set_follow(true);
    auto reader = channel->Events(&context, request);
    thread_.run([&] { service_.log.add(Severity::info, "paired", "nas1", "one", wall_now()); });
    v1::Event event;
    ASSERT_TRUE(reader->Read(&event));
    context.TryCancel();
    reader->Finish();
  }
  // The server can stop, which waits for every stream (see the destructor).
}

}  // namespace
}  // namespace vjbod::rpc
