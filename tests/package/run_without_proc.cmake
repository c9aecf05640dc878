# SPDX-License-Identifier: Apache-2.0
# Starts the installed program in WORK, as run_plugin.cmake leaves it, where /proc is not mounted. A machine that does not let one hide /proc
# skips this: CMakeLists.txt names the words.
set(hidden "mount -t tmpfs none /proc && test ! -e /proc/self")
execute_process(COMMAND unshare --map-root-user --mount sh -c "${hidden}" RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT code EQUAL 0)
  message(STATUS "SKIPPED: /proc cannot be hidden here: ${out}")
  return()
endif()
foreach(program IN ITEMS moved/bin/mxtrain ./linked)
  execute_process(COMMAND unshare --map-root-user --mount sh -c
    "${hidden} && cd ${WORK} && ${program} nets squeezenet1_1 && ${program} train builtin.yaml --out moved_run --overwrite -q"
    RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${program} without /proc ended with ${code}:\n${out}")
  endif()
endforeach()
