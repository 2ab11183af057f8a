# SPDX-License-Identifier: Apache-2.0
add_library(vjbod_options INTERFACE)
target_include_directories(vjbod_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(vjbod_options INTERFACE VJBOD_VERSION="${PROJECT_VERSION}")
target_compile_options(vjbod_options INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wswitch -fno-omit-frame-pointer -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(VJBOD_SANITIZE)
  target_compile_options(vjbod_options INTERFACE -fsanitize=${VJBOD_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(vjbod_options INTERFACE -fsanitize=${VJBOD_SANITIZE})
endif()
if(VJBOD_FUZZ)
  target_compile_options(vjbod_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
