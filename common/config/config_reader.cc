// SPDX-License-Identifier: Apache-2.0
#include "common/config/config_reader.h"

#include <cerrno>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <toml++/toml.h>

#include "common/config/state_file.h"
#include "common/config/values.h"

namespace vjbod::config {

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "configuration"; }
  std::string message(int value) const override {
    switch (static_cast<ConfigErrc>(value)) {
      case ConfigErrc::unreadable: return "configuration cannot be read";
      case ConfigErrc::bad_syntax: return "configuration is not TOML";
      case ConfigErrc::unknown_key: return "unknown key";
      case ConfigErrc::wrong_type: return "wrong type";
      case ConfigErrc::bad_value: return "value not allowed";
    }
    return "unknown";
  }
};

const char* type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "an array";
    case toml::node_type::string: return "a text";
    case toml::node_type::integer: return "a whole number";
    case toml::node_type::floating_point: return "a number with a fraction";
    case toml::node_type::boolean: return "true or false";
    default: return "a date or time";
  }
}

}  // namespace

const std::error_category& config_error_category() {
  static const Category category;
  return category;
}

struct ConfigTable::Impl {
  std::shared_ptr<ConfigReader::Impl> reader;
  const toml::table* table = nullptr;
  std::string path;  // "portal." in front of its keys, for errors
  std::set<std::string, std::less<>> known;

  const toml::node* take(std::string_view key) {
    known.emplace(key);
    return table->get(key);
  }
};

struct ConfigReader::Impl {
  std::string name;
  toml::table file;
  std::vector<std::shared_ptr<ConfigTable::Impl>> tables;
  Status result;

  void reject(ConfigErrc code, const toml::source_region& where, std::string_view what,
              std::string_view reason) {
    if (result)
      result =
          vjbod::fail(code, "{}:{}: {}: {}", name, where.begin.line, printable(what, 200), reason);
  }
  void wrong_type(const ConfigTable::Impl& table, std::string_view key, const toml::node& node,
                  std::string_view wanted) {
    reject(ConfigErrc::wrong_type, node.source(), table.path + std::string(key),
           fmt::format("must be {}, not {}", wanted, type_name(node)));
  }
  std::shared_ptr<ConfigTable::Impl> add(const toml::table& table, std::string path,
                                         std::shared_ptr<Impl> self) {
    auto added = std::make_shared<ConfigTable::Impl>();
    added->reader = std::move(self);
    added->table = &table;
    added->path = std::move(path);
    tables.push_back(added);
    return added;
  }
};

bool ConfigTable::text(std::string_view key, std::string& value) {
  const toml::node* node = impl_->take(key);
  if (node == nullptr) return false;
  if (!node->is_string()) {
    impl_->reader->wrong_type(*impl_, key, *node, "a text in quotes");
    return false;
  }
  value = node->as_string()->get();
  if (value.find('\0') != std::string::npos) reject(key, "must not hold a zero byte");
  return true;
}

bool ConfigTable::flag(std::string_view key, bool& value) {
  const toml::node* node = impl_->take(key);
  if (node == nullptr) return false;
  if (!node->is_boolean()) {
    impl_->reader->wrong_type(*impl_, key, *node, "true or false");
    return false;
  }
  value = node->as_boolean()->get();
  return true;
}

bool ConfigTable::number(std::string_view key, uint64_t minimum, uint64_t maximum,
                         uint64_t& value) {
  const toml::node* node = impl_->take(key);
  if (node == nullptr) return false;
  if (!node->is_integer()) {
    impl_->reader->wrong_type(*impl_, key, *node, "a whole number");
    return false;
  }
  int64_t given = node->as_integer()->get();
  if (given < 0 || static_cast<uint64_t>(given) < minimum ||
      static_cast<uint64_t>(given) > maximum) {
    reject(key, fmt::format("is {}, allowed are {} to {}", given, minimum, maximum));
    return false;
  }
  value = static_cast<uint64_t>(given);
  return true;
}

bool ConfigTable::size(std::string_view key, uint64_t minimum, uint64_t maximum, uint64_t& bytes) {
  const toml::node* node = impl_->take(key);
  if (node == nullptr) return false;
  if (node->is_integer()) return number(key, minimum, maximum, bytes);
  std::string given;
  if (!text(key, given)) return false;
  Result<uint64_t> parsed = parse_size(given);
  if (!parsed) {
    reject(key, parsed.error().text);
    return false;
  }
  if (*parsed < minimum || *parsed > maximum) {
    reject(key, fmt::format("is {}, allowed are {} to {}", given, size_text(minimum),
                            size_text(maximum)));
    return false;
  }
  bytes = *parsed;
  return true;
}

