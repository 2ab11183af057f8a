// SPDX-License-Identifier: Apache-2.0
// A small iSCSI target over memory movers, written against the RFC and not against our target: a
// disk in a vector, and a knob for everything that a test wants to go wrong. One reactor.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/iscsi/errc.h"
#include "common/iscsi/negotiation.h"
#include "common/iscsi/pdu_codec.h"
#include "common/iscsi/status_sequence.h"
#include "common/iscsi/text.h"
#include "common/scsi/capacity.h"
#include "common/scsi/cdb.h"
#include "common/scsi/inquiry.h"
#include "common/scsi/mode_page.h"
#include "common/scsi/sense.h"
#include "common/scsi/status.h"
#include "common/scsi/unmap_list.h"
#include "common/transport/memory/memory_network.h"

namespace vjbod::test {

struct Reply {
  scsi::Status status = scsi::Status::good;
  std::optional<scsi::Sense> sense;
};

inline Reply check_condition(scsi::SenseKey key, scsi::AdditionalSense additional) {
  Reply reply{scsi::Status::check_condition, scsi::Sense{}};
  reply.sense->key = key;
  reply.sense->additional = additional;
  return reply;
}

class FakeTarget {
 public:
  class Connection;

  FakeTarget(Reactor& reactor, transport::MemoryNetwork& network, std::string address = "10.0.0.2")
      : reactor_(reactor), network_(network), address_(std::move(address)) {
    start();
  }
  // The reactor must run once more between stop() and the end.
  ~FakeTarget() = default;

  // --- the LUN ---
  uint32_t block_bytes = 512;
  std::vector<std::byte> medium = std::vector<std::byte>(1 << 20);
  std::string serial = "serial-1";
  std::vector<std::byte> naa = std::vector<std::byte>(16, std::byte{0x6a});
  std::string cache_id = "11111111-1111-1111-1111-111111111111";
  std::string vendor = "VJBOD";  // a cache id of others means nothing
  bool write_cache = true, dpo_and_fua = true, write_protected = false;
  bool has_vpd = true, has_capacity_16 = true, has_mode_sense = true, has_opcode_report = true;
  bool has_write_same = true, has_unmap = true, no_data_out = true;
  uint32_t transfer_blocks_max = 0, unmap_blocks_max = 0xffff, write_same_blocks_max = 0xffff;

  // --- the behaviour ---
  uint32_t window = 32;
  uint16_t login_status = 0;    // of every login from now on
  std::string redirect_to;      // with status 0x0101
  bool swallow_logins = false;  // no answer
  bool counts_logins = false;   // as commands, in the ExpCmdSN of the response only
  // CHAP is asked for, with the first algorithm offered. A response by MD5 is right, whatever it
  // is; another one gets this status.
  bool asks_for_chap = false;
  uint16_t status_of_other_chap = 0x0200;
  bool answer_pings = true;
  std::optional<iscsi::TaskManagementResult> task_management_result;  // none: no answer
  std::function<void(Connection&)> on_accept;
  // Instead of carrying the command out.
  std::function<std::optional<Reply>(const scsi::Command&)> refuse;
  // Carried out, and never answered.
  std::function<bool(const scsi::Command&)> swallow_response;
  // Neither carried out nor answered.
  std::function<bool(const scsi::Command&)> ignore;
  std::function<void(iscsi::ScsiResponse&, std::vector<std::byte>&)> distort_response;

  // --- what was seen ---
  std::vector<scsi::Command> commands;
  std::vector<iscsi::Isid> logins;
  std::vector<std::string> login_texts;
  uint32_t logouts = 0, pings = 0;
  std::vector<iscsi::TaskManagementRequest> task_management;

  template <typename T>
  size_t count() const {
    return static_cast<size_t>(std::count_if(commands.begin(), commands.end(), [](const auto& c) {
      return std::holds_alternative<T>(c);
    }));
  }

  void start() {
    auto listener =
        network_.listen(address_, 3260, [this](auto mover) { accept(std::move(mover)); });
    VJBOD_CHECK(listener.has_value());
    listener_ = std::move(*listener);
  }
  // As a killed process: every connection is gone, nobody listens.
  void stop();
  // The newest connection, or null.
  Connection* connection();

