// SPDX-License-Identifier: Apache-2.0
// Prints a list as a table or as JSON, whichever was asked for.
#pragma once

#include <iostream>

#include "tools/vjbod/commands.h"
#include "tools/vjbod/json_views.h"
#include "tools/vjbod/table.h"

namespace vjbod::cli {

// `row(message)` gives the cells of one line.
template <typename Messages, typename Row>
Outcome print_list(const Options& options, const char* json_name, const Messages& messages,
                   std::vector<std::string> titles, Row row) {
  if (options.output == OutputFormat::json) {
    std::cout << dump(list_json(json_name, messages));
    return 0;
  }
  Table table(std::move(titles));
  for (const auto& message : messages) table.add(row(message));
  const auto text = table.text(options);
  if (!text) return fail(text.error());
  std::cout << *text;
  return 0;
}

}  // namespace vjbod::cli
