// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elementwise_chain/block_runner.h"

#include <algorithm>
#include <cstring>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/uniform_block.h"
#include "mxtrain/operators/elementwise_chain/repeated.h"

namespace mxtrain::elementwise_chain {
namespace {

constexpr const char* kWho = "_ElementwiseChain";

// f(TypeTag<T>{}) with an unsigned integer of the size of the type, for copies.
template <typename F>
void SwitchSize(DType type, const F& f) {
  switch (SizeOf(type)) {
    case 2:
      return f(TypeTag<uint16_t>{});
    case 4:
      return f(TypeTag<uint32_t>{});
    default:
      return f(TypeTag<uint64_t>{});
  }
}

}  // namespace

TShape ChainPlan::BlockShape(int value, int64_t count) const {
  if (row == 0) return {count};
  const bool column = extent[static_cast<size_t>(value)] == Extent::kColumn;
  return {count / row, column ? 1 : row};
}

BlockRunner::BlockRunner(const ChainPlan& plan) : plan_(plan) {
  size_t most = 0;
  for (size_t s = 0; s < plan.whole.size(); ++s) {
    Step step{&plan.whole[s], plan.whole[s].plan.make(), nullptr, {}};
    if (!plan.rest.empty()) step.rest = plan.rest[s].plan.make();
    step.requested.resize(step.plan->space.size());
    most = std::max(most, step.plan->in.size());
    steps_.push_back(std::move(step));
  }
  const auto n = static_cast<size_t>(plan.num_values());
  values_.resize(n), gradients_.resize(n), given_.resize(n), useful_.resize(n), held_.resize(n);
  in_.reserve(most), in_grad_.reserve(most), req_.reserve(most);
}

TBlob BlockRunner::BlockOf(void* data, int value, int64_t count) const {
  return {data, plan_.BlockShape(value, count), plan_.type, {}, Context::cpu()};
}

TBlob BlockRunner::PartOf(const TBlob& array, int value, int64_t begin, int64_t count) const {
  if (!array.data) return BlockOf(nullptr, value, count);
  const bool column = plan_.extent[static_cast<size_t>(value)] == Extent::kColumn;
  const int64_t first = column ? begin / plan_.row : begin;
  return BlockOf(static_cast<char*>(array.data) + first * SizeOf(plan_.type), value, count);
}

void BlockRunner::Start(const Run& run, char* room) {
  room_ = room;
  std::fill(held_.begin(), held_.end(), Held());
  for (Step& step : steps_) {
    char* at = ArrayAt(run.head.data ? plan_.backward_arrays() : plan_.forward_arrays());
    for (size_t r = 0; r < step.requested.size(); ++r) {
      step.requested[r] = {ResourceRequest::kTempSpace, at, step.plan->space[r]};
      step.requested[r].who = kWho;
      at += RoundUp(step.plan->space[r], 64);
    }
  }
  if (run.head.data) FindUseful(run.req);
}

void BlockRunner::FindUseful(std::span<const OpReqType> req) {
  std::fill(useful_.begin(), useful_.end(), false);
  for (size_t i = 0; i < req.size(); ++i) useful_[i] = req[i] != OpReqType::kNullOp;
  for (size_t s = 0; s < steps_.size(); ++s) {
    for (const int value : steps_[s].plan->in)
      useful_[static_cast<size_t>(plan_.num_args) + s] |= useful_[static_cast<size_t>(value)];
  }
}

void BlockRunner::LoadRepeated(int value, const void* array, int64_t begin, int64_t count) {
  const auto v = static_cast<size_t>(value);
  values_[v] = BlockOf(ArrayOf(value), value, count);
  const BroadcastSpace<1>& space = *plan_.at[v];
  const int64_t period = space.period(0);
  const int64_t phase = period > 0 ? begin % period : -1;
  if (phase >= 0 && phase == held_[v].phase && count <= held_[v].count) return;
  SwitchSize(plan_.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Gather(space, static_cast<const T*>(array), begin, count, values_[v].dptr<T>());
  });
  held_[v] = {phase, count};
}

