// SPDX-License-Identifier: Apache-2.0
#pragma once
// Composite operators: defined as a graph of other operators that computes the same. Where no
// kernel takes a composite, that graph replaces it before a net is planned
// (executor/passes/lower_composites.cc) and in imperative calls. Shapes, types, gradient, layouts,
// mixed precision, devices and memory plan follow from the parts.
//
//   MXTRAIN_OPERATOR(square_error, registry) {
//     AddComposite<NoParam>(registry, {.name = "square_error",
//                                      .description = "the mean of (data - label)^2",
//                                      .arguments = {"data", "label"},
//                                      .lower = [](const NoParam&, Lowering& g) {
//       const auto error = g("elemwise_sub", {g.argument(0), g.argument(1)});
//       g.SetOutput(0, g("mean", {g("square", {error})}));
//     }});
//   }
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

// A graph of operators, built step by step for arguments of known shapes.
class MXTRAIN_API Lowering {
 public:
  // Output `output` of a step; step < 0: the argument with that number.
  struct Value {
    int step = -1, output = 0;
  };
  struct Step {
    std::string op;
    Kwargs kwargs;
    std::vector<Value> in;
  };

  Lowering(std::vector<TShape> shapes, int num_outputs)
      : shapes_(std::move(shapes)), outputs_(static_cast<size_t>(num_outputs), Value{kUnset, 0}) {}

  // Past no gradient after StopGradient(i).
  Value argument(int i) const {
    const auto stopped = stopped_.find(i);
    return stopped == stopped_.end() ? Value{-1, i} : stopped->second;
  }
  // No gradient reaches argument i through what reads argument(i) from now on.
  void StopGradient(int i) { stopped_[i] = (*this)("BlockGrad", {argument(i)}); }
  const TShape& shape(int argument) const { return shapes_[static_cast<size_t>(argument)]; }
  // Output 0 of a new step.
  Value operator()(std::string op, std::vector<Value> in, Kwargs kwargs = {}) {
    steps_.push_back({std::move(op), std::move(kwargs), std::move(in)});
    return {static_cast<int>(steps_.size()) - 1, 0};
  }
  // The same elements in another shape.
  Value Reshape(Value value, const TShape& shape);
  // Output 0 of `op` with the parameter scalar.
  Value WithScalar(std::string op, Value value, double scalar) {
    return (*this)(std::move(op), {value}, {{"scalar", params::Print(scalar)}});
  }
  // The argument, of shape [length], as [1, ..., length, ..., 1]: broadcast over arrays of `ndim`
  // axes along `axis`.
  Value AlongAxis(int argument, int axis, int ndim);
  // Output i of the composite. Each is set once; throws kBug otherwise.
  void SetOutput(int i, Value value);

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Value>& outputs() const { return outputs_; }
  bool complete() const;  // every output is set

 private:
  static constexpr int kUnset = -2;
  std::vector<TShape> shapes_;
  std::map<int, Value> stopped_;  // by argument
  std::vector<Step> steps_;
  std::vector<Value> outputs_;
};

// The shapes of a composite's outputs, from those of its arguments, which are known. Errors of a
// part name the composite.
MXTRAIN_API std::vector<TShape> InferLowered(const OperatorRegistry& registry,
                                             const OperatorProperty& composite,
                                             const std::vector<TShape>& in);

template <typename P>
struct CompositeDefinition {
  std::string name;
  std::string description;
  std::vector<std::string> aliases = {};
  std::vector<std::string> arguments = {"data"};
  // Those of the arguments that have no gradient: labels, of losses.
  std::vector<std::string> labels = {};
  std::vector<std::string> outputs = {"output"};
  std::function<int(const P&)> visible = {};  // leading outputs that a net sees; default: all
  // Checks the shapes of arguments and completes those that follow from others (gamma from data),
  // with UnifyShape; they may be unknown in part. Throws kConfig.
  std::function<void(const P&, std::vector<TShape>* in)> complete = {};
  std::function<void(const P&, Lowering& graph)> lower;
};

namespace detail {

template <typename P>
class CompositeProperty final : public PropertyWithParam<P> {
 public:
  CompositeProperty(std::shared_ptr<const CompositeDefinition<P>> definition,
                    std::weak_ptr<const OperatorRegistry* const> registry)
      : definition_(std::move(definition)), registry_(std::move(registry)) {}

  std::string TypeString() const override { return definition_->name; }
  std::string Description() const override { return definition_->description; }
  std::vector<std::string> ListArguments() const override { return definition_->arguments; }
  std::vector<std::string> ListOutputs() const override { return definition_->outputs; }
  bool HasGradient(int argument) const override {
    return std::ranges::find(definition_->labels,
                             definition_->arguments[static_cast<size_t>(argument)]) ==
           definition_->labels.end();
  }
  int NumVisibleOutputs() const override {
    return definition_->visible ? definition_->visible(this->param_) : this->NumOutputs();
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    if (definition_->complete) definition_->complete(this->param_, in);
    for (const TShape& shape : *in) {
      if (!shape.known()) return false;
    }
    const auto registry = registry_.lock();
    if (!registry) {
      Throw(ErrorKind::kUsage, "{}: the registry that made this operator is gone; keep it",
            TypeString());
    }
    const std::vector<TShape> found = InferLowered(**registry, *this, *in);
    for (size_t i = 0; i < found.size(); ++i)
      UnifyShape(found[i], &(*out)[i], TypeString(), definition_->outputs[i]);
    return true;
  }
  bool Lower(Lowering* graph) const override {
    for (int i = 0; i < static_cast<int>(definition_->arguments.size()); ++i) {
      if (!HasGradient(i)) graph->StopGradient(i);
    }
    definition_->lower(this->param_, *graph);
    return true;
  }

 private:
  std::shared_ptr<const CompositeDefinition<P>> definition_;
  std::weak_ptr<const OperatorRegistry* const> registry_;  // looks up the parts
};

}  // namespace detail

template <typename P>
void AddComposite(OperatorRegistry& registry, CompositeDefinition<P> definition) {
  auto shared = std::make_shared<const CompositeDefinition<P>>(std::move(definition));
  // Lives as long as the registry, which owns the function below.
  auto home = std::make_shared<const OperatorRegistry* const>(&registry);
  registry.AddProperty(shared->name, shared->aliases, [shared, home = std::move(home)] {
    return std::make_unique<detail::CompositeProperty<P>>(shared, home);
  });
}

}  // namespace mxtrain
