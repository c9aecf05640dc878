#pragma once
// The kernels of a part of a step, one behind the other on the stream of one GPU. Of addresses that come again, what they give to the stream is
// captured, and from then on given as one piece: one launch in place of hundreds.
#include <memory>
#include <vector>

#include "mxtrain/executor/kernels.h"

namespace mxtrain::executor {

class MXTRAIN_API CapturedKernels {
 public:
  // `ids`: kernels of `kernels`, which must outlive the object, in a legal order.
  CapturedKernels(KernelSet& kernels, std::vector<int> ids);

  // On the thread that gives work to the stream. An error bears the kernel's name.
  void Run(RunContext ctx);

 private:
  // A graph reads and writes where the arrays lay when it was made.
  struct Take {
    std::vector<void*> addresses;
    std::unique_ptr<CapturedGraph> graph;  // null: run once, not captured yet
  };
  // The take of the addresses of this run, moved to the front; null when they are new, which they then are no more.
  Take* Find();
  void RunEach(RunContext ctx);
  std::unique_ptr<CapturedGraph> Capture(RunContext ctx);

  KernelSet& kernels_;
  const std::vector<int> ids_;
  bool captures_;             // until the device refuses
  std::vector<Take> takes_;  // the last used first
};

}  // namespace mxtrain::executor
