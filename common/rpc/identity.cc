// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/identity.h"

#include <cerrno>
#include <memory>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/config/state_file.h"
#include "common/config/values.h"
#include "common/rpc/errc.h"

namespace vjbod::rpc {

namespace {

constexpr const char* identity_file_name = "identity.pem";
constexpr size_t identity_bytes_max = 64 * 1024;

template <auto Free>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;
using Bio = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;

tl::unexpected<Error> openssl_failed(std::string_view step) {
  unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return fail(Errc::other, "{} failed in OpenSSL: {}", step,
              reason != nullptr ? reason : "no reason given");
}

std::string content_of(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

Bio reader_of(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Result<Fingerprint> fingerprint_of(X509* certificate) {
  Fingerprint result;
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), reinterpret_cast<unsigned char*>(result.bytes.data()),
                  &size) != 1 ||
      size != result.bytes.size())
    return openssl_failed("the fingerprint of a certificate");
  return result;
}

bool set_subject(X509* certificate, std::string_view box_name) {
  X509_NAME* name = X509_get_subject_name(certificate);
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(box_name.data()),
                                    static_cast<int>(box_name.size()), -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1;
}

bool set_random_serial(X509* certificate) {
  unsigned char bytes[16];
  fill_secure_random({reinterpret_cast<std::byte*>(bytes), sizeof bytes});
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x01);  // positive, never short
  std::unique_ptr<BIGNUM, FreeWith<BN_free>> number(BN_bin2bn(bytes, sizeof bytes, nullptr));
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool add_extension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// The validity says "always" (RFC 5280 section 4.1.2.5): trust is the pinned fingerprint, and a
// wrong clock at the first start must not lock anybody out later.
bool set_validity(X509* certificate) {
  return ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), "20200101000000Z") == 1 &&
         ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), "99991231235959Z") == 1;
}

Result<Identity> parse_identity(std::string_view pem) {
  Bio certificate_bio = reader_of(pem);
  Certificate certificate(PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr));
  Bio key_bio = reader_of(pem);
  Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr || key == nullptr ||
      X509_check_private_key(certificate.get(), key.get()) != 1)
    return openssl_failed("reading a certificate and the key that belongs to it");
  Bio certificate_out(BIO_new(BIO_s_mem())), key_out(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_X509(certificate_out.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1)
    return openssl_failed("writing a certificate and its key");
  Result<Fingerprint> fingerprint = fingerprint_of(certificate.get());
  if (!fingerprint) return fail(fingerprint.error());
  return Identity{content_of(certificate_out.get()), content_of(key_out.get()), *fingerprint};
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string Fingerprint::to_text() const {
  std::string text;
  for (std::byte b : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return text;
}

Result<Fingerprint> parse_fingerprint(std::string_view text) {
  Fingerprint result;
  bool colons = text.size() == 3 * result.bytes.size() - 1;
  auto wrong = [] {
    return fail(Errc::usage, "not a fingerprint: 64 hexadecimal digits are expected");
  };
  if (!colons && text.size() != 2 * result.bytes.size()) return wrong();
  for (size_t i = 0; i < result.bytes.size(); ++i) {
    size_t at = i * (colons ? 3 : 2);
    int high = hex_value(text[at]), low = hex_value(text[at + 1]);
    if (high < 0 || low < 0) return wrong();
    if (colons && i > 0 && text[at - 1] != ':') return wrong();
    result.bytes[i] = static_cast<std::byte>(high << 4 | low);
  }
  return result;
}

Result<Fingerprint> fingerprint_of(std::string_view certificate_pem) {
  if (certificate_pem.size() > identity_bytes_max)
    return fail(Errc::other, "a certificate of {} bytes is too large", certificate_pem.size());
  Bio bio = reader_of(certificate_pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return openssl_failed("reading a certificate");
  return fingerprint_of(certificate.get());
}

Result<Identity> make_identity(std::string_view box_name) {
  Key key(EVP_EC_gen("P-256"));
  Certificate certificate(X509_new());
  if (key == nullptr || certificate == nullptr) return openssl_failed("making a key");
  bool made = X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
              set_random_serial(certificate.get()) && set_subject(certificate.get(), box_name) &&
              set_validity(certificate.get()) &&
              X509_set_pubkey(certificate.get(), key.get()) == 1 &&
              add_extension(certificate.get(), NID_basic_constraints, "critical,CA:FALSE") &&
              add_extension(certificate.get(), NID_key_usage, "critical,digitalSignature") &&
              add_extension(certificate.get(), NID_ext_key_usage, "serverAuth,clientAuth") &&
              X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0;
  Bio pem(BIO_new(BIO_s_secmem()));
  if (!made || PEM_write_bio_X509(pem.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failed("making a certificate");
  return parse_identity(content_of(pem.get()));
}

Result<Identity> load_or_make_identity(const std::string& state_dir, std::string_view box_name) {
  std::string path = state_dir + "/" + identity_file_name;
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno != ENOENT)
      return fail(system_code(errno), "{} cannot be read: {}", path, system_code(errno).message());
    Result<Identity> made = make_identity(box_name);
    if (!made) return made;
    Status saved = config::write_file_atomically(state_dir, identity_file_name,
                                                 made->certificate_pem + made->private_key_pem);
    if (!saved) return fail(saved.error());
    return made;
  }
  if ((found.st_mode & 077) != 0)
    return fail(Errc::permission,
                "{} holds this box's private key but others may use the file (mode {:03o}); take "
                "their permission away with chmod 600, or, if somebody may have read it, remove "
                "the file and pair again",
                path, found.st_mode & 0777);
  Result<std::string> text = config::read_file(path, identity_bytes_max);
  if (!text) return fail(text.error());
  Result<Identity> identity = parse_identity(*text);
  if (!identity)
    return fail(Errc::other,
                "{} is damaged ({}); it was left as it is. Restore it from a backup, or remove it "
                "and pair all boxes again",
                path, identity.error().text);
  return identity;
}

}  // namespace vjbod::rpc
