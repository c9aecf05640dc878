// SPDX-License-Identifier: Apache-2.0
#pragma once
// The batch size that fits into memory, from the memory plan of a net.
#include <cstdint>
#include <functional>
#include <vector>

#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/symbol/symbol.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain::commands {

// Bytes of a net's own arrays in training, in addition to the shared memory of the plan.
struct ExternalBytes {
  int64_t parameters = 0, auxiliaries = 0, gradients = 0, optimizer = 0, averages = 0, inputs = 0,
          outputs = 0;
  int64_t Sum() const {
    return parameters + auxiliaries + gradients + optimizer + averages + inputs + outputs;
  }
};

// Additional state kept in training.
struct KeptStates {
  int of_optimizer = 0;   // arrays for each parameter
  bool averages = false;  // of every parameter and auxiliary state
};

// `graph` is the result of the passes for `request`.
ExternalBytes BytesOutsideArena(const executor::ExecGraph& graph,
                                const executor::BindRequest& request, const KeptStates& states);
// Bytes of training as requested, without recomputation.
int64_t TrainingBytes(Runtime& runtime, const Symbol& symbol, executor::BindRequest request,
                      const KeptStates& states);
// Bytes of an evaluation of `batch` examples: parameters, outputs, intermediate arrays, and
// prefetched batches. `inputs`: per example, of known shapes.
int64_t InferenceBytes(Runtime& runtime, const Symbol& symbol, const std::vector<InputInfo>& inputs,
                       int64_t batch, Context device, const ComputeModes& modes);
// Free memory for arrays of the device: of a GPU's own memory, else of the machine's.
int64_t FreeBytes(Runtime& runtime, Context device);

// The largest power of two, at most `most`, with `bytes_of` at most `memory`; 1 if there is none.
int64_t PowerOfTwoWithin(int64_t memory, int64_t most,
                         const std::function<int64_t(int64_t batch)>& bytes_of);

}  // namespace mxtrain::commands
