// SPDX-License-Identifier: Apache-2.0
// Runs every step by the best kernel of its operator, on blocks.
#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/dropout/dropout.h"
#include "mxtrain/operators/elementwise_chain/block_runner.h"

namespace mxtrain::elementwise_chain {
namespace {

using P = ElementwiseChainProperty;

// Available for the blocks of all values: of the first-level cache, or of the second, where calls
// of steps on short blocks would take longer than their work.
constexpr int64_t kCacheBytes = 32 << 10, kSecondCacheBytes = 192 << 10;
constexpr int64_t kMostBytes = 256 << 10;    // of a row in all values
constexpr int64_t kLine = 64;                // bytes
constexpr int64_t kShortest = 256;           // elements
constexpr int64_t kMostSlices = 64;          // with sums of their own
constexpr int64_t kLeastForSums = 16 << 10;  // bytes that sums may always take
constexpr int64_t kBlocksOfSlice = 2;        // at least
// At least, where there are enough blocks: as many threads can run a backward pass.
constexpr int64_t kLeastSlices = 8;

// What the shapes of a chain's values mean.
struct Form {
  ChainPlan plan;
  TShape whole;
  std::vector<TShape> shape;  // of values
};

bool IsColumn(const TShape& shape, const TShape& whole, int64_t row) {
  if (shape.ndim() != whole.ndim()) return false;
  int axis = whole.ndim();
  while (axis > 0 && shape[axis - 1] == 1 && whole.Product(axis - 1, whole.ndim()) <= row) --axis;
  return whole.Product(axis, whole.ndim()) == row &&
         std::equal(whole.begin(), whole.begin() + axis, shape.begin());
}

// The number of elements of a row, if a step needs rows.
Expected<int64_t, Refusal> RowOf(const P& chain, const std::vector<TShape>& shape) {
  const TShape& whole = shape.back();
  int64_t row = 0;
  for (size_t s = 0; s < chain.steps().size(); ++s) {
    const P::Step& step = chain.steps()[s];
    int64_t needed = 0;
    if (step.kind == ChainStep::kReduction) {
      if (shape[static_cast<size_t>(step.in[0])] != whole)
        return Refusal{format("{} of what has not the shape of the output", step.op->TypeString())};
      const TShape& result = shape[static_cast<size_t>(chain.param().num_args) + s];
      needed = whole.Size() / std::max<int64_t>(result.Size(), 1);
      if (!IsColumn(result, whole, needed))
        return Refusal{format("{} over other than the last axes", step.op->TypeString())};
      if (needed < 2) return Refusal{"rows of less than two elements"};
    }
    if (needed > 0 && row > 0 && needed != row) return Refusal{"rows of different lengths"};
    row = std::max(row, needed);
  }
  return row;
}

// Which values have the shape of the output, one element for each row, or are repeated.
Expected<Form, Refusal> FormOf(const P& chain, const PlanRequest& request) {
  Form form;
  ChainPlan& plan = form.plan;
  form.whole = request.out[0].shape;
  plan.type = request.out[0].type;
  plan.num_args = chain.param().num_args;
  plan.num_steps = static_cast<int>(chain.steps().size());
  plan.read = chain.read();
  std::vector<TShape> in;
  for (const TensorSpec& spec : request.in) {
    if (spec.type != plan.type) return Refusal{"arguments of different types"};
    in.push_back(spec.shape);
  }
  form.shape = chain.ShapesOf(in);
  const Expected<int64_t, Refusal> row = RowOf(chain, form.shape);
  if (!row) return row.error();
  plan.row = *row;
  for (size_t v = 0; v < form.shape.size(); ++v) {
    const TShape& shape = form.shape[v];
    const bool argument = v < static_cast<size_t>(plan.num_args);
    if (shape == form.whole) {
      plan.extent.push_back(Extent::kWhole);
    } else if (plan.row > 0 && IsColumn(shape, form.whole, plan.row)) {
      plan.extent.push_back(Extent::kColumn);
    } else if (argument && shape.ndim() == form.whole.ndim()) {
      plan.extent.push_back(Extent::kRepeated);
    } else {
      return Refusal{"an intermediate array has not the shape of the output"};
    }
  }
  for (size_t s = 0; s < chain.steps().size(); ++s) {
    const P::Step& step = chain.steps()[s];
    const Extent result = plan.extent[static_cast<size_t>(plan.num_args) + s];
    for (const int value : step.in) {
      const Extent input = plan.extent[static_cast<size_t>(value)];
      if (step.kind != ChainStep::kReduction && result == Extent::kColumn &&
          input != Extent::kColumn)
        return Refusal{"a repeated argument beside numbers of rows"};
    }
    if (step.kind != ChainStep::kDropout) continue;
    if (result != Extent::kWhole) return Refusal{"a Dropout of numbers of rows"};
    const auto& dropout = static_cast<const DropoutProperty&>(*step.op);
    if (!dropout.Drops(request.is_train)) {
      plan.same = static_cast<int>(s);
      continue;
    }
    plan.keep = 1 - dropout.param().p;
    form.shape.push_back(form.whole);
    plan.extent.push_back(Extent::kWhole);
  }
  return form;
}

// The plain array with the elements of an array whose channels lie in blocks: [N, C / block, ...,
// block]; [N, 1, ..., 1] if it has one channel.
TShape InBlocks(const TShape& shape, int64_t block) {
  if (block == 1) return shape;
  TShape view = TShape::OfRank(shape.ndim() + 1);
  for (int i = 0; i < shape.ndim(); ++i) view[i] = shape[i];
  const bool one = shape[1] == 1;
  if (!one) view[1] = CeilDivide(shape[1], block);
  view[shape.ndim()] = one ? 1 : block;
  return view;
}

// Whether the arrays can lie as in `layout`.
bool Supports(const Form& form, Layout layout, bool zero_to_zero) {
  if (layout.plain()) return true;
  const ChainPlan& plan = form.plan;
  if (plan.row > 0 || plan.keep) return false;
  const bool padded = layout.Padded(form.whole);
  if (padded && !zero_to_zero) return false;
  const bool repeats =
      std::find(plan.extent.begin(), plan.extent.end(), Extent::kRepeated) != plan.extent.end();
  if (!repeats) return true;
  const int ndim = form.whole.ndim();
  if (ndim < 3 || ndim == TShape::kMaxDims || form.whole[1] < 2 ||
      ChannelBlock(form.whole, layout) == 0)
    return false;
  // Padding stays zero if nothing is repeated into it.
  for (size_t v = 0; v < plan.extent.size() && padded; ++v) {
    if (plan.extent[v] == Extent::kRepeated && form.shape[v][1] != form.whole[1]) return false;
  }
  return true;
}

Plan PlanLayouts(const P& chain, const PlanRequest& request, const Form& form) {
  Plan plan = PlainPlan(chain, request);
  const bool zero_to_zero = chain.elementwise() == Elementwise::kZeroToZero;
  Layout common;
  for (size_t i = 0; i < request.in.size() && common.plain(); ++i) {
    const std::optional<Layout>& offered = request.in_layout[i];
    if (offered && request.in[i].shape == form.whole && Supports(form, *offered, zero_to_zero))
      common = *offered;
  }
  if (common.plain()) return plan;
  plan.out[0] = common;
  for (size_t i = 0; i < request.in.size(); ++i) {
    const TShape& shape = request.in[i].shape;
    const bool one_channel = shape.ndim() < 2 || shape[1] == 1;
    plan.in[i] = shape == form.whole
                     ? common
                     : AsOffered(shape, one_channel ? Layout() : common, request.in_layout[i]);
  }
  GrantInplace(chain, request, &plan);
  return plan;
}

// The operator of a step as it runs on blocks, which have one axis, or rows and the elements of a
// row.
std::shared_ptr<const OperatorProperty> OnBlocks(const P& chain, const P::Step& step) {
  switch (step.kind) {
    case ChainStep::kDropout:
      return chain.registry().Create("elemwise_mul", {});
    case ChainStep::kReduction: {
      Kwargs kwargs = step.op->GetParams();
      for (auto& [key, value] : kwargs) {
        if (key == "axis") value = "(1,)";
        if (key == "exclude") value = "False";
      }
      return chain.registry().Create(step.op->TypeString(), kwargs);
    }
    default:
      return step.op;
  }
}

// Whether the kernel's gradient reads no more than the operator declares.
bool ReadsAsDeclared(const OperatorProperty& op, const Plan& plan, size_t num_args) {
  if (!plan.backward_reads) return true;
  std::vector<int> in_data(num_args);
  for (size_t i = 0; i < num_args; ++i) in_data[i] = static_cast<int>(i);
  const int out = static_cast<int>(num_args);
  const std::vector<int> declared = op.DeclareBackwardDependency({out + 1}, in_data, {out});
  const auto is_declared = [&](int id) {
    return std::find(declared.begin(), declared.end(), id) != declared.end();
  };
  for (size_t i = 0; i < num_args; ++i) {
    if (plan.backward_reads->in_data[i] && !is_declared(static_cast<int>(i))) return false;
  }
  return !plan.backward_reads->out_data[0] || is_declared(out);
}

// The plans of all steps for blocks of `count` elements.
Expected<StepPlans, Refusal> PlanSteps(const P& chain, const ChainPlan& form,
                                       const PlanRequest& request, int64_t count,
                                       Backend& backend) {
  StepPlans plans;
  for (size_t s = 0; s < chain.steps().size(); ++s) {
    const P::Step& step = chain.steps()[s];
    const std::shared_ptr<const OperatorProperty> op = OnBlocks(chain, step);
    StepPlan made;
    made.in = step.in;
    made.scales = step.kind == ChainStep::kDropout;
    // A Dropout that does not drop has no factors, and its plan is not used.
    if (made.scales) made.in.push_back(form.keep ? form.factors() : step.in[0]);
    const size_t n = made.in.size();
    made.passes.resize(n);
    for (const InplacePair& pair : op->BackwardIdentityOption()) {
      const int value = made.in[static_cast<size_t>(pair.to)];
      made.passes[static_cast<size_t>(pair.to)] =
          value >= form.num_args && chain.ReadersOf(value) == 1 &&
          form.extent[static_cast<size_t>(value)] ==
              form.extent[static_cast<size_t>(form.num_args) + s];
    }
    std::vector<TensorSpec> in;
    std::vector<TShape> in_shapes;
    std::vector<OpReqType> grad_req;
    for (size_t i = 0; i < n; ++i) {
      in_shapes.push_back(form.BlockShape(made.in[i], count));
      in.push_back({in_shapes.back(), form.type, {}});
      made.has_gradient.push_back(op->HasGradient(static_cast<int>(i)) && !(made.scales && i == 1));
      grad_req.push_back(made.has_gradient[i] ? OpReqType::kWriteTo : OpReqType::kNullOp);
    }
    const std::vector<TensorSpec> out{
        {form.BlockShape(form.num_args + static_cast<int>(s), count), form.type, {}}};
    const std::vector<std::optional<Layout>> layouts(n, Layout());
    const std::vector<OpReqType> out_req{OpReqType::kWriteTo};
    PlanRequest q = request;
    q.threads = 1;
    q.in = in;
    q.out = out;
    q.aux = {};
    q.in_layout = layouts;
    q.aux_layout = {};
    q.out_req = out_req;
    q.grad_req = request.needs_backward ? std::span<const OpReqType>(grad_req)
                                        : std::span<const OpReqType>();
    try {
      made.plan = op->CreatePlan(chain.registry(), q, backend);
    } catch (const Error& e) {
      return Refusal{e.what()};
    }
    const bool plain = std::all_of(made.plan.in.begin(), made.plan.in.end(),
                                   [](const Layout& layout) { return layout.plain(); });
    if (!plain || made.plan.forward_workspace > 0 || made.plan.backward_workspace > 0 ||
        !made.plan.saved.empty() || !ReadsAsDeclared(*op, made.plan, n))
      return Refusal{format("{} needs more than its arrays", op->TypeString())};
    const auto forward = op->ForwardResource(in_shapes), backward = op->BackwardResource(in_shapes);
    if (forward.size() != backward.size())
      return Refusal{format("{} needs other resources in backward", op->TypeString())};
    for (size_t r = 0; r < forward.size(); ++r) {
      if (forward[r].type != ResourceRequest::kTempSpace || forward[r].bytes < 0 ||
          backward[r].type != ResourceRequest::kTempSpace || backward[r].bytes < 0)
        return Refusal{format("{} draws, or needs space of unknown size", op->TypeString())};
      made.space.push_back(std::max(forward[r].bytes, backward[r].bytes));
    }
    plans.push_back(std::move(made));
  }
  return plans;
}

int64_t SpaceOf(const StepPlans& steps) {
  int64_t most = 0;
  for (const StepPlan& step : steps) {
    int64_t bytes = 0;
    for (const int64_t space : step.space) bytes += RoundUp(space, kLine);
    most = std::max(most, bytes);
  }
  return most;
}

// The length of blocks, which hold whole rows if there are rows.
std::optional<Refusal> ChooseBlocks(ChainPlan* plan) {
  const int64_t size = SizeOf(plan->type), line = kLine / size;
  const int64_t arrays = plan->forward_arrays() + 1;
  const bool plain = plan->row == 0 && std::find(plan->extent.begin(), plan->extent.end(),
                                                 Extent::kRepeated) == plan->extent.end();
  int64_t block = std::max(
      (plain ? kCacheBytes : kSecondCacheBytes) / (size * arrays) / line * line, kShortest);
  if (plan->row > 0) {
    if (plan->row * size * arrays > kMostBytes) return Refusal{"rows that are too long"};
    block = std::max<int64_t>(1, block / plan->row) * plan->row;
    plan->block = std::min(block, std::max(plan->elements, plan->row));
  } else {
    plan->block = std::min(block, std::max(RoundUp(plan->elements, line), line));
  }
  plan->stride = RoundUp(plan->block * size, kLine);
  return std::nullopt;
}

// How the gradients of repeated arguments are summed: in a few slices of the blocks, each with sums
// of its own, which are then added in order. The division depends on shapes alone.
struct SumPlan {
  int64_t slices = 1;
  int64_t size = 0;  // elements of all repeated arguments whose gradient is requested

