// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/softmax_output/softmax_output.h"

#include <algorithm>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void SoftmaxOutputParam::Declare(Fields<SoftmaxOutputParam>& f) {
  using P = SoftmaxOutputParam;
  f.Add("grad_scale", &P::grad_scale).Default(1).Help("factor of the gradient");
  f.Add("ignore_label", &P::ignore_label).Default(-1).Help("label of positions to ignore");
  f.Add("multi_output", &P::multi_output)
      .Default(false)
      .Help("axis 1 holds the classes, one softmax per remaining position");
  f.Add("use_ignore", &P::use_ignore)
      .Default(false)
      .Help("positions with ignore_label have no gradient");
  f.Add("preserve_shape", &P::preserve_shape)
      .Default(false)
      .Help("softmax over the last axis instead of all but the first");
  f.Add("normalization", &P::normalization)
      .Enum({{"null", kSoftmaxNull}, {"batch", kSoftmaxBatch}, {"valid", kSoftmaxValid}})
      .Default(kSoftmaxNull)
      .Help(
          "divisor of the gradient: 1 (with multi_output: the positions of a sample), the number "
          "of labels, the number of "
          "labels other than ignore_label");
  f.Add("out_grad", &P::out_grad).Default(false).Help("multiply by the head gradient");
  f.Add("smooth_alpha", &P::smooth_alpha)
      .Range(0, 1)
      .Default(0)
      .Help("label smoothing; without effect for multi_output");
  f.Add("class_weights", &P::class_weights)
      .Default({})
      .Help(
          "loss factor per class, 0 or more: sum of t w (-log p) over the classes, where t is the "
          "label; default: 1");
  f.Add("focal_gamma", &P::focal_gamma)
      .Range(0, 100)
      .Default(0)
      .Help(
          "focal loss: the loss of a class times (1 - p)^gamma, which gives easy examples less "
          "weight; 2 is usual");
}

void SoftmaxOutputProperty::Check() {
  if (param_.multi_output && param_.preserve_shape) {
    Throw(ErrorKind::kConfig,
          "SoftmaxOutput: multi_output and preserve_shape choose different class axes; set one of "
          "them");
  }
  for (const double weight : param_.class_weights) {
    if (weight >= 0) continue;
    Throw(ErrorKind::kConfig, "SoftmaxOutput: class_weights = '{}': expected numbers of 0 or more",
          params::Print(param_.class_weights));
  }
}

Kwargs SoftmaxOutputProperty::GetParams() const {
  Kwargs kwargs = param_.ToKwargs();
  std::erase_if(kwargs, [this](const auto& item) {
    return (item.first == "class_weights" && param_.class_weights.empty()) ||
           (item.first == "focal_gamma" && param_.focal_gamma == 0);
  });
  return kwargs;
}

void SoftmaxOutputProperty::CheckWeights(const TShape& data) const {
  const auto given = static_cast<int64_t>(param_.class_weights.size());
  if (given == 0 || given == View(data).classes) return;
  Throw(ErrorKind::kConfig,
        "SoftmaxOutput: class_weights has {} numbers, but the data of shape {} have {} classes",
        given, data.ToString(), View(data).classes);
}

SoftmaxView SoftmaxOutputProperty::View(const TShape& data) const {
  const int last = data.ndim() - 1;
  if (param_.multi_output) return {data[0], data[1], data.Product(2, data.ndim())};
  if (param_.preserve_shape) return {data.Product(0, last), data[last], 1};
  return {data[0], data.Product(1, data.ndim()), 1};
}

TShape SoftmaxOutputProperty::DefaultLabelShape(const TShape& data) const {
  if (param_.multi_output) return TShape{data[0], data.Product(2, data.ndim())};
  return TShape(std::span(data.begin(), static_cast<size_t>(data.ndim() - 1)));
}

// A label for every softmax, with the axes in the order of the data's, or a probability for every
// element.
bool SoftmaxOutputProperty::LabelFits(const TShape& label, const TShape& data) const {
  if (label == data) return true;
  const SoftmaxView view = View(data);
  return label.ndim() >= 1 && label[0] == data[0] && label.Size() == view.outer * view.inner;
}

bool SoftmaxOutputProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                       std::vector<TShape>*) const {
  TShape& data = (*in)[0];
  TShape& label = (*in)[1];
  UnifyShape((*out)[0], &data, TypeString(), "output");
  if (data.has_rank() && data.ndim() < 2) {
    Throw(ErrorKind::kConfig,
          "SoftmaxOutput: data has shape {}, but at least two axes, [batch, classes], are needed",
          data.ToString());
  }
  if (data.has_rank() && data[0] == TShape::kUnknown && label.has_rank() && label.ndim() > 0)
    data[0] = label[0];
  (*out)[0] = data;
  if (!data.known()) return false;
  CheckWeights(data);
  if (!label.known()) {
    const TShape wanted = DefaultLabelShape(data);
    if (LabelFits(wanted, data)) {
      UnifyShape(wanted, &label, TypeString(), "label");
      return true;
    }
  } else if (LabelFits(label, data)) {
    return true;
  }
  if (!param_.multi_output && !param_.preserve_shape && data.ndim() > 2) {
    Throw(ErrorKind::kConfig,
          "SoftmaxOutput: data has shape {}, which must be [{}, {}] for one label per sample; for "
          "a label per position set multi_output "
          "(classes on axis 1) or preserve_shape (classes on the last axis)",
          data.ToString(), data[0], data.Product(1, data.ndim()));
  }
  Throw(ErrorKind::kConfig,
        "SoftmaxOutput: label has shape {}, but {} was expected for data of shape {}",
        label.ToString(), DefaultLabelShape(data).ToString(), data.ToString());
}

bool SoftmaxOutputProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                      std::vector<DType>*) const {
  DType& data = (*in)[0];
  if (data == DType::kUnknown) data = (*out)[0];
  if (data == DType::kUnknown) return false;
  UnifyType(data, &(*out)[0], "SoftmaxOutput", "output");
  // Narrow types cannot represent all class indices.
  if ((*in)[1] == DType::kUnknown) (*in)[1] = data == DType::kFloat64 ? data : DType::kFloat32;
  return true;
}

std::vector<int> SoftmaxOutputProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>& out_data) const {
  std::vector<int> reads = {in_data[1], out_data[0]};
  if (param_.out_grad) reads.push_back(out_grad[0]);
  return reads;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(softmax_output, registry) {
  registry.AddProperty("SoftmaxOutput", {"Softmax"},
                       [] { return std::make_unique<mxtrain::SoftmaxOutputProperty>(); });
}
