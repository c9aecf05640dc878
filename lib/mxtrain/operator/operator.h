#pragma once
// The ability: what runs. An Operator is made from a Plan, for fixed shapes, types and layouts; Forward and Backward only work, they
// allocate nothing. Every Operator honours every request kind that its plan accepted.
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mxtrain/base/expected.h"
#include "mxtrain/ndarray/resource.h"

namespace mxtrain {

// How results are written. kWriteInplace: as kWriteTo, and the output's bytes are those of an input (only for pairs that the plan granted).
enum class OpReqType : uint8_t { kNullOp, kWriteTo, kWriteInplace, kAddTo };

struct OpContext {
  bool is_train = false;
  RunContext run_ctx;
  std::span<const Resource> requested;  // answers OperatorProperty::ForwardResource / BackwardResource
  std::span<const TBlob> saved;         // Plan::saved: written by Forward when a backward follows, read by Backward; raw bytes
  TBlob workspace;                      // Plan::forward_workspace or backward_workspace bytes, 64-byte aligned, contents undefined
};

class MXTRAIN_API Operator {
 public:
  virtual ~Operator() = default;
  virtual void Forward(const OpContext& ctx, std::span<const TBlob> in_data, std::span<const OpReqType> req,
                       std::span<const TBlob> out_data, std::span<const TBlob> aux_states) = 0;
  // in_grad[i] = d(loss)/d(in_data[i]) as req[i] says. What the plan did not ask for comes with its shape and data == nullptr. The default
  // throws kBug: plans that cannot run backward refuse when PlanRequest::needs_backward is set.
  virtual void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in_data,
                        std::span<const TBlob> out_data, std::span<const OpReqType> req, std::span<const TBlob> in_grad,
                        std::span<const TBlob> aux_states);
};

// `from` and `to` index in_data and out_data in forward, out_grad and in_grad in backward.
struct InplacePair {
  int from = 0, to = 0;
  friend bool operator==(const InplacePair&, const InplacePair&) = default;
};

// Which arrays Backward reads.
struct BackwardReads {
  std::vector<bool> out_grad, in_data, out_data;
};

// How far a kernel may go from sums of products in float32. kFast: rounding errors up to four times those of the plain sum, as of Winograd's
// convolution. kExact: the plain sum, in any order. kTf32: as kFast, and where the device has units for it (GPUs) the factors of products of
// float32 are rounded to 10 bits of fraction.
enum class Math : uint8_t { kFast, kExact, kTf32 };

struct PlanRequest {
  Context ctx;
  bool is_train = false;         // OpContext::is_train of the runs to come
  bool needs_backward = false;
  bool deterministic = false;    // only plans whose bits repeat
  Math math = Math::kFast;
  int threads = 1;
  std::span<const TensorSpec> in, out, aux;                 // shapes and types, all known
  std::span<const std::optional<Layout>> in_layout;         // offered: how the array lies; nullopt: it will lie as the plan asks
  std::span<const std::optional<Layout>> aux_layout;
  std::span<const OpReqType> out_req;                       // kNullOp, kWriteTo or kAddTo, an output each
  std::span<const OpReqType> grad_req;                      // an input each; kNullOp where no gradient is wanted; empty without backward
};

// How the elements of an array are stored.
struct ArrayForm {
  DType type = DType::kUnknown;
  Layout layout;
  friend bool operator==(const ArrayForm&, const ArrayForm&) = default;
};

// How an operator will run: the answer of a row of the table.
struct Plan {
  const char* kernel = "";               // the row's name
  std::vector<Layout> in, out, aux;      // of forward. A gradient lies as its array does, but for grad_form.
  // A second form of an input for Backward (as convolution weights want); nullopt: as in forward. Empty: all as in forward.
  std::vector<std::optional<Layout>> backward_in;
  // The form of an input's gradient where it is not that of the input in forward: sums that stay in float32 for a narrow weight. nullopt: as
  // the input. Empty: all as their inputs.
  std::vector<std::optional<ArrayForm>> grad_form;
  std::vector<InplacePair> forward_inplace, backward_inplace;  // granted; a subset of what the property allows
  std::optional<BackwardReads> backward_reads;  // replaces DeclareBackwardDependency, wider or narrower
  std::vector<int64_t> saved;                   // bytes from forward to backward; only when needs_backward
  int64_t forward_workspace = 0, backward_workspace = 0;  // bytes
  bool accumulates = true;   // kAddTo of gradients runs natively; else the caller must give kWriteTo and add by itself
  bool deterministic = true; // equal inputs give equal bits in every run of one machine and team; else passed over where that is asked for
  double cost = 0;           // nanoseconds by a model that is a pure function of shapes, threads and device
  std::function<std::unique_ptr<Operator>()> make;  // builds descriptors, once, when all choices stand
};

}  // namespace mxtrain