  int64_t Parts(const ChainPlan& plan) const { return size > 0 ? slices : plan.blocks(); }
};

int64_t Grain(int64_t elements) {
  return std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(elements, 1));
}
// Parts of the blocks that a thread gets at least.
int64_t GrainOfParts(const ChainPlan& plan, int64_t parts) {
  return Grain(plan.block * (plan.blocks() / std::max<int64_t>(parts, 1)));
}
// The threads among which ParallelForPieces divides the parts, at most.
int64_t WorkersFor(const ChainPlan& plan, int64_t parts, int threads) {
  return std::clamp<int64_t>(parts / GrainOfParts(plan, parts), 1, std::max(threads, 1));
}

class ElementwiseChain final : public Operator {
 public:
  ElementwiseChain(std::shared_ptr<const ChainPlan> plan, const SumPlan& sums, int64_t workers)
      : plan_(std::move(plan)), sums_(sums) {
    for (int64_t t = 0; t < workers; ++t) runners_.push_back(std::make_unique<BlockRunner>(*plan_));
  }

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    char* space = static_cast<char*>(args.ctx.workspace.data);
    const Run run{args.ctx, args.in_data, args.out_data[0], args.req[0]};
    ParallelForPieces(plan_->blocks(), GrainOfParts(*plan_, plan_->blocks()),
                      [&](int64_t first, int64_t last, int piece) {
                        BlockRunner& runner = *runners_[static_cast<size_t>(piece)];
                        runner.Start(run, space + piece * plan_->ForwardRoom());
                        for (int64_t b = first; b < last; ++b)
                          runner.Forward(run, b * plan_->block);
                      });
  }

