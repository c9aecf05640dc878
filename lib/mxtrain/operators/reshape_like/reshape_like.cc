// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/reshape_like/reshape_like.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

// A range of the axes of `shape`, as Python's slices name it.
struct Range {
  int begin, end;
};
Range RangeOf(const TShape& shape, std::optional<int> begin, std::optional<int> end,
              const char* which) {
  const auto place = [&](int axis) { return axis < 0 ? axis + shape.ndim() : axis; };
  const Range range{place(begin.value_or(0)), end ? place(*end) : shape.ndim()};
  if (range.begin < 0 || range.begin > range.end || range.end > shape.ndim()) {
    Throw(ErrorKind::kConfig,
          "reshape_like: {0}_begin = {1} and {0}_end = {2} are not a range of axes of shape {3}",
          which, params::Print(begin), params::Print(end), shape.ToString());
  }
  return range;
}

}  // namespace

bool ReshapeLikeProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                     std::vector<TShape>*) const {
  const TShape &lhs = (*in)[0], &rhs = (*in)[1];
  if (!lhs.known() || !rhs.known()) return false;
  const Range replaced = RangeOf(lhs, param_.lhs_begin, param_.lhs_end, "lhs"),
              taken = RangeOf(rhs, param_.rhs_begin, param_.rhs_end, "rhs");
  std::vector<int64_t> lengths(lhs.begin(), lhs.begin() + replaced.begin);
  lengths.insert(lengths.end(), rhs.begin() + taken.begin, rhs.begin() + taken.end);
  lengths.insert(lengths.end(), lhs.begin() + replaced.end, lhs.end());
  const TShape result(lengths);
  if (result.Size() != lhs.Size()) {
    Throw(ErrorKind::kConfig,
          "reshape_like: lhs has shape {}, which does not have as many elements as {}",
          lhs.ToString(), result.ToString());
  }
  UnifyShape(result, &(*out)[0], TypeString(), "output");
  return true;
}

bool ReshapeLikeProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                    std::vector<DType>*) const {
  std::vector<DType> data = {(*in)[0]}, none;
  const bool known = OperatorProperty::InferType(&data, out, &none);
  (*in)[0] = data[0];
  if ((*in)[1] == DType::kUnknown) (*in)[1] = data[0];
  return known;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(reshape_like, registry) {
  registry.AddProperty("reshape_like", {},
                       [] { return std::make_unique<mxtrain::ReshapeLikeProperty>(); });
}
