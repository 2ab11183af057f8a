# SPDX-License-Identifier: Apache-2.0
# A module is a folder: its library holds every .cc in it, so the folder listing is the list of sources.

# vjbod_module(NAME FOLDER [DEPENDENCY...])
# A main.cc is left out: it belongs to the folder's program.
function(vjbod_module name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC vjbod_options ${ARGN})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE vjbod_options ${ARGN})
  endif()
endfunction()

# vjbod_program(NAME FOLDER [DEPENDENCY...])
function(vjbod_program name folder)
  add_executable(${name} ${CMAKE_SOURCE_DIR}/${folder}/main.cc)
  target_link_libraries(${name} PRIVATE vjbod_options ${ARGN})
  install(TARGETS ${name})
endfunction()

# Everything that runs again under sanitizers: the data path and the pure parts. What is built on gRPC is left out, since
# that library is not instrumented and would cost more than it tells.
add_custom_target(core_tests)

# vjbod_unit_tests(FOLDER [DEPENDENCY...])
# One test program for tests/unit/FOLDER, named after the folder. Label unit, and core for the above.
function(vjbod_unit_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${folder}/*_test.cc)
  if(sources)
    string(REPLACE "/" "_" name "unit_${folder}")
    add_executable(${name} ${sources})
    target_link_libraries(${name} PRIVATE vjbod_options ${ARGN} GTest::gmock GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name})
    set(labels unit)
    if(NOT folder MATCHES "control|rpc|config|net")
      list(APPEND labels core)
      add_dependencies(core_tests ${name})
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 600)
  endif()
endfunction()
