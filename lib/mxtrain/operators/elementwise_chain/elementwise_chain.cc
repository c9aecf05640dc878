// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elementwise_chain/elementwise_chain.h"

#include <algorithm>

#include "mxtrain/base/read_json.h"
#include "mxtrain/operator/most_arguments.h"

namespace mxtrain {

void ElementwiseChainParam::Declare(Fields<ElementwiseChainParam>& f) {
  f.Add("num_args", &ElementwiseChainParam::num_args)
      .Required()
      .Range(1, kMostArguments)
      .Help("number of arguments");
  f.Add("steps", &ElementwiseChainParam::steps).Required().Help("the operators in order, as JSON");
}

void ElementwiseChainProperty::Check() {
  int values = param_.num_args;
  try {
    for (const Json& item : ReadJsonOf<Json>("its steps", param_.steps)) {
      Kwargs params;
      for (const auto& [key, value] : item.at("params").items())
        params.emplace_back(key, value.get<std::string>());
      Step step{ChainStep::kNone, registry_.Create(item.at("op").get<std::string>(), params), {}};
      step.kind = ChainStepOf(*step.op);
      bool known = item.at("in").is_array();
      for (const Json& in : item.at("in")) {
        const std::optional<int64_t> value = IntegerIn(in, 0, values - 1);
        known = known && value;
        step.in.push_back(static_cast<int>(value.value_or(0)));
      }
      const bool second = step.kind == ChainStep::kDropout && dropout_ >= 0;
      if (step.kind == ChainStep::kNone || second ||
          step.in.size() != step.op->ListArguments().size() || !known) {
        Throw(ErrorKind::kConfig, "_ElementwiseChain: {} cannot be step {}", step.op->TypeString(),
              steps_.size());
      }
      if (step.kind == ChainStep::kDropout) dropout_ = static_cast<int>(steps_.size());
      steps_.push_back(std::move(step));
      ++values;
    }
  } catch (const Json::exception& e) {
    Throw(ErrorKind::kConfig, "_ElementwiseChain: invalid steps: {}", e.what());
  }
  if (steps_.empty()) Throw(ErrorKind::kConfig, "_ElementwiseChain has no steps");
  FindRead();
}

void ElementwiseChainProperty::FindRead() {
  const auto num_args = static_cast<size_t>(param_.num_args);
  read_.assign(num_args + steps_.size(), false);
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    if (step.kind == ChainStep::kDropout) continue;
    // Inputs by their place, the result behind them, the head gradient behind that.
    const int n = static_cast<int>(step.in.size());
    std::vector<int> places;
    for (int i = 0; i < n; ++i) places.push_back(i);
    for (const int id : step.op->DeclareBackwardDependency({n + 1}, places, {n})) {
      if (id < n) read_[static_cast<size_t>(step.in[static_cast<size_t>(id)])] = true;
      if (id == n) read_[num_args + s] = true;
    }
  }
  for (size_t s = steps_.size() - 1; s-- > 0;) {
    if (!read_[num_args + s]) continue;
    for (const int value : steps_[s].in) read_[static_cast<size_t>(value)] = true;
  }
}

std::vector<std::string> ElementwiseChainProperty::ListArguments() const {
  return NumberedNames("arg", param_.num_args);
}

std::vector<TShape> ElementwiseChainProperty::ShapesOf(const std::vector<TShape>& in) const {
  std::vector<TShape> shapes = in;
  for (const Step& step : steps_) {
    std::vector<TShape> inputs, aux;
    for (const int value : step.in) inputs.push_back(shapes[static_cast<size_t>(value)]);
    const std::vector<TShape> given = inputs;
    std::vector<TShape> out(static_cast<size_t>(step.op->NumOutputs()));
    if (!step.op->InferShape(&inputs, &out, &aux) || inputs != given)
      Throw(ErrorKind::kConfig, "_ElementwiseChain: the shapes of its arguments are not known");
    shapes.push_back(out[0]);
  }
  return shapes;
}

int ElementwiseChainProperty::ReadersOf(int value) const {
  std::ptrdiff_t readers = 0;
  for (const Step& step : steps_) readers += std::count(step.in.begin(), step.in.end(), value);
  return static_cast<int>(readers);
}

bool ElementwiseChainProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                          std::vector<TShape>*) const {
  if (!std::all_of(in->begin(), in->end(), [](const TShape& shape) { return shape.known(); }))
    return false;
  UnifyShape(ShapesOf(*in).back(), &(*out)[0], TypeString(), "output");
  return true;
}

Elementwise ElementwiseChainProperty::elementwise() const {
  Elementwise result = Elementwise::kZeroToZero;
  for (const Step& step : steps_) {
    if (step.kind == ChainStep::kDropout) continue;
    const Elementwise of_step = step.op->elementwise();
    if (of_step == Elementwise::kNo) return Elementwise::kNo;
    if (of_step == Elementwise::kYes) result = Elementwise::kYes;
  }
  return result;
}

std::vector<int> ElementwiseChainProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>& out_data) const {
  std::vector<int> reads = out_grad;
  for (size_t i = 0; i < in_data.size(); ++i) {
    if (read_[i]) reads.push_back(in_data[i]);
  }
  if (read_.back()) reads.insert(reads.end(), out_data.begin(), out_data.end());
  return reads;
}

// A block of results is written only after all reads of that block.
std::vector<InplacePair> ElementwiseChainProperty::ForwardInplaceOption() const {
  std::vector<InplacePair> pairs;
  for (int i = 0; i < param_.num_args; ++i) pairs.push_back({i, 0});
  return pairs;
}

std::vector<InplacePair> ElementwiseChainProperty::BackwardInplaceOption() const {
  std::vector<InplacePair> pairs;
  for (int i = 0; i < param_.num_args; ++i) pairs.push_back({0, i});
  return pairs;
}

// Arguments that reach the output only through additions.
std::vector<InplacePair> ElementwiseChainProperty::BackwardIdentityOption() const {
  const size_t num_args = static_cast<size_t>(param_.num_args);
  std::vector<bool> passed(num_args + steps_.size());
  passed.back() = true;
  std::vector<InplacePair> pairs;
  for (size_t s = steps_.size(); s-- > 0;) {
    if (!passed[num_args + s]) continue;
    for (const InplacePair& pair : steps_[s].op->BackwardIdentityOption()) {
      const auto value = static_cast<size_t>(steps_[s].in[static_cast<size_t>(pair.to)]);
      if (ReadersOf(static_cast<int>(value)) != 1) continue;
      passed[value] = true;
      if (value < num_args) pairs.push_back({0, static_cast<int>(value)});
    }
  }
  return pairs;
}

std::vector<ResourceRequest> ElementwiseChainProperty::ForwardResource(
    const std::vector<TShape>&) const {
  if (dropout_ < 0) return {};
  return {{ResourceRequest::kRandom, 0}};
}

double ElementwiseChainProperty::ForwardFlops(const std::vector<TShape>&,
                                              const std::vector<TShape>& out) const {
  return static_cast<double>(out[0].Size()) * static_cast<double>(steps_.size());
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(elementwise_chain, registry) {
  registry.AddProperty("_ElementwiseChain", {}, [&registry] {
    return std::make_unique<mxtrain::ElementwiseChainProperty>(registry);
  });
}
