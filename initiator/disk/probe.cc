// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/probe.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/scsi/cache_id_page.h"
#include "common/scsi/cdb.h"
#include "common/scsi/sense.h"
#include "common/scsi/status.h"

namespace vjbod::initiator {

namespace {

// REPORT SUPPORTED OPERATION CODES for one command (SPC-4 6.35.3).
constexpr uint8_t report_one_command = 1;
constexpr uint8_t supported_as_in_the_standard = 3;
constexpr size_t usage_data_offset = 4;

bool is_good(const ChannelCompletion& completion) {
  return !completion.target_failure &&
         completion.status == static_cast<uint8_t>(scsi::Status::good);
}

}  // namespace

Probe::Probe(std::array<std::byte, 8> lun, Done done) : done_(std::move(done)) {
  command_.lun = lun;
  command_.owner = this;
}

void Probe::start(ScsiChannel& channel) {
  VJBOD_CHECK(!running());
  channel_ = &channel;
  answers_ = {};
  pages_.clear();
  attentions_ = 0;
  enter(Step::test_unit_ready);
}

void Probe::on_session_down() {
  step_ = Step::none;
  issued_ = false;
  channel_ = nullptr;
}

void Probe::finish(Result<ProbeResult> result) {
  step_ = Step::none;
  channel_ = nullptr;
  done_(std::move(result));
}

void Probe::enter(Step step) {
  step_ = step;
  issue_if_possible();
}

void Probe::issue_if_possible() {
  if (!running() || issued_ || !channel_->can_issue()) return;
  const auto vpd_page = [this](scsi::VpdPage page) {
    command_.read = Bytes(buffer_);
    return scsi::encode(scsi::Inquiry{true, static_cast<uint8_t>(page), probe_bytes_max});
  };
  command_.read = {};
  switch (step_) {
    case Step::none: return;
    case Step::test_unit_ready: command_.cdb = scsi::encode(scsi::TestUnitReady{}); break;
    case Step::inquiry:
      command_.read = Bytes(buffer_).first(scsi::standard_inquiry_bytes);
      command_.cdb = scsi::encode(scsi::Inquiry{false, 0, scsi::standard_inquiry_bytes});
      break;
    case Step::supported_pages: command_.cdb = vpd_page(scsi::VpdPage::supported_pages); break;
    case Step::serial: command_.cdb = vpd_page(scsi::VpdPage::unit_serial_number); break;
    case Step::identification: command_.cdb = vpd_page(scsi::VpdPage::device_identification); break;
    case Step::block_limits: command_.cdb = vpd_page(scsi::VpdPage::block_limits); break;
    case Step::provisioning:
      command_.cdb = vpd_page(scsi::VpdPage::logical_block_provisioning);
      break;
    case Step::cache_id:
      command_.cdb = vpd_page(static_cast<scsi::VpdPage>(scsi::vpd_page_cache_id));
      break;
    case Step::capacity_16:
      command_.read = Bytes(buffer_).first(scsi::capacity_16_bytes);
      command_.cdb = scsi::encode(scsi::ReadCapacity16{scsi::capacity_16_bytes});
      break;
    case Step::capacity_10:
      command_.read = Bytes(buffer_).first(scsi::capacity_10_bytes);
      command_.cdb = scsi::encode(scsi::ReadCapacity10{});
      break;
    case Step::mode_sense_6:
    case Step::mode_sense_10: {
      scsi::ModeSense mode;
      mode.size = step_ == Step::mode_sense_6 ? scsi::CdbSize::six : scsi::CdbSize::ten;
      mode.page_code = scsi::mode_page_caching;
      mode.allocation_length = 192;
      command_.read = Bytes(buffer_).first(192);
      command_.cdb = scsi::encode(mode);
      break;
    }
    case Step::operation_codes: {
      scsi::ReportSupportedOperationCodes report;
      report.reporting_options = report_one_command;
      report.requested_opcode = static_cast<uint8_t>(scsi::Opcode::write_same_16);
      report.allocation_length = 64;
      command_.read = Bytes(buffer_).first(64);
      command_.cdb = scsi::encode(report);
      break;
    }
  }
  std::fill(buffer_.begin(), buffer_.end(), std::byte{0});
  issued_ = true;
  channel_->issue(command_);
}

void Probe::on_command_done(ChannelCommand&, const ChannelCompletion& completion) {
  issued_ = false;
  if (is_good(completion)) {
    const size_t moved = std::min<size_t>(completion.data_bytes, command_.read.size());
    if (Status taken = take(ConstBytes(command_.read).first(moved)); !taken)
      return finish(fail(std::move(taken).error()));
    return after(step_, Taken::yes);
  }
  const Result<scsi::Sense> sense = scsi::parse_sense(completion.sense);
  const bool check_condition =
      !completion.target_failure &&
      completion.status == static_cast<uint8_t>(scsi::Status::check_condition) && sense;
  if (check_condition && sense->key == scsi::SenseKey::unit_attention &&
      ++attentions_ <= probe_attentions_max) {
    // What was asked before may have changed: ask everything again.
    answers_ = {};
    pages_.clear();
    return enter(Step::test_unit_ready);
  }
  if (check_condition && sense->key == scsi::SenseKey::illegal_request &&
      sense->additional == scsi::asc::logical_unit_not_supported)
    return finish(fail(DiskErrc::not_a_disk, "The target has no such LUN."));
  if (check_condition && sense->key == scsi::SenseKey::illegal_request)
    return after(step_, Taken::refused);
  finish(
      fail(DiskErrc::probe_failed, "The LUN does not tell what it is: {}.", describe(completion)));
}

// A refused question has no answer; whether that is an error depends on the question.
void Probe::after(Step step, Taken taken) {
  const bool refused = taken == Taken::refused;
  switch (step) {
    case Step::none: return;
    case Step::test_unit_ready: return enter(Step::inquiry);
    case Step::inquiry:
      if (refused)
        return finish(fail(DiskErrc::probe_failed, "The LUN refuses the INQUIRY command."));
      return enter(Step::supported_pages);
    case Step::supported_pages:
    case Step::serial:
    case Step::identification:
    case Step::block_limits:
    case Step::provisioning:
    case Step::cache_id: return enter(next_page(step));
    case Step::capacity_16: return enter(refused ? Step::capacity_10 : Step::mode_sense_6);
    case Step::capacity_10:
      if (refused)
        return finish(fail(DiskErrc::probe_failed, "The LUN does not tell its capacity."));
      return enter(Step::mode_sense_6);
    case Step::mode_sense_6: return enter(refused ? Step::mode_sense_10 : Step::operation_codes);
    case Step::mode_sense_10: return enter(Step::operation_codes);
    case Step::operation_codes: return finish(interpret(answers_));
  }
}

bool Probe::has_page(uint8_t page) const {
  return std::find(pages_.begin(), pages_.end(), page) != pages_.end();
}

Probe::Step Probe::next_page(Step step) const {
  constexpr std::array<std::pair<Step, uint8_t>, 5> order = {{
      {Step::serial, static_cast<uint8_t>(scsi::VpdPage::unit_serial_number)},
      {Step::identification, static_cast<uint8_t>(scsi::VpdPage::device_identification)},
      {Step::block_limits, static_cast<uint8_t>(scsi::VpdPage::block_limits)},
      {Step::provisioning, static_cast<uint8_t>(scsi::VpdPage::logical_block_provisioning)},
      {Step::cache_id, scsi::vpd_page_cache_id},
  }};
  for (const auto& [candidate, page] : order)
    if (candidate > step && has_page(page)) return candidate;
  return Step::capacity_16;
}

Status Probe::take(ConstBytes data) {
  // An optional answer that cannot be read is as good as none; one that identifies the LUN is not.
  switch (step_) {
    case Step::none:
    case Step::test_unit_ready: return {};
    case Step::inquiry: {
      auto inquiry = scsi::parse_standard_inquiry(data);
      if (!inquiry) return fail(std::move(inquiry).error());
      answers_.inquiry = std::move(*inquiry);
      return {};
    }
    case Step::supported_pages: {
      auto pages = scsi::parse_supported_pages(data);
      if (pages) pages_ = std::move(*pages);
      return {};
    }
    case Step::serial: {
      auto serial = scsi::parse_unit_serial_number(data);
      if (!serial) return fail(std::move(serial).error());
      answers_.serial = std::move(*serial);
      return {};
    }
    case Step::identification: {
      auto designators = scsi::parse_device_identification(data);
      if (!designators) return fail(std::move(designators).error());
      answers_.designators = std::move(*designators);
      return {};
    }
    case Step::block_limits: {
      auto limits = scsi::parse_block_limits(data);
      if (limits) answers_.limits = *limits;
      return {};
    }
    case Step::provisioning: {
      auto provisioning = scsi::parse_logical_block_provisioning(data);
      if (provisioning) answers_.provisioning = *provisioning;
      return {};
    }
    case Step::cache_id: answers_.cache_id = scsi::parse_cache_id(data).value_or(""); return {};
    case Step::capacity_16:
    case Step::capacity_10: {
      auto capacity = step_ == Step::capacity_16 ? scsi::parse_capacity_16(data)
                                                 : scsi::parse_capacity_10(data);
      if (!capacity) return fail(std::move(capacity).error());
      answers_.capacity = *capacity;
      return {};
    }
    case Step::mode_sense_6:
    case Step::mode_sense_10: {
      auto mode = scsi::parse_mode_data(
          data, step_ == Step::mode_sense_6 ? scsi::CdbSize::six : scsi::CdbSize::ten);
      if (mode) answers_.mode = *mode;
      return {};
    }
    case Step::operation_codes: {
      if (data.size() < usage_data_offset) return {};
      const uint8_t support = std::to_integer<uint8_t>(data[1]) & 0x07;
      if (support == 0) return {};  // it does not know yet
      answers_.write_same_16 = support == supported_as_in_the_standard;
      // NDOB is bit 0 of the CDB's second byte (SBC-4 5.50).
      answers_.write_same_no_data =
          data.size() >= usage_data_offset + 2 &&
          (std::to_integer<uint8_t>(data[usage_data_offset + 1]) & 1) != 0;
      return {};
    }
  }
  return {};
}

}  // namespace vjbod::initiator
