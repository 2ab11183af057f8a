// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/target/scsi/nexus_fixture.h"

namespace vjbod::scsi::test {
namespace {

using backstore::OpKind;

class TaskManagement : public NexusFixture {
 protected:
  TestTask& write_held_in_the_backstore() {
    store->hold = true;
    return run_write(Write{.blocks = 1}, filled(512, 1));
  }
  TestTask& write_waiting_for_data() {
    TestTask& task = make(Write{.blocks = 1}).expect_write(filled(512, 1));
    task.hold_data = true;
    return submit(task);
  }
  void release() {
    store->release();
    reactor.run_until_idle();
  }
  std::unique_ptr<Nexus> another() {
    auto other = std::move(Nexus::open(reactor, {{5, unit, false}}, 4, *this).value());
    reactor.run_until_idle();
    return other;
  }
};

TEST_F(TaskManagement, AnAbortIsDoneOnlyWhenTheBackstoreHasAnswered) {
  TestTask& task = write_held_in_the_backstore();
  Management& request = manage(ManagementFunction::abort_task, &task);
  EXPECT_TRUE(task.aborted);
  EXPECT_FALSE(task.done());
  EXPECT_TRUE(managed.empty());
  release();
  EXPECT_TRUE(task.done());
  EXPECT_EQ(managed, (std::vector{std::pair{&request, ManagementResult::done}}));
}

TEST_F(TaskManagement, AnAbortGivesUpDataThatHasNotCome) {
  TestTask& task = write_waiting_for_data();
  manage(ManagementFunction::abort_task, &task);
  EXPECT_EQ(task.cancels, 1);
  EXPECT_TRUE(task.done());
  EXPECT_EQ(managed.size(), 1U);
  EXPECT_EQ(store->count(OpKind::write), 0U);
}

TEST_F(TaskManagement, ATaskIsCancelledOnceHoweverOftenItIsAborted) {
  TestTask& task = write_waiting_for_data();
  for (int i = 0; i < 2; ++i) {
    Management& request = requests_.emplace_back();
    request.task = &task;
    request.owner = this;
    nexus->manage(request);
  }
  reactor.run_until_idle();
  EXPECT_EQ(task.cancels, 1);
  EXPECT_EQ(managed.size(), 2U);
}

TEST_F(TaskManagement, AnAbortSparesTheOtherTasks) {
  store->hold = true;
  TestTask& spared = run_read(Read{.blocks = 1}, 512);
  TestTask& aborted = run_read(Read{.blocks = 1}, 512);
  manage(ManagementFunction::abort_task, &aborted);
  release();
  EXPECT_FALSE(spared.aborted);
  EXPECT_EQ(spared.data_in.size(), 512U);
  EXPECT_TRUE(aborted.data_in.empty());
}

TEST_F(TaskManagement, AbortTaskSetEndsTheTasksOfThatLunOnly) {
  ASSERT_TRUE(nexus->set_luns({{0, unit, false}, {1, make_unit(store), false}}).has_value());
  run(TestUnitReady{}, 1);
  run(TestUnitReady{}, 0);
  for (const auto function :
       {ManagementFunction::abort_task_set, ManagementFunction::clear_task_set}) {
    store->hold = true;
    TestTask& there = run_read(Read{.blocks = 1}, 512, 0);
    TestTask& elsewhere = run_read(Read{.blocks = 1}, 512, 1);
    manage(function);
    EXPECT_TRUE(there.aborted);
    EXPECT_FALSE(elsewhere.aborted);
    release();
    EXPECT_EQ(elsewhere.ending(), "GOOD");
  }
  EXPECT_EQ(managed.size(), 2U);
  EXPECT_EQ(run(TestUnitReady{}).ending(), "GOOD");
}

TEST_F(TaskManagement, WaitingTasksOfAnAbortedSetNeverBegin) {
  store->hold = true;
  run_read(Read{.blocks = 1}, 512);
  TestTask& ordered = make(Write{.blocks = 1}).expect_write(filled(512, 1));
  ordered.attribute = TaskAttribute::ordered;
  submit(ordered);
  TestTask& behind = run_write(Write{.blocks = 1}, filled(512, 1));
  manage(ManagementFunction::abort_task_set);
  EXPECT_TRUE(ordered.done());
  EXPECT_TRUE(behind.done());
  release();
  EXPECT_EQ(store->count(OpKind::write), 0U);
  EXPECT_EQ(managed.size(), 1U);
}

TEST_F(TaskManagement, ATaskWaitingForMemoryIsAborted) {
  store->hold = true;
  TestTask& first = run(Verify{.blocks = 1});
  TestTask& second = run(Verify{.blocks = 1});
  manage(ManagementFunction::abort_task, &second);
  EXPECT_TRUE(second.done());
  release();
  EXPECT_EQ(first.ending(), "GOOD");
  EXPECT_EQ(run(Verify{.blocks = 1}).ending(), "GOOD");
}

TEST_F(TaskManagement, ALunThatIsNotMappedIsSaidSo) {
  manage(ManagementFunction::logical_unit_reset, nullptr, 9);
  manage(ManagementFunction::abort_task_set, nullptr, 9);
  ASSERT_EQ(managed.size(), 2U);
  EXPECT_EQ(managed[0].second, ManagementResult::no_such_unit);
  EXPECT_EQ(managed[1].second, ManagementResult::no_such_unit);
}

TEST_F(TaskManagement, AResetEndsTheTasksAndIsToldAsAttention) {
  TestTask& task = write_held_in_the_backstore();
  manage(ManagementFunction::logical_unit_reset);
  EXPECT_TRUE(managed.empty());
  release();
  EXPECT_TRUE(task.aborted);
  EXPECT_EQ(managed.size(), 1U);
  EXPECT_EQ(run(TestUnitReady{}).ending(), "06/29/03");
}

TEST_F(TaskManagement, AResetWaitsForTheTasksOfEveryOtherNexus) {
  auto other = another();
  std::swap(nexus, other);
  run(TestUnitReady{}, 5);
  store->hold = true;
  TestTask& task = make(Write{.blocks = 1}, 5).expect_write(filled(512, 1));
  submit(task);
  std::swap(nexus, other);

  manage(ManagementFunction::logical_unit_reset);
  EXPECT_TRUE(task.aborted);
  EXPECT_FALSE(task.done());
  EXPECT_TRUE(managed.empty());
  release();
  EXPECT_TRUE(task.done());
  EXPECT_EQ(managed.size(), 1U);

  std::swap(nexus, other);
  EXPECT_EQ(run(TestUnitReady{}, 5).ending(), "06/29/03");
}

TEST_F(TaskManagement, AResetDoesNotWaitForANexusThatWentAway) {
  auto other = another();
  other->drain();
  reactor.run_until_idle();
  EXPECT_EQ(drained, 1);
  Management& request = requests_.emplace_back();
  request.function = ManagementFunction::logical_unit_reset;
  request.lun = encode_lun(0);
  request.owner = this;
  nexus->manage(request);
  other.reset();
  reactor.run_until_idle();
  EXPECT_EQ(managed.size(), 1U);
}

TEST_F(TaskManagement, ATargetResetReachesEveryLunOfThisInitiatorAndNoOther) {
  auto elsewhere = make_unit(store);
  ASSERT_TRUE(nexus->set_luns({{0, unit, false}, {1, make_unit(store), false}}).has_value());
  auto other = std::move(Nexus::open(reactor, {{5, elsewhere, false}}, 4, *this).value());
  std::swap(nexus, other);
  run(TestUnitReady{}, 5);
  std::swap(nexus, other);
  run(TestUnitReady{}, 0);
  run(TestUnitReady{}, 1);
  store->hold = true;
  TestTask& a = run_read(Read{.blocks = 1}, 512, 0);
  TestTask& b = run_read(Read{.blocks = 1}, 512, 1);
  manage(ManagementFunction::target_reset);
  release();
  EXPECT_TRUE(a.aborted && b.aborted);
  EXPECT_EQ(managed.size(), 1U);
  EXPECT_EQ(run(TestUnitReady{}, 0).ending(), "06/29/03");
  EXPECT_EQ(run(TestUnitReady{}, 1).ending(), "06/29/03");
  std::swap(nexus, other);
  EXPECT_EQ(run(TestUnitReady{}, 5).ending(), "GOOD");
}

TEST_F(TaskManagement, DrainingEndsWhenTheLastTaskHasEnded) {
  TestTask& in_backstore = write_held_in_the_backstore();
  TestTask& for_data = write_waiting_for_data();
  nexus->drain();
  reactor.run_until_idle();
  EXPECT_TRUE(for_data.done());
  EXPECT_FALSE(nexus->idle());
  EXPECT_EQ(drained, 0);
  release();
  EXPECT_TRUE(in_backstore.done());
  EXPECT_TRUE(nexus->idle());
  EXPECT_EQ(drained, 1);
}

TEST_F(TaskManagement, DrainingAnIdleNexusEndsInTheNextTurn) {
  nexus->drain();
  EXPECT_EQ(drained, 0);
  reactor.run_until_idle();
  EXPECT_EQ(drained, 1);
}

class DestroyingOwner final : public NexusOwner {
 public:
  void on_nexus_drained() override { nexus.reset(); }
  std::unique_ptr<Nexus> nexus;
};

TEST_F(TaskManagement, ANexusMayBeDestroyedFromInsideItsLastCall) {
  DestroyingOwner owner;
  owner.nexus = std::move(Nexus::open(reactor, {{0, unit, false}}, 4, owner).value());
  owner.nexus->drain();
  reactor.run_until_idle();
  EXPECT_EQ(owner.nexus, nullptr);
}

TEST_F(TaskManagement, OneTaskMoreThanThereAreSlotsGetsTaskSetFull) {
  store->hold = true;
  std::vector<TestTask*> running;
  for (size_t i = 0; i < tasks_max; ++i) running.push_back(&run_read(Read{.blocks = 1}, 512));
  EXPECT_EQ(run_read(Read{.blocks = 1}, 512).ending(), "TASK SET FULL");
  release();
  for (const TestTask* task : running) EXPECT_EQ(task->ending(), "GOOD");
  EXPECT_EQ(run_read(Read{.blocks = 1}, 512).ending(), "GOOD");
}

TEST_F(TaskManagement, AnOrderedTaskRunsBetweenThoseBeforeAndAfterIt) {
  store->hold = true;
  TestTask& before = run_read(Read{.blocks = 1}, 512);
  TestTask& ordered = make(SynchronizeCache{});
  ordered.attribute = TaskAttribute::ordered;
  submit(ordered);
  TestTask& after = run_write(Write{.blocks = 1}, filled(512, 1));
  EXPECT_EQ(store->kinds, (std::vector{OpKind::read}));
  release();
  EXPECT_EQ(store->kinds, (std::vector{OpKind::read, OpKind::flush, OpKind::write}));
  EXPECT_EQ(before.ending(), "GOOD");
  EXPECT_EQ(ordered.ending(), "GOOD");
  EXPECT_EQ(after.ending(), "GOOD");
}

TEST_F(TaskManagement, ALunThatIsTakenAwayEndsItsTasksAndThenItsQueue) {
  TestTask& task = write_held_in_the_backstore();
  ASSERT_TRUE(nexus->set_luns({}).has_value());
  EXPECT_TRUE(task.aborted);
  EXPECT_EQ(run(TestUnitReady{}).ending(), "05/25/00");
  release();
  EXPECT_TRUE(task.done());
  std::weak_ptr<LogicalUnit> gone = unit;
  unit.reset();
  reactor.run_until_idle();
  EXPECT_TRUE(gone.expired());
}

TEST_F(TaskManagement, AListOfLunsThatCannotBeChangesNothing) {
  auto other = make_unit(store);
  EXPECT_FALSE(nexus->set_luns({{0, unit, false}, {0, other, false}}).has_value());
  EXPECT_FALSE(nexus->set_luns({{0, unit, false}, {1, unit, false}}).has_value());
  EXPECT_FALSE(nexus->set_luns({{lun_number_max + 1, other, false}}).has_value());
  store->no_queue = true;
  EXPECT_FALSE(nexus->set_luns({{1, other, false}}).has_value());
  EXPECT_EQ(run(TestUnitReady{}).ending(), "GOOD");
}

}  // namespace
}  // namespace vjbod::scsi::test
