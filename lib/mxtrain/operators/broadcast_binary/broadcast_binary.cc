// SPDX-License-Identifier: Apache-2.0
// Functions of two arrays whose axes have equal length or length 1. The ranks must be equal.
#include <algorithm>

#include "mxtrain/operators/broadcast_binary/broadcast_binary_loops.h"
#include "mxtrain/operators/elemwise_binary/formula.h"

namespace mxtrain::broadcast_binary {
namespace {

TShape BroadcastShape(const TShape& lhs, const TShape& rhs, const EnvArguments&) {
  const auto fail = [&] {
    Throw(ErrorKind::kConfig,
          "shapes {} and {} do not broadcast: each axis must have the same length in both, or "
          "length 1 in one",
          lhs.ToString(), rhs.ToString());
  };
  if (lhs.ndim() != rhs.ndim()) fail();
  TShape out = lhs;
  for (int i = 0; i < lhs.ndim(); ++i) {
    if (lhs[i] != rhs[i] && lhs[i] != 1 && rhs[i] != 1) fail();
    out[i] = lhs[i] == 1 ? rhs[i] : lhs[i];
  }
  return out;
}

// The blocks of channels in which the arrays may lie.
std::vector<int64_t> BlocksOf(const TShape& out) {
  if (out.ndim() != 4 || out[1] < 2) return {1};
  return {1, 8, 16, out[1]};
}

int64_t Scratch(const std::vector<TShape>& in, const EnvArguments& env) {
  const TShape out = BroadcastShape(in[0], in[1], env);
  int64_t bytes = 0;
  for (const int64_t block : BlocksOf(out)) {
    for (const TShape& part : in)
      bytes = std::max(bytes, SumScratchBytes(InBlocks(out, block), InBlocks(part, block)));
  }
  return bytes;
}

// Whether the arrays can lie as in `layout`. Padding stays zero if the function maps zeros to zero
// and no channel is repeated into it.
bool Supports(Layout layout, const PlanRequest& request, Elementwise elementwise) {
  const TShape& out = request.out[0].shape;
  const std::vector<int64_t> blocks = BlocksOf(out);
  if (std::find(blocks.begin(), blocks.end(), ChannelBlock(out, layout)) == blocks.end())
    return false;
  return !layout.Padded(out) || (elementwise == Elementwise::kZeroToZero &&
                                 request.in[0].shape[1] == request.in[1].shape[1]);
}

// As the first input of the output's shape that is offered in a supported layout; an operand of one
// channel is plain.
std::vector<Layout> LayoutsOf(const PlanRequest& request, Elementwise elementwise) {
  const TShape& out = request.out[0].shape;
  Layout common;
  for (size_t i = 0; i < request.in.size() && common.plain(); ++i) {
    const std::optional<Layout>& offered = request.in_layout[i];
    if (offered && request.in[i].shape == out && Supports(*offered, request, elementwise))
      common = *offered;
  }
  std::vector<Layout> layouts;
  for (size_t i = 0; i < request.in.size(); ++i) {
    const TShape& shape = request.in[i].shape;
    const bool one = !common.plain() && shape[1] == 1;
    layouts.push_back(AsOffered(shape, one ? Layout() : common, request.in_layout[i]));
  }
  layouts.push_back(common);
  return layouts;
}

}  // namespace

MXTRAIN_OPERATOR(broadcast_binary, registry) {
  elemwise_binary::ForEachBinary([&registry](auto f) {
    using F = decltype(f);
    SimpleOp(registry, F::kBroadcastName)
        .set_shape_function(BroadcastShape)
        .set_types(kFloatingTypes)
        .set_elementwise(F::kElementwise)
        .set_layout_function(
            [](const PlanRequest& request) { return LayoutsOf(request, F::kElementwise); })
        .set_resource_request(ResourceRequest::kTempSpace, Scratch)
        .describe(
            format("{}, element by element; an axis of length 1 is repeated along the other's",
                   elemwise_binary::Formula(F::kBroadcastName, "lhs", "rhs")));
  });
  SimpleOp(registry, "broadcast_add")
      .add_alias("broadcast_plus")
      .set_identity({}, {{0, 0}, {0, 1}});
  // As in squeeze and excitation; not where a factor has more bits.
  SimpleOp(registry, "broadcast_mul").set_mixed_precision({MixedPrecision::kFollowsAll});
  SimpleOp(registry, "broadcast_sub").add_alias("broadcast_minus").set_identity({}, {{0, 0}});
}

}  // namespace mxtrain::broadcast_binary
