// SPDX-License-Identifier: Apache-2.0
#include "tests/support/case_numbers.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/format.h"
#include "mxtrain/operator/composite.h"

namespace mxtrain::test {
namespace {

// Truncation and rounding of central differences in double, with a margin.
constexpr double kDifferenceSlack = 1e-7;
constexpr int64_t kMaxDifferences = 48;  // elements of an input whose gradient is measured

std::vector<TensorSpec> Specs(const std::vector<TShape>& shapes, const std::vector<DType>& types) {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < shapes.size(); ++i) specs.push_back({shapes[i], types[i], Layout()});
  return specs;
}

Arrays DrawArrays(const std::vector<TensorSpec>& specs, const std::vector<Generator>& generators,
                  uint64_t seed) {
  Arrays arrays;
  for (size_t i = 0; i < specs.size(); ++i) {
    const Generator& generate = generators[std::min(i, generators.size() - 1)];
    arrays.push_back(RoundTo(specs[i].type, generate(specs[i].shape.Size(), seed * 1000 + i)));
  }
  return arrays;
}

// d(sum of head * forward(in)) / d(in[which]) at up to kMaxDifferences elements.
Expectation CentralDifferences(const OperatorCase& c, Arrays in, const Arrays& aux,
                               const Arrays& head, size_t which) {
  const int64_t size = static_cast<int64_t>(in[which].size());
  Expectation expected{Values(in[which].size()), {}, kDifferenceSlack};
  const int64_t stride = std::max<int64_t>(1, size / kMaxDifferences);
  for (int64_t i = 0; i < size; i += stride) {
    const double x = in[which][i], h = 1e-5 * std::max(1.0, std::abs(x));
    in[which][i] = x + h;
    const Arrays high = c.forward(in, aux);
    in[which][i] = x - h;
    const Arrays low = c.forward(in, aux);
    in[which][i] = x;
    double sum = 0;
    for (size_t o = 0; o < head.size(); ++o) {
      for (size_t k = 0; k < head[o].size(); ++k) sum += head[o][k] * (high[o][k] - low[o][k]);
    }
    expected.values[i] = sum / (2 * h);
    expected.at.push_back(i);
  }
  return expected;
}

}  // namespace

std::string Mismatch(const std::string& what, DType type, const Values& actual,
                     const Expectation& expected, const Values* old, double epsilons) {
  if (actual.size() != expected.values.size())
    return format("{} has {} elements, but the reference has {}", what, actual.size(),
                  expected.values.size());
  const double compute =
      IsFloating(type) ? EpsilonOf(type == DType::kFloat64 ? type : DType::kFloat32) : 0;
  const double storage = EpsilonOf(type) > compute ? 4 * EpsilonOf(type) : 0;
  const double relative =
      epsilons * compute + storage + (old != nullptr ? 2 * EpsilonOf(type) : 0) + expected.slack;
  const int64_t count =
      static_cast<int64_t>(expected.at.empty() ? actual.size() : expected.at.size());
  int64_t wrong = 0;
  std::string first;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t i = expected.at.empty() ? k : expected.at[k];
    const double want = expected.values[i] + (old != nullptr ? (*old)[i] : 0);
    const double allowed = relative * std::max({1.0, std::abs(expected.values[i]), std::abs(want)});
    const bool good = std::isfinite(want)
                          ? std::abs(actual[i] - want) <= allowed
                          : (std::isnan(want) ? std::isnan(actual[i]) : actual[i] == want);
    if (good) continue;
    if (wrong++ == 0)
      first = format("element {} is {}, expected {} (allowed error {:.3g})", i, actual[i], want,
                     allowed);
  }
  return wrong == 0 ? "" : format("{}: {} of {} elements wrong, {}", what, wrong, count, first);
}

bool CaseOnDevice::IsRandomOrUpdate() const {
  const std::vector<ResourceRequest> requests = property_->ForwardResource(case_.shapes);
  return case_.op.ends_with("_update") ||
         std::any_of(requests.begin(), requests.end(), [](const ResourceRequest& request) {
           return request.type == ResourceRequest::kRandom;
         });
}

bool CaseOnDevice::IsComposite() const {
  Lowering graph(case_.shapes, property_->NumOutputs());
  return property_->Lower(&graph);
}

