// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/negotiation.h"

#include <algorithm>
#include <vector>

#include "common/base/check.h"
#include "common/iscsi/errc.h"

namespace vjbod::iscsi {

namespace {

constexpr std::string_view crc32c = "CRC32C";
constexpr std::string_view none = "None";

// What an initiator proposes in a normal session, in this order. MaxBurstLength stands before
// FirstBurstLength, which it bounds.
constexpr std::array offered_in_normal_session = {
    Key::max_connections,     Key::error_recovery_level,  Key::initial_r2t,
    Key::immediate_data,      Key::max_burst_length,      Key::first_burst_length,
    Key::max_outstanding_r2t, Key::default_time2wait,     Key::default_time2retain,
    Key::data_pdu_in_order,   Key::data_sequence_in_order};

// RFC 7145 section 6: how the buffers are lent, and what is posted. No Hello messages.
constexpr std::array declared_for_rdma = {Key::max_outstanding_unexpected_pdus, Key::max_ahs_length,
                                          Key::tagged_buffer_for_solicited_data_only,
                                          Key::iser_hello_required};

std::string_view digest_list(DigestWish wish) {
  switch (wish) {
    case DigestWish::none: return none;
    case DigestWish::prefer: return "CRC32C,None";
    case DigestWish::require: return crc32c;
  }
  return none;
}

bool list_has(std::string_view list, std::string_view wanted) {
  while (const auto item = next_list_item(list)) {
    if (*item == wanted) return true;
  }
  return false;
}

std::string_view boolean_text(bool value) {
  return value ? "Yes" : "No";
}

size_t index_of(Key key) {
  return static_cast<size_t>(key);
}

tl::unexpected<Error> bad_value(const KeyInfo& key, std::string_view value) {
  return fail(Errc::bad_value, "key {} has the illegal value \"{}\"", key.name, printable(value));
}

tl::unexpected<Error> bad_answer(const KeyInfo& key, std::string_view value,
                                 std::string_view offer) {
  return fail(Errc::negotiation, "key {}: the answer \"{}\" is not one to the offer \"{}\"",
              key.name, printable(value), offer);
}

}  // namespace

void Negotiation::propose(Key key, TextBuilder& out) {
  const KeyInfo& info = info_of(key);
  progress_[index_of(key)] = Progress::offered;
  switch (info.type) {
    case KeyType::number: out.add(info.name, wished_number(key)); break;
    case KeyType::boolean: out.add_boolean(info.name, wished_boolean(key)); break;
    case KeyType::list: out.add(info.name, wished_list(key)); break;
    case KeyType::text: VJBOD_CHECK(false, "{} is not offered", info.name);
  }
}

void Negotiation::offer(TextBuilder& out) {
  if (side_ == Side::initiator) {
    const bool rdma = wishes_.rdma_extensions && !parameters_.discovery;
    if (rdma) propose(Key::rdma_extensions, out);
    propose(Key::header_digest, out);
    propose(Key::data_digest, out);
    if (!parameters_.discovery) {
      for (const Key key : offered_in_normal_session) propose(key, out);
    }
    if (rdma) {
      propose(Key::target_recv_data_segment_length, out);
      propose(Key::initiator_recv_data_segment_length, out);
      for (const Key key : declared_for_rdma) propose(key, out);
    }
  } else if (parameters_.rdma_extensions &&
             progress_[index_of(Key::max_outstanding_unexpected_pdus)] == Progress::settled) {
    // Only to those who know the keys: some initiators end a login at a key that they do not.
    propose(Key::max_outstanding_unexpected_pdus, out);
    propose(Key::max_ahs_length, out);
  }
  out.add(info_of(Key::max_recv_data_segment_length).name,
          uint64_t{wishes_.max_recv_data_segment_length});
  parameters_.our_max_recv_data_segment_length = wishes_.max_recv_data_segment_length;
}

Status Negotiation::receive(std::span<const TextPair> pairs, TextBuilder& answers) {
  // In the order of the table, not of the wire: there, a key comes after those that decide about
  // its meaning (RDMAExtensions before the iSER keys, MaxBurstLength before FirstBurstLength).
  std::array<const TextPair*, key_count> known{};
  for (const TextPair& pair : pairs) {
    const KeyInfo* info = find_key(pair.key);
    if (info == nullptr) {
      if (is_reserved_answer(pair.value)) {
        return fail(Errc::protocol, "key \"{}\" is answered, but it was not offered",
                    printable(pair.key));
      }
      answers.add(pair.key, value_not_understood);
      continue;
    }
    VJBOD_CHECK(info->group == KeyGroup::operational);
    const TextPair*& slot = known[index_of(info->key)];
    if (slot != nullptr) return fail(Errc::protocol, "key {} comes twice", info->name);
    slot = &pair;
  }
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i] == nullptr) continue;
    Status received = receive_one(key_table()[i], known[i]->value, answers);
    if (!received) return received;
  }
  return {};
}

