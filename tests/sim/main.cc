// SPDX-License-Identifier: Apache-2.0
// Simulation: random I/O under random faults, all from a seed, with an oracle over every block.
// First safety (faults go on), then liveness (faults stop: everything must finish), and every seed
// twice (the same events, or something is not deterministic).   vjbod_sim [--seed=N] [--seeds=K]
// [--ops=M]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "common/base/check.h"
#include "common/base/log.h"
#include "tests/sim/world.h"

namespace vjbod::sim {
namespace {

constexpr uint32_t block_bytes = 512;
constexpr uint64_t disk_blocks = 256;
constexpr uint32_t request_blocks_max = 24;
constexpr size_t requests_max = 12;
constexpr Duration liveness_limit = std::chrono::minutes(10);

// Every block of a write says which block and which write it is of.
void stamp(std::byte* block, uint64_t lba, uint64_t write) {
  for (size_t at = 0; at < block_bytes; at += 16) {
    std::memcpy(block + at, &lba, 8);
    std::memcpy(block + at + 8, &write, 8);
  }
}

class Simulation final : private initiator::BlockRequestOwner {
 public:
  Simulation(uint64_t seed, uint64_t operations)
      : rdma_(seed % 2 == 0),
        world_(seed, disk_blocks * block_bytes, rdma_),
        left_(operations),
        fault_(world_.reactor(), [this] { inject_fault(); }),
        heal_(world_.reactor(), [this] { heal(); }) {
    expected_.resize(disk_blocks, 0);
    locked_.resize(disk_blocks, false);
    for (Slot& slot : slots_) {
      slot.memory.resize(size_t{request_blocks_max} * block_bytes);
      slot.owner = this;
      slot.next.emplace(world_.reactor(), [this, &slot] { start(slot); });
    }
  }

  // A hash over everything that happened, or nothing when it went wrong (and said so).
  std::optional<uint64_t> run() {
    const bool connected = world_.reactor().run_until(
        [this] { return world_.disk().status().state == initiator::DiskState::connected; },
        std::chrono::seconds(10));
    if (!connected) {
      complain("the disk did not connect");
      return std::nullopt;
    }
    arm_next_fault();
    for (Slot& slot : slots_) start(slot);
    // Safety: half of the work under faults.
    world_.reactor().run_until([this] { return failed_ || done_ >= left_total() / 2; },
                               std::chrono::hours(2));
    // Liveness: no more faults, and all of it must end.
    faults_over_ = true;
    fault_.cancel();
    heal();
    const bool ended = world_.reactor().run_until(
        [this] { return failed_ || (left_ == 0 && busy_ == 0); }, liveness_limit);
    if (!failed_ && !ended) {
      fmt::print(stderr, "no liveness: {} requests are still out, state {}\n{}\n", busy_,
                 initiator::name_of(world_.disk().status().state),
                 world_.disk().status().transitions);
      return std::nullopt;
    }
    if (failed_ || !returns_to_rdma()) return std::nullopt;
    return hash_;
  }
  uint64_t sessions_over_rdma() const { return world_.sessions_over_rdma(); }
  uint64_t faults() const { return faults_; }
  uint64_t sessions() const { return world_.sessions_opened(); }

 private:
  struct Slot : initiator::BlockRequest {
    std::vector<std::byte> memory;
    uint64_t first = 0, count = 0, write = 0;
    bool busy = false;
    std::optional<Timer> next;
  };

  // Whatever there was: when RDMA works, a person's word brings the disk back to it.
  bool returns_to_rdma() {
    if (!rdma_) return true;
    world_.disk().forget_rdma_failures();
    world_.disk().reconnect();
    const bool returned = world_.reactor().run_until(
        [this] { return world_.disk().status().connection == transport::Kind::iser; },
        std::chrono::minutes(2));
    if (!returned) complain("the disk did not go back to RDMA");
    return returned;
  }

  uint64_t left_total() const { return done_ + left_ + busy_; }
  void note(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3; }

