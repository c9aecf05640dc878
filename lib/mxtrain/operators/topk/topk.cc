// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/topk/topk.h"

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/exact_integers.h"
#include "mxtrain/operator/gather_property.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

template <typename P>
void DeclareOrder(Fields<P>& f, bool ascend) {
  f.Add("axis", &P::axis)
      .Default(-1)
      .Help("axis to order along, negative from the end; None: the whole array");
  f.Add("is_ascend", &P::is_ascend).Default(ascend).Help("smallest first");
}
template <typename P>
void DeclareType(Fields<P>& f) {
  f.Add("dtype", &P::dtype).Default(DType::kFloat32).Help("type of indices");
}
template <typename P>
Ordering OrderOf(const P& param) {
  Ordering ordering;
  ordering.axis = param.axis;
  ordering.ascend = param.is_ascend;
  return ordering;
}

// `what`: "axis 1 of [2, 3]".
void CheckLength(const Ordering& ordering, const std::string& who, int64_t length,
                 const std::string& what) {
  if (ordering.k > length) {
    Throw(ErrorKind::kConfig, "{}: k = {}, but {} has only {}", who, ordering.k, what,
          Counted(length, "element"));
  }
  if (ordering.indices >= 0 && length - 1 > LargestExact(ordering.dtype)) {
    Throw(ErrorKind::kConfig,
          "{}: {} has {} elements, whose indices are not exact in {}; set dtype to int32 or int64",
          who, what, length, NameOf(ordering.dtype));
  }
}

}  // namespace

void TopKParam::Declare(Fields<TopKParam>& f) {
  using P = TopKParam;
  DeclareOrder(f, false);
  f.Add("k", &P::k).Default(1).Help("how many elements; below 1: all");
  f.Add("ret_typ", &P::ret_typ)
      .Enum({{"value", kTopKValue},
             {"indices", kTopKIndices},
             {"mask", kTopKMask},
             {"both", kTopKBoth}})
      .Default(kTopKIndices)
      .Help("what to return; both: values, then indices");
  DeclareType(f);
}
void SortParam::Declare(Fields<SortParam>& f) {
  DeclareOrder(f, true);
}
void ArgsortParam::Declare(Fields<ArgsortParam>& f) {
  DeclareOrder(f, true);
  DeclareType(f);
}

Ordering TopKProperty::ordering() const {
  Ordering ordering = OrderOf(param_);
  ordering.k = param_.k < 1 ? 0 : param_.k;
  ordering.dtype = param_.dtype;
  const int result = param_.ret_typ;
  if (result == kTopKValue || result == kTopKBoth) ordering.values = 0;
  if (result == kTopKIndices) ordering.indices = 0;
  if (result == kTopKBoth) ordering.indices = 1;
  if (result == kTopKMask) ordering.mask = 0;
  return ordering;
}
Ordering SortProperty::ordering() const {
  Ordering ordering = OrderOf(param_);
  ordering.values = 0;
  return ordering;
}
Ordering ArgsortProperty::ordering() const {
  Ordering ordering = OrderOf(param_);
  ordering.indices = 0;
  ordering.dtype = param_.dtype;
  return ordering;
}

bool InferOrderingShape(const Ordering& ordering, const std::string& who, TShape* data,
                        std::vector<TShape>* out) {
  if (!ordering.axis) {
    if (ordering.mask >= 0) {
      UnifyShape((*out)[0], data, who, "output");
      ExpectShape(*data, &(*out)[0], who, "output");
    }
    if (!data->known()) return false;
    CheckLength(ordering, who, data->Size(), data->ToString());
    if (ordering.mask >= 0) return true;
    for (TShape& output : *out)
      ExpectShape(TShape{ordering.Count(data->Size())}, &output, who, "output");
    return true;
  }
  for (const TShape& output : *out) {
    if (!data->has_rank() && output.has_rank()) *data = TShape::OfRank(output.ndim());
  }
  if (!data->has_rank()) return false;
  const int axis = CheckAxis(*ordering.axis, *data, who);
  const bool keeps_length = ordering.mask >= 0 || ordering.k == 0;
  // Twice: what one output knows, another may need.
  for (int round = 0; round < 2; ++round) {
    for (TShape& output : *out) {
      TShape expected = *data;
      if (!keeps_length) expected[axis] = ordering.k;
      ExpectShape(expected, &output, who, "output");
      expected = output;
      if (!keeps_length) expected[axis] = (*data)[axis];
      *data = expected;
    }
  }
  if ((*data)[axis] != TShape::kUnknown) {
    CheckLength(ordering, who, (*data)[axis],
                format("axis {} of {}", *ordering.axis, data->ToString()));
  }
  return data->known();
}

bool InferOrderingType(const Ordering& ordering, const std::string& who, DType* data,
                       std::vector<DType>* out) {
  for (size_t i = 0; i < out->size(); ++i) {
    DType& output = (*out)[i];
    if (static_cast<int>(i) == ordering.indices) {
      UnifyType(ordering.dtype, &output, who, "output of indices");
    } else {
      if (*data == DType::kUnknown) *data = output;
      if (*data != DType::kUnknown) UnifyType(*data, &output, who, "output");
    }
  }
  return *data != DType::kUnknown;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(topk, registry) {
  using namespace mxtrain;
  registry.AddProperty("topk", {}, [] { return std::make_unique<TopKProperty>(); });
  registry.AddProperty("sort", {}, [] { return std::make_unique<SortProperty>(); });
  registry.AddProperty("argsort", {}, [] { return std::make_unique<ArgsortProperty>(); });
}