Status Negotiation::receive_one(const KeyInfo& key, std::string_view value, TextBuilder& answers) {
  const Side peer = side_ == Side::initiator ? Side::target : Side::initiator;
  Progress& progress = progress_[index_of(key.key)];
  const Progress before = progress;
  const bool refused = before == Progress::offered && is_reserved_answer(value);
  if (!may_send(key, peer) && !refused) {
    return fail(Errc::protocol, "key {} must not be sent by this end", key.name);
  }
  progress = Progress::settled;
  if (before == Progress::settled) {
    return fail(Errc::protocol, "key {} is negotiated again", key.name);
  }
  // What the other end declares is no answer to what this end declares by the same key.
  const bool declares = key.result == KeyResult::declared && !is_reserved_answer(value);
  if (before == Progress::offered && !declares) return receive_answer(key, value);
  if (is_reserved_answer(value)) {
    return fail(Errc::protocol, "key {} is offered as \"{}\"", key.name, value);
  }
  if (key.result == KeyResult::declared) return receive_declaration(key, value);
  answers.add(key.name, answer_to(key, value));
  return {};
}

Status Negotiation::receive_declaration(const KeyInfo& key, std::string_view value) {
  if (irrelevant(key)) return {};
  if (key.type == KeyType::boolean) {
    const auto parsed = parse_boolean(value);
    if (!parsed) return bad_value(key, value);
    settle(key.key, *parsed ? 1 : 0);
  } else {
    const auto parsed = parse_number(value);
    if (!parsed || !in_range(key, *parsed)) return bad_value(key, value);
    settle(key.key, *parsed);
  }
  return {};
}

std::string Negotiation::answer_to(const KeyInfo& key, std::string_view value) {
  if (irrelevant(key)) return std::string(value_irrelevant);
  const std::string reject(value_reject);
  switch (key.result) {
    case KeyResult::declared:
    case KeyResult::always_reject: return reject;
    case KeyResult::always_no: return parse_boolean(value) ? "No" : reject;
    case KeyResult::boolean_and:
    case KeyResult::boolean_or: {
      const auto offered = parse_boolean(value);
      if (!offered) return reject;
      const bool wished = wished_boolean(key.key);
      const bool outcome =
          key.result == KeyResult::boolean_and ? *offered && wished : *offered || wished;
      settle(key.key, outcome ? 1 : 0);
      return std::string(boolean_text(outcome));
    }
    case KeyResult::minimum:
    case KeyResult::maximum: {
      const auto offered = parse_number(value);
      if (!offered || !in_range(key, *offered)) return reject;
      const uint64_t wished = wished_number(key.key);
      const uint64_t outcome = key.result == KeyResult::minimum ? std::min(*offered, wished)
                                                                : std::max(*offered, wished);
      settle(key.key, outcome);
      return std::to_string(outcome);
    }
    case KeyResult::first_in_list:
      while (const auto item = next_list_item(value)) {
        if (!list_has(wished_list(key.key), *item)) continue;
        settle_choice(key.key, *item);
        return std::string(*item);
      }
      return reject;
  }
  return reject;
}

// The other end has chosen. A refusal leaves the RFC's default in force; whether that will do is
// for finish() to say.
Status Negotiation::receive_answer(const KeyInfo& key, std::string_view value) {
  if (is_reserved_answer(value)) return {};
  if (key.type == KeyType::boolean) {
    const auto answer = parse_boolean(value);
    if (!answer) return bad_value(key, value);
    const bool wished = wished_boolean(key.key);
    const bool allowed = key.result == KeyResult::boolean_and ? wished || !*answer  //
                                                              : !wished || *answer;
    if (!allowed) return bad_answer(key, value, boolean_text(wished));
    settle(key.key, *answer ? 1 : 0);
  } else if (key.type == KeyType::number) {
    const auto answer = parse_number(value);
    if (!answer || !in_range(key, *answer)) return bad_value(key, value);
    const uint64_t wished = wished_number(key.key);
    const bool allowed = key.result == KeyResult::minimum ? *answer <= wished : *answer >= wished;
    if (!allowed) return bad_answer(key, value, std::to_string(wished));
    settle(key.key, *answer);
  } else {
    if (!list_has(wished_list(key.key), value)) {
      return bad_answer(key, value, wished_list(key.key));
    }
    settle_choice(key.key, value);
  }
  return {};
}

