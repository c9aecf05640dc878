// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/window.h"

namespace mxtrain {
namespace {

constexpr int64_t kLongest = int64_t{1} << 30;  // products and sums of entries stay within int64_t

}  // namespace

TShape WindowParam(const TShape& given, int axes, int64_t fallback, int64_t least,
                   const std::string& who, const char* what) {
  TShape result = TShape::OfRank(axes);
  const bool empty = given.ndim() <= 0;
  if (!empty && given.ndim() != axes) {
    Throw(ErrorKind::kConfig, "{}: {} = {} has {} {}, but the kernel has {} {}", who, what,
          given.ToTuple(), given.ndim(), given.ndim() == 1 ? "entry" : "entries", axes,
          axes == 1 ? "axis" : "axes");
  }
  for (int i = 0; i < axes; ++i) {
    result[i] = empty ? fallback : given[i];
    if (result[i] < least)
      Throw(ErrorKind::kConfig, "{}: {} = {} has an entry below {}", who, what, given.ToTuple(),
            least);
    if (result[i] > kLongest)
      Throw(ErrorKind::kConfig, "{}: {} = {} has an entry above {}", who, what, given.ToTuple(),
            kLongest);
  }
  return result;
}

bool TakeSamePad(Kwargs* kwargs) {
  return std::erase_if(*kwargs, [](const auto& item) {
           return item.first == "pad" && item.second == kSamePad;
         }) > 0;
}

Kwargs WithSamePad(Kwargs kwargs) {
  for (auto& [key, value] : kwargs) {
    if (key == "pad") value = kSamePad;
  }
  return kwargs;
}

std::vector<FieldInfo> WithSamePadAsChoice(std::vector<FieldInfo> fields) {
  for (FieldInfo& field : fields) {
    if (field.name == "pad") field.choices = {kSamePad};
  }
  return fields;
}

}  // namespace mxtrain
