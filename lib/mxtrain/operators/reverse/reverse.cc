// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/reverse/reverse.h"

#include "mxtrain/operator/axes.h"

namespace mxtrain {

std::vector<AxisRange> ReverseProperty::RangesOf(const std::vector<TShape>& in) const {
  const TShape& data = in[0];
  std::vector<AxisRange> ranges;
  for (const int64_t length : data) ranges.push_back({0, length, 1});
  for (const int64_t given : param_.axis) {
    AxisRange& range = ranges[static_cast<size_t>(CheckAxis(given, data, "reverse"))];
    if (range.step < 0) Throw(ErrorKind::kConfig, "reverse: axis {} is repeated", given);
    range = {range.length - 1, range.length, -1};
  }
  return ranges;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(reverse, registry) {
  registry.AddProperty("reverse", {"flip"},
                       [] { return std::make_unique<mxtrain::ReverseProperty>(); });
}