  void Backward(const BackwardArgs& args) override {
    if (std::all_of(args.req.begin(), args.req.end(),
                    [](OpReqType r) { return r == OpReqType::kNullOp; }))
      return;
    char* space = static_cast<char*>(args.ctx.workspace.data);
    double* sums = reinterpret_cast<double*>(space);
    space += RoundUp(sums_.slices * sums_.size * static_cast<int64_t>(sizeof(double)), kLine);
    const Run run{args.ctx,         args.in_data, args.out_data[0], OpReqType::kNullOp,
                  args.out_grad[0], args.req,     args.in_grad};
    const int64_t blocks = plan_->blocks(), parts = sums_.Parts(*plan_);
    ParallelForPieces(
        parts, GrainOfParts(*plan_, parts), [&](int64_t first, int64_t last, int piece) {
          BlockRunner& runner = *runners_[static_cast<size_t>(piece)];
          runner.Start(run, space + piece * plan_->BackwardRoom());
          for (int64_t part = first; part < last; ++part) {
            double* own = sums + part * sums_.size;
            if (sums_.size > 0) std::fill_n(own, sums_.size, 0.0);
            for (int64_t b = blocks * part / parts; b < blocks * (part + 1) / parts; ++b)
              runner.Backward(run, b * plan_->block, own);
          }
        });
    if (sums_.size > 0) JoinSums(args, sums);
  }

