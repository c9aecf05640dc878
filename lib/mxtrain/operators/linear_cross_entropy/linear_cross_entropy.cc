// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/linear_cross_entropy/linear_cross_entropy.h"

#include "mxtrain/operator/composite.h"

namespace mxtrain {

void LinearCrossEntropyParam::Declare(Fields<LinearCrossEntropyParam>& f) {
  using P = LinearCrossEntropyParam;
  f.Add("num_hidden", &P::num_hidden)
      .Range(1, int64_t{1} << 31)
      .Required()
      .Help("number of classes");
  f.Add("no_bias", &P::no_bias).Default(false).Help("without the argument bias");
  f.Add("grad_scale", &P::grad_scale).Default(1).Help("factor of the gradient");
  f.Add("ignore_label", &P::ignore_label).Default(-1).Help("label of rows to ignore");
  f.Add("use_ignore", &P::use_ignore)
      .Default(false)
      .Help("rows with ignore_label have no gradient");
  f.Add("normalization", &P::normalization)
      .Enum({{"null", kSoftmaxNull}, {"batch", kSoftmaxBatch}, {"valid", kSoftmaxValid}})
      .Default(kSoftmaxNull)
      .Help(
          "divisor of the gradient: 1, the number of labels, the number of labels other than "
          "ignore_label");
  f.Add("block_rows", &P::block_rows)
      .Range(1, int64_t{1} << 31)
      .Default(std::nullopt)
      .Help("rows whose scores are in memory at one time; None: those of 64 MiB");
}

SoftmaxOutputParam LinearCrossEntropyParam::Softmax() const {
  SoftmaxOutputParam softmax;
  softmax.Init({}, "linear_cross_entropy");
  softmax.preserve_shape = true;
  softmax.grad_scale = grad_scale;
  softmax.ignore_label = ignore_label;
  softmax.use_ignore = use_ignore;
  softmax.normalization = normalization;
  return softmax;
}

std::vector<std::string> LinearCrossEntropyProperty::ListArguments() const {
  if (param_.no_bias) return {"data", "weight", "label"};
  return {"data", "weight", "label", "bias"};
}

bool LinearCrossEntropyProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                            std::vector<TShape>*) const {
  const std::string who = TypeString();
  if (!param_.no_bias) UnifyShape(TShape{param_.num_hidden}, &(*in)[kBias], who, "bias");
  UnifyShape(TShape{param_.num_hidden, TShape::kUnknown}, &(*in)[kWeight], who, "weight");
  const TShape& data = (*in)[kData];
  if (!data.known()) return false;
  if (data.ndim() < 2) {
    Throw(ErrorKind::kConfig,
          "{}: data have shape {}; expected two axes or more, of which the last is multiplied by "
          "the weight",
          who, data.ToString());
  }
  const int last = data.ndim() - 1;
  UnifyShape(TShape{param_.num_hidden, data[last]}, &(*in)[kWeight], who, "weight");
  TShape rows = TShape::OfRank(last);
  for (int i = 0; i < last; ++i) rows[i] = data[i];
  UnifyShape(rows, &(*in)[kLabel], who, "label");
  UnifyShape(rows, &(*out)[0], who, "output");
  return true;
}

bool LinearCrossEntropyProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                           std::vector<DType>*) const {
  std::vector<DType> factors{(*in)[kData], (*in)[kWeight]}, none, same{factors[0]};
  const bool known = OperatorProperty::InferType(&factors, &same, &none);
  (*in)[kData] = factors[0];
  (*in)[kWeight] = factors[1];
  if (!known) return false;
  const DType type = factors[0],
              sums = type == DType::kBfloat16 || type == DType::kFloat16 ? DType::kFloat32 : type;
  if ((*in)[kLabel] == DType::kUnknown) (*in)[kLabel] = sums;
  if (!param_.no_bias) {
    if ((*in)[kBias] == DType::kUnknown) (*in)[kBias] = sums;
    UnifyType(sums, &(*in)[kBias], TypeString(), "bias");
  }
  UnifyType(sums, &(*out)[0], TypeString(), "output");
  return true;
}

std::vector<int> LinearCrossEntropyProperty::DeclareBackwardDependency(
    const std::vector<int>&, const std::vector<int>& in_data, const std::vector<int>&) const {
  return in_data;
}

double LinearCrossEntropyProperty::ForwardFlops(const std::vector<TShape>& in,
                                                const std::vector<TShape>&) const {
  return static_cast<double>(in[kData].Size()) * static_cast<double>(param_.num_hidden);
}

bool LinearCrossEntropyProperty::Lower(Lowering* graph) const {
  Lowering& g = *graph;
  const auto text = [](auto value) { return params::Print(value); };
  std::vector<Lowering::Value> in{g.argument(kData), g.argument(kWeight)};
  if (!param_.no_bias) in.push_back(g.argument(kBias));
  const auto scores = g("FullyConnected", in,
                        {{"num_hidden", text(param_.num_hidden)},
                         {"no_bias", text(param_.no_bias)},
                         {"flatten", text(false)}});
  g.StopGradient(kLabel);
  Kwargs softmax = param_.Softmax().ToKwargs();
  std::erase_if(softmax, [](const auto& item) {
    return item.first == "class_weights" || item.first == "focal_gamma";
  });
  const auto p = g("SoftmaxOutput", {scores, g.argument(kLabel)}, softmax);
  const auto chosen = g("pick", {g("BlockGrad", {p}), g.argument(kLabel)});
  // As LossReport computes it of probabilities.
  const auto loss =
      g("negative", {g("log", {g.WithScalar("_maximum_scalar", chosen, kLeastProbability)})});
  const auto from = g.WithScalar("_greater_equal_scalar", g.argument(kLabel), 0),
             below = g.WithScalar("_lesser_scalar", g.argument(kLabel),
                                  static_cast<double>(param_.num_hidden));
  g.SetOutput(0, g("elemwise_mul", {loss, g("elemwise_mul", {from, below})}));
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(linear_cross_entropy, registry) {
  registry.AddProperty("linear_cross_entropy", {},
                       [] { return std::make_unique<mxtrain::LinearCrossEntropyProperty>(); });
}
