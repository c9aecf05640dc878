// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/slice/slice.h"

#include <algorithm>
#include <cstdlib>

#include "mxtrain/base/text.h"
#include "mxtrain/operator/axes.h"

namespace mxtrain {
namespace {

using Indices = std::vector<std::optional<int64_t>>;

std::vector<AxisRange> WholeOf(const TShape& data) {
  std::vector<AxisRange> ranges;
  for (const int64_t length : data) ranges.push_back({0, length, 1});
  return ranges;
}

Indices IndicesOf(const std::vector<std::string>& texts, const char* key) {
  Indices indices;
  for (const std::string& text : texts) {
    try {
      // Python 2 wrote 3L.
      const bool suffixed = text.ends_with('L') || text.ends_with('l');
      params::Parse(suffixed ? text.substr(0, text.size() - 1) : text, &indices.emplace_back());
    } catch (const Error&) {
      Throw(ErrorKind::kConfig, "slice: {} = {}: '{}' is neither an integer nor None", key,
            Shortened(params::Print(texts)), Shortened(text));
    }
  }
  return indices;
}

// As Python's slices: indices beyond an end mean the end.
AxisRange RangeOf(int64_t length, std::optional<int64_t> begin, std::optional<int64_t> end,
                  std::optional<int64_t> given_step) {
  const int64_t step =
      std::clamp(given_step.value_or(1), -TShape::kMaxSize, TShape::kMaxSize);  // far enough
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
  const auto index = [&](std::optional<int64_t> given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + length : *given, low, high);
  };
  const int64_t first = index(begin, step > 0 ? low : high),
                stop = index(end, step > 0 ? high : low),
                distance = step > 0 ? stop - first : first - stop;
  if (distance <= 0) return {0, 0, 1};
  const int64_t count = (distance - 1) / std::abs(step) + 1;
  return {first, count, count > 1 ? step : 1};
}

}  // namespace

void SliceProperty::Check() {
  begin_ = IndicesOf(param_.begin, "begin");
  end_ = IndicesOf(param_.end, "end");
  step_ = IndicesOf(param_.step, "step");
  if (step_.empty()) step_.resize(begin_.size());
  if (begin_.size() != end_.size() || begin_.size() != step_.size()) {
    Throw(ErrorKind::kConfig,
          "slice: begin = {}, end = {} and step = {} must have equally many entries",
          params::Print(param_.begin), params::Print(param_.end), params::Print(param_.step));
  }
  for (const std::optional<int64_t>& step : step_) {
    if (step && *step == 0)
      Throw(ErrorKind::kConfig, "slice: step = {} must not contain 0", params::Print(param_.step));
  }
}

std::vector<AxisRange> SliceProperty::RangesOf(const std::vector<TShape>& in) const {
  const TShape& data = in[0];
  std::vector<AxisRange> ranges = WholeOf(data);
  if (begin_.size() > ranges.size()) {
    Throw(ErrorKind::kConfig, "slice: begin = {} has more entries than data of shape {} has axes",
          params::Print(param_.begin), data.ToString());
  }
  for (size_t i = 0; i < begin_.size(); ++i) {
    const int64_t length = ranges[i].length;
    ranges[i] = RangeOf(length, begin_[i], end_[i], step_[i]);
    if (ranges[i].length == 0 && length > 0) {
      Throw(ErrorKind::kConfig,
            "slice: begin = {}, end = {} and step = {} leave nothing of axis {} of shape {}",
            params::Print(begin_[i]), params::Print(end_[i]), step_[i].value_or(1), i,
            data.ToString());
    }
  }
  return ranges;
}

std::vector<AxisRange> SliceAxisProperty::RangesOf(const std::vector<TShape>& in) const {
  const TShape& data = in[0];
  const int axis = CheckAxis(param_.axis, data, "slice_axis");
  const int64_t length = data[axis];
  const auto from_start = [length](int64_t index) { return index < 0 ? index + length : index; };
  const int64_t begin = from_start(param_.begin),
                end = param_.end ? from_start(*param_.end) : length;
  if (begin < 0 || begin >= end || end > length) {
    Throw(ErrorKind::kConfig,
          "slice_axis: begin = {} and end = {} are not a range of axis {} of shape {}",
          param_.begin, params::Print(param_.end), axis, data.ToString());
  }
  std::vector<AxisRange> ranges = WholeOf(data);
  ranges[static_cast<size_t>(axis)] = {begin, end - begin, 1};
  return ranges;
}

std::vector<AxisRange> SliceLikeProperty::RangesOf(const std::vector<TShape>& in) const {
  const TShape &data = in[0], &like = in[1];
  std::vector<AxisRange> ranges = WholeOf(data);
  const auto take = [&](int axis) {
    if (like[axis] > data[axis]) {
      Throw(
          ErrorKind::kConfig,
          "slice_like: axis {} of data of shape {} is shorter than that of shape_like of shape {}",
          axis, data.ToString(), like.ToString());
    }
    ranges[static_cast<size_t>(axis)].length = like[axis];
  };
  if (param_.axes.ndim() == 0) {
    if (data.ndim() != like.ndim()) {
      Throw(ErrorKind::kConfig,
            "slice_like: data {} and shape_like {} must have equally many axes; otherwise give "
            "axes",
            data.ToString(), like.ToString());
    }
    for (int i = 0; i < data.ndim(); ++i) take(i);
  }
  for (const int64_t given : param_.axes)
    take(CheckAxis(CheckAxis(given, data, "slice_like"), like, "slice_like"));
  return ranges;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(slice, registry) {
  registry.AddProperty("slice", {"crop"},
                       [] { return std::make_unique<mxtrain::SliceProperty>(); });
  registry.AddProperty("slice_axis", {},
                       [] { return std::make_unique<mxtrain::SliceAxisProperty>(); });
  registry.AddProperty("slice_like", {},
                       [] { return std::make_unique<mxtrain::SliceLikeProperty>(); });
}
