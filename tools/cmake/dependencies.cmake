# SPDX-License-Identifier: Apache-2.0
# Every outside library, all from Debian 12 packages (the list is in tools/packages.sh).
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing)
find_path(EXPECTED_INCLUDE_DIR tl/expected.hpp REQUIRED)
if(VJBOD_TESTS)
  find_package(GTest REQUIRED)
endif()

# Asio's own code is compiled once, in common/runtime/asio_implementation.cc, instead of in every file that uses it.
add_library(vjbod_asio INTERFACE)
target_compile_definitions(vjbod_asio INTERFACE BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED)
target_link_libraries(vjbod_asio INTERFACE Boost::headers Threads::Threads)
if(VJBOD_SANITIZE MATCHES thread)
  # TSan does not understand fences. Asio's around handlers are beside its locks, so leaving them out changes nothing else.
  target_compile_definitions(vjbod_asio INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  target_compile_options(vjbod_asio INTERFACE -Wno-tsan)
endif()
