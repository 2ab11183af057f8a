// SPDX-License-Identifier: Apache-2.0
#include "tools/vjbod/table.h"

#include <algorithm>
#include <cctype>

#include "common/base/check.h"
#include "common/config/values.h"
#include "common/rpc/errc.h"

namespace vjbod::cli {

namespace {

constexpr size_t cell_bytes_max = 4096;  // much of it comes from other boxes

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

// Display columns: bytes that begin a UTF-8 character.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  VJBOD_CHECK(cells.size() == titles_.size());
  for (std::string& cell : cells) cell = config::printable(cell, cell_bytes_max);
  rows_.push_back(std::move(cells));
}

Result<std::string> Table::text(const Options& options) const {
  std::vector<size_t> shown;
  for (const std::string& wanted : options.columns) {
    const auto found = std::find(titles_.begin(), titles_.end(), upper(wanted));
    if (found == titles_.end()) {
      std::string known;
      for (const std::string& title : titles_) known += (known.empty() ? "" : ", ") + title;
      return fail(rpc::Errc::usage, "there is no column \"{}\" here; there are {}", wanted, known);
    }
    shown.push_back(static_cast<size_t>(found - titles_.begin()));
  }
  if (shown.empty()) {
    for (size_t i = 0; i < titles_.size(); ++i) shown.push_back(i);
  }
  auto cell = [&](const std::vector<std::string>& row, size_t column) -> std::string {
    if (!row[column].empty()) return row[column];
    return column + 1 == titles_.size() && !options.no_header ? "" : "-";
  };
  std::string out;
  if (options.no_header) {
    for (const auto& row : rows_) {
      for (size_t i = 0; i < shown.size(); ++i) out += (i ? "\t" : "") + cell(row, shown[i]);
      out += '\n';
    }
    return out;
  }
  std::vector<size_t> widths;
  for (size_t column : shown) {
    size_t width = width_of(titles_[column]);
    for (const auto& row : rows_) width = std::max(width, width_of(cell(row, column)));
    widths.push_back(width);
  }
  auto add_line = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < shown.size(); ++i) {
      const std::string text = cell(row, shown[i]);
      line += text;
      if (i + 1 < shown.size()) line.append(widths[i] - width_of(text) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  add_line(titles_);
  for (const auto& row : rows_) add_line(row);
  return out;
}

std::string short_size(uint64_t bytes) {
  static constexpr const char* units[] = {"", "K", "M", "G", "T", "P"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{}", bytes);
  return value < 9.95 ? fmt::format("{:.1f}{}", value, units[unit])
                      : fmt::format("{:.0f}{}", value, units[unit]);
}

std::string short_duration(uint64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86400) return fmt::format("{}h{}m", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{}d{}h", seconds / 86400, seconds % 86400 / 3600);
}

}  // namespace vjbod::cli
