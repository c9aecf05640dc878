// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of part of a step, issued in sequence on the stream of one GPU. When the addresses
// repeat, the stream work is captured as a graph and replayed from then on: one launch instead of
// hundreds. Random numbers change all the same: kernels read the random state from device memory,
// which is written before each launch.
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/executor/captures.h"
#include "mxtrain/executor/kernels.h"

namespace mxtrain::executor {

class MXTRAIN_API CapturedKernels {
 public:
  // `ids`: kernels of `kernels`, in a legal order. Both references must outlive the object.
  CapturedKernels(Runtime& runtime, KernelSet& kernels, std::vector<int> ids);

  // On the thread that issues to the stream. Errors carry the kernel's name.
  void Run(RunContext ctx);

 private:
  // A graph uses the array addresses at the time of capture.
  struct Entry {
    std::vector<void*> addresses;
    std::unique_ptr<CapturedGraph> graph;  // null: ran once, not captured yet
  };
  // The entry for this run's addresses, moved to the front; null (and an entry is added) if they
  // are new.
  Entry* Find();
  void RunEach(RunContext ctx);
  std::unique_ptr<CapturedGraph> Capture(RunContext ctx);
  void Refused(RunContext ctx, const std::string& why);

  Runtime& runtime_;
  Captures& counts_;
  KernelSet& kernels_;
  const std::vector<int> ids_;
  std::vector<int> drawing_;    // those that draw random numbers
  bool captures_;               // until a capture fails
  std::vector<Entry> entries_;  // most recently used first
};

}  // namespace mxtrain::executor
