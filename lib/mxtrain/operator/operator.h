// SPDX-License-Identifier: Apache-2.0
#pragma once
// The execution interface. An Operator is made from a Plan, for fixed shapes, types and layouts.
// Forward and Backward compute only and allocate nothing. Every Operator honours every request kind
// that its plan accepted.
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mxtrain/base/expected.h"
#include "mxtrain/ndarray/resource.h"

namespace mxtrain {

// How results are written. kWriteInplace: as kWriteTo, and the output shares the bytes of an input
// (only for pairs that the plan granted).
enum class OpReqType : uint8_t { kNullOp, kWriteTo, kWriteInplace, kAddTo };

struct OpContext {
  bool is_train = false;
  RunContext run_ctx;
  // Answers OperatorProperty::ForwardResource or BackwardResource.
  std::span<const Resource> requested;
  // Plan::saved: written by Forward when a backward follows, read by Backward; raw bytes.
  std::span<const TBlob> saved;
  // Plan::forward_workspace or backward_workspace bytes, 64-byte aligned, contents undefined.
  TBlob workspace;
  // Replaces the parameter `scalar` in this Forward; only if Plan::takes_scalar.
  std::optional<double> scalar;
};

// What Forward is called with. Arrays are as the plan laid them out; they belong to the caller and
// live until the work is done.
struct ForwardArgs {
  const OpContext& ctx;
  std::span<const TBlob> in_data;
  std::span<const OpReqType> req;  // one per output
  std::span<const TBlob> out_data;
  std::span<const TBlob> aux_states;
};

// What Backward is called with. Arrays that the plan did not request have their shape and data ==
// nullptr.
struct BackwardArgs {
  const OpContext& ctx;
  std::span<const TBlob> out_grad;
  std::span<const TBlob> in_data;
  std::span<const TBlob> out_data;
  std::span<const OpReqType> req;  // one per input
  std::span<const TBlob> in_grad;
  std::span<const TBlob> aux_states;
};

class MXTRAIN_API Operator {
 public:
  virtual ~Operator() = default;
  virtual void Forward(const ForwardArgs& args) = 0;
  // in_grad[i] = d(loss)/d(in_data[i]) as req[i] says. The default throws kBug: plans without a
  // backward pass must refuse when PlanRequest::needs_backward is set.
  virtual void Backward(const BackwardArgs& args);
};

// An operator whose Forward and Backward take the members of ForwardArgs and BackwardArgs one by
// one, in their order: the form in which MXNet's operators are written. A derived class that
// overrides them says `using PositionalOperator::Forward;` (and Backward), so that it does not hide
// the forms of Operator.
class MXTRAIN_API PositionalOperator : public Operator {
 public:
  virtual void Forward(const OpContext& ctx, std::span<const TBlob> in_data,
                       std::span<const OpReqType> req, std::span<const TBlob> out_data,
                       std::span<const TBlob> aux_states) = 0;
  virtual void Backward(const OpContext& ctx, std::span<const TBlob> out_grad,
                        std::span<const TBlob> in_data, std::span<const TBlob> out_data,
                        std::span<const OpReqType> req, std::span<const TBlob> in_grad,
                        std::span<const TBlob> aux_states);
  void Forward(const ForwardArgs& args) final;
  void Backward(const BackwardArgs& args) final;
};

// `from` and `to` index in_data and out_data in forward. In backward `to` indexes in_grad and
// `from` the arrays that Backward reads: the head gradients of all outputs, then in_data, then
// out_data.
struct InplacePair {
  int from = 0, to = 0;
  friend bool operator==(const InplacePair&, const InplacePair&) = default;
};

// Which arrays Backward reads.
struct BackwardReads {
  std::vector<bool> out_grad, in_data, out_data;
};

// Permitted deviation from float32 sums of products. kFast: rounding errors up to four times those
// of the plain sum, as in Winograd convolution. kExact: the plain sum, in any order. kTf32: as
// kFast, and on devices with units for it (GPUs) float32 factors are rounded to 10 bits of
// fraction.
enum class Math : uint8_t { kFast, kExact, kTf32 };

struct PlanRequest {
  Context ctx;
  bool is_train = false;  // OpContext::is_train of later runs
  bool needs_backward = false;
  bool deterministic = false;  // only plans whose results repeat bit for bit
  Math math = Math::kFast;
  int threads = 1;
  std::span<const TensorSpec> in, out, aux;  // shapes and types, all known
  // Fixed layout of the array; nullopt: the plan chooses it.
  std::span<const std::optional<Layout>> in_layout;
  std::span<const std::optional<Layout>> aux_layout;
  // One per output: kNullOp, kWriteTo or kAddTo.
  std::span<const OpReqType> out_req;
  // One per input; kNullOp: no gradient wanted; empty without backward.
  std::span<const OpReqType> grad_req;
};

// How the elements of an array are stored.
struct TypedLayout {
  DType type = DType::kUnknown;
  Layout layout;
  friend bool operator==(const TypedLayout&, const TypedLayout&) = default;
};

// How an operator will run: the answer of a kernel.
struct Plan {
  const char* kernel = "";  // name of the kernel
  // Of forward. A gradient has its array's layout unless grad_layout says otherwise.
  std::vector<Layout> in, out, aux;
  // A second layout of an input for Backward (as for convolution weights); nullopt: as in forward.
  // Empty: all as in forward.
  std::vector<std::optional<Layout>> backward_in;
  // Type and layout of an input's gradient if they differ from the input's in forward: sums that
  // stay float32 for a narrow weight. nullopt: as the input. Empty: all as their inputs.
  std::vector<std::optional<TypedLayout>> grad_layout;
  // Granted; a subset of what the property allows.
  std::vector<InplacePair> forward_inplace, backward_inplace;
  // Replaces DeclareBackwardDependency; may be wider or narrower.
  std::optional<BackwardReads> backward_reads;
  std::vector<int64_t> saved;  // bytes from forward to backward; only when needs_backward
  int64_t forward_workspace = 0, backward_workspace = 0;  // bytes
  // kAddTo of gradients runs natively; else the caller passes kWriteTo and adds.
  bool accumulates = true;
  // Equal inputs give equal bits in every run on one machine and team; else skipped when
  // determinism is required.
  bool deterministic = true;
  // The plan is the same for every value of the parameter `scalar`, and Forward takes it from
  // OpContext::scalar if that is set: an imperative call with another number needs no other plan.
  bool takes_scalar = false;
  double cost = 0;  // nanoseconds, by a model that is a pure function of shapes, threads and device
  // Builds descriptors; called once, after all choices are made.
  std::function<std::unique_ptr<Operator>()> make;
};

}  // namespace mxtrain