 private:
  friend class Connection;
  void accept(std::unique_ptr<transport::DataMover> mover);

  Reactor& reactor_;
  transport::MemoryNetwork& network_;
  std::string address_;
  std::unique_ptr<transport::Listener> listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

class FakeTarget::Connection final : public transport::DataMoverEvents {
 public:
  Connection(FakeTarget& target, std::unique_ptr<transport::DataMover> mover)
      : target_(target), mover_(std::move(mover)) {
    mover_->start(*this);
  }

  bool closed() const { return closed_; }
  void close() {
    if (!closed_) mover_->terminate({iscsi::Errc::closed_locally, "the test closed it"});
  }
  // Any PDU, stamped as the next in order.
  void send(iscsi::Pdu pdu, ConstBytes data = {}) {
    iscsi::stamp_target(pdu, stat_sn_, exp_cmd_sn_, exp_cmd_sn_ + target_.window - 1);
    if (iscsi::uses_stat_sn(pdu)) ++stat_sn_;
    mover_->send_control(pdu, data);
  }
  void send_unstamped(const iscsi::Pdu& pdu, ConstBytes data = {}) {
    mover_->send_control(pdu, data);
  }
  SerialNumber stat_sn() const { return stat_sn_; }
  SerialNumber exp_cmd_sn() const { return exp_cmd_sn_; }
  uint32_t last_command_itt() const { return last_itt_; }

  void on_control(const transport::ReceivedControl& received) override {
    std::visit([&](const auto& pdu) { on_pdu(pdu, received); }, received.pdu);
  }
  void on_transfer_done(transport::TaskHandle handle) override {
    for (Task& task : tasks_) {
      if (task.handle != handle) continue;
      return task.reply ? respond(task) : carry_out(task);
    }
  }
  void on_peer_alive() override {}
  void on_closed(const Error&) override { closed_ = true; }

 private:
  struct Task {
    transport::TaskHandle handle;
    iscsi::ScsiCommand pdu;
    scsi::Command command;
    std::vector<std::byte> data;
    std::optional<Reply> reply;
    uint64_t actual = 0;
  };

  void on_pdu(const iscsi::LoginRequest& request, const transport::ReceivedControl& received) {
    if (target_.swallow_logins) return;
    target_.login_texts.emplace_back(as_text(received.data));
    iscsi::LoginResponse response;
    response.isid = request.isid;
    response.itt = request.itt;
    response.tsih = 1;
    response.current_stage = request.current_stage;
    exp_cmd_sn_ = request.cmd_sn;
    iscsi::TextBuilder text;
    if (target_.login_status != 0) {
      response.status_class = static_cast<uint8_t>(target_.login_status >> 8);
      response.status_detail = static_cast<uint8_t>(target_.login_status);
      if (!target_.redirect_to.empty()) text.add("TargetAddress", target_.redirect_to);
      return send_login(response, text.take());
    }
    bool transit = request.transit;
    auto pairs = iscsi::split_text(received.data);
    VJBOD_CHECK(pairs.has_value());
    for (const iscsi::TextPair& pair : *pairs) {
      const iscsi::KeyInfo* key = iscsi::find_key(pair.key);
      if (key != nullptr && key->key == iscsi::Key::auth_method) {
        text.add("AuthMethod", target_.asks_for_chap ? "CHAP" : "None");
        transit = transit && !target_.asks_for_chap;
      } else if (pair.key == "CHAP_A") {
        chap_is_md5_ = pair.value.substr(0, pair.value.find(',')) == "5";
        text.add("CHAP_A", pair.value.substr(0, 1)).add("CHAP_I", 1).add("CHAP_C", "0x0011");
        transit = false;
      } else if (pair.key == "CHAP_R" && !chap_is_md5_) {
        response.status_class = static_cast<uint8_t>(target_.status_of_other_chap >> 8);
        response.status_detail = static_cast<uint8_t>(target_.status_of_other_chap);
        return send_login(response, {});
      } else if (key == nullptr || key->group == iscsi::KeyGroup::operational) {
        VJBOD_CHECK(negotiation_.receive(std::span(&pair, 1), text).has_value());
      }
    }
    if (!group_told_) text.add("TargetPortalGroupTag", 1);
    group_told_ = true;
    response.transit = transit;
    response.next_stage = request.next_stage;
    const bool done = transit && request.next_stage == iscsi::Stage::full_feature;
    if (done) target_.logins.push_back(request.isid);
    if (target_.counts_logins) ++exp_cmd_sn_;
    send_login(response, text.take());
    exp_cmd_sn_ = request.cmd_sn;
    if (done) mover_->enable_full_feature(negotiation_.finish().value(), numbers_);
  }
  void send_login(const iscsi::LoginResponse& response, const std::string& text) {
    send(response, as_bytes(std::string_view(text)));
  }

