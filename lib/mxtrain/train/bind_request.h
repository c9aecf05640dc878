// SPDX-License-Identifier: Apache-2.0
#pragma once
// The request that binds a net for training: for the trainer itself, and for code that plans or
// measures a training without running it. The one for evaluation is in net_inputs.h.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mxtrain/executor/executor.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/optimizer/optimizer.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain {

// What decides how training binds a net, and nothing else.
struct MXTRAIN_API BindOptions {
  // Devices of the workers: each has an executor and an equal part of every batch, whose size must
  // be divisible. One device may have several. Evaluation and checkpoints use the first.
  std::vector<Context> workers{Context::cpu()};
  ComputeModes modes;                    // of training and evaluation
  executor::MemoryBudget memory_budget;  // per device, shared by its workers
  int first_replica = 0;                 // number of the first worker in a run of several processes
  int64_t grad_accum = 1;  // batches per step: gradients are summed as for one large batch
  // Gradients are summed over several devices: those of the workers, or the GPUs of several
  // processes (dist_device_sync). They leave in buckets of these bytes, or just more, during the
  // backward pass.
  bool SumsOverDevices() const;
  bool gpus_of_ranks = false;
  int64_t bucket_bytes = int64_t{16} << 20;
  LrPatterns lr_mult;            // by parameter name pattern; 0 freezes
  bool sync_batch_norm = false;  // batch norm takes its statistics over all workers and processes
};

// For the executor of one worker, on its part of the batch. `net` reads arrays of `arrays`, the
// whole batch (data, then labels); every other argument is a parameter, and gets a gradient unless
// its learning rate multiplier is 0. `worker`: index into options.workers. Throws kConfig for
// several workers together with groups on other devices.
MXTRAIN_API Executor::BindRequest TrainingRequest(const BindOptions& options, const Symbol& net,
                                                  std::span<const DataDesc> arrays,
                                                  size_t worker = 0);

}  // namespace mxtrain