// As Dropout draws them: by the index of the element.
void BlockRunner::DrawFactors(const Run& run, int64_t begin, int64_t count) {
  const int value = plan_.factors();
  TBlob& factors = values_[static_cast<size_t>(value)];
  factors = BlockOf(ArrayOf(value), value, count);
  const RandomDraws random = run.ctx.requested[0].Draws();
  SwitchFloating(plan_.type, kWho, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = factors.dptr<T>();
    const T kept = T(AccumulatorOf<T>(1) / AccumulatorOf<T>(*plan_.keep));
    float draws[kUniformBlock];
    int64_t at = begin / 4 * 4;
    while (at < begin + count) {
      FillUniform(random, static_cast<uint64_t>(at), draws);
      const int64_t first = std::max(begin - at, int64_t{0}),
                    end = std::min(begin + count - at, kUniformBlock);
      for (int64_t k = first; k < end; ++k) *to++ = draws[k] < *plan_.keep ? kept : T(0);
      at += kUniformBlock;
    }
  });
}

// In backward only what gradients read.
void BlockRunner::Load(const Run& run, bool backward, int64_t begin, int64_t count) {
  for (int v = 0; v < plan_.num_args; ++v) {
    const auto i = static_cast<size_t>(v);
    if (backward && !plan_.read[i]) {
      values_[i] = BlockOf(nullptr, v, count);
    } else if (plan_.extent[i] == Extent::kRepeated) {
      LoadRepeated(v, run.in[i].data, begin, count);
    } else {
      values_[i] = PartOf(run.in[i], v, begin, count);
    }
  }
  if (plan_.keep) DrawFactors(run, begin, count);
}

void BlockRunner::Compute(const Run& run, size_t s, int64_t count) {
  Step& step = steps_[s];
  TBlob& result = values_[static_cast<size_t>(plan_.num_args) + s];
  if (static_cast<int>(s) == plan_.same) {
    const TBlob& input = values_[static_cast<size_t>(step.plan->in[0])];
    if (static_cast<int>(s) + 1 == plan_.num_steps)
      std::memcpy(result.data, input.data, static_cast<size_t>(input.Size() * SizeOf(plan_.type)));
    else
      result = input;
    return;
  }
  in_.clear();
  for (const int value : step.plan->in) in_.push_back(values_[static_cast<size_t>(value)]);
  OpContext ctx = run.ctx;
  ctx.requested = step.requested;
  const OpReqType write[] = {OpReqType::kWriteTo};
  For(step, count).Forward({ctx, in_, write, {&result, 1}, {}});
}

// Whether the last step may write to the output: if it reads no argument that shares its memory, or
// its kernel may write over that.
bool BlockRunner::WritesDirectly(const Run& run) const {
  if (run.out_req == OpReqType::kAddTo) return false;
  const StepPlan& last = *steps_.back().plan;
  for (size_t i = 0; i < last.in.size(); ++i) {
    int value = last.in[i];
    if (plan_.same >= 0 && value == plan_.num_args + plan_.same)
      value = steps_[static_cast<size_t>(plan_.same)].plan->in[0];
    if (value >= plan_.num_args) continue;
    const auto& pairs = last.plan.forward_inplace;
    const InplacePair pair{static_cast<int>(i), 0};
    if (run.in[static_cast<size_t>(value)].data == run.out.data &&
        std::find(pairs.begin(), pairs.end(), pair) == pairs.end())
      return false;
  }
  return true;
}

void BlockRunner::Forward(const Run& run, int64_t begin) {
  const int64_t count = plan_.count(begin);
  Load(run, false, begin, count);
  const TBlob out = PartOf(run.out, plan_.num_args + plan_.num_steps - 1, begin, count);
  const bool direct = WritesDirectly(run);
  for (size_t s = 0; s < steps_.size(); ++s) {
    const int value = plan_.num_args + static_cast<int>(s);
    const bool last = s + 1 == steps_.size();
    values_[static_cast<size_t>(value)] =
        last && direct ? out : BlockOf(ArrayOf(value), value, count);
    Compute(run, s, count);
  }
  const TBlob& result = values_[static_cast<size_t>(plan_.num_args + plan_.num_steps - 1)];
  if (run.out_req == OpReqType::kAddTo)
    Add(result, out);
  else if (!direct)
    std::memcpy(out.data, result.data, static_cast<size_t>(count * SizeOf(plan_.type)));
}