  void start(Slot& slot) {
    if (left_ == 0 || failed_) return;
    Random& random = world_.random();
    slot.count = 1 + random.below(request_blocks_max);
    slot.first = random.below(disk_blocks - slot.count + 1);
    // Overlapping requests at the same time have no defined outcome; nobody issues them here.
    for (uint64_t i = 0; i < slot.count; ++i) {
      if (locked_[slot.first + i]) {
        start_later(slot, std::chrono::microseconds(50 + random.below(500)));
        return;
      }
    }
    --left_;
    ++busy_;
    slot.busy = true;
    for (uint64_t i = 0; i < slot.count; ++i) locked_[slot.first + i] = true;
    slot.offset_bytes = slot.first * block_bytes;
    slot.length_bytes = slot.count * block_bytes;
    slot.data = Bytes(slot.memory).first(slot.length_bytes);
    slot.force_unit_access = random.chance(1, 8);
    const uint64_t kind = random.below(20);
    slot.operation = kind < 9    ? initiator::BlockOperation::write
                     : kind < 17 ? initiator::BlockOperation::read
                     : kind < 19 ? initiator::BlockOperation::flush
                                 : initiator::BlockOperation::write_zeroes;
    if (slot.operation == initiator::BlockOperation::write) {
      slot.write = ++last_write_;
      for (uint64_t i = 0; i < slot.count; ++i)
        stamp(&slot.memory[i * block_bytes], slot.first + i, slot.write);
    } else if (slot.operation == initiator::BlockOperation::read) {
      slot.force_unit_access = false;
      std::memset(slot.memory.data(), 0xee, slot.length_bytes);
    } else {
      slot.data = {};
      if (slot.operation == initiator::BlockOperation::flush) {
        slot.force_unit_access = false;
        slot.offset_bytes = slot.length_bytes = 0;
      }
    }
    world_.disk().submit(slot);
  }

  void start_later(Slot& slot, Duration pause) { slot.next->arm_after(pause); }

  void on_request_done(initiator::BlockRequest& request, int errno_value) override {
    Slot& slot = static_cast<Slot&>(request);
    VJBOD_CHECK(slot.busy, "a request completed twice");
    slot.busy = false;
    --busy_;
    ++done_;
    note(static_cast<uint64_t>(world_.reactor().now().time_since_epoch().count()));
    note(slot.first << 8 | static_cast<uint64_t>(slot.operation));
    if (errno_value != 0) {
      complain(fmt::format("a {} of block {} failed with errno {}",
                           initiator::name_of(slot.operation), slot.first, errno_value));
    }
    for (uint64_t i = 0; i < slot.count; ++i) {
      const uint64_t lba = slot.first + i;
      locked_[lba] = false;
      if (slot.operation == initiator::BlockOperation::write) expected_[lba] = slot.write;
      if (slot.operation == initiator::BlockOperation::write_zeroes) expected_[lba] = 0;
      if (slot.operation == initiator::BlockOperation::read)
        check(lba, &slot.memory[i * block_bytes]);
    }
    if (world_.random().chance(1, 2)) {
      start(slot);
    } else {
      start_later(slot, std::chrono::milliseconds(world_.random().below(30)));
    }
  }

  void check(uint64_t lba, const std::byte* block) {
    std::byte wanted[block_bytes] = {};
    if (expected_[lba] != 0) stamp(wanted, lba, expected_[lba]);
    if (std::memcmp(wanted, block, block_bytes) == 0) return;
    uint64_t found_lba = 0, found_write = 0;
    std::memcpy(&found_lba, block, 8);
    std::memcpy(&found_write, block + 8, 8);
    complain(fmt::format("block {} holds write {} of block {}, but write {} was acknowledged last",
                         lba, found_write, found_lba, expected_[lba]));
  }

  void complain(const std::string& what) {
    failed_ = true;
    fmt::print(stderr, "{}\n{}\n", what, world_.disk().status().transitions);
  }

  void arm_next_fault() {
    if (!faults_over_) fault_.arm_after(std::chrono::milliseconds(1 + world_.random().below(120)));
  }