bool ConfigTable::duration(std::string_view key, Duration minimum, Duration maximum,
                           Duration& value) {
  const toml::node* node = impl_->take(key);
  if (node == nullptr) return false;
  std::string given;
  if (node->is_integer())
    given = std::to_string(node->as_integer()->get());
  else if (!text(key, given))
    return false;
  Result<Duration> parsed = parse_duration(given);
  if (!parsed) {
    reject(key, parsed.error().text);
    return false;
  }
  if (*parsed < minimum || *parsed > maximum) {
    auto seconds = [](Duration d) { return std::chrono::duration<double>(d).count(); };
    reject(key, fmt::format("is {}, allowed are {} to {} seconds", given, seconds(minimum),
                            seconds(maximum)));
    return false;
  }
  value = *parsed;
  return true;
}

bool ConfigTable::texts(std::string_view key, std::vector<std::string>& values) {
  const toml::node* node = impl_->take(key);
  if (node == nullptr) return false;
  const toml::array* array = node->as_array();
  if (array == nullptr) {
    impl_->reader->wrong_type(*impl_, key, *node, "an array of texts");
    return false;
  }
  std::vector<std::string> taken;
  for (const toml::node& element : *array) {
    if (!element.is_string()) {
      impl_->reader->wrong_type(*impl_, key, element, "an array of texts");
      return false;
    }
    taken.push_back(element.as_string()->get());
  }
  values = std::move(taken);
  return true;
}

std::optional<ConfigTable> ConfigTable::table(std::string_view key) {
  const toml::node* node = impl_->take(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_table()) {
    impl_->reader->wrong_type(*impl_, key, *node, fmt::format("a table, [{}]", key));
    return std::nullopt;
  }
  return ConfigTable(
      impl_->reader->add(*node->as_table(), impl_->path + std::string(key) + ".", impl_->reader));
}

std::vector<ConfigTable> ConfigTable::tables(std::string_view key) {
  std::vector<ConfigTable> result;
  const toml::node* node = impl_->take(key);
  if (node == nullptr) return result;
  const toml::array* array = node->as_array();
  std::string wanted = fmt::format("a list of tables, [[{}]]", key);
  if (array == nullptr) {
    impl_->reader->wrong_type(*impl_, key, *node, wanted);
    return result;
  }
  for (const toml::node& element : *array) {
    if (!element.is_table()) {
      impl_->reader->wrong_type(*impl_, key, element, wanted);
      return {};
    }
    result.push_back(ConfigTable(impl_->reader->add(
        *element.as_table(), impl_->path + std::string(key) + ".", impl_->reader)));
  }
  return result;
}

void ConfigTable::reject(std::string_view key, std::string_view reason) {
  const toml::node* node = impl_->table->get(key);
  impl_->reader->reject(ConfigErrc::bad_value,
                        node != nullptr ? node->source() : impl_->table->source(),
                        impl_->path + std::string(key), reason);
}

std::string ConfigTable::where() const {
  return fmt::format("{}:{}", impl_->reader->name, impl_->table->source().begin.line);
}

Result<ConfigReader> ConfigReader::open(const std::string& path) {
  Result<std::string> text = read_file(path, bytes_max);
  if (!text) return vjbod::fail(ConfigErrc::unreadable, "configuration file {}", text.error().text);
  return parse(*text, path);
}

Result<ConfigReader> ConfigReader::parse(std::string_view text, std::string name) {
  auto impl = std::make_shared<Impl>();
  try {
    impl->file = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    return vjbod::fail(ConfigErrc::bad_syntax, "{}:{}: {}", name, error.source().begin.line,
                       printable(error.description()));
  }
  impl->name = std::move(name);
  return ConfigReader(std::move(impl));
}

ConfigTable ConfigReader::root() {
  return ConfigTable(impl_->add(impl_->file, "", impl_));
}

Status ConfigReader::finish() {
  for (const auto& table : impl_->tables)
    for (const auto& [key, node] : *table->table)
      if (!table->known.contains(key.str()))
        impl_->reject(ConfigErrc::unknown_key, key.source(), table->path + std::string(key.str()),
                      "unknown key");
  Status result = impl_->result;
  impl_->tables.clear();  // they hold the reader
  return result;
}

}  // namespace vjbod::config