  void on_pdu(const iscsi::ScsiCommand& pdu, const transport::ReceivedControl& received) {
    ++exp_cmd_sn_;
    last_itt_ = pdu.itt;
    auto command = scsi::decode_cdb(pdu.cdb);
    VJBOD_CHECK(command.has_value());
    target_.commands.push_back(*command);
    if (target_.ignore && target_.ignore(*command)) return;
    Task& task = tasks_.emplace_back();
    task.handle = received.task;
    task.pdu = pdu;
    task.command = *command;
    if (target_.refuse) task.reply = target_.refuse(*command);
    task.data.resize(pdu.expected_data_transfer_length);
    const size_t immediate = received.data.size();
    std::copy(received.data.begin(), received.data.end(), task.data.begin());
    if (pdu.write && immediate < task.data.size() && !task.reply)
      mover_->get_data(task.handle, immediate, Bytes(task.data).subspan(immediate));
    else
      carry_out(task);
  }

  // The written data is here.
  void carry_out(Task& task) {
    if (!task.reply) {
      ByteWriter out(task.data);
      task.reply = execute(task, out);
      const bool good = task.reply->status == scsi::Status::good;
      if (good) task.actual = task.pdu.read ? out.written() : task.data.size();
    }
    if (task.pdu.read && task.actual > 0)
      mover_->put_data(task.handle, 0, ConstBytes(task.data).first(task.actual));
    else
      respond(task);
  }

  void respond(Task& task) {
    mover_->end_task(task.handle);
    const Task done = std::move(task);
    std::erase_if(tasks_, [&](const Task& t) { return t.handle == done.handle; });
    if (target_.swallow_response && target_.swallow_response(done.command)) {
      return;
    }
    iscsi::ScsiResponse response;
    response.itt = done.pdu.itt;
    response.status = static_cast<uint8_t>(done.reply->status);
    if (done.actual < done.data.size()) {
      response.underflow = true;
      response.residual_count = static_cast<uint32_t>(done.data.size() - done.actual);
    }
    std::vector<std::byte> data;
    if (done.reply->sense) {
      data.resize(2 + scsi::fixed_sense_bytes);
      const size_t length = scsi::build_fixed_sense(*done.reply->sense, Bytes(data).subspan(2));
      store_big_endian<uint16_t>(data.data(), static_cast<uint16_t>(length));
    }
    if (target_.distort_response) target_.distort_response(response, data);
    send(response, data);
  }

  void on_pdu(const iscsi::NopOut& pdu, const transport::ReceivedControl& received) {
    if (pdu.itt == iscsi::reserved_tag) {
      ++answers_to_pings;
      return;
    }
    ++target_.pings;
    if (!target_.answer_pings) return;
    iscsi::NopIn answer;
    answer.itt = pdu.itt;
    send(answer, received.data);
  }
  void on_pdu(const iscsi::TaskManagementRequest& pdu, const transport::ReceivedControl&) {
    target_.task_management.push_back(pdu);
    if (!target_.task_management_result) return;
    iscsi::TaskManagementResponse response;
    response.itt = pdu.itt;
    response.result = *target_.task_management_result;
    send(response);
  }
  void on_pdu(const iscsi::LogoutRequest& pdu, const transport::ReceivedControl&) {
    ++target_.logouts;
    iscsi::LogoutResponse response;
    response.itt = pdu.itt;
    send(response);
    close();
  }
  void on_pdu(const iscsi::TextRequest& pdu, const transport::ReceivedControl& received) {
    text_requests.emplace_back(as_text(received.data));
    iscsi::TextResponse response;
    response.itt = pdu.itt;
    const size_t piece = std::min<size_t>(text_answer.size() - text_sent_, text_piece_bytes);
    const std::string text = text_answer.substr(text_sent_, piece);
    text_sent_ += piece;
    response.continues = text_sent_ < text_answer.size();
    response.final = !response.continues;
    response.ttt = response.final ? iscsi::reserved_tag : 77;
    send(response, as_bytes(std::string_view(text)));
  }
  template <typename Other>
  void on_pdu(const Other&, const transport::ReceivedControl&) {
    VJBOD_CHECK(false, "the fake target got a PDU that it does not know");
  }

