// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/crop/crop.h"

namespace mxtrain {

std::vector<std::string> CropProperty::ListArguments() const {
  if (param_.num_args == 2) return {"arg0", "arg1"};
  return {"arg0"};
}

void CropProperty::Check() {
  const auto check = [](const TShape& pair, int64_t least, const char* key) {
    if (pair.ndim() == 2 && pair[0] >= least && pair[1] >= least) return;
    Throw(ErrorKind::kConfig, "Crop: {} = {} must be two numbers, each at least {}", key,
          pair.ToTuple(), least);
  };
  if (!param_.center_crop) check(param_.offset, 0, "offset");
  if (param_.num_args == 1) check(param_.h_w, 1, "h_w");
}

std::vector<AxisRange> CropProperty::RangesOf(const std::vector<TShape>& in) const {
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].ndim() != 4) {
      Throw(ErrorKind::kConfig, "Crop: arg{} has shape {}, but images have 4 axes, [N, C, H, W]", i,
            in[i].ToString());
    }
  }
  const TShape& data = in[0];
  std::vector<AxisRange> ranges = {{0, data[0], 1}, {0, data[1], 1}};
  for (int i = 0; i < 2; ++i) {
    const int64_t whole = data[2 + i], length = in.size() == 2 ? in[1][2 + i] : param_.h_w[i],
                  begin = param_.center_crop ? (whole - length) / 2 : param_.offset[i];
    if (length > whole || begin > whole - length) {
      Throw(ErrorKind::kConfig, "Crop: {} {} from {} {} on exceed images of shape {}", length,
            i == 0 ? "rows" : "columns", i == 0 ? "row" : "column", begin, data.ToString());
    }
    ranges.push_back({begin, length, 1});
  }
  return ranges;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(crop, registry) {
  registry.AddProperty("Crop", {}, [] { return std::make_unique<mxtrain::CropProperty>(); });
}
