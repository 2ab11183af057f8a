// SPDX-License-Identifier: Apache-2.0
// A nexus with LUN 0 on a test backstore, and tasks whose data this side moves.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/runtime/manual_reactor.h"
#include "common/scsi/cdb.h"
#include "common/scsi/sense.h"
#include "target/scsi/nexus.h"
#include "tests/unit/target/scsi/test_backstore.h"

namespace vjbod::scsi::test {

// A task and its transport side in one.
class TestTask final : public Task, public TaskPort {
 public:
  TestTask(Reactor& reactor, const Cdb& command, uint16_t lun_number) : reactor_(reactor) {
    port = this;
    cdb = command;
    lun = encode_lun(lun_number);
  }
  // Means to take so many bytes, through a buffer of no more than the contract promises.
  TestTask& expect_read(uint64_t bytes) { return expect(DataDirection::read, bytes); }
  TestTask& expect_write(std::vector<std::byte> bytes) {
    data_out = std::move(bytes);
    return expect(DataDirection::write, data_out.size());
  }

  void put_data(Task&, uint64_t offset, size_t length) override {
    EXPECT_EQ(offset, data_in.size());
    EXPECT_LE(offset + length, expected_data_bytes);
    data_in.insert(data_in.end(), buffer.begin(),
                   buffer.begin() + static_cast<std::ptrdiff_t>(length));
    move_data();
  }
  void put_data_and_complete(Task& task, uint64_t offset, size_t length,
                             const Outcome& end) override {
    EXPECT_EQ(offset, data_in.size());
    EXPECT_LE(offset + length, expected_data_bytes);
    data_in.insert(data_in.end(), buffer.begin(),
                   buffer.begin() + static_cast<std::ptrdiff_t>(length));
    complete(task, end);
  }
  void get_data(Task&, uint64_t offset, size_t length) override {
    EXPECT_LE(offset + length, expected_data_bytes);
    got_bytes += length;
    std::memcpy(buffer.data(), data_out.data() + offset, length);
    move_data();
  }
  void cancel_data(Task&) override {
    EXPECT_TRUE(moving);
    ++cancels;
    reactor_.post([this] { answer(); });
  }
  void complete(Task&, const Outcome& end) override {
    EXPECT_FALSE(outcome.has_value()) << "completed twice";
    EXPECT_EQ(execution, nullptr);
    outcome = end;
  }
  void answer() {
    moving = false;
    execution->on_data_moved(*this);
  }

  bool done() const { return outcome.has_value(); }
  Status status() const { return outcome.value().status; }
  Sense sense() const {
    return parse_sense(ConstBytes(outcome->sense).first(outcome->sense_bytes)).value();
  }
  // "05/21/00", or the status without sense data.
  std::string ending() const {
    if (!outcome) return "none";
    if (outcome->sense_bytes == 0) return name_of(outcome->status);
    const Sense s = sense();
    return fmt::format("{:02x}/{:02x}/{:02x}", static_cast<unsigned>(s.key), s.additional.code,
                       s.additional.qualifier);
  }

  std::vector<std::byte> data_in;
  std::vector<std::byte> data_out;
  std::optional<Outcome> outcome;
  uint64_t got_bytes = 0;
  bool hold_data = false;
  bool moving = false;
  int cancels = 0;

 private:
  TestTask& expect(DataDirection way, uint64_t bytes) {
    direction = way;
    expected_data_bytes = bytes;
    memory_.assign(std::min<uint64_t>(bytes, task_buffer_bytes_max), std::byte{0xee});
    buffer = memory_;
    return *this;
  }
  void move_data() {
    moving = true;
    if (!hold_data) reactor_.post([this] { answer(); });
  }

  Reactor& reactor_;
  std::vector<std::byte> memory_;
};

inline std::vector<std::byte> filled(size_t bytes, unsigned value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}
inline std::vector<std::byte> numbered(size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(i * 7 + i / 512);
  return all;
}

class NexusFixture : public ::testing::Test, public NexusOwner, public ManagementOwner {
 protected:
  static constexpr uint64_t blocks = 8192;
  static constexpr size_t tasks_max = 16;

  NexusFixture() { open(); }
  ~NexusFixture() override {
    tasks_.clear();
    nexus.reset();
    reactor.run_until_idle();
  }

  std::shared_ptr<LogicalUnit> make_unit(std::shared_ptr<TestBackstore> backstore,
                                         bool read_only = false) {
    LogicalUnit::Options options;
    for (size_t i = 0; i < options.uuid.size(); ++i) {
      options.uuid[i] = static_cast<std::byte>(0xa0 + i);
    }
    options.read_only = read_only;
    options.cache_id = "11111111-1111-1111-1111-111111111111";
    options.backstore = std::move(backstore);
    options.home = &reactor;
    return LogicalUnit::make(options);
  }

  // A new nexus on LUN 0, whose power-on attention has been taken.
  void open(bool read_only = false) {
    nexus.reset();
    unit = make_unit(store, read_only);
    nexus = std::move(Nexus::open(reactor, {{0, unit, false}}, tasks_max, *this).value());
    reactor.run_until_idle();
    EXPECT_EQ(run(TestUnitReady{}).ending(), "06/29/00");
  }

  TestTask& make(const Command& command, uint16_t lun = 0) {
    return tasks_.emplace_back(reactor, encode(command), lun);
  }
  TestTask& raw(std::initializer_list<unsigned> bytes, uint16_t lun = 0) {
    Cdb cdb{};
    std::transform(bytes.begin(), bytes.end(), cdb.begin(),
                   [](unsigned b) { return static_cast<std::byte>(b); });
    return tasks_.emplace_back(reactor, cdb, lun);
  }
  TestTask& submit(TestTask& task) {
    nexus->submit(task);
    reactor.run_until_idle();
    return task;
  }
  TestTask& run(const Command& command, uint16_t lun = 0) { return submit(make(command, lun)); }
  TestTask& run_read(const Command& command, uint64_t expected, uint16_t lun = 0) {
    return submit(make(command, lun).expect_read(expected));
  }
  TestTask& run_write(const Command& command, std::vector<std::byte> data) {
    return submit(make(command).expect_write(std::move(data)));
  }

  Management& manage(ManagementFunction function, Task* task = nullptr, uint16_t lun = 0) {
    Management& request = requests_.emplace_back();
    request.function = function;
    request.lun = encode_lun(lun);
    request.task = task;
    request.owner = this;
    nexus->manage(request);
    reactor.run_until_idle();
    return request;
  }

  void on_nexus_drained() override { ++drained; }
  void on_managed(Management& request, ManagementResult result) override {
    managed.emplace_back(&request, result);
  }

  ManualReactor reactor;
  std::shared_ptr<TestBackstore> store = std::make_shared<TestBackstore>(blocks);
  std::shared_ptr<LogicalUnit> unit;
  std::unique_ptr<Nexus> nexus;
  std::list<TestTask> tasks_;
  std::list<Management> requests_;
  std::vector<std::pair<Management*, ManagementResult>> managed;
  int drained = 0;
};

}  // namespace vjbod::scsi::test