void BlockRunner::Backward(const Run& run, int64_t begin, double* sums) {
  const int64_t count = plan_.count(begin);
  const int last = plan_.num_args + plan_.num_steps - 1;
  Load(run, true, begin, count);
  for (size_t s = 0; s < steps_.size(); ++s) {
    const int value = plan_.num_args + static_cast<int>(s);
    TBlob& result = values_[static_cast<size_t>(value)];
    if (value == last) {
      result = PartOf(run.out, value, begin, count);
    } else if (!plan_.read[static_cast<size_t>(value)]) {
      result = BlockOf(nullptr, value, count);
    } else {
      result = BlockOf(ArrayOf(value), value, count);
      Compute(run, s, count);
    }
  }
  // The gradient of an array that is not added to goes straight there, unless it shares memory with
  // the head gradient.
  for (int v = 0; v <= last; ++v) {
    const auto i = static_cast<size_t>(v);
    given_[i] = false;
    const bool direct = v < plan_.num_args && plan_.extent[i] != Extent::kRepeated &&
                        run.req[i] != OpReqType::kAddTo && run.req[i] != OpReqType::kNullOp &&
                        run.in_grad[i].data != run.head.data;
    gradients_[i] = direct ? PartOf(run.in_grad[i], v, begin, count)
                           : BlockOf(ArrayAt(plan_.forward_arrays() + v), v, count);
  }
  gradients_[static_cast<size_t>(last)] = PartOf(run.head, last, begin, count);
  given_[static_cast<size_t>(last)] = true;
  for (size_t s = steps_.size(); s-- > 0;) StepBack(run, s, count);
  for (int v = 0; v < plan_.num_args; ++v) {
    const auto i = static_cast<size_t>(v);
    if (run.req[i] == OpReqType::kNullOp) continue;
    const TBlob& gradient = gradients_[i];
    const auto bytes = static_cast<size_t>(gradient.Size() * SizeOf(plan_.type));
    if (!given_[i]) std::memset(gradient.data, 0, bytes);
    if (plan_.extent[i] == Extent::kRepeated) {
      SwitchFloating(plan_.type, kWho, [&](auto tag) {
        using T = typename decltype(tag)::type;
        AddToSums(*plan_.at[i], gradient.dptr<const T>(), begin, count, sums);
      });
      sums += plan_.sizes[i];
      continue;
    }
    const TBlob to = PartOf(run.in_grad[i], v, begin, count);
    if (run.req[i] == OpReqType::kAddTo)
      Add(gradient, to);
    else if (to.data != gradient.data)
      std::memcpy(to.data, gradient.data, bytes);
  }
}

// Computes gradients of a step's inputs, each assigned if it is the first of its value, else
// accumulated.
void BlockRunner::StepBack(const Run& run, size_t s, int64_t count) {
  Step& step = steps_[s];
  const auto result = static_cast<size_t>(plan_.num_args) + s;
  if (!given_[result] || !useful_[result]) return;
  const bool same = static_cast<int>(s) == plan_.same;
  in_.clear();
  for (const int value : step.plan->in) in_.push_back(values_[static_cast<size_t>(value)]);
  OpContext ctx = run.ctx;
  ctx.requested = step.requested;
  for (size_t i = 0; i < step.plan->in.size(); ++i) {
    const int value = step.plan->in[i];
    const auto v = static_cast<size_t>(value);
    if (!step.plan->has_gradient[i] || !useful_[v]) continue;
    if (step.plan->passes[i]) {
      gradients_[v] = gradients_[result];
      given_[v] = true;
      continue;
    }
    TBlob to = gradients_[v];
    if (given_[v]) to.data = ArrayAt(plan_.backward_arrays() - 1);
    if (same) {
      std::memcpy(to.data, gradients_[result].data,
                  static_cast<size_t>(to.Size() * SizeOf(plan_.type)));
    } else if (step.plan->scales) {
      in_[0] = gradients_[result];
      const OpReqType write[] = {OpReqType::kWriteTo};
      For(step, count).Forward({ctx, in_, write, {&to, 1}, {}});
    } else {
      in_grad_.clear();
      for (const int other : step.plan->in) in_grad_.push_back(BlockOf(nullptr, other, count));
      req_.assign(step.plan->in.size(), OpReqType::kNullOp);
      in_grad_[i] = to;
      req_[i] = OpReqType::kWriteTo;
      For(step, count)
          .Backward(
              {ctx, {&gradients_[result], 1}, in_, {&values_[result], 1}, req_, in_grad_, {}});
    }
    if (given_[v]) Add(to, gradients_[v]);
    given_[v] = true;
  }
}

void BlockRunner::Add(const TBlob& from, const TBlob& to) const {
  SwitchFloating(plan_.type, kWho, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* sum = to.dptr<T>();
    const T* term = from.dptr<T>();
    for (int64_t i = 0, n = to.Size(); i < n; ++i)
      sum[i] = T(AccumulatorOf<T>(sum[i]) + AccumulatorOf<T>(term[i]));
  });
}

}  // namespace mxtrain::elementwise_chain