Result<NegotiatedParameters> Negotiation::finish() const {
  NegotiatedParameters agreed = parameters_;
  if (wishes_.header_digest == DigestWish::require && !agreed.header_digest) {
    return fail(Errc::negotiation, "header digest CRC32C is required here, but was not agreed");
  }
  if (wishes_.data_digest == DigestWish::require && !agreed.data_digest) {
    return fail(Errc::negotiation, "data digest CRC32C is required here, but was not agreed");
  }
  if (wishes_.rdma_extensions && !agreed.rdma_extensions && !agreed.discovery) {
    return fail(Errc::negotiation, "RDMAExtensions=Yes is required here, but was not agreed");
  }
  if (agreed.iser_hello_required)
    return fail(Errc::negotiation, "iSERHelloRequired=Yes is not supported here");
  // Only where FirstBurstLength was left at its default (RFC 7143 section 13.14).
  agreed.first_burst_length = std::min(agreed.first_burst_length, agreed.max_burst_length);
  return agreed;
}

bool Negotiation::irrelevant(const KeyInfo& key) const {
  switch (key.relevance) {
    case KeyRelevance::always: return false;
    case KeyRelevance::normal_session: return parameters_.discovery;
    case KeyRelevance::rdma: return !parameters_.rdma_extensions;
  }
  return false;
}

uint64_t Negotiation::wished_number(Key key) const {
  switch (key) {
    case Key::max_burst_length: return wishes_.max_burst_length;
    case Key::first_burst_length:
      // The answering end knows MaxBurstLength by now; the offering end has offered it.
      return std::min(wishes_.first_burst_length, side_ == Side::initiator
                                                      ? wishes_.max_burst_length
                                                      : parameters_.max_burst_length);
    case Key::max_outstanding_r2t: return wishes_.max_outstanding_r2t;
    case Key::default_time2wait: return wishes_.time2wait_s;
    case Key::default_time2retain: return wishes_.time2retain_s;
    case Key::target_recv_data_segment_length:
    case Key::initiator_recv_data_segment_length: return wishes_.max_recv_data_segment_length;
    case Key::max_outstanding_unexpected_pdus: return wishes_.max_outstanding_unexpected_pdus;
    case Key::max_ahs_length: return wishes_.max_ahs_length;
    case Key::error_recovery_level: return 0;
    default: return 1;  // MaxConnections and iSCSIProtocolLevel
  }
}

bool Negotiation::wished_boolean(Key key) const {
  switch (key) {
    case Key::initial_r2t: return wishes_.initial_r2t;
    case Key::immediate_data: return wishes_.immediate_data;
    case Key::rdma_extensions: return wishes_.rdma_extensions;
    case Key::iser_hello_required: return false;
    default:
      return true;  // DataPDUInOrder, DataSequenceInOrder and TaggedBufferForSolicitedDataOnly
  }
}

std::string_view Negotiation::wished_list(Key key) const {
  switch (key) {
    case Key::header_digest: return digest_list(wishes_.header_digest);
    case Key::data_digest: return digest_list(wishes_.data_digest);
    default: return "RFC3720";  // TaskReporting
  }
}

void Negotiation::settle(Key key, uint64_t value) {
  const auto number = static_cast<uint32_t>(value);
  switch (key) {
    case Key::max_connections: parameters_.max_connections = number; break;
    case Key::initial_r2t: parameters_.initial_r2t = value != 0; break;
    case Key::immediate_data: parameters_.immediate_data = value != 0; break;
    case Key::max_recv_data_segment_length:
      parameters_.peer_max_recv_data_segment_length = number;
      break;
    case Key::max_burst_length: parameters_.max_burst_length = number; break;
    case Key::first_burst_length: parameters_.first_burst_length = number; break;
    case Key::default_time2wait: parameters_.default_time2wait = std::chrono::seconds(value); break;
    case Key::default_time2retain:
      parameters_.default_time2retain = std::chrono::seconds(value);
      break;
    case Key::max_outstanding_r2t: parameters_.max_outstanding_r2t = number; break;
    case Key::data_pdu_in_order: parameters_.data_pdu_in_order = value != 0; break;
    case Key::data_sequence_in_order: parameters_.data_sequence_in_order = value != 0; break;
    case Key::error_recovery_level: parameters_.error_recovery_level = number; break;
    case Key::rdma_extensions: parameters_.rdma_extensions = value != 0; break;
    case Key::max_outstanding_unexpected_pdus:
      parameters_.peer_max_outstanding_unexpected_pdus = number;
      break;
    case Key::max_ahs_length: parameters_.peer_max_ahs_length = number; break;
    case Key::iser_hello_required: parameters_.iser_hello_required = value != 0; break;
    case Key::target_recv_data_segment_length:
    case Key::initiator_recv_data_segment_length: {
      const bool ours = (key == Key::target_recv_data_segment_length) == (side_ == Side::target);
      (ours ? parameters_.our_max_recv_data_segment_length
            : parameters_.peer_max_recv_data_segment_length) = number;
      break;
    }
    default: break;  // keys whose outcome changes nothing here
  }
}

void Negotiation::settle_choice(Key key, std::string_view choice) {
  if (key == Key::header_digest) parameters_.header_digest = choice == crc32c;
  if (key == Key::data_digest) parameters_.data_digest = choice == crc32c;
}

}  // namespace vjbod::iscsi
