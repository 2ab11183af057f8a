// SPDX-License-Identifier: Apache-2.0
// Errors from peers, the system and people are values: a stable code and a sentence.
// This file is the only one that names the expected type, so that it can become std::expected in
// one edit.
#pragma once

#include <string>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <tl/expected.hpp>

namespace vjbod {

// `code` is an enumerator of a module's errc (stable; tests and programs compare it). `text` is a
// whole sentence for people: what failed, where, why, and where it helps what to do next. Never
// holds a secret or payload.
struct Error {
  std::error_code code;
  std::string text;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// return fail(Errc::bad_length, "login PDU from {} has {} bytes of data, limit {}", peer, n,
// limit);
template <typename... Args>
[[nodiscard]] tl::unexpected<Error> fail(std::error_code code, fmt::format_string<Args...> format,
                                         Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

// Hands on an error of another result type: if (!x) return fail(std::move(x).error());
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

// A system call's errno as an Error code.
[[nodiscard]] inline std::error_code system_code(int errno_value) {
  return {errno_value, std::system_category()};
}

}  // namespace vjbod
