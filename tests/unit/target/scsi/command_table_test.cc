// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/command_table.h"

#include <set>

#include "tests/unit/target/scsi/nexus_fixture.h"

namespace vjbod::scsi::test {
namespace {

class CommandTable : public NexusFixture {
 protected:
  TestTask& report(unsigned options, unsigned opcode = 0, unsigned action = 0,
                   bool timeouts = false) {
    return run_read(
        ReportSupportedOperationCodes{.return_timeouts = timeouts,
                                      .reporting_options = static_cast<uint8_t>(options),
                                      .requested_opcode = static_cast<uint8_t>(opcode),
                                      .requested_service_action = static_cast<uint16_t>(action),
                                      .allocation_length = 4096},
        4096);
  }
  static unsigned byte(const TestTask& task, size_t i) {
    return std::to_integer<unsigned>(task.data_in.at(i));
  }
};

TEST_F(CommandTable, EveryEntryIsWhatTheDecoderKnows) {
  std::set<unsigned> opcodes;
  for (const CommandEntry& entry : command_table()) {
    const auto opcode = static_cast<unsigned>(entry.opcode);
    EXPECT_TRUE(opcodes.insert(opcode).second) << entry.name;
    EXPECT_EQ(entry.cdb_bytes, cdb_bytes(static_cast<std::byte>(opcode))) << entry.name;
    EXPECT_EQ(entry.usage[0], opcode) << entry.name;
    Cdb cdb{};
    cdb[0] = static_cast<std::byte>(opcode);
    cdb[1] = static_cast<std::byte>(entry.service_action.value_or(0));
    EXPECT_TRUE(decode_cdb(cdb).has_value()) << entry.name;
  }
}

TEST_F(CommandTable, WhatIsNotInTheTableTheDecoderDoesNotKnow) {
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    for (unsigned action = 0; action < 32; ++action) {
      Cdb cdb{};
      cdb[0] = static_cast<std::byte>(opcode);
      cdb[1] = static_cast<std::byte>(action);
      bool known = false;
      EXPECT_EQ(find_command(cdb, known) != nullptr, decode_cdb(cdb).has_value())
          << opcode << " " << action;
    }
  }
}

// A bit that the usage data does not name changes nothing; one that it names does.
TEST_F(CommandTable, TheUsageDataNamesExactlyTheBitsThatAreLookedAt) {
  for (const CommandEntry& entry : command_table()) {
    Cdb plain{};
    plain[0] = static_cast<std::byte>(entry.opcode);
    plain[1] = static_cast<std::byte>(entry.service_action.value_or(0));
    const Command decoded = decode_cdb(plain).value();
    const size_t control = entry.cdb_bytes - size_t{1};
    for (size_t at = 1; at < control; ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        if (at == 1 && entry.service_action && bit < 5) continue;
        Cdb changed = plain;
        changed[at] ^= static_cast<std::byte>(1U << bit);
        const bool named = (entry.usage[at] >> bit & 1) != 0;
        // READ(6) and WRITE(6) say 256 with a zero: one bit more is always a change.
        EXPECT_EQ(!(decode_cdb(changed).value() == decoded), named)
            << entry.name << " byte " << at << " bit " << bit;
      }
    }
    EXPECT_EQ(entry.usage[control], 0x04) << entry.name;
  }
}

TEST_F(CommandTable, TheReportListsTheWholeTable) {
  const TestTask& task = report(0);
  EXPECT_EQ(task.ending(), "GOOD");
  EXPECT_EQ(task.data_in.size(), 4 + 8 * command_table().size());
  EXPECT_EQ(load_big_endian<uint32_t>(task.data_in.data()), task.data_in.size() - 4);
  for (size_t i = 0; i < command_table().size(); ++i) {
    const CommandEntry& entry = command_table()[i];
    EXPECT_EQ(byte(task, 4 + 8 * i), static_cast<unsigned>(entry.opcode));
    EXPECT_EQ(byte(task, 4 + 8 * i + 3), entry.service_action.value_or(0));
    EXPECT_EQ(byte(task, 4 + 8 * i + 5), entry.service_action ? 1U : 0U);
    EXPECT_EQ(byte(task, 4 + 8 * i + 7), entry.cdb_bytes);
  }
}

TEST_F(CommandTable, TheReportHasATimeoutForEachCommandWhenAsked) {
  const TestTask& task = report(0, 0, 0, true);
  EXPECT_EQ(task.data_in.size(), 4 + 20 * command_table().size());
  EXPECT_EQ(byte(task, 4 + 5) & 2, 2U);
  EXPECT_EQ(byte(task, 4 + 8 + 1), 10U);
  EXPECT_EQ(byte(task, 4 + 8 + 11), command_table()[0].timeout_seconds);
}

TEST_F(CommandTable, TheReportOfOneCommandHasItsUsageData) {
  const TestTask& read = report(1, 0x28);
  EXPECT_EQ(read.data_in.size(), 14U);
  EXPECT_EQ(byte(read, 1), 3U);
  EXPECT_EQ(byte(read, 3), 10U);
  EXPECT_EQ(byte(read, 4), 0x28U);
  EXPECT_EQ(byte(read, 5), 0xf8U);
  const TestTask& capacity = report(2, 0x9e, 0x10, true);
  EXPECT_EQ(capacity.data_in.size(), 4 + 16 + 12U);
  EXPECT_EQ(byte(capacity, 1), 0x83U);
  EXPECT_EQ(byte(report(3, 0x28), 1), 3U);
  EXPECT_EQ(byte(report(3, 0x9e, 0x10), 1), 3U);
}

TEST_F(CommandTable, TheReportSaysWhatIsNotSupported) {
  EXPECT_EQ(byte(report(1, 0x16), 1), 1U);
  EXPECT_EQ(byte(report(2, 0x9e, 0x12), 1), 1U);
  EXPECT_EQ(byte(report(3, 0x28, 1), 1), 1U);
}

TEST_F(CommandTable, AQuestionThatDoesNotSuitTheCommandIsAWrongField) {
  EXPECT_EQ(report(1, 0x9e).ending(), "05/24/00");
  EXPECT_EQ(report(2, 0x28).ending(), "05/24/00");
  EXPECT_EQ(report(4).ending(), "05/24/00");
}

TEST_F(CommandTable, UnmapIsNotReportedWhereTheBackstoreCannot) {
  store->capabilities_.unmap = false;
  open();
  EXPECT_EQ(report(0).data_in.size(), 4 + 8 * (command_table().size() - 1));
  EXPECT_EQ(byte(report(1, 0x42), 1), 1U);
}

}  // namespace
}  // namespace vjbod::scsi::test
