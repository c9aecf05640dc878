// SPDX-License-Identifier: Apache-2.0
#pragma once
// The executors that run parts of tapes, by structure. Private to this module; thread-safe: one
// program is pushed at a time, since all of a device share an arena.
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/autograd/autograd.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/executor/executor.h"

namespace mxtrain::autograd {

class Tape;
struct Value;

class Programs {
 public:
  explicit Programs(Runtime& runtime) : runtime_(runtime) {}

  // Pushes forward and backward of what leads to `heads`, the values in `arrays`; all on one
  // device. `head_gradients`: as of Backward. Throws kUsage if an array has changed since it was
  // read.
  void Run(const Tape& tape, std::span<const Value> heads, std::span<const NDArray> arrays,
           std::span<const NDArray> head_gradients);
  // Frees the programs that read the attached array with this id.
  void Forget(int64_t variable);
  BackwardCounts counts() const;

 private:
  // The part of a tape that leads to the heads.
  struct Part;
  // Its executor. Attached arrays and auxiliary states are bound to it; all others are inputs.
  struct Program {
    std::string key;
    Context ctx;
    std::unique_ptr<Executor> executor;
    std::vector<size_t> inputs;      // of the executor, as places in Part::nodes
    std::vector<int64_t> variables;  // their ids
    std::vector<NDArray> aux;        // auxiliary states, each once; bound like attached arrays
  };

  Program Bind(const Part& part, Context ctx) MXTRAIN_REQUIRES(mutex_);
  // `dropped`: receives what there is no more room for.
  Program& Find(const Part& part, Context ctx, std::list<Program>* dropped)
      MXTRAIN_REQUIRES(mutex_);

  Runtime& runtime_;
  mutable Mutex mutex_;
  std::list<Program> programs_ MXTRAIN_GUARDED_BY(mutex_);  // most recently used first
  BackwardCounts counts_ MXTRAIN_GUARDED_BY(mutex_);
};

}  // namespace mxtrain::autograd
