// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/runtime/manual_reactor.h"
#include "tests/unit/initiator/fake_target.h"

namespace vjbod::initiator {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

class DiscoveryTest : public testing::Test {
 protected:
  ~DiscoveryTest() override {
    target.stop();
    reactor.run_until_idle();
  }
  void discover() {
    connectors.set(transport::Kind::memory, *connector);
    SessionConfig config;
    config.initiator_name = "iqn.2026-11.io.vjbod:host";
    PathCandidate portal{transport::Kind::memory, {"10.0.0.2", 3260, {}, {}}};
    discovery = std::make_unique<Discovery>(reactor, connectors, portal, std::move(config),
                                            [this](auto found) { result = std::move(found); });
    discovery->start();
    reactor.run_until([this] { return result.has_value(); }, 60s);
  }

  ManualReactor reactor;
  transport::MemoryNetwork network{reactor};
  test::FakeTarget target{reactor, network};
  std::unique_ptr<transport::Connector> connector = network.make_connector();
  Connectors connectors;
  std::unique_ptr<Discovery> discovery;
  std::optional<Result<std::vector<DiscoveredTarget>>> result;
};

TEST_F(DiscoveryTest, PutsAnAnswerOfManyPdusTogether) {
  target.on_accept = [](test::FakeTarget::Connection& connection) {
    for (int i = 0; i < 1000; ++i)
      connection.text_answer += fmt::format("TargetName=iqn.2026-11.io.vjbod:t{}", i) +
                                "\0TargetAddress=10.0.0.2:3260,1\0"s;
  };

  discover();

  ASSERT_TRUE(result && result->has_value());
  ASSERT_EQ((*result)->size(), 1000u);
  EXPECT_EQ((**result)[999].name, "iqn.2026-11.io.vjbod:t999");
  EXPECT_THAT((**result)[0].addresses, testing::ElementsAre("10.0.0.2:3260,1"));
  EXPECT_EQ(target.connection()->text_requests[0], "SendTargets=All\0"s);
  EXPECT_EQ(target.logouts, 1u);
}

TEST_F(DiscoveryTest, EndsATextWithoutEnd) {
  target.on_accept = [](test::FakeTarget::Connection& connection) {
    connection.text_answer.assign(2 * session_text_bytes_max, 'x');
  };

  discover();

  ASSERT_TRUE(result && !result->has_value());
  EXPECT_EQ(result->error().code, iscsi::Errc::text_too_long);
}

TEST_F(DiscoveryTest, TellsWhyItCouldNotConnect) {
  target.stop();

  discover();

  ASSERT_TRUE(result && !result->has_value());
}

TEST_F(DiscoveryTest, TellsWhyTheLoginWasRefused) {
  target.login_status = 0x0202;

  discover();

  ASSERT_TRUE(result && !result->has_value());
  EXPECT_THAT(result->error().text, testing::HasSubstr("0x0202"));
}

TEST(SendTargets, RefusesWhatIsNoList) {
  EXPECT_FALSE(parse_send_targets("TargetName=iqn.2026-11.io.vjbod:a"));
  EXPECT_FALSE(parse_send_targets("TargetAddress=10.0.0.2:3260,1\0"s));
  EXPECT_FALSE(parse_send_targets("TargetName=../../etc\0"s));
  EXPECT_FALSE(parse_send_targets("nonsense\0"s));
  EXPECT_TRUE(parse_send_targets(""));
}

TEST(SendTargets, MakesAddressesPrintable) {
  auto targets = parse_send_targets("TargetName=iqn.2026-11.io.vjbod:a\0TargetAddress=\x1b[2J\0"s);

  ASSERT_TRUE(targets.has_value());
  EXPECT_EQ((*targets)[0].addresses[0].find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace vjbod::initiator
