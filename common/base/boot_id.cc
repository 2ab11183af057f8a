// SPDX-License-Identifier: Apache-2.0
#include "common/base/boot_id.h"

#include <fstream>

namespace vjbod {

namespace {

bool is_uuid(const std::string& text) {
  if (text.size() != boot_id_bytes) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (hyphen ? c != '-' : !digit) return false;
  }
  return true;
}

}  // namespace

std::string kernel_boot_id(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return is_uuid(text) ? text : std::string();
}

}  // namespace vjbod
