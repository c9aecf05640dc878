// SPDX-License-Identifier: Apache-2.0
#pragma once
// One operator on arrays of its own, ready to be timed: the kernel that a net of plain arrays would
// get, or for a composite operator (mxtrain/operator/composite.h) a net of it alone.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/registry.h"
#include "op_cases.h"

namespace mxtrain::bench {

// A case with all shapes and types.
struct OpSignature {
  std::shared_ptr<const OperatorProperty> property;
  std::vector<TensorSpec> in, out, aux;
};
// Throws kConfig: no such operator, parameters or shapes that it does not take.
OpSignature Infer(const OpCase& c, const OperatorRegistry& registry);

// Which gradients Backward computes, by argument: all that the operator has, except those that are
// the head gradient itself, which the planner turns into aliases.
std::vector<bool> ComputedGradients(const OpSignature& signature);

class OpRun {
 public:
  virtual ~OpRun() = default;
  virtual void Forward() = 0;
  virtual void Backward() = 0;
  // Whether each Backward needs a Forward before it.
  virtual bool alternates() const = 0;

  const std::string& kernel() const { return kernel_; }
  const std::string& layout() const { return layout_; }  // of output 0
  // Of all arrays that the pass reads and writes, each as a whole.
  int64_t forward_bytes() const { return forward_bytes_; }
  int64_t backward_bytes() const { return backward_bytes_; }

 protected:
  std::string kernel_, layout_ = "plain";
  int64_t forward_bytes_ = 0, backward_bytes_ = 0;
};

// For Forward in training, with `backward` also for Backward. Throws kConfig if no kernel takes
// the case. The runtime must have the engine "naive", which runs on the calling thread.
std::unique_ptr<OpRun> NewOpRun(const OpCase& c, const OpSignature& signature, bool backward,
                                Runtime& runtime);

}  // namespace mxtrain::bench
