#pragma once
// How many examples at once fit into memory, from the memory plan of a net.
#include <cstdint>
#include <functional>
#include <vector>

#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/symbol/symbol.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain::commands {

// Bytes of a net's own arrays in training, beside what the planner shares.
struct ExternalBytes {
  int64_t parameters = 0, auxiliaries = 0, gradients = 0, optimizer = 0, averages = 0, inputs = 0, outputs = 0;
  int64_t Sum() const { return parameters + auxiliaries + gradients + optimizer + averages + inputs + outputs; }
};

// What is kept beside the weights in training.
struct KeptStates {
  int of_optimizer = 0;   // arrays for each parameter
  bool averages = false;  // of every parameter and auxiliary state
};

// `graph` is what the passes made for `request`.
ExternalBytes BytesOutsideArena(const executor::ExecGraph& graph, const executor::BindRequest& request, const KeptStates& states);
// Bytes of training as the request says, without recomputation.
int64_t TrainingBytes(Runtime& runtime, const Symbol& symbol, executor::BindRequest request, const KeptStates& states);
// Bytes of an evaluation of `batch` examples: parameters, outputs, what lies between them, and the batches that the pipeline holds ready.
// `inputs`: per example, of known shapes.
int64_t InferenceBytes(Runtime& runtime, const Symbol& symbol, const std::vector<InputInfo>& inputs, int64_t batch, Context device,
                       const ComputeModes& modes);
// What arrays of the device may still take: of a GPU's own memory, else of the machine's.
int64_t FreeBytes(Runtime& runtime, Context device);

// The largest power of two, at most `most`, of which `bytes_of` gives no more than `memory`; 1 where none does.
int64_t PowerOfTwoWithin(int64_t memory, int64_t most, const std::function<int64_t(int64_t batch)>& bytes_of);

}  // namespace mxtrain::commands
