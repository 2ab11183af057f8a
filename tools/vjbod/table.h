// SPDX-License-Identifier: Apache-2.0
// Lists for people (aligned columns) and for scripts (-H: tabs, no header). Pure but for print().
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"
#include "tools/vjbod/options.h"

namespace vjbod::cli {

class Table {
 public:
  // Column titles in capitals; --columns names them in any case.
  explicit Table(std::vector<std::string> titles) : titles_(std::move(titles)) {}

  // An empty cell is shown as "-", but for the last column.
  void add(std::vector<std::string> cells);
  // An error when --columns names one that is not there.
  Result<std::string> text(const Options& options) const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

// 1.0T, 500G, 512: at most four characters for what fits, powers of 1024.
std::string short_size(uint64_t bytes);
// 3d4h, 12m, 45s.
std::string short_duration(uint64_t seconds);

}  // namespace vjbod::cli
