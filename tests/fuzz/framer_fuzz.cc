// SPDX-License-Identifier: Apache-2.0
// The stream: however it is cut into receives, and wherever data segments go, the same PDUs and the
// same error come out. The first two bytes of the input choose the rules and the cuts.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/iscsi/framer.h"

using namespace vjbod;
using namespace vjbod::iscsi;

namespace {

constexpr uint32_t data_max = 1024;

// What came out, as text.
std::string receive(ConstBytes stream, const Framer::Rules& rules, Random cuts, bool in_place) {
  std::vector<std::byte> memory(pdu_bytes_max(data_max));
  std::vector<std::byte> destination;
  Framer framer(memory, rules);
  std::string seen;
  Opcode opcode{};
  bool placed = false;
  while (!stream.empty()) {
    const auto space = framer.receive_space(cuts.below(200));
    const size_t count = std::min(
        {stream.size(), size_t{1} + cuts.below(300), space.placed.size() + space.buffered.size()});
    VJBOD_CHECK(count > 0);
    const size_t direct = std::min(count, space.placed.size());
    if (direct > 0) std::memcpy(space.placed.data(), stream.data(), direct);
    if (count > direct) {
      std::memcpy(space.buffered.data(), stream.data() + direct, count - direct);
    }
    stream = stream.subspan(count);
    framer.received(count);
    for (bool starved = false; !starved;) {
      auto event = framer.next();
      if (!event) return seen + event.error().text;
      switch (*event) {
        case Framer::Event::starved: starved = true; break;
        case Framer::Event::header:
          opcode = bhs_opcode(framer.bhs());
          seen += fmt::format("header {:02x} ahs {:08x}\n", static_cast<unsigned>(opcode),
                              crc32c(framer.ahs()));
          placed = !in_place && opcode != Opcode::data_out && cuts.chance(1, 2);
          destination.assign(framer.data_segment_length(), std::byte{0});
          if (placed) framer.place_data(destination);
          if (opcode == Opcode::data_out) framer.drop_data();
          break;
        case Framer::Event::pdu:
          seen += fmt::format("data {:08x}\n",
                              crc32c(placed ? ConstBytes(destination) : framer.data()));
          break;
      }
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Framer::Rules rules{.header_digest = (data[0] & 1) != 0,
                            .data_digest = (data[0] & 2) != 0,
                            .data_segment_length_max = data_max,
                            .ahs_bytes_max = (data[0] & 4) != 0 ? 16U : 1020U};
  const ConstBytes stream(reinterpret_cast<const std::byte*>(data + 2), size - 2);
  const Random cuts(data[1]);
  VJBOD_CHECK(receive(stream, rules, cuts, true) ==
              receive(stream, rules, Random(~data[1]), false));
  return 0;
}
