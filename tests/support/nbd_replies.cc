// SPDX-License-Identifier: Apache-2.0
#include "tests/support/nbd_replies.h"

namespace vjbod::test {

using namespace initiator::nbd;

bool NbdReplyReader::feed(std::string_view bytes) {
  pending_ += bytes;
  bool progress = true;
  while (progress) {
    progress = false;
    if (!take_one(progress)) return false;
  }
  pending_.erase(0, used_);
  used_ = 0;
  return true;
}

bool NbdReplyReader::take_one(bool& progress) {
  if (rest().size() < simple_reply_bytes) return true;
  const auto magic = load_big_endian<uint32_t>(rest().data());
  if (magic == simple_reply_magic) return take_simple(progress);
  if (magic == structured_reply_magic) return take_structured(progress);
  return false;
}

bool NbdReplyReader::take_simple(bool& progress) {
  const auto header = decode_simple_reply(rest().first<simple_reply_bytes>());
  size_t data_bytes = 0;
  const auto read = reads_.find(header->cookie);
  if (read != reads_.end() && header->error == WireError::none) {
    data_bytes = read->second.length_bytes;
  }
  if (rest().size() < simple_reply_bytes + data_bytes) return true;
  NbdReply reply;
  reply.cookie = header->cookie;
  reply.error = header->error;
  reply.data = as_text(rest().subspan(simple_reply_bytes, data_bytes));
  replies.push_back(std::move(reply));
  used_ += simple_reply_bytes + data_bytes;
  progress = true;
  return true;
}

bool NbdReplyReader::take_structured(bool& progress) {
  if (rest().size() < structured_reply_bytes) return true;
  const auto header = decode_structured_reply(rest().first<structured_reply_bytes>());
  if (rest().size() < structured_reply_bytes + header->length_bytes) return true;
  ByteReader payload(rest().subspan(structured_reply_bytes, header->length_bytes));
  NbdReply& reply = unfinished_[header->cookie];
  reply.cookie = header->cookie;
  if (header->type == Chunk::offset_data) {
    const auto read = reads_.find(header->cookie);
    if (read == reads_.end()) return false;
    const uint64_t at = payload.u64() - read->second.offset_bytes;
    const std::string_view data = as_text(payload.bytes(payload.remaining()));
    if (data.empty() || at + data.size() > read->second.length_bytes) return false;
    reply.data.resize(read->second.length_bytes);
    reply.data.replace(at, data.size(), data);
    ++reply.chunks;
  } else if (header->type == Chunk::error) {
    reply.error = static_cast<WireError>(payload.u32());
    reply.message = as_text(payload.bytes(payload.u16()));
    if (!payload.ok() || reply.error == WireError::none) return false;
  } else if (header->type != Chunk::none) {
    return false;
  }
  if (header->done) {
    replies.push_back(std::move(reply));
    unfinished_.erase(header->cookie);
  }
  used_ += structured_reply_bytes + header->length_bytes;
  progress = true;
  return true;
}

}  // namespace vjbod::test
