// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/layer_norm/layer_norm.h"

#include "mxtrain/base/format.h"
#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

template <typename P>
void DeclareEps(Fields<P>& f, double value, const char* help) {
  f.Add("eps", &P::eps).Default(value).Range(0).Help(help);
}

struct LayerNormParam : Parameter<LayerNormParam> {
  int axis;
  double eps;
  bool output_mean_var;
  static void Declare(Fields<LayerNormParam>& f) {
    f.Add("axis", &LayerNormParam::axis)
        .Default(-1)
        .Help("axis to normalize; negative counts from the end");
    DeclareEps(f, 1e-5, "added to the variance");
    f.Add("output_mean_var", &LayerNormParam::output_mean_var)
        .Default(false)
        .Help("show mean and standard deviation as outputs");
  }
};

struct RMSNormParam : Parameter<RMSNormParam> {
  double eps;
  static void Declare(Fields<RMSNormParam>& f) {
    DeclareEps(f, 1e-6, "added to the mean of the squares");
  }
};

struct NormalizeRowsParam : Parameter<NormalizeRowsParam> {
  int num_axes;
  double eps;
  static void Declare(Fields<NormalizeRowsParam>& f) {
    f.Add("num_axes", &NormalizeRowsParam::num_axes)
        .Default(1)
        .Range(1)
        .Help("axes to normalize together, the last ones");
    DeclareEps(f, 1e-5, "added to the variance");
  }
};

RowView ViewAlong(const TShape& data, int axis) {
  return {data.Product(0, axis), data[axis], data.Product(axis + 1, data.ndim())};
}

template <typename P>
class RowNormOf : public RowNormProperty {
 public:
  void Init(const Kwargs& kwargs) override { param_.Init(kwargs, TypeString()); }
  Kwargs GetParams() const override { return param_.ToKwargs(); }
  std::vector<FieldInfo> DescribeParams() const override { return P::Describe(); }
  double eps() const override { return param_.eps; }

 protected:
  P param_;
};

class LayerNormProperty final : public RowNormOf<LayerNormParam> {
 public:
  std::string TypeString() const override { return "LayerNorm"; }
  std::string Description() const override {
    return "layer normalization: mean 0 and variance 1 along an axis, then gamma and beta";
  }
  RowNorm norm() const override { return RowNorm::kLayer; }
  RowView View(const TShape& data) const override { return ViewAlong(data, Axis(data.ndim())); }
  int NumVisibleOutputs() const override { return param_.output_mean_var ? 3 : 1; }

 private:
  int Axis(int ndim) const override {
    return CheckAxis(param_.axis, ndim, TypeString(), "axis", "data");
  }
};

class RMSNormProperty final : public RowNormOf<RMSNormParam> {
 public:
  std::string TypeString() const override { return "RMSNorm"; }
  std::string Description() const override {
    return "divides by the root of the mean square along the last axis, then multiplies by gamma";
  }
  RowNorm norm() const override { return RowNorm::kRootMeanSquare; }
  RowView View(const TShape& data) const override { return ViewAlong(data, Axis(data.ndim())); }

 private:
  int Axis(int ndim) const override { return CheckAxis(-1, ndim, TypeString(), "axis", "data"); }
};

class NormalizeRowsProperty final : public RowNormOf<NormalizeRowsParam> {
 public:
  std::string TypeString() const override { return "_NormalizeRows"; }
  std::string Description() const override {
    return "mean 0 and variance 1 over the last axes (part of other operators)";
  }
  RowNorm norm() const override { return RowNorm::kPlain; }
  RowView View(const TShape& data) const override {
    const int first = Axis(data.ndim());
    return {data.Product(0, first), data.Product(first, data.ndim()), 1};
  }

 private:
  int Axis(int ndim) const override {
    if (param_.num_axes > ndim) {
      Throw(ErrorKind::kConfig, "_NormalizeRows: num_axes = {}, but the data have {} axes",
            param_.num_axes, ndim);
    }
    return ndim - param_.num_axes;
  }
};

}  // namespace

std::vector<std::string> RowNormProperty::ListArguments() const {
  std::vector<std::string> names = {"data"};
  if (HasGamma(norm())) names.push_back("gamma");
  if (HasBeta(norm())) names.push_back("beta");
  return names;
}

std::vector<std::string> RowNormProperty::ListOutputs() const {
  if (norm() == RowNorm::kLayer) return {"output", "mean", "std"};
  return {"output"};
}

bool RowNormProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  TShape& data = (*in)[kData];
  UnifyShape((*out)[kOutput], &data, TypeString(), "output");
  // The length of the axis, which is known from gamma and beta too.
  TShape length = TShape::OfRank(1);
  const int axis = data.has_rank() ? Axis(data.ndim()) : 0;
  if (HasGamma(norm())) {
    if (data.has_rank()) length[0] = data[axis];
    for (size_t i = kGamma; i < in->size(); ++i)
      UnifyShape((*in)[i], &length, TypeString(), i == kGamma ? "gamma" : "beta");
    for (size_t i = kGamma; i < in->size(); ++i) (*in)[i] = length;
    if (data.has_rank()) data[axis] = length[0];
  }
  for (size_t i = kMean; i < out->size(); ++i) {
    if (!data.has_rank()) continue;
    TShape statistics = data;
    statistics[axis] = 1;
    UnifyShape((*out)[i], &statistics, TypeString(), i == kMean ? "mean" : "std");
    (*out)[i] = statistics;
  }
  (*out)[kOutput] = data;
  return data.known();
}

bool RowNormProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                std::vector<DType>*) const {
  const DType type = (*in)[kData] != DType::kUnknown ? (*in)[kData] : (*out)[kOutput];
  if (type == DType::kUnknown) return false;
  const DType wide = type == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const auto set = [&](DType* at, DType wanted, const char* what) {
    UnifyType(wanted, at, TypeString(), format("{} for {} data", what, NameOf(type)));
  };
  (*in)[kData] = type;
  set(&(*out)[kOutput], type, "output");
  for (size_t i = kGamma; i < in->size(); ++i) set(&(*in)[i], wide, i == kGamma ? "gamma" : "beta");
  for (size_t i = kMean; i < out->size(); ++i) set(&(*out)[i], wide, i == kMean ? "mean" : "std");
  return true;
}

std::vector<int> RowNormProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>& out_data) const {
  if (ReadsOutput(norm())) return {out_grad[kOutput], out_data[kOutput]};
  return {out_grad[kOutput], in_data[kData], in_data[kGamma]};
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(layer_norm, registry) {
  using namespace mxtrain;
  registry.AddProperty("LayerNorm", {}, [] { return std::make_unique<LayerNormProperty>(); });
  registry.AddProperty("RMSNorm", {}, [] { return std::make_unique<RMSNormProperty>(); });
  registry.AddProperty("_NormalizeRows", {},
                       [] { return std::make_unique<NormalizeRowsProperty>(); });
}
