# SPDX-License-Identifier: Apache-2.0
# Installs the build MXTRAIN_BUILD into WORK/installed, with INSTALL_OPTIONS, and builds SOURCE against it into WORK/build with FLAGS. Defines
# run(COMMAND...), which sets `out` to what the command prints and ends the test if it fails.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nended with ${code}:\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${MXTRAIN_BUILD} ${INSTALL_OPTIONS} --prefix ${WORK}/installed)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/installed -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
