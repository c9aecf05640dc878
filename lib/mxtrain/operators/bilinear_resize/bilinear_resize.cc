// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/bilinear_resize/bilinear_resize.h"

#include <algorithm>

#include "mxtrain/operator/images.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

constexpr int64_t kLongestAxis = int64_t{1} << 24;  // lists of weights are made for a whole axis

}  // namespace

void BilinearResizeParam::Declare(Fields<BilinearResizeParam>& f) {
  using P = BilinearResizeParam;
  f.Add("height", &P::height).Default(1).Range(1, 10000).Help("output height, of mode size");
  f.Add("width", &P::width).Default(1).Range(1, 10000).Help("output width, of mode size");
  f.Add("scale_height", &P::scale_height)
      .Default(std::nullopt)
      .RangeAbove(0)
      .Help("factor of the height, of modes size and odd_scale");
  f.Add("scale_width", &P::scale_width)
      .Default(std::nullopt)
      .RangeAbove(0)
      .Help("factor of the width, of modes size and odd_scale");
  f.Add("mode", &P::mode)
      .Enum({{"size", kSize},
             {"odd_scale", kOddScale},
             {"like", kLike},
             {"to_even_down", kToEvenDown},
             {"to_even_up", kToEvenUp},
             {"to_odd_down", kToOddDown},
             {"to_odd_up", kToOddUp}})
      .Default(kSize)
      .Help(
          "output size: size: height and width, or the input's times a factor; odd_scale: the "
          "same, but (size - 1) scale + 1 of odd sizes; like: that of a second input; to_...: "
          "the next even or odd size");
  f.Add("align_corners", &P::align_corners)
      .Default(true)
      .Help("corner elements keep their values; else the corners of images coincide");
}

void BilinearResizeProperty::Init(const Kwargs& kwargs) {
  PropertyWithParam::Init(kwargs);
  if (param_.mode != BilinearResizeParam::kSize) return;
  const auto require = [&](const std::string& size, const std::optional<float>& scale) {
    const bool given = scale || std::any_of(kwargs.begin(), kwargs.end(),
                                            [&](const auto& item) { return item.first == size; });
    if (!given)
      Throw(ErrorKind::kConfig, "{}: mode = size needs {} or scale_{}", TypeString(), size, size);
  };
  require("height", param_.scale_height);
  require("width", param_.scale_width);
}

void BilinearResizeProperty::Check() {
  if (param_.mode == BilinearResizeParam::kOddScale &&
      (!param_.scale_height || !param_.scale_width)) {
    Throw(ErrorKind::kConfig, "{}: mode = odd_scale needs scale_height and scale_width",
          TypeString());
  }
}

std::vector<std::string> BilinearResizeProperty::ListArguments() const {
  if (param_.mode == BilinearResizeParam::kLike) return {"data", "like"};
  return {"data"};
}

int64_t BilinearResizeProperty::Target(int axis, int64_t size) const {
  const std::optional<float>& scale = axis == 2 ? param_.scale_height : param_.scale_width;
  const auto scaled = [&](int64_t length) {
    const float result = *scale * static_cast<float>(length);  // in float32, as MXNet does
    return result > static_cast<float>(kLongestAxis) ? kLongestAxis + 1
                                                     : static_cast<int64_t>(result);
  };
  const int64_t odd = size % 2;
  switch (param_.mode) {
    case BilinearResizeParam::kSize:
      return scale ? scaled(size) : axis == 2 ? param_.height : param_.width;
    case BilinearResizeParam::kOddScale:
      return odd ? scaled(size - 1) + 1 : scaled(size);
    case BilinearResizeParam::kToEvenDown:
      return size - odd;
    case BilinearResizeParam::kToEvenUp:
      return size + odd;
    case BilinearResizeParam::kToOddDown:
      return size - 1 + odd;
    default:
      return size + 1 - odd;
  }
}

bool BilinearResizeProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                        std::vector<TShape>*) const {
  constexpr int64_t kUnknown = TShape::kUnknown;
  const bool like = param_.mode == BilinearResizeParam::kLike;
  TShape &data = (*in)[0], &output = (*out)[0];
  UnifyImages(&data, TypeString(), "data");
  UnifyShape(TShape{data[0], data[1], kUnknown, kUnknown}, &output, TypeString(), "output");
  data[0] = output[0];
  data[1] = output[1];
  if (like) UnifyImages(&(*in)[1], TypeString(), "like");
  for (int axis = 2; axis < 4; ++axis) {
    int64_t target = kUnknown;
    if (like) {
      int64_t& length = (*in)[1][axis];
      if (length == kUnknown) length = output[axis];
      target = length;
    } else if (data[axis] != kUnknown) {
      target = Target(axis, data[axis]);
    }
    if (data[axis] == kUnknown || (like && target == kUnknown)) continue;
    if (data[axis] < 1 || data[axis] > kLongestAxis || target < 1 || target > kLongestAxis) {
      Throw(ErrorKind::kConfig,
            "{}: axis {} of data {} would have length {} in the output; lengths from 1 to {} can "
            "be resized",
            TypeString(), axis, data.ToString(), target, kLongestAxis);
    }
    TShape expected = TShape::OfRank(4);
    expected[axis] = target;
    UnifyShape(expected, &output, TypeString(), "output");
  }
  return data.known() && output.known() && in->back().known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(bilinear_resize, registry) {
  registry.AddProperty("BilinearResize2D", {"_contrib_BilinearResize2D"},
                       [] { return std::make_unique<mxtrain::BilinearResizeProperty>(); });
}
