// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/unit_attention.h"

#include "tests/unit/target/scsi/nexus_fixture.h"

namespace vjbod::scsi::test {
namespace {

TEST(UnitAttentions, AreTakenInOrderOfPrecedenceAndOnce) {
  UnitAttentions attentions;
  attentions.raise(UnitAttention::reported_luns_changed);
  attentions.raise(UnitAttention::capacity_changed);
  attentions.raise(UnitAttention::capacity_changed);
  attentions.raise(UnitAttention::device_reset);
  EXPECT_EQ(attentions.take(), UnitAttention::device_reset);
  EXPECT_EQ(attentions.take(), UnitAttention::capacity_changed);
  EXPECT_EQ(attentions.take(), UnitAttention::reported_luns_changed);
  EXPECT_EQ(attentions.take(), std::nullopt);
}

TEST(UnitAttentions, TheStrongestResetIsToldAlone) {
  UnitAttentions attentions;
  attentions.raise(UnitAttention::device_reset);
  attentions.raise(UnitAttention::power_on_or_reset);
  attentions.raise(UnitAttention::device_reset);
  EXPECT_EQ(attentions.take(), UnitAttention::power_on_or_reset);
  EXPECT_FALSE(attentions.any());
}

class Attention : public NexusFixture {
 protected:
  void grow() {
    ASSERT_TRUE(unit->resize(store->geometry_.size_bytes + 512 * 8).has_value());
    reactor.run_until_idle();
  }
};

TEST_F(Attention, ANewNexusIsToldOfThePowerOnOnce) {
  auto other = std::move(Nexus::open(reactor, {{0, unit, false}}, 4, *this).value());
  std::swap(nexus, other);
  EXPECT_EQ(run(TestUnitReady{}).ending(), "06/29/00");
  EXPECT_EQ(run(TestUnitReady{}).ending(), "GOOD");
}

TEST_F(Attention, ALargerUnitIsToldAndCanBeUsedAtOnce) {
  grow();
  EXPECT_EQ(run_read(Read{.blocks = 1}, 512).ending(), "06/2a/09");
  EXPECT_EQ(run_read(Read{.lba = blocks + 7, .blocks = 1}, 512).ending(), "GOOD");
}

TEST_F(Attention, EveryNexusIsToldOfALargerUnit) {
  auto other = std::move(Nexus::open(reactor, {{4, unit, false}}, 4, *this).value());
  grow();
  EXPECT_EQ(run(TestUnitReady{}).ending(), "06/2a/09");
  std::swap(nexus, other);
  EXPECT_EQ(run(TestUnitReady{}, 4).ending(), "06/29/00");
  EXPECT_EQ(run(TestUnitReady{}, 4).ending(), "06/2a/09");
  EXPECT_EQ(run(TestUnitReady{}, 4).ending(), "GOOD");
}

TEST_F(Attention, ANexusThatOpensWhileTheUnitGrowsSeesTheNewSize) {
  auto other = std::move(Nexus::open(reactor, {{0, unit, false}}, 4, *this).value());
  // Not attached yet: its message waits on the home reactor.
  ASSERT_TRUE(store->resize(2 * blocks * 512).has_value());
  reactor.run_until_idle();
  std::swap(nexus, other);
  EXPECT_EQ(run(TestUnitReady{}).ending(), "06/29/00");
  EXPECT_EQ(run(TestUnitReady{}).ending(), "06/2a/09");
  EXPECT_EQ(run_read(Read{.lba = 2 * blocks - 1, .blocks = 1}, 512).ending(), "GOOD");
}

TEST_F(Attention, InquiryAndReportLunsDoNotTellIt) {
  grow();
  EXPECT_EQ(run_read(Inquiry{.allocation_length = 96}, 96).ending(), "GOOD");
  EXPECT_EQ(run_read(ReportLuns{.allocation_length = 16}, 16).ending(), "GOOD");
  EXPECT_EQ(run(TestUnitReady{}).ending(), "06/2a/09");
}

TEST_F(Attention, AnUnknownCommandTellsItToo) {
  grow();
  EXPECT_EQ(submit(raw({0x16})).ending(), "06/2a/09");
  EXPECT_EQ(submit(raw({0x16})).ending(), "05/20/00");
}

TEST_F(Attention, AChangedListOfLunsIsToldAtEveryLunThatStays) {
  ASSERT_TRUE(nexus->set_luns({{0, unit, false}, {1, make_unit(store), false}}).has_value());
  EXPECT_EQ(run(TestUnitReady{}).ending(), "06/3f/0e");
  EXPECT_EQ(run(TestUnitReady{}, 1).ending(), "06/29/00");
  EXPECT_EQ(run(TestUnitReady{}, 1).ending(), "GOOD");
}

TEST_F(Attention, ReportLunsMakesTheChangeOfTheListKnown) {
  ASSERT_TRUE(nexus->set_luns({{0, unit, false}, {1, make_unit(store), false}}).has_value());
  EXPECT_EQ(run_read(ReportLuns{.allocation_length = 32}, 32).ending(), "GOOD");
  EXPECT_EQ(run(TestUnitReady{}).ending(), "GOOD");
}

TEST_F(Attention, TheSameListAgainTellsNothing) {
  ASSERT_TRUE(nexus->set_luns({{0, unit, false}}).has_value());
  EXPECT_EQ(run(TestUnitReady{}).ending(), "GOOD");
}

TEST_F(Attention, AChangeOfWriteProtectionIsTold) {
  ASSERT_TRUE(nexus->set_luns({{0, unit, true}}).has_value());
  EXPECT_EQ(run(TestUnitReady{}).ending(), "06/2a/01");
  EXPECT_EQ(run_write(Write{.blocks = 1}, filled(512, 1)).ending(), "07/27/00");
}

}  // namespace
}  // namespace vjbod::scsi::test
