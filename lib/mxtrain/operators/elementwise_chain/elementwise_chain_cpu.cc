// SPDX-License-Identifier: Apache-2.0
// Runs every step by the best kernel of its operator, on blocks.
#include <algorithm>
#include <cstring>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/elementwise_chain/elementwise_chain.h"

namespace mxtrain {
namespace {

using P = ElementwiseChainProperty;

constexpr int64_t kCacheBytes = 32 << 10;  // available for the blocks of all values
constexpr int64_t kLine = 64;              // bytes
constexpr int64_t kShortest = 256;         // elements

// Arrays of one block each: values (arguments are read in place), their gradients, and one for a
// gradient to accumulate.
struct Room {
  int64_t block;          // elements
  int64_t stride;         // bytes from one array to the next
  int forward, backward;  // arrays

  Room(const P& chain, DType type, int64_t elements) {
    const int steps = static_cast<int>(chain.steps().size());
    forward = steps;
    backward = steps + chain.param().num_args + steps + 1;
    const int64_t size = SizeOf(type), line = kLine / size;
    block = std::max(kCacheBytes / (size * (forward + 1)) / line * line, kShortest);
    block = std::min(block, RoundUp(std::max<int64_t>(elements, 1), line));
    stride = block * size;
  }
};

struct StepPlan {
  Plan plan;
  std::vector<int> in;
  std::vector<bool> has_gradient;  // of the inputs
};

// The plans of all steps for blocks of one length.
Expected<std::vector<StepPlan>, Refusal> PlanSteps(const P& chain, const PlanRequest& request,
                                                   int64_t elements, bool backward,
                                                   Backend& backend) {
  std::vector<StepPlan> plans;
  const TensorSpec spec{TShape{elements}, request.out[0].type, {}};
  for (const P::Step& step : chain.steps()) {
    const size_t n = step.in.size();
    const std::vector<TensorSpec> in(n, spec), out(1, spec);
    const std::vector<std::optional<Layout>> layouts(n, Layout());
    const std::vector<OpReqType> out_req{OpReqType::kWriteTo};
    StepPlan made;
    made.in = step.in;
    std::vector<OpReqType> grad_req;
    for (size_t i = 0; i < n; ++i) {
      made.has_gradient.push_back(step.op->HasGradient(static_cast<int>(i)));
      grad_req.push_back(made.has_gradient[i] ? OpReqType::kWriteTo : OpReqType::kNullOp);
    }
    PlanRequest q = request;
    q.needs_backward = backward;
    q.threads = 1;
    q.in = in;
    q.out = out;
    q.aux = {};
    q.in_layout = layouts;
    q.aux_layout = {};
    q.out_req = out_req;
    q.grad_req = backward ? std::span<const OpReqType>(grad_req) : std::span<const OpReqType>();
    try {
      made.plan = step.op->CreatePlan(chain.registry(), q, backend);
    } catch (const Error& e) {
      return Refusal{e.what()};
    }
    const bool plain = std::all_of(made.plan.in.begin(), made.plan.in.end(),
                                   [](const Layout& layout) { return layout.plain(); });
    if (!plain || made.plan.forward_workspace > 0 || made.plan.backward_workspace > 0 ||
        !made.plan.saved.empty()) {
      return Refusal{format("{} needs resources", step.op->TypeString())};
    }
    plans.push_back(std::move(made));
  }
  return plans;
}

// Runs blocks on one thread.
class BlockRunner {
 public:
  BlockRunner(const std::vector<StepPlan>& whole, const std::vector<StepPlan>& rest, int num_args,
              const Room& room, DType type)
      : num_args_(num_args), room_(room), type_(type) {
    for (const StepPlan& step : whole)
      steps_.push_back({step.in, step.has_gradient, step.plan.make(), nullptr});
    for (size_t s = 0; s < rest.size(); ++s) steps_[s].rest = rest[s].plan.make();
    values_.resize(static_cast<size_t>(num_args) + steps_.size());
    gradients_.resize(values_.size());
    given_.resize(values_.size());
    for (const Step& step : steps_) most_inputs_ = std::max(most_inputs_, step.in.size());
    in_.reserve(most_inputs_), in_grad_.reserve(most_inputs_), req_.reserve(most_inputs_);
  }

