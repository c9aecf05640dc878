// SPDX-License-Identifier: Apache-2.0
#pragma once
// The batch size that fits into memory, from the memory plan of a net.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/symbol/symbol.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain::session {

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

// By device. `graph` is the result of the passes for `request`.
std::map<Context, ExternalBytes> BytesOutsideArenas(const executor::ExecGraph& graph,
                                                    const executor::BindRequest& request,
                                                    const KeptStates& states);
// Of all devices.
ExternalBytes BytesOutsideArena(const executor::ExecGraph& graph,
                                const executor::BindRequest& request, const KeptStates& states);

// Bytes in each memory, by device: in that of a GPU; in the host's, which all CPU devices share, by
// cpu(0).
using MemoryBytes = std::map<Context, int64_t>;
int64_t TotalOf(const MemoryBytes& bytes);
// "12 MiB"; "12 MiB on gpu(0), 34 MiB on gpu(1)".
std::string ToString(const MemoryBytes& bytes);

// Of training as requested, without recomputation.
MemoryBytes TrainingBytes(Runtime& runtime, const Symbol& symbol, executor::BindRequest request,
                          const KeptStates& states);
// Of an evaluation of `batch` examples: parameters, outputs, intermediate arrays, and prefetched
// batches. `inputs`: per example, of known shapes.
MemoryBytes InferenceBytes(Runtime& runtime, const Symbol& symbol,
                           const std::vector<InputInfo>& inputs, int64_t batch, Context device,
                           const ComputeModes& modes);
// Free memory for arrays of the device: of a GPU's own memory, less a reserve for what libraries
// need there, else of the machine's.
int64_t FreeBytes(Runtime& runtime, Context device);

struct BatchFit {
  int64_t batch = 1;
  // The device whose memory the next larger batch exceeds by most; none if that is above the limit.
  std::optional<Context> limit;
};
// The largest power of two, at most `most`, that takes at most `memory_of` of each memory; 1 if
// there is none.
BatchFit PowerOfTwoWithin(const std::function<int64_t(Context)>& memory_of, int64_t most,
                          const std::function<MemoryBytes(int64_t batch)>& bytes_of);

}  // namespace mxtrain::session
