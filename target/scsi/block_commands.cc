// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/block_commands.h"

#include <bit>
#include <optional>

#include "common/scsi/capacity.h"
#include "target/scsi/device_server.h"
#include "target/scsi/execution.h"
#include "target/scsi/limits.h"

namespace vjbod::scsi {

namespace {

// Where the number of blocks stands in a CDB of this size (SBC-3 5.1).
uint16_t length_field(CdbSize size) {
  switch (size) {
    case CdbSize::six: return 4;
    case CdbSize::ten: return 7;
    case CdbSize::twelve: return 6;
    case CdbSize::sixteen: return 10;
  }
  return 0;
}

// Protection information: we keep none, so that no value but zero can be obeyed (SBC-3 4.22.2).
// The range: on the unit, and of a length that the block limits page allows.
template <typename Transfer>
std::optional<Outcome> objection(const MappedUnit& unit, const Transfer& command) {
  if (command.protect != 0) return invalid_field_in_cdb(1, 7);
  if (!unit.holds(command.lba, command.blocks)) return illegal_request(asc::lba_out_of_range);
  if (command.blocks > transfer_blocks_max) {
    return invalid_field_in_cdb(length_field(command.size), 7);
  }
  return std::nullopt;
}

Capacity capacity_of(const MappedUnit& unit) {
  const uint32_t physical = unit.unit->backstore().geometry().physical_block_bytes;
  Capacity capacity;
  capacity.blocks = unit.blocks;
  capacity.block_bytes = unit.block_bytes;
  capacity.physical_block_exponent =
      physical > unit.block_bytes
          ? static_cast<uint8_t>(std::bit_width(physical / unit.block_bytes) - 1)
          : 0;
  capacity.provisioning_management = unit.can_unmap;
  capacity.unmapped_reads_zeros = unit.can_unmap;
  return capacity;
}

}  // namespace

void begin_read(Execution& execution, const Command& command) {
  const auto& read = std::get<Read>(command);
  if (auto outcome = objection(execution.unit(), read)) return execution.finish(*outcome);
  execution.run<ReadWork>(read);
}

void begin_write(Execution& execution, const Command& command) {
  const auto& write = std::get<Write>(command);
  if (auto outcome = objection(execution.unit(), write)) return execution.finish(*outcome);
  execution.run<WriteWork>(write);
}

void begin_verify(Execution& execution, const Command& command) {
  const auto& verify = std::get<Verify>(command);
  if (verify.byte_check == 2) return execution.finish(invalid_field_in_cdb(1, 2));  // reserved
  if (auto outcome = objection(execution.unit(), verify)) return execution.finish(*outcome);
  execution.run<VerifyWork>(verify);
}

// IMMED is not obeyed: an answer before the flush has ended would have no way to tell its failure.
void begin_synchronize_cache(Execution& execution, const Command& command) {
  const auto& synchronize = std::get<SynchronizeCache>(command);
  if (!execution.unit().holds(synchronize.lba, synchronize.blocks)) {
    return execution.finish(illegal_request(asc::lba_out_of_range));
  }
  execution.run<FlushWork>();
}

void begin_write_same(Execution& execution, const Command& command) {
  const auto& write_same = std::get<WriteSame>(command);
  const MappedUnit& unit = execution.unit();
  if (write_same.protect != 0) return execution.finish(invalid_field_in_cdb(1, 7));
  if (write_same.anchor) return execution.finish(invalid_field_in_cdb(1, 4));
  if (write_same.unmap && !unit.can_unmap) return execution.finish(invalid_field_in_cdb(1, 3));
  if (!unit.holds(write_same.lba, write_same.blocks)) {
    return execution.finish(illegal_request(asc::lba_out_of_range));
  }
  // WSNZ in the block limits page: a length of zero does not mean "to the end" here.
  if (write_same.blocks == 0 || unit.bytes(write_same.blocks) > write_same_bytes_max) {
    return execution.finish(invalid_field_in_cdb(length_field(write_same.size), 7));
  }
  execution.run<WriteSameWork>(write_same);
}

void begin_unmap(Execution& execution, const Command& command) {
  const auto& unmap = std::get<Unmap>(command);
  if (unmap.anchor) return execution.finish(invalid_field_in_cdb(1, 0));
  execution.run<UnmapWork>(unmap);
}

// The unit is always in the active state and its medium cannot be taken out; what remains of
// stopping is that nothing stays in a cache.
void begin_start_stop_unit(Execution& execution, const Command& command) {
  const auto& start_stop = std::get<StartStopUnit>(command);
  if (start_stop.power_condition != 0) return execution.finish(invalid_field_in_cdb(4, 7));
  if (start_stop.load_eject) return execution.finish(invalid_field_in_cdb(4, 1));
  if (start_stop.start || start_stop.no_flush) return execution.finish(good(0));
  execution.run<FlushWork>();
}

void begin_read_capacity_10(Execution& execution, const Command&) {
  ByteWriter data = execution.server().parameter_data();
  build_capacity_10(capacity_of(execution.unit()), data);
  execution.server().return_parameters(execution, data, capacity_10_bytes);
}

void begin_read_capacity_16(Execution& execution, const Command& command) {
  ByteWriter data = execution.server().parameter_data();
  build_capacity_16(capacity_of(execution.unit()), data);
  execution.server().return_parameters(execution, data,
                                       std::get<ReadCapacity16>(command).allocation_length);
}

}  // namespace vjbod::scsi