PassSetup CaseOnDevice::MakeSetup(const CaseTypes& types) const {
  const size_t count = property_->ListArguments().size();
  if (case_.shapes.size() != count)
    Throw(ErrorKind::kBug, "case '{}': {} shapes for {} arguments", case_.name, case_.shapes.size(),
          count);
  std::vector<TShape> in_shapes = case_.shapes, out_shapes(property_->NumOutputs()),
                      aux_shapes(property_->ListAuxiliaryStates().size());
  if (!property_->InferShape(&in_shapes, &out_shapes, &aux_shapes))
    Throw(ErrorKind::kBug, "case '{}': shapes stay unknown", case_.name);
  std::vector<DType> in_types(count, DType::kUnknown),
      out_types(out_shapes.size(), DType::kUnknown), aux_types(aux_shapes.size(), DType::kUnknown);
  if (case_.input_types.size() > count)
    Throw(ErrorKind::kBug, "case '{}': {} types for {} arguments", case_.name,
          case_.input_types.size(), count);
  std::copy(case_.input_types.begin(), case_.input_types.end(), in_types.begin());
  if (count > 0 && in_types[0] == DType::kUnknown) in_types[0] = types.data;
  if (types.out != DType::kUnknown) std::fill(out_types.begin(), out_types.end(), types.out);
  if (!property_->InferType(&in_types, &out_types, &aux_types))
    Throw(ErrorKind::kBug, "case '{}': types stay unknown", case_.name);

  PassSetup s;
  s.property = property_.get();
  s.ctx = ctx_;
  s.backend = &backend_;
  s.is_train = case_.is_train;
  s.math = case_.math;
  s.in = Specs(in_shapes, in_types);
  s.out = Specs(out_shapes, out_types);
  s.aux = Specs(aux_shapes, aux_types);
  s.in_values = DrawArrays(s.in, case_.inputs, case_.seed);
  s.aux_values = DrawArrays(s.aux, case_.aux, case_.seed + 100);
  s.head_values = DrawArrays(s.out, {Uniform(-1, 1)}, case_.seed + 200);
  for (int i = property_->NumVisibleOutputs(); i < property_->NumOutputs(); ++i) {
    std::fill(s.head_values[i].begin(), s.head_values[i].end(), 0.0);
  }
  s.old_out = DrawArrays(s.out, {Uniform(-1, 1)}, case_.seed + 300);
  s.old_grad = DrawArrays(s.in, {Uniform(-1, 1)}, case_.seed + 400);
  return s;
}

CaseNumbers CaseOnDevice::MakeNumbers(const CaseTypes& types) const {
  CaseNumbers n;
  n.type = types.data;
  n.setup = MakeSetup(types);
  const PassSetup& s = n.setup;
  n.differentiable = case_.backward;
  if (case_.check) return n;

  n.out = case_.forward(s.in_values, s.aux_values);
  n.aux_after_forward =
      case_.aux_after_forward ? case_.aux_after_forward(s.in_values, s.aux_values) : s.aux_values;
  n.aux_after_backward = case_.aux_after_backward
                             ? case_.aux_after_backward(s.in_values, s.aux_values)
                             : n.aux_after_forward;
  if (!n.differentiable) return n;
  const Arrays gradient =
      case_.gradient ? case_.gradient(s.in_values, s.aux_values, s.head_values) : Arrays();
  for (size_t i = 0; i < s.in.size(); ++i) {
    if (!property_->HasGradient(static_cast<int>(i))) {
      n.grad.emplace_back();
    } else if (case_.gradient) {
      n.grad.push_back({gradient.at(i), {}, 0});
    } else {
      n.grad.push_back(CentralDifferences(case_, s.in_values, s.aux_values, s.head_values, i));
    }
  }
  return n;
}

PassTrial CaseOnDevice::WriteTrial(const CaseNumbers& n) const {
  PassTrial trial;
  trial.what = "write";
  trial.backward = n.differentiable;
  trial.out_req.assign(n.setup.out.size(), OpReqType::kWriteTo);
  for (size_t i = 0; n.differentiable && i < n.setup.in.size(); ++i) {
    trial.grad_req.push_back(property_->HasGradient(static_cast<int>(i)) ? OpReqType::kWriteTo
                                                                         : OpReqType::kNullOp);
  }
  trial.offer.resize(n.setup.in.size());
  return trial;
}

}  // namespace mxtrain::test
