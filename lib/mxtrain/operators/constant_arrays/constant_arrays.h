// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays that follow from parameters alone:
//   _zeros, _ones, _full   one value everywhere
//   _arange                start, start + step, ... below stop (above it for a negative step), each
//                          `repeat` times in a row; without stop 0 .. start
//   _linspace              num numbers from start to stop, the latter only if `endpoint`
//   _eye                   [N, M] with ones on the k-th diagonal, k > 0 being above the main one
// or from those and the shape of another array, which gives their type too unless `dtype` does:
//   full_like              one value everywhere
//   arange_like            start, start + step, ... over the whole array, or as many as an axis has
// Numbers are computed in double and rounded or, for integers, truncated.
#include <algorithm>
#include <climits>
#include <optional>

#include "mxtrain/operator/asked_shape.h"
#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/property.h"

namespace mxtrain::constant_arrays {

struct TypeParam {
  DType dtype;
  template <typename P>
  static void DeclareType(Fields<P>& f) {
    f.Add("dtype", &P::dtype).Default(DType::kFloat32).Help("element type of the result");
    f.Ignored("ctx", "the device is that of the graph");
  }
};

// Element i is start + (i / repeat) * step.
struct Ramp {
  double start = 0, step = 0;
  int64_t repeat = 1;
  MXTRAIN_HD double operator()(int64_t i) const {
    return start + step * static_cast<double>(i / repeat);
  }
};
struct Diagonal {
  int64_t columns = 1, k = 0;
  MXTRAIN_HD double operator()(int64_t i) const { return i / columns + k == i % columns ? 1 : 0; }
};

// P::ShapeOf(): of the result; unknown: it is inferred from the readers. P::ElementsOf(shape): a
// function of the index.
struct ShapedParam : TypeParam {
  TShape shape;
  TShape ShapeOf() const { return AskedShape(shape); }
  template <typename P>
  static void DeclareArray(Fields<P>& f) {
    f.Add("shape", &P::shape)
        .Default(TShape(std::span<const int64_t>()))
        .Help("shape of the result; () and lengths of 0 are inferred from its readers");
    DeclareType(f);
  }
};
template <int kValue>
struct ConstantParam : ShapedParam, Parameter<ConstantParam<kValue>> {
  static void Declare(Fields<ConstantParam>& f) { DeclareArray(f); }
  Ramp ElementsOf(const TShape&) const { return {kValue, 0, 1}; }
};
struct FullParam : ShapedParam, Parameter<FullParam> {
  double value;
  static void Declare(Fields<FullParam>& f) {
    f.Add("value", &FullParam::value).Required().AnyNumber().Help("every element");
    DeclareArray(f);
  }
  Ramp ElementsOf(const TShape&) const { return {value, 0, 1}; }
};

struct ArangeParam : TypeParam, Parameter<ArangeParam> {
  double start, step;
  std::optional<double> stop;
  int64_t repeat;
  bool infer_range;
  static void Declare(Fields<ArangeParam>& f) {
    f.Add("start", &ArangeParam::start)
        .Required()
        .Help("the first number; without stop and infer_range, where the numbers from 0 end");
    f.Add("stop", &ArangeParam::stop)
        .Default(std::nullopt)
        .Help("where the numbers end; not one of them");
    f.Add("step", &ArangeParam::step).Default(1).Help("distance of the numbers");
    f.Add("repeat", &ArangeParam::repeat)
        .Range(1)
        .Default(1)
        .Help("how often each number occurs, in a row");
    f.Add("infer_range", &ArangeParam::infer_range)
        .Default(false)
        .Help("without stop: as many numbers as the readers take");
    DeclareType(f);
  }
  TShape ShapeOf() const;
  Ramp ElementsOf(const TShape&) const { return {stop || infer_range ? start : 0, step, repeat}; }
};

struct LinspaceParam : TypeParam, Parameter<LinspaceParam> {
  double start, stop;
  int64_t num;
  bool endpoint;
  static void Declare(Fields<LinspaceParam>& f) {
    f.Add("start", &LinspaceParam::start).Required().Help("the first number");
    f.Add("stop", &LinspaceParam::stop).Required().Help("the last number, or the one after it");
    f.Add("num", &LinspaceParam::num).Required().Range(0).Help("how many numbers");
    f.Add("endpoint", &LinspaceParam::endpoint).Default(true).Help("whether stop is the last one");
    DeclareType(f);
  }
  TShape ShapeOf() const { return {num}; }
  Ramp ElementsOf(const TShape&) const {
    const int64_t steps = endpoint ? num - 1 : num;
    return {start, steps > 0 ? (stop - start) / static_cast<double>(steps) : 0, 1};
  }
};

struct EyeParam : TypeParam, Parameter<EyeParam> {
  int64_t N, M, k;
  static void Declare(Fields<EyeParam>& f) {
    f.Add("N", &EyeParam::N).Required().Range(0).Help("rows");
    f.Add("M", &EyeParam::M).Range(0).Default(0).Help("columns; 0: as many as rows");
    f.Add("k", &EyeParam::k)
        .Range(INT_MIN, INT_MAX)
        .Default(0)
        .Help("which diagonal: above 0 to the right");
    DeclareType(f);
  }
  int64_t columns() const { return M > 0 ? M : N; }
  TShape ShapeOf() const { return {N, columns()}; }
  Diagonal ElementsOf(const TShape&) const { return {std::max<int64_t>(columns(), 1), k}; }
};

// P::axis: none if the result has the shape of the data.
struct FullLikeParam : Parameter<FullLikeParam> {
  static constexpr std::optional<int> axis = std::nullopt;
  double fill_value;
  std::optional<DType> dtype;
  static void Declare(Fields<FullLikeParam>& f) {
    f.Add("fill_value", &FullLikeParam::fill_value).Required().AnyNumber().Help("every element");
    f.Add("dtype", &FullLikeParam::dtype)
        .Default(std::nullopt)
        .Help("element type of the result; None: that of the data");
    f.Ignored("ctx", "the device is that of the graph");
  }
  Ramp ElementsOf(const TShape&) const { return {fill_value, 0, 1}; }
};
struct ArangeLikeParam : Parameter<ArangeLikeParam> {
  static constexpr std::optional<DType> dtype = std::nullopt;
  double start, step;
  int64_t repeat;
  std::optional<int> axis;
  static void Declare(Fields<ArangeLikeParam>& f) {
    f.Add("start", &ArangeLikeParam::start).Default(0).Help("the first number");
    f.Add("step", &ArangeLikeParam::step).Default(1).Help("distance of the numbers");
    f.Add("repeat", &ArangeLikeParam::repeat)
        .Range(1)
        .Default(1)
        .Help("how often each number occurs, in a row");
    f.Add("axis", &ArangeLikeParam::axis)
        .Default(std::nullopt)
        .Help("the axis whose length the result has; None: the shape of the data");
    f.Ignored("ctx", "the device is that of the graph");
  }
  Ramp ElementsOf(const TShape&) const { return {start, step, repeat}; }
};

template <typename P>
class LikeProperty final : public PropertyWithParam<P> {
 public:
  LikeProperty(const char* name, const char* description)
      : name_(name), description_(description) {}
  std::string TypeString() const override { return name_; }
  std::string Description() const override { return description_; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    if (!this->param_.axis) return InferSameShape(*this, in, out);
    const TShape& data = (*in)[0];
    if (!data.known()) return false;
    UnifyShape({data[CheckAxis(*this->param_.axis, data, name_)]}, &(*out)[0], name_, "output");
    return true;
  }
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override {
    if (!this->param_.dtype) return OperatorProperty::InferType(in, out, aux);
    UnifyType(*this->param_.dtype, &(*out)[0], name_, "output");
    return (*in)[0] != DType::kUnknown;
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;  // not a loss
  }
  bool HasGradient(int) const override { return false; }

 private:
  const char *name_, *description_;
};

template <typename P>
class ConstantProperty final : public PropertyWithParam<P> {
 public:
  ConstantProperty(const char* name, const char* description)
      : name_(name), description_(description) {}
  std::string TypeString() const override { return name_; }
  std::string Description() const override { return description_; }
  std::vector<std::string> ListArguments() const override { return {}; }
  bool InferShape(std::vector<TShape>*, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    if (const TShape shape = this->param_.ShapeOf(); shape.has_rank())
      UnifyShape(shape, &(*out)[0], name_, "output");
    return (*out)[0].known();
  }
  bool InferType(std::vector<DType>*, std::vector<DType>* out, std::vector<DType>*) const override {
    UnifyType(this->param_.dtype, &(*out)[0], name_, "output");
    return true;
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;  // not a loss
  }

 protected:
  void Check() override {
    if constexpr (requires { this->param_.infer_range; }) {
      if (this->param_.step == 0) Throw(ErrorKind::kConfig, "{}: step must not be 0", name_);
    }
  }

 private:
  const char *name_, *description_;
};

}  // namespace mxtrain::constant_arrays
