// SPDX-License-Identifier: Apache-2.0
// key=value text: what is split keeps the limits and can be built again; the reasons against what
// is not are printable.
#include <algorithm>

#include "common/base/check.h"
#include "common/iscsi/text.h"

using namespace vjbod;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ConstBytes input(reinterpret_cast<const std::byte*>(data), size);
  const auto pairs = iscsi::split_text(input);
  if (!pairs) {
    const std::string& reason = pairs.error().text;
    VJBOD_CHECK(
        std::all_of(reason.begin(), reason.end(), [](char c) { return c >= ' ' && c <= '~'; }));
    return 0;
  }
  VJBOD_CHECK(pairs->size() <= iscsi::text_pairs_max);
  iscsi::TextBuilder builder;
  for (const iscsi::TextPair& pair : *pairs) {
    builder.add(pair.key, pair.value);
    (void)iscsi::parse_number(pair.value);
    std::string_view list = pair.value;
    size_t items = 0;
    while (iscsi::next_list_item(list)) ++items;
    VJBOD_CHECK(items <= pair.value.size() + 1);
  }
  const auto again = iscsi::split_text(as_bytes(std::string_view(builder.text())));
  VJBOD_CHECK(again && again->size() == pairs->size());
  for (size_t i = 0; i < pairs->size(); ++i) {
    VJBOD_CHECK((*again)[i].key == (*pairs)[i].key && (*again)[i].value == (*pairs)[i].value);
  }
  return 0;
}
