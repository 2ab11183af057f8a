// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/identity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace vjbod::rpc {
namespace {

unsigned mode_of(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(stat(path.c_str(), &found), 0);
  return found.st_mode & 0777;
}

TEST(Identity, IsMadeOnceAndStaysTheSame) {
  test::TempDir dir;

  Result<Identity> first = load_or_make_identity(dir.path(), "nas2");
  Result<Identity> second = load_or_make_identity(dir.path(), "nas2");

  ASSERT_TRUE(first) << first.error().text;
  ASSERT_TRUE(second) << second.error().text;
  EXPECT_EQ(first->fingerprint, second->fingerprint);
  EXPECT_EQ(first->private_key_pem, second->private_key_pem);
}

TEST(Identity, TwoBoxesNeverHaveTheSame) {
  EXPECT_NE(make_identity("nas")->fingerprint, make_identity("nas")->fingerprint);
}

TEST(Identity, KeyIsReadableByItsOwnerOnly) {
  test::TempDir dir;
  ASSERT_TRUE(load_or_make_identity(dir.path(), "nas2"));
  EXPECT_EQ(mode_of(dir / "identity.pem"), 0600U);
}

TEST(Identity, KeyThatOthersCanReadIsRefused) {
  test::TempDir dir;
  ASSERT_TRUE(load_or_make_identity(dir.path(), "nas2"));
  chmod((dir / "identity.pem").c_str(), 0640);

  Result<Identity> identity = load_or_make_identity(dir.path(), "nas2");

  ASSERT_FALSE(identity);
  EXPECT_NE(identity.error().text.find("chmod 600"), std::string::npos);
}

TEST(Identity, DamagedFileIsRefusedAndKept) {
  test::TempDir dir;
  dir.write("identity.pem", "-----BEGIN CERTIFICATE-----\nMIIB");
  chmod((dir / "identity.pem").c_str(), 0600);

  Result<Identity> identity = load_or_make_identity(dir.path(), "nas2");

  ASSERT_FALSE(identity);
  EXPECT_NE(identity.error().text.find("damaged"), std::string::npos);
  EXPECT_EQ(dir.read("identity.pem"), "-----BEGIN CERTIFICATE-----\nMIIB");
}

TEST(Identity, KeyOfAnotherCertificateIsRefused) {
  test::TempDir dir;
  dir.write("identity.pem",
            make_identity("a")->certificate_pem + make_identity("b")->private_key_pem);
  chmod((dir / "identity.pem").c_str(), 0600);
  EXPECT_FALSE(load_or_make_identity(dir.path(), "a"));
}

TEST(Fingerprint, TextFormsAreReadBack) {
  Fingerprint fingerprint = make_identity("nas")->fingerprint;
  std::string text = fingerprint.to_text(), colons;
  for (size_t i = 0; i < text.size(); i += 2) colons += (i > 0 ? ":" : "") + text.substr(i, 2);

  EXPECT_EQ(*parse_fingerprint(text), fingerprint);
  EXPECT_EQ(*parse_fingerprint(colons), fingerprint);
}

TEST(Fingerprint, AnythingElseIsRefused) {
  std::string good(64, 'a');
  EXPECT_TRUE(parse_fingerprint(good));
  EXPECT_FALSE(parse_fingerprint(good.substr(1)));
  EXPECT_FALSE(parse_fingerprint(good + "a"));
  EXPECT_FALSE(parse_fingerprint("g" + good.substr(1)));
  EXPECT_FALSE(parse_fingerprint(std::string(95, 'a')));
  EXPECT_FALSE(parse_fingerprint(""));
}

}  // namespace
}  // namespace vjbod::rpc