  void inject_fault() {
    using transport::Role;
    Random& random = world_.random();
    auto link = world_.newest_link();
    // While it connects only some of the faults go on, or it never would.
    if (world_.disk().status().state != initiator::DiskState::connected && !random.chance(1, 20)) {
      arm_next_fault();
      return;
    }
    ++faults_;
    switch (random.below(rdma_ ? 14 : 11)) {
      case 0:
        if (link) link->sever();
        break;
      case 1:
        if (link) link->sever_unnoticed_by(Role::target);
        break;
      case 2:
        if (link) link->sever_unnoticed_by(Role::initiator);
        break;
      case 3:
        if (link) link->drop_next(iscsi::Opcode::scsi_response);
        break;
      case 4:
        if (link) link->sever_during_next(iscsi::Opcode::data_out);
        break;
      case 5:
        if (link) link->sever_during_next(iscsi::Opcode::data_in);
        break;
      case 6: world_.network().set_answer(transport::MemoryNetwork::Answer::refuse); break;
      case 7: world_.network().set_answer(transport::MemoryNetwork::Answer::hang); break;
      case 8: world_.backstore().set_slow(true); break;
      case 9: world_.disk().reconnect(); break;
      case 10:
        if (link) {
          link->set_delay(Role::target, std::chrono::milliseconds(random.below(50)));
          link->set_delay(Role::initiator, std::chrono::milliseconds(random.below(50)));
        }
        break;
      case 11: world_.rdma().set_answer(transport::MemoryNetwork::Answer::refuse); break;
      case 12: world_.rdma().set_answer(transport::MemoryNetwork::Answer::hang); break;
      case 13:  // the device is removed
        world_.rdma().set_answer(transport::MemoryNetwork::Answer::refuse);
        for (const auto& one : world_.rdma().links()) one->sever();
        break;
    }
    heal_.arm_after(std::chrono::milliseconds(random.below(8000)));
    arm_next_fault();
  }

  void heal() {
    world_.network().set_answer(transport::MemoryNetwork::Answer::accept);
    world_.rdma().set_answer(transport::MemoryNetwork::Answer::accept);
    world_.backstore().set_slow(false);
  }

  const bool rdma_;  // every other seed: by RDMA first
  World world_;
  uint64_t left_, done_ = 0, busy_ = 0, last_write_ = 0, faults_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325;
  bool failed_ = false, faults_over_ = false;
  std::vector<uint64_t> expected_;  // by block: the write acknowledged last; 0: zeros
  std::vector<bool> locked_;
  std::array<Slot, requests_max> slots_;
  Timer fault_, heal_;
};

std::optional<uint64_t> run_seed(uint64_t seed, uint64_t operations, uint64_t& faults,
                                 uint64_t& sessions, uint64_t& over_rdma) {
  Simulation simulation(seed, operations);
  auto hash = simulation.run();
  faults += simulation.faults();
  sessions += simulation.sessions();
  over_rdma += simulation.sessions_over_rdma();
  return hash;
}

int run(int argc, char** argv) {
  uint64_t seed = 1, seeds = 1, operations = 500;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const uint64_t value =
        equals == std::string::npos ? 0 : std::strtoull(argument.c_str() + equals + 1, nullptr, 10);
    if (argument.starts_with("--seed=")) {
      seed = value;
    } else if (argument.starts_with("--seeds=")) {
      seeds = value;
    } else if (argument.starts_with("--ops=")) {
      operations = value;
    } else {
      fmt::print(stderr, "usage: vjbod_sim [--seed=N] [--seeds=K] [--ops=M]\n");
      return 2;
    }
  }
  (void)start_logging(std::getenv("VJBOD_SIM_LOG") != nullptr ? "debug" : "off");
  uint64_t faults = 0, sessions = 0, over_rdma = 0;
  for (uint64_t s = seed; s < seed + seeds; ++s) {
    const auto first = run_seed(s, operations, faults, sessions, over_rdma);
    if (!first) {
      fmt::print(stderr, "FAILED: vjbod_sim --seed={} --ops={}   (VJBOD_SIM_LOG=1 shows the log)\n",
                 s, operations);
      return 1;
    }
    const auto second = run_seed(s, operations, faults, sessions, over_rdma);
    if (second != first) {
      fmt::print(stderr,
                 "FAILED: seed {} gives two different runs: something is not deterministic\n", s);
      return 1;
    }
  }
  // A simulation without faults or reconnects would prove nothing.
  fmt::print(
      "{} seeds, {} faults, {} sessions, {} of them by RDMA: no wrong byte, no error, all "
      "finished\n",
      seeds, faults, sessions, over_rdma);
  const bool both = seeds < 4 || (over_rdma > seeds && over_rdma < sessions);
  return faults > 4 * seeds && sessions > 4 * seeds && both ? 0 : 1;
}

}  // namespace
}  // namespace vjbod::sim

int main(int argc, char** argv) {
  return vjbod::sim::run(argc, argv);
}
