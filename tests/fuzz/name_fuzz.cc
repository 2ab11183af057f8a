// SPDX-License-Identifier: Apache-2.0
// Names: one that passes is printable, within the limit, has nothing a path could trip over, and
// stays as it is; the reason against one that does not is printable.
#include <algorithm>

#include "common/base/check.h"
#include "common/iscsi/name.h"

using namespace vjbod;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  auto is_graphic = [](char c) { return c >= ' ' && c <= '~'; };
  auto name = iscsi::normalised_name(input);
  if (!name) {
    VJBOD_CHECK(std::all_of(name.error().text.begin(), name.error().text.end(), is_graphic));
    return 0;
  }
  VJBOD_CHECK(name->size() == size && size <= iscsi::name_bytes_max);
  VJBOD_CHECK(std::all_of(name->begin(), name->end(), is_graphic));
  VJBOD_CHECK(name->find_first_of("/\\ %\"'$") == std::string::npos);
  VJBOD_CHECK(name->find("..") == std::string::npos);
  VJBOD_CHECK(iscsi::normalised_name(*name) == *name);
  return 0;
}