  void Forward(const OpContext& ctx, std::span<const TBlob> in, OpReqType req, const TBlob& out,
               int64_t begin, int64_t count, char* room) {
    Compute(ctx, in, begin, count, room);
    Store(values_.back(), out, begin, count, req);
  }

  void Backward(const OpContext& ctx, const TBlob& head, std::span<const TBlob> in,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, int64_t begin,
                int64_t count, char* room) {
    Compute(ctx, in, begin, count, room);
    char* at = room + room_.stride * static_cast<int64_t>(steps_.size());
    for (size_t v = 0; v < values_.size(); ++v) {
      gradients_[v] = BlockOf(at + room_.stride * static_cast<int64_t>(v), count);
      given_[v] = false;
    }
    const TBlob more = BlockOf(at + room_.stride * static_cast<int64_t>(values_.size()), count);
    std::memcpy(gradients_.back().data, Element(head, begin),
                static_cast<size_t>(count * SizeOf(type_)));
    given_.back() = true;
    for (size_t s = steps_.size(); s-- > 0;) StepBack(ctx, s, count, more);
    for (int i = 0; i < num_args_; ++i) {
      if (req[i] == OpReqType::kNullOp) continue;
      if (!given_[i])
        std::memset(gradients_[i].data, 0, static_cast<size_t>(count * SizeOf(type_)));
      Store(gradients_[i], in_grad[i], begin, count, req[i]);
    }
  }

 private:
  struct Step {
    std::vector<int> in;
    std::vector<bool> has_gradient;
    std::unique_ptr<Operator> whole, rest;
    Operator& For(int64_t count, int64_t block) const { return count == block ? *whole : *rest; }
  };

  TBlob BlockOf(void* data, int64_t count) const {
    return {data, TShape{count}, type_, {}, Context::cpu()};
  }
  char* Element(const TBlob& blob, int64_t i) const {
    return static_cast<char*>(blob.data) + i * SizeOf(type_);
  }

  // Computes every value of a block.
  void Compute(const OpContext& ctx, std::span<const TBlob> in, int64_t begin, int64_t count,
               char* room) {
    for (int i = 0; i < num_args_; ++i) values_[i] = BlockOf(Element(in[i], begin), count);
    for (size_t s = 0; s < steps_.size(); ++s) {
      TBlob& result = values_[num_args_ + s];
      result = BlockOf(room + room_.stride * static_cast<int64_t>(s), count);
      in_.clear();
      for (int value : steps_[s].in) in_.push_back(values_[value]);
      const OpReqType write[] = {OpReqType::kWriteTo};
      steps_[s].For(count, room_.block).Forward({ctx, in_, write, {&result, 1}, {}});
    }
  }

  // Computes gradients of a step's inputs, each assigned if it is the first of its value, else
  // accumulated.
  void StepBack(const OpContext& ctx, size_t s, int64_t count, const TBlob& more) {
    const Step& step = steps_[s];
    if (!given_[num_args_ + s]) return;
    in_.clear();
    for (int value : step.in) in_.push_back(values_[value]);
    for (size_t i = 0; i < step.in.size(); ++i) {
      if (!step.has_gradient[i]) continue;
      const int value = step.in[i];
      in_grad_.clear();
      req_.assign(step.in.size(), OpReqType::kNullOp);
      for (size_t k = 0; k < step.in.size(); ++k) in_grad_.push_back(BlockOf(nullptr, count));
      in_grad_[i] = given_[value] ? more : gradients_[value];
      req_[i] = OpReqType::kWriteTo;
      step.For(count, room_.block)
          .Backward({ctx,
                     {&gradients_[num_args_ + s], 1},
                     in_,
                     {&values_[num_args_ + s], 1},
                     req_,
                     in_grad_,
                     {}});
      if (given_[value]) Add(more, gradients_[value], count);
      given_[value] = true;
    }
  }

  void Add(const TBlob& from, const TBlob& to, int64_t count) const {
    SwitchFloating(type_, "_ElementwiseChain", [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* sum = to.dptr<T>();
      const T* term = from.dptr<T>();
      for (int64_t i = 0; i < count; ++i)
        sum[i] = T(AccumulatorOf<T>(sum[i]) + AccumulatorOf<T>(term[i]));
    });
  }

