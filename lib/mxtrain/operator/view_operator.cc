// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/view_operator.h"

namespace mxtrain {
namespace {

// What the steps write of each element of the gradient, and how.
void FinishGradient(bool overlap, const TensorSpec& spec, ViewPlan::Gradient* gradient) {
  const int64_t size = spec.shape.Size();
  if (overlap) {
    gradient->zero =
        size > 0 && (gradient->steps.empty() || gradient->steps[0].move.kept_size < size);
    for (size_t k = 0; k < gradient->steps.size(); ++k)
      gradient->steps[k].add = gradient->zero || k > 0;
    gradient->staged = gradient->steps.size() > 1 && IsFloating(spec.type) &&
                       SizeOf(spec.type) < SizeOf(DType::kFloat32);
    return;
  }
  int64_t written = 0;
  for (const ViewPlan::Step& step : gradient->steps) written += step.move.kept_size;
  MXTRAIN_ASSERT(written <= size);
  gradient->zero = written < size;
  if (gradient->zero)
    std::erase_if(gradient->steps,
                  [](const ViewPlan::Step& step) { return step.source == Move::kNone; });
}

}  // namespace

std::vector<TShape> ShapesOf(std::span<const TensorSpec> specs) {
  std::vector<TShape> shapes;
  for (const TensorSpec& spec : specs) shapes.push_back(spec.shape);
  return shapes;
}

TShape LengthsOf(std::span<const AxisRange> ranges) {
  std::vector<int64_t> lengths;
  for (const AxisRange& range : ranges) lengths.push_back(range.length);
  return TShape(lengths);
}

std::vector<StridedView> Outside(const TShape& shape, const TShape& begin, const TShape& length) {
  std::vector<StridedView> parts;
  StridedView inside = StridedView::Whole(shape);  // within the box along the axes before i
  for (int i = 0; i < shape.ndim(); ++i) {
    const int64_t end = begin[i] + length[i];
    if (begin[i] > 0) parts.push_back(StridedView(inside).Take(i, 0, begin[i]));
    if (end < shape[i]) parts.push_back(StridedView(inside).Take(i, end, shape[i] - end));
    inside.Take(i, begin[i], length[i]);
  }
  return parts;
}

MoveList MovesOfRanges(const TShape& data, std::span<const AxisRange> ranges) {
  MoveList list;
  StridedView from = StridedView::Whole(data);
  const TShape length = LengthsOf(ranges);
  TShape begin = length;  // of the box of elements
  bool box = true;
  for (int i = 0; i < data.ndim(); ++i) {
    const AxisRange& range = ranges[static_cast<size_t>(i)];
    from.Take(i, range.begin, range.length, range.step);
    box = box && (range.step == 1 || range.step == -1);
    begin[i] = range.step < 0 ? range.begin - range.length + 1 : range.begin;
  }
  list.Add(0, from, 0, StridedView::Whole(length));
  if (!box) return list;
  for (const StridedView& part : Outside(data, begin, length)) list.Leave(0, part);
  return list;
}

ViewPlan PlanViews(const MoveList& list, std::span<const TensorSpec> in,
                   std::span<const TensorSpec> out) {
  ViewPlan plan;
  plan.fill = list.fill;
  plan.gradients.resize(in.size());
  std::vector<int64_t> written(out.size());
  for (const Move& move : list.moves) {
    if (move.from.Size() == 0) continue;
    if (move.output != Move::kNone) {
      plan.forward.push_back({move.input, move.output, Merge(move.from, move.to), false});
      MXTRAIN_ASSERT(plan.forward.back().move.summed == 0);
      written[static_cast<size_t>(move.output)] += plan.forward.back().move.kept_size;
    }
    if (move.input != Move::kNone) {
      plan.gradients[static_cast<size_t>(move.input)].steps.push_back(
          {move.output, move.input, Merge(move.to, move.from), false});
    }
  }
  for (size_t o = 0; o < out.size(); ++o) MXTRAIN_ASSERT(written[o] == out[o].shape.Size());
  for (size_t i = 0; i < in.size(); ++i) {
    ViewPlan::Gradient& gradient = plan.gradients[i];
    FinishGradient(list.overlap, in[i], &gradient);
    if (gradient.staged) {
      plan.stage_bytes = std::max(plan.stage_bytes, in[i].shape.Size() * SizeOf(DType::kFloat32));
    }
  }
  return plan;
}

}  // namespace mxtrain