 private:
  void JoinSums(const BackwardArgs& args, const double* sums) const {
    for (size_t v = 0; v < args.req.size(); ++v) {
      const OpReqType req = args.req[v];
      if (req == OpReqType::kNullOp || plan_->extent[v] != Extent::kRepeated) continue;
      const int64_t size = plan_->sizes[v];
      SwitchFloating(plan_->type, "_ElementwiseChain", [&](auto tag) {
        using T = typename decltype(tag)::type;
        T* to = args.in_grad[v].dptr<T>();
        ParallelFor(size, Grain(sums_.slices), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            double sum = 0;
            for (int64_t slice = 0; slice < sums_.slices; ++slice)
              sum += sums[slice * sums_.size + i];
            Assign(req, to, i, static_cast<AccumulatorOf<T>>(sum));
          }
        });
      });
      sums += size;
    }
  }

  const std::shared_ptr<const ChainPlan> plan_;
  const SumPlan sums_;
  std::vector<std::unique_ptr<BlockRunner>> runners_;  // by piece
};

Expected<Plan, Refusal> PlanOffered(const OperatorProperty& base, const PlanRequest& request,
                                    Backend& backend) {
  const auto& chain = static_cast<const P&>(base);
  if (!IsFloating(request.out[0].type)) return Refusal{"floating types only"};
  Expected<Form, Refusal> form = FormOf(chain, request);
  if (!form) return form.error();
  Plan plan = PlanLayouts(chain, request, *form);
  ChainPlan& made = form->plan;
  made.elements = plan.out[0].Bytes(form->whole, made.type) / SizeOf(made.type);
  const bool repeats =
      std::find(made.extent.begin(), made.extent.end(), Extent::kRepeated) != made.extent.end();
  const int64_t block = repeats ? ChannelBlock(form->whole, plan.out[0]) : 1;
  const TShape view = InBlocks(form->whole, std::max<int64_t>(block, 1));
  made.at.resize(made.extent.size());
  made.sizes.resize(made.extent.size());
  int arrays = 0;
  for (int v = 0; v < made.num_values(); ++v) {
    const bool in_place =
        v < made.num_args && made.extent[static_cast<size_t>(v)] != Extent::kRepeated;
    made.array.push_back(in_place ? -1 : arrays++);
  }
  SumPlan sums;
  int64_t all = 0;  // the same if every gradient were requested
  for (size_t v = 0; v < made.extent.size(); ++v) {
    if (made.extent[v] != Extent::kRepeated) continue;
    const TShape shape = InBlocks(form->shape[v], std::max<int64_t>(block, 1));
    made.at[v].emplace(view, std::array{&shape});
    made.sizes[v] = shape.Size();
    if (v >= request.in.size()) continue;
    all += shape.Size();
    if (!request.grad_req.empty() && request.grad_req[v] != OpReqType::kNullOp)
      sums.size += shape.Size();
  }
  if (const auto refusal = ChooseBlocks(&made)) return *refusal;

  // Sums take less than a quarter of the bytes of the output.
  const auto size_of_sum = static_cast<int64_t>(sizeof(double));
  const int64_t room = std::max(made.elements * SizeOf(made.type) / 4, kLeastForSums),
                wanted = std::clamp<int64_t>(made.blocks() / kBlocksOfSlice, 1, kMostSlices);
  sums.slices = std::min(wanted, room / std::max<int64_t>(all * size_of_sum, 1));
  if (request.needs_backward && all > 0 && sums.slices < std::min(wanted, kLeastSlices))
    return Refusal{"repeated arguments that are too large to sum their gradients"};

  Expected<StepPlans, Refusal> steps = PlanSteps(chain, made, request, made.block, backend);
  if (!steps) return steps.error();
  made.whole = std::move(*steps);
  if (made.elements % made.block != 0) {
    steps = PlanSteps(chain, made, request, made.elements % made.block, backend);
    if (!steps) return steps.error();
    made.rest = std::move(*steps);
    for (size_t s = 0; s < made.whole.size(); ++s) {
      for (size_t r = 0; r < made.whole[s].space.size(); ++r)
        made.whole[s].space[r] = std::max(made.whole[s].space[r], made.rest[s].space[r]);
    }
  }
  made.space = SpaceOf(made.whole);

  int64_t workers = WorkersFor(made, made.blocks(), request.threads);
  plan.forward_workspace = workers * made.ForwardRoom();
  if (request.needs_backward) {
    const int64_t backward = WorkersFor(made, sums.Parts(made), request.threads);
    plan.backward_workspace =
        RoundUp(sums.slices * sums.size * size_of_sum, kLine) + backward * made.BackwardRoom();
    workers = std::max(workers, backward);
  }
  plan.make = [made = std::make_shared<const ChainPlan>(std::move(made)), sums, workers] {
    return std::make_unique<ElementwiseChain>(made, sums, workers);
  };
  return plan;
}

// A chain was formed because plain arrays can be planned: a layout that cannot is not taken.
Expected<Plan, Refusal> PlanBlocks(const OperatorProperty& base, const PlanRequest& request,
                                   Backend& backend) {
  Expected<Plan, Refusal> plan = PlanOffered(base, request, backend);
  if (plan) return plan;
  PlanRequest plain = request;
  const std::vector<std::optional<Layout>> layouts(request.in_layout.size());
  plain.in_layout = layouts;
  return PlanOffered(base, plain, backend);
}

}  // namespace
}  // namespace mxtrain::elementwise_chain

MXTRAIN_OPERATOR(elementwise_chain_cpu, registry) {
  registry.AddKernel({"_ElementwiseChain", mxtrain::DeviceType::kCPU, "blocks", mxtrain::kRefRank,
                      mxtrain::elementwise_chain::PlanBlocks});
}
