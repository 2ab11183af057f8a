// SPDX-License-Identifier: Apache-2.0
// Takes the replies of an NBD server out of a byte stream, for tests.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "initiator/frontend/nbd_wire.h"

namespace vjbod::test {

struct NbdReply {
  uint64_t cookie = 0;
  initiator::nbd::WireError error{};
  std::string message;
  std::string data;  // of a read, put together
  int chunks = 0;    // structured content chunks
};

// Feed bytes as they come; complete replies are appended to `replies` in the order they ended.
class NbdReplyReader {
 public:
  struct Read {
    uint64_t offset_bytes = 0;
    uint32_t length_bytes = 0;
  };

  // A simple reply does not say whether data follows; so the reader must know the reads.
  void expect_read(uint64_t cookie, Read read) { reads_[cookie] = read; }
  // False when the bytes are not replies.
  bool feed(std::string_view bytes);

  std::vector<NbdReply> replies;

 private:
  bool take_one(bool& progress);
  bool take_simple(bool& progress);
  bool take_structured(bool& progress);

  ConstBytes rest() const { return as_bytes(pending_).subspan(used_); }

  std::string pending_;
  size_t used_ = 0;  // bytes of it
  std::map<uint64_t, Read> reads_;
  std::map<uint64_t, NbdReply> unfinished_;
};

}  // namespace vjbod::test
