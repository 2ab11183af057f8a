// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/tls_credentials.h"

#include <vector>

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/bio.h>
#include <openssl/conf.h>
#include <openssl/ssl.h>

#include "common/base/check.h"
#include "common/rpc/errc.h"

namespace vjbod::rpc {

namespace {

namespace tls = grpc::experimental;

// OpenSSL applies the "system_default" section to every SSL_CTX of the process when it is made.
// "Protocol" sets options that gRPC's own choice of a minimum version (1.2) does not take back.
constexpr const char tls_1_3_only[] =
    "openssl_conf = init\n"
    "[init]\n"
    "ssl_conf = ssl\n"
    "[ssl]\n"
    "system_default = tls\n"
    "[tls]\n"
    "Protocol = -ALL, TLSv1.3\n"
    "CipherString = DEFAULT@SECLEVEL=2\n";

Status load_tls_1_3_only() {
  // First whatever the system's own file says, so that it cannot come over ours later.
  OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS | OPENSSL_INIT_LOAD_CONFIG, nullptr);
  BIO* text = BIO_new_mem_buf(tls_1_3_only, -1);
  CONF* configuration = NCONF_new(nullptr);
  long error_line = 0;
  bool loaded = text != nullptr && configuration != nullptr &&
                NCONF_load_bio(configuration, text, &error_line) == 1 &&
                CONF_modules_load(configuration, nullptr, 0) == 1;
  NCONF_free(configuration);
  BIO_free(text);
  if (!loaded)
    return fail(Errc::other, "OpenSSL does not take the setting that forbids TLS below 1.3");

  SSL_CTX* probe = SSL_CTX_new(TLS_method());
  uint64_t options = probe != nullptr ? SSL_CTX_get_options(probe) : 0;
  SSL_CTX_free(probe);
  constexpr uint64_t forbidden =
      SSL_OP_NO_SSLv3 | SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_TLSv1_2;
  if ((options & forbidden) != forbidden || (options & SSL_OP_NO_TLSv1_3) != 0)
    return fail(Errc::other,
                "OpenSSL would still speak TLS below 1.3 in spite of its configuration; the "
                "control channel is not started");
  return {};
}

// Compares the certificate that the other side has just proved to own.
class PinnedServer final : public tls::ExternalCertificateVerifier {
 public:
  explicit PinnedServer(const Fingerprint& expected) : expected_(expected) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* result) override {
    grpc::string_ref pem = request->peer_cert();
    Result<Fingerprint> presented = fingerprint_of(std::string_view(pem.data(), pem.size()));
    if (!presented)
      *result = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, presented.error().text);
    else if (*presented != expected_)
      *result = grpc::Status(
          grpc::StatusCode::UNAUTHENTICATED,
          fmt::format("the certificate fingerprint is {}, not the pinned {}: this is another box",
                      presented->to_text(), expected_.to_text()));
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  Fingerprint expected_;
};

// Any client may shake hands; caller_fingerprint() tells the service who it is.
class AnyClient final : public tls::ExternalCertificateVerifier {
 public:
  bool Verify(tls::TlsCustomVerificationCheckRequest*, std::function<void(grpc::Status)>,
              grpc::Status*) override {
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}
};

std::shared_ptr<tls::CertificateProviderInterface> provider_of(const Identity& identity) {
  return std::make_shared<tls::StaticDataCertificateProvider>(
      "",
      std::vector<tls::IdentityKeyCertPair>{{identity.private_key_pem, identity.certificate_pem}});
}

}  // namespace

Status require_tls_1_3() {
  static const Status result = load_tls_1_3_only();
  return result;
}

std::shared_ptr<grpc::ServerCredentials> make_server_credentials(const Identity& identity) {
  Status only_1_3 = require_tls_1_3();
  VJBOD_CHECK(only_1_3, "{}", only_1_3.error().text);
  tls::TlsServerCredentialsOptions options(provider_of(identity));
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(tls::ExternalCertificateVerifier::Create<AnyClient>());
  options.set_check_call_host(false);
  return tls::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> make_channel_credentials(const Identity& identity,
                                                                   const Fingerprint& server) {
  Status only_1_3 = require_tls_1_3();
  VJBOD_CHECK(only_1_3, "{}", only_1_3.error().text);
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_of(identity));
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(false);  // no authority: the verifier decides
  options.set_certificate_verifier(tls::ExternalCertificateVerifier::Create<PinnedServer>(server));
  options.set_check_call_host(false);
  return tls::TlsCredentials(options);
}

std::optional<Fingerprint> caller_fingerprint(const grpc::AuthContext& context) {
  std::vector<grpc::string_ref> pem = context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (pem.size() != 1) return std::nullopt;
  Result<Fingerprint> fingerprint =
      fingerprint_of(std::string_view(pem.front().data(), pem.front().size()));
  if (!fingerprint) return std::nullopt;
  return *fingerprint;
}

}  // namespace vjbod::rpc
