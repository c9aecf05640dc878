// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/pad/pad.h"

#include <algorithm>
#include <cmath>

namespace mxtrain {
namespace {

// Indices [at, at + of.length) of an axis of the output are the range `of` of the data.
struct Segment {
  int64_t at = 0;
  AxisRange of;
};

}  // namespace

void PadProperty::Check() {
  const std::vector<double>& given = param_.pad_width;
  const bool whole = std::all_of(given.begin(), given.end(), [](double width) {
    return width == std::floor(width) && width <= static_cast<double>(TShape::kMaxSize);
  });
  if (!whole || given.size() % 2 != 0) {
    Throw(ErrorKind::kConfig, "Pad: pad_width = {} must be two whole numbers for every axis",
          params::Print(given));
  }
  widths_.clear();
  for (size_t i = 0; i < given.size(); i += 2)
    widths_.push_back({static_cast<int64_t>(given[i]), static_cast<int64_t>(given[i + 1])});
}

bool PadProperty::IsIdentity() const {
  return std::all_of(widths_.begin(), widths_.end(),
                     [](const Width& width) { return width.before == 0 && width.after == 0; });
}

TShape PadProperty::OutShape(const std::vector<TShape>& in) const {
  const TShape& data = in[0];
  if (static_cast<int>(widths_.size()) != data.ndim()) {
    Throw(ErrorKind::kConfig,
          "Pad: pad_width = {} must have two numbers for each of the {} axes of data of shape {}",
          params::Print(param_.pad_width), data.ndim(), data.ToString());
  }
  TShape padded = data;
  for (int i = 0; i < data.ndim(); ++i) {
    const Width& width = widths_[static_cast<size_t>(i)];
    const int64_t most = std::max(width.before, width.after);
    // What an axis can be extended by: from nothing, nothing.
    const int64_t limit = param_.mode == kPadConstant ? TShape::kMaxSize
                          : data[i] == 0              ? 0
                          : param_.mode == kPadEdge   ? TShape::kMaxSize
                                                      : data[i] - 1;
    if (most > limit) {
      Throw(ErrorKind::kConfig,
            "Pad: mode {} cannot add {} to axis {} of data of shape {}; at most {}",
            param_.mode == kPadEdge ? "edge" : "reflect", Counted(most, "element"), i,
            data.ToString(), limit);
    }
    padded[i] += width.before + width.after;
  }
  return padded;
}

MoveList PadProperty::MovesOf(std::span<const TensorSpec> in,
                              std::span<const TensorSpec> out) const {
  const TShape &data = in[0].shape, &padded = out[0].shape;
  const StridedView from = StridedView::Whole(data), to = StridedView::Whole(padded);
  MoveList list;
  list.fill = param_.constant_value;
  if (param_.mode == kPadConstant) {
    StridedView inside = to;
    TShape before = data;
    for (int i = 0; i < data.ndim(); ++i) {
      before[i] = widths_[static_cast<size_t>(i)].before;
      inside.Take(i, before[i], data[i]);
    }
    list.Add(0, from, 0, inside);
    for (const StridedView& part : Outside(padded, before, data)) list.Fill(0, part);
    return list;
  }

  // Every combination of the segments of all axes, that of the data itself first.
  std::vector<std::vector<Segment>> segments;
  for (int i = 0; i < data.ndim(); ++i) {
    const auto [before, after] = widths_[static_cast<size_t>(i)];
    const int64_t last = data[i] - 1;
    const bool edge = param_.mode == kPadEdge;
    std::vector<Segment>& axis = segments.emplace_back();
    axis.push_back({before, {0, data[i], 1}});
    if (before > 0)
      axis.push_back({0, edge ? AxisRange{0, before, 0} : AxisRange{before, before, -1}});
    if (after > 0) {
      axis.push_back(
          {before + data[i], edge ? AxisRange{last, after, 0} : AxisRange{last - 1, after, -1}});
    }
  }
  list.overlap = true;
  std::vector<size_t> chosen(segments.size());
  for (int i = 0; i >= 0;) {
    StridedView part = from, place = to;
    for (int k = 0; k < data.ndim(); ++k) {
      const Segment& segment = segments[static_cast<size_t>(k)][chosen[static_cast<size_t>(k)]];
      part.Take(k, segment.of.begin, segment.of.length, segment.of.step);
      place.Take(k, segment.at, segment.of.length);
    }
    list.Add(0, part, 0, place);
    for (i = data.ndim() - 1; i >= 0; --i) {
      const auto axis = static_cast<size_t>(i);
      if (++chosen[axis] < segments[axis].size()) break;
      chosen[axis] = 0;
    }
  }
  return list;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(pad, registry) {
  registry.AddProperty("Pad", {"pad"}, [] { return std::make_unique<mxtrain::PadProperty>(); });
}
