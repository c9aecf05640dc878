// SPDX-License-Identifier: Apache-2.0
#pragma once
// topk, sort and argsort order the elements of every column along an axis; without an axis the
// array counts as one row.
//
//   topk      the first k elements: their indices, values, both, or a mask of ones at their places
//   sort      all values
//   argsort   the indices of all values
//
// Ascending or descending; equal elements in the order of their indices (0 equals -0); NaN last in
// both directions. Indices have the type `dtype`, which must represent all of them exactly. The
// gradient of a value goes to where it came from; indices and masks have the gradient zero.
#include <optional>

#include "mxtrain/operator/property.h"

namespace mxtrain {

// What each of the operators computes.
struct Ordering {
  std::optional<int> axis;
  int64_t k = 0;  // 0: all
  bool ascend = true;
  DType dtype = DType::kFloat32;             // of indices
  int values = -1, indices = -1, mask = -1;  // the outputs with these; -1: none

  int NumOutputs() const { return (values >= 0) + (indices >= 0) + (mask >= 0); }
  int64_t Count(int64_t length) const { return k > 0 ? k : length; }
};
bool InferOrderingShape(const Ordering& ordering, const std::string& who, TShape* data,
                        std::vector<TShape>* out);
bool InferOrderingType(const Ordering& ordering, const std::string& who, DType* data,
                       std::vector<DType>* out);

template <typename P>
class OrderingProperty : public PropertyWithParam<P> {
 public:
  virtual Ordering ordering() const = 0;

  std::vector<std::string> ListOutputs() const override {
    if (ordering().NumOutputs() == 2) return {"output0", "output1"};
    return {"output"};
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferOrderingShape(ordering(), this->TypeString(), &(*in)[0], out);
  }
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>*) const override {
    return InferOrderingType(ordering(), this->TypeString(), &(*in)[0], out);
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
};

enum TopKResult : int { kTopKIndices, kTopKValue, kTopKMask, kTopKBoth };

struct TopKParam : Parameter<TopKParam> {
  std::optional<int> axis;
  int64_t k;
  int ret_typ;
  bool is_ascend;
  DType dtype;
  static void Declare(Fields<TopKParam>& f);
};
class TopKProperty final : public OrderingProperty<TopKParam> {
 public:
  std::string TypeString() const override { return "topk"; }
  std::string Description() const override { return "the first k elements of an order"; }
  MXTRAIN_API Ordering ordering() const override;
};

struct SortParam : Parameter<SortParam> {
  std::optional<int> axis;
  bool is_ascend;
  static void Declare(Fields<SortParam>& f);
};
class SortProperty final : public OrderingProperty<SortParam> {
 public:
  std::string TypeString() const override { return "sort"; }
  std::string Description() const override { return "the elements in ascending order"; }
  MXTRAIN_API Ordering ordering() const override;
};

struct ArgsortParam : Parameter<ArgsortParam> {
  std::optional<int> axis;
  bool is_ascend;
  DType dtype;
  static void Declare(Fields<ArgsortParam>& f);
};
class ArgsortProperty final : public OrderingProperty<ArgsortParam> {
 public:
  std::string TypeString() const override { return "argsort"; }
  std::string Description() const override { return "the indices that would sort the array"; }
  MXTRAIN_API Ordering ordering() const override;
};

}  // namespace mxtrain
