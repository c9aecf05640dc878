# SPDX-License-Identifier: Apache-2.0
# Installs the build MXTRAIN_BUILD into WORK and builds the plug-in SOURCE against it with NVCC. Its CUDA kernels must be in it, and it must
# load and train on the CPU, on a machine without a GPU too. With HAVE_CUDA and a GPU it trains there, and the losses are the CPU's.
set(FLAGS "")
include(${CMAKE_CURRENT_LIST_DIR}/build_installed.cmake)
set(plugin ${WORK}/build_cuda/mxnet_operators.so)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build_cuda -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/installed -DWITH_CUDA=ON
  -DCMAKE_CUDA_COMPILER=${NVCC} -DCMAKE_CUDA_ARCHITECTURES=90)
run(${CMAKE_COMMAND} --build ${WORK}/build_cuda --target mxnet_operators)
foreach(function IN ITEMS smooth_l1_loss smooth_l1_gradient mx_times)
  run(grep -aq "ForEachKernel.*${function}" ${plugin})
endforeach()

if(NOT HELPER)
  return()
endif()
file(COPY ${CONFIGS}/regression/points.csv DESTINATION ${WORK})
file(READ ${CONFIGS}/regression/smooth_l1.yaml line)
string(REPLACE "epochs: 100" "epochs: 10" line "${line}")
# Halves and doubles, which changes no bit.
string(REPLACE "- smooth_l1:" "- mx_scale: {scale: 0.5}\n    - mx_scale: {scale: 2}\n    - mx_guide_smooth_l1:" plugin_line "${line}")
if(plugin_line STREQUAL line)
  message(FATAL_ERROR "configs/regression/smooth_l1.yaml has no layer smooth_l1")
endif()
# train(NAME TEXT DEVICE): a run of the configuration TEXT whose losses must be those of the run `line`.
function(train name text device)
  file(WRITE ${WORK}/${name}.yaml "${text}")
  run(${WORK}/installed/bin/mxtrain train ${WORK}/${name}.yaml --plugin ${plugin} --device ${device} --out ${WORK}/${name} -q)
  execute_process(COMMAND awk -f ${CMAKE_CURRENT_LIST_DIR}/same_loss.awk ${WORK}/line/metrics.csv ${WORK}/${name}/metrics.csv
    RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${name} does not train as smooth_l1 on the CPU:\n${out}")
  endif()
endfunction()
train(line "${line}" cpu)
train(plugin_on_cpu "${plugin_line}" cpu)
if(HAVE_CUDA AND EXISTS /dev/nvidia0)
  train(plugin_on_gpu "${plugin_line}" gpu)
endif()
