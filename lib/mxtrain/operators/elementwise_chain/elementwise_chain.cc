// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elementwise_chain/elementwise_chain.h"

#include <algorithm>

#include "mxtrain/base/json.h"
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
    for (const Json& item : Json::parse(param_.steps)) {
      Kwargs params;
      for (const auto& [key, value] : item.at("params").items())
        params.emplace_back(key, value.get<std::string>());
      Step step{registry_.Create(item.at("op").get<std::string>(), params),
                item.at("in").get<std::vector<int>>()};
      const bool known = std::all_of(step.in.begin(), step.in.end(),
                                     [values](int value) { return value >= 0 && value < values; });
      if (step.op->elementwise() == Elementwise::kNo ||
          step.in.size() != step.op->ListArguments().size() || !known) {
        Throw(ErrorKind::kConfig, "_ElementwiseChain: {} cannot be step {}", step.op->TypeString(),
              steps_.size());
      }
      steps_.push_back(std::move(step));
      ++values;
    }
  } catch (const Json::exception& e) {
    Throw(ErrorKind::kConfig, "_ElementwiseChain: invalid steps: {}", e.what());
  }
  if (steps_.empty()) Throw(ErrorKind::kConfig, "_ElementwiseChain has no steps");
}

std::vector<std::string> ElementwiseChainProperty::ListArguments() const {
  return NumberedNames("arg", param_.num_args);
}

bool ElementwiseChainProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                          std::vector<TShape>*) const {
  return InferSameShape(*this, in, out);
}

Elementwise ElementwiseChainProperty::elementwise() const {
  const bool zeros = std::all_of(steps_.begin(), steps_.end(), [](const Step& s) {
    return s.op->elementwise() == Elementwise::kZeroToZero;
  });
  return zeros ? Elementwise::kZeroToZero : Elementwise::kYes;
}

std::vector<int> ElementwiseChainProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>&) const {
  std::vector<int> reads = out_grad;
  reads.insert(reads.end(), in_data.begin(), in_data.end());
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
