# SPDX-License-Identifier: Apache-2.0
# Installs component `engine` of the build MXTRAIN_BUILD into WORK, builds the example SOURCE against it with FLAGS, and checks what it says
# about files whose sizes, lines and hashes are known.
set(INSTALL_OPTIONS --component engine)
include(${CMAKE_CURRENT_LIST_DIR}/build_installed.cmake)

set(expected "")
foreach(i RANGE 10 29)  # more files than the example has slots
  file(WRITE ${WORK}/files/${i} "foobar")  # the hash is a published test vector of FNV-1a
  string(APPEND expected "6 bytes, 0 lines, 85944171f73967e8  ${i}\n")
endforeach()
file(WRITE ${WORK}/files/empty "")
file(WRITE ${WORK}/files/lines "a\nb\n")
string(APPEND expected "0 bytes, 0 lines, cbf29ce484222325  empty\n4 bytes, 2 lines, ")
run(${WORK}/build/engine_example ${WORK}/files)
string(FIND "${out}" "${expected}" found)
if(NOT found EQUAL 0)
  message(FATAL_ERROR "expected\n${expected}...\nfound\n${out}")
endif()

execute_process(COMMAND ${WORK}/build/engine_example ${WORK}/absent RESULT_VARIABLE code ERROR_VARIABLE out)
if(NOT code EQUAL 1 OR NOT out MATCHES "absent")
  message(FATAL_ERROR "a missing folder gave ${code}: ${out}")
endif()
