# SPDX-License-Identifier: Apache-2.0
# Installs the build MXTRAIN_BUILD into WORK, builds the fragments SOURCE of MXNet's architecture guide against it with FLAGS, runs those of the
# engine and the KVStore, and trains small nets with the operators: the losses are those of the operators that the program brings along.
# HELPER makes the images; without it, as in a build without the program, nothing is trained.
include(${CMAKE_CURRENT_LIST_DIR}/build_installed.cmake)
run(${WORK}/build/engine_and_kvstore)
if(NOT out STREQUAL "engine: 21, then 168\nkvstore: 10\nlists of keys: 6 4\n")
  message(FATAL_ERROR "engine_and_kvstore printed\n${out}")
endif()

if(NOT HELPER)
  return()
endif()
# train(NAME TEXT): a run NAME of the configuration TEXT.
function(train name text)
  file(WRITE ${WORK}/${name}.yaml "${text}")
  run(${WORK}/installed/bin/mxtrain train ${WORK}/${name}.yaml --plugin ${WORK}/build/mxnet_operators.so --out ${WORK}/${name} -q)
endfunction()
# compare(A B): sets `same` to whether the runs have the same losses.
function(compare a b)
  execute_process(COMMAND awk -f ${CMAKE_CURRENT_LIST_DIR}/same_loss.awk ${WORK}/${a}/metrics.csv ${WORK}/${b}/metrics.csv
    RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  set(out "${out}" PARENT_SCOPE)
  set(same FALSE PARENT_SCOPE)
  if(code EQUAL 0)
    set(same TRUE PARENT_SCOPE)
  endif()
endfunction()

run(${HELPER} idx ${WORK}/digits 200 12)
set(net "
seed: 1
net:
  input: [1, 12, 12]
  layers:
    - Convolution: {name: conv, num_filter: 4, kernel: 3}
    - Activation: {name: tanh1, act_type: tanh}
    - Pooling: {name: pool, pool_type: max, kernel: [2, 2], stride: [2, 2]}
    - FullyConnected: {name: fc1, num_hidden: 16}
    - Activation: {name: tanh2, act_type: tanh}
    - FullyConnected: {name: fc2, num_hidden: 10, no_bias: true}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 20
  train: {source: mnist, path: digits, shuffle: true}
train:
  epochs: 3
  optimizer: {name: sgd, lr: 0.1}
")
string(REPLACE "- Pooling:" "- mx_pooling:" plugin "${net}")
string(REPLACE "- FullyConnected:" "- mx_fully_connected:" plugin "${plugin}")
string(REPLACE "pool_type: max" "pool_type: avg" other "${plugin}")
train(builtin "${net}")
train(plugin "${plugin}")
train(other "${other}")
compare(builtin plugin)
if(NOT same)
  message(FATAL_ERROR "mx_pooling and mx_fully_connected do not train as Pooling and FullyConnected:\n${out}")
endif()
compare(builtin other)
if(same)
  message(FATAL_ERROR "another pool_type gives the same losses: the comparison sees nothing")
endif()
# A mean over windows, too.
string(REPLACE "pool_type: max" "pool_type: avg" mean "${net}")
train(mean "${mean}")
compare(mean other)
if(NOT same)
  message(FATAL_ERROR "mx_pooling: {pool_type: avg} does not train as Pooling:\n${out}")
endif()

file(COPY ${CONFIGS}/regression/points.csv DESTINATION ${WORK})
file(READ ${CONFIGS}/regression/smooth_l1.yaml line)
string(REPLACE "epochs: 100" "epochs: 10" line "${line}")
string(REPLACE "- smooth_l1:" "- mx_smooth_l1:" plugin_line "${line}")
if(plugin_line STREQUAL line)
  message(FATAL_ERROR "configs/regression/smooth_l1.yaml has no layer smooth_l1")
endif()
train(line "${line}")
train(plugin_line "${plugin_line}")
compare(line plugin_line)
if(NOT same)
  message(FATAL_ERROR "mx_smooth_l1 does not train as smooth_l1:\n${out}")
endif()

# The guide's own text, with tensor expressions.
string(REPLACE "- mx_smooth_l1:" "- mx_scale: {scale: 0.5}\n    - mx_scale: {scale: 2}\n    - mx_guide_smooth_l1:" guide_line "${plugin_line}")
train(guide_line "${guide_line}")
compare(line guide_line)
if(NOT same)
  message(FATAL_ERROR "mx_guide_smooth_l1 does not train as smooth_l1:\n${out}")
endif()