  void Store(const TBlob& block, const TBlob& array, int64_t begin, int64_t count,
             OpReqType req) const {
    const TBlob to = BlockOf(Element(array, begin), count);
    if (req == OpReqType::kAddTo) return Add(block, to, count);
    std::memcpy(to.data, block.data, static_cast<size_t>(count * SizeOf(type_)));
  }

  const int num_args_;
  const Room room_;
  const DType type_;
  std::vector<Step> steps_;
  size_t most_inputs_ = 0;

  // Of the current block.
  std::vector<TBlob> values_, gradients_, in_, in_grad_;
  std::vector<bool> given_;  // the value's gradient has been assigned
  std::vector<OpReqType> req_;
};

class ElementwiseChain final : public Operator {
 public:
  ElementwiseChain(const std::vector<StepPlan>& whole, const std::vector<StepPlan>& rest,
                   int num_args, const Room& room, DType type, int threads)
      : room_(room) {
    for (int t = 0; t < threads; ++t)
      runners_.push_back(std::make_unique<BlockRunner>(whole, rest, num_args, room, type));
  }

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    ForBlocks(args.ctx, args.out_data[0].StoredSize(), room_.forward,
              [&](BlockRunner& runner, int64_t begin, int64_t count, char* room) {
                runner.Forward(args.ctx, args.in_data, args.req[0], args.out_data[0], begin, count,
                               room);
              });
  }

  void Backward(const BackwardArgs& args) override {
    if (std::all_of(args.req.begin(), args.req.end(),
                    [](OpReqType r) { return r == OpReqType::kNullOp; }))
      return;
    ForBlocks(args.ctx, args.out_grad[0].StoredSize(), room_.backward,
              [&](BlockRunner& runner, int64_t begin, int64_t count, char* room) {
                runner.Backward(args.ctx, args.out_grad[0], args.in_data, args.req, args.in_grad,
                                begin, count, room);
              });
  }

 private:
  template <typename F>
  void ForBlocks(const OpContext& ctx, int64_t elements, int arrays, F f) {
    const int64_t blocks = (elements + room_.block - 1) / room_.block;
    ParallelForPieces(blocks, std::max<int64_t>(1, kParallelGrain / room_.block),
                      [&](int64_t first, int64_t last, int piece) {
                        char* room =
                            static_cast<char*>(ctx.workspace.data) + piece * arrays * room_.stride;
                        for (int64_t b = first; b < last; ++b) {
                          f(*runners_[static_cast<size_t>(piece)], b * room_.block,
                            std::min(room_.block, elements - b * room_.block), room);
                        }
                      });
  }

  const Room room_;
  std::vector<std::unique_ptr<BlockRunner>> runners_;  // by piece
};

Expected<Plan, Refusal> PlanBlocks(const OperatorProperty& base, const PlanRequest& request,
                                   Backend& backend) {
  const auto& chain = static_cast<const P&>(base);
  const DType type = request.out[0].type;
  if (type != DType::kFloat32 && type != DType::kFloat64 && type != DType::kFloat16 &&
      type != DType::kBfloat16) {
    return Refusal{"floating types only"};
  }
  Plan plan = FlatPlan(base, request, base.elementwise() == Elementwise::kZeroToZero);
  const int64_t elements = plan.out[0].Bytes(request.out[0].shape, type) / SizeOf(type);
  const Room room(chain, type, elements);
  const Expected<std::vector<StepPlan>, Refusal> whole =
      PlanSteps(chain, request, room.block, request.needs_backward, backend);
  if (!whole) return whole.error();
  std::vector<StepPlan> rest;
  if (elements % room.block != 0) {
    Expected<std::vector<StepPlan>, Refusal> planned =
        PlanSteps(chain, request, elements % room.block, request.needs_backward, backend);
    if (!planned) return planned.error();
    rest = std::move(*planned);
  }
  const int threads = std::max(request.threads, 1);
  plan.forward_workspace = threads * room.forward * room.stride;
  if (request.needs_backward) plan.backward_workspace = threads * room.backward * room.stride;
  plan.make = [whole = *whole, rest, args = chain.param().num_args, room, type, threads] {
    return std::make_unique<ElementwiseChain>(whole, rest, args, room, type, threads);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(elementwise_chain_cpu, registry) {
  registry.AddKernel({"_ElementwiseChain", mxtrain::DeviceType::kCPU, "blocks", mxtrain::kRefRank,
                      mxtrain::PlanBlocks});
}