  // --- SCSI ---
  Bytes blocks(uint64_t lba, uint64_t count) {
    return Bytes(target_.medium).subspan(lba * target_.block_bytes, count * target_.block_bytes);
  }
  static Reply illegal() {
    return check_condition(scsi::SenseKey::illegal_request, scsi::asc::invalid_operation_code);
  }
  uint64_t block_count() const { return target_.medium.size() / target_.block_bytes; }

  Reply execute(Task& task, ByteWriter& out) {
    return std::visit([&](const auto& command) { return run(command, task, out); }, task.command);
  }
  Reply run(const scsi::TestUnitReady&, Task&, ByteWriter&) { return {}; }
  Reply run(const scsi::Inquiry& inquiry, Task& task, ByteWriter& out) {
    std::vector<std::byte> page(512);
    ByteWriter writer(page);
    if (!inquiry.vital_product_data) {
      scsi::StandardInquiry standard;
      standard.vendor = target_.vendor;
      standard.product = "DISK";
      standard.revision = "1";
      scsi::build(standard, writer);
    } else if (!target_.has_vpd) {
      return check_condition(scsi::SenseKey::illegal_request, scsi::asc::invalid_field_in_cdb);
    } else {
      switch (inquiry.page_code) {
        case 0x00: {
          std::vector<uint8_t> pages = {0x00, 0x80, 0x83, 0xb0, 0xb2};
          if (!target_.cache_id.empty()) pages.push_back(0xc0);
          scsi::build_supported_pages({}, pages, writer);
          break;
        }
        case 0x80: scsi::build_unit_serial_number({}, target_.serial, writer); break;
        case 0x83: {
          scsi::Designator designator;
          designator.type = scsi::DesignatorType::naa;
          designator.bytes = target_.naa;
          scsi::build_device_identification({}, {designator}, writer);
          break;
        }
        case 0xb0: {
          scsi::BlockLimits limits;
          limits.maximum_transfer_blocks = target_.transfer_blocks_max;
          limits.maximum_unmap_blocks = target_.has_unmap ? target_.unmap_blocks_max : 0;
          limits.maximum_unmap_descriptors = target_.has_unmap ? 1 : 0;
          limits.maximum_write_same_blocks =
              target_.has_write_same ? target_.write_same_blocks_max : 0;
          scsi::build(scsi::Peripheral{}, limits, writer);
          break;
        }
        case 0xb2: {
          scsi::LogicalBlockProvisioning provisioning;
          provisioning.unmap = target_.has_unmap;
          provisioning.write_same_16_unmap = target_.has_write_same;
          provisioning.reads_zeros = true;
          scsi::build(scsi::Peripheral{}, provisioning, writer);
          break;
        }
        case 0xc0:
          writer.u8(0).u8(0xc0).u16(static_cast<uint16_t>(target_.cache_id.size()));
          writer.bytes(as_bytes(std::string_view(target_.cache_id)));
          break;
        default:
          return check_condition(scsi::SenseKey::illegal_request, scsi::asc::invalid_field_in_cdb);
      }
    }
    out.bytes(writer.result().first(std::min(writer.written(), task.data.size())));
    return {};
  }
  scsi::Capacity capacity() const {
    scsi::Capacity capacity;
    capacity.blocks = block_count();
    capacity.block_bytes = target_.block_bytes;
    capacity.provisioning_management = true;
    return capacity;
  }
  Reply run(const scsi::ReadCapacity10&, Task&, ByteWriter& out) {
    scsi::build_capacity_10(capacity(), out);
    return {};
  }
  Reply run(const scsi::ReadCapacity16&, Task&, ByteWriter& out) {
    if (!target_.has_capacity_16) return illegal();
    scsi::build_capacity_16(capacity(), out);
    return {};
  }
  Reply run(const scsi::ModeSense& mode, Task&, ByteWriter& out) {
    if (!target_.has_mode_sense) return illegal();
    scsi::ModeData data;
    data.write_protected = target_.write_protected;
    data.dpo_and_fua = target_.dpo_and_fua;
    data.caching = scsi::CachingPage{target_.write_cache, false};
    scsi::build_mode_data(data, mode.size, false, out);
    return {};
  }
  Reply run(const scsi::ReportSupportedOperationCodes&, Task&, ByteWriter& out) {
    if (!target_.has_opcode_report) return illegal();
    out.u8(0).u8(target_.has_write_same ? 3 : 1).u16(16);
    out.u8(0x93).u8(target_.no_data_out ? 0x09 : 0x08).zeros(14);
    return {};
  }
  Reply run(const scsi::Read& read, Task&, ByteWriter& out) {
    if (read.lba + read.blocks > block_count())
      return check_condition(scsi::SenseKey::illegal_request, scsi::asc::lba_out_of_range);
    out.bytes(blocks(read.lba, read.blocks));
    return {};
  }
  Reply run(const scsi::Write& write, Task& task, ByteWriter&) {
    if (write.lba + write.blocks > block_count())
      return check_condition(scsi::SenseKey::illegal_request, scsi::asc::lba_out_of_range);
    std::copy(task.data.begin(), task.data.end(), blocks(write.lba, write.blocks).begin());
    return {};
  }
  Reply run(const scsi::SynchronizeCache&, Task&, ByteWriter&) { return {}; }
  Reply run(const scsi::WriteSame& write, Task& task, ByteWriter&) {
    if (!target_.has_write_same) return illegal();
    for (uint32_t i = 0; i < write.blocks; ++i) {
      const Bytes to = blocks(write.lba + i, 1);
      if (write.no_data_out)
        std::fill(to.begin(), to.end(), std::byte{0});
      else
        std::copy(task.data.begin(), task.data.end(), to.begin());
    }
    return {};
  }
  Reply run(const scsi::Unmap&, Task& task, ByteWriter&) {
    if (!target_.has_unmap) return illegal();
    auto list = scsi::UnmapList::parse(task.data);
    VJBOD_CHECK(list.has_value());
    for (size_t i = 0; i < list->size(); ++i) {
      const Bytes to = blocks((*list)[i].lba, (*list)[i].blocks);
      std::fill(to.begin(), to.end(), std::byte{0});
    }
    return {};
  }
  template <typename Other>
  Reply run(const Other&, Task&, ByteWriter&) {
    return illegal();
  }

 public:
  uint32_t answers_to_pings = 0;
  std::vector<std::string> text_requests;
  std::string text_answer;
  size_t text_piece_bytes = 8192;

 private:
  FakeTarget& target_;
  std::unique_ptr<transport::DataMover> mover_;
  bool closed_ = false;
  bool group_told_ = false;
  bool chap_is_md5_ = false;
  iscsi::Negotiation negotiation_{iscsi::Side::target, {}};
  transport::SequenceNumbers numbers_;
  SerialNumber stat_sn_{100}, exp_cmd_sn_;
  uint32_t last_itt_ = 0;
  size_t text_sent_ = 0;
  std::list<Task> tasks_;
};

inline void FakeTarget::accept(std::unique_ptr<transport::DataMover> mover) {
  connections_.push_back(std::make_unique<Connection>(*this, std::move(mover)));
  if (on_accept) on_accept(*connections_.back());
}

inline FakeTarget::Connection* FakeTarget::connection() {
  return connections_.empty() ? nullptr : connections_.back().get();
}

inline void FakeTarget::stop() {
  listener_.reset();
  for (auto& connection : connections_) connection->close();
}

}  // namespace vjbod::test
