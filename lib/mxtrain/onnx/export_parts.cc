// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/internal/export_parts.h"

#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::onnx {
namespace {

using Value = Lowering::Value;
using Ops = std::shared_ptr<const OperatorProperty>[2];  // for the two sizes of the batch

// Converters of these read the shape of the output, not the parameter that says it.
bool ReadsShapeOnly(const std::string& op) {
  static const std::set<std::string> ops = {"Reshape", "_reshape_to", "broadcast_to"};
  return ops.contains(op);
}

// Predictions have no dropout.
std::shared_ptr<const OperatorProperty> ForPrediction(
    const std::shared_ptr<const OperatorProperty>& op, const OperatorRegistry& registry) {
  if (op->TypeString() != "scaled_dot_product_attention") return op;
  Kwargs params = op->GetParams();
  for (auto& [key, value] : params) {
    if (key == "dropout_p") value = params::Print(0);
  }
  return registry.Create(op->TypeString(), params);
}

void MarkNeeded(const std::set<int>& read, ExportParts* found) {
  std::vector<Value> values;
  for (const int output : read) values.push_back(found->outputs[static_cast<size_t>(output)]);
  while (!values.empty()) {
    const Value value = values.back();
    values.pop_back();
    if (value.step < 0) continue;
    ExportPart& part = found->parts[static_cast<size_t>(value.step)];
    if (part.needed) continue;
    part.needed = true;
    values.insert(values.end(), part.inputs.begin(), part.inputs.end());
  }
}

class Finder {
 public:
  Finder(const mxtrain::Node& layer, const std::vector<ExportArgument>& arguments,
         const OperatorRegistry& registry,
         const std::function<bool(const std::string&)>& has_converter)
      : layer_(layer), arguments_(arguments), registry_(registry), has_converter_(has_converter) {}

  // Adds the graph of an operator that reads `in`. False: there is none.
  bool Expand(const Ops& ops, const std::vector<Value>& in, const std::string& name,
              std::vector<Value>* out) {
    std::vector<Lowering> graphs;
    for (size_t batch = 0; batch < 2; ++batch) {
      std::vector<TShape> shapes;
      for (const Value value : in) shapes.push_back(ArrayOf(value).shapes[batch]);
      graphs.emplace_back(std::move(shapes), ops[batch]->NumOutputs());
      if (!ops[batch]->Lower(&graphs[batch])) return false;
    }
    const std::vector<Lowering::Step>&steps = graphs[0].steps(), &others = graphs[1].steps();
    if (steps.size() != others.size()) RefuseBatch(ops[0]->TypeString());
    std::vector<std::vector<Value>> of_step;
    const auto value_of = [&](Value value) {
      const auto output = static_cast<size_t>(value.output);
      return value.step < 0 ? in[output] : of_step[static_cast<size_t>(value.step)][output];
    };
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].op != others[i].op || steps[i].in.size() != others[i].in.size())
        RefuseBatch(steps[i].op);
      if (!registry_.Has(steps[i].op)) return false;
      std::vector<Value> inputs;
      for (const Value value : steps[i].in) inputs.push_back(value_of(value));
      const bool gives_result = graphs[0].outputs()[0].step == static_cast<int>(i);
      const Ops step = {registry_.Create(steps[i].op, steps[i].kwargs),
                        registry_.Create(others[i].op, others[i].kwargs)};
      if (!Add(step, inputs, gives_result ? name : NameOf(*step[0]), &of_step.emplace_back()))
        return false;
    }
    for (const Value value : graphs[0].outputs()) out->push_back(value_of(value));
    return true;
  }

  std::vector<ExportPart> TakeParts() { return std::move(parts_); }

 private:
  const ExportArgument& ArrayOf(Value value) const {
    const auto output = static_cast<size_t>(value.output);
    return value.step < 0 ? arguments_[output] : arrays_[static_cast<size_t>(value.step)][output];
  }

  std::string NameOf(const OperatorProperty& op) {
    return format("{}_{}{}", layer_.name, mxtrain::Lower(op.TypeString()), counter_++);
  }

  bool Add(const Ops& ops, const std::vector<Value>& in, const std::string& name,
           std::vector<Value>* out) {
    const std::string op = ops[0]->TypeString();
    if (!has_converter_(op)) return Expand(ops, in, name, out);
    if (!ReadsShapeOnly(op) && ops[0]->GetParams() != ops[1]->GetParams()) RefuseBatch(op);
    const auto outputs = static_cast<size_t>(ops[0]->NumOutputs());
    std::vector<ExportArgument> made(outputs);
    std::vector<DType> types, made_types(outputs, DType::kUnknown), aux_types;
    for (const Value value : in) types.push_back(ArrayOf(value).type);
    if (!ops[0]->InferType(&types, &made_types, &aux_types)) {
      Throw(ErrorKind::kConfig, "{}: the types of its part {} do not follow from its arguments",
            DescribeNode(layer_), op);
    }
    ExportPart part{ops[0], name, in, {}, made_types};
    for (size_t batch = 0; batch < 2; ++batch) {
      std::vector<TShape> shapes, made_shapes(outputs), aux_shapes;
      for (const Value value : in) shapes.push_back(ArrayOf(value).shapes[batch]);
      MXTRAIN_ASSERT(ops[batch]->InferShape(&shapes, &made_shapes, &aux_shapes));
      for (size_t i = 0; i < outputs; ++i) made[i].shapes[batch] = made_shapes[i];
    }
    for (size_t i = 0; i < outputs; ++i) {
      made[i].type = made_types[i];
      part.shapes.push_back(MergedShape(made[i].shapes[0], made[i].shapes[1]));
      out->push_back({static_cast<int>(parts_.size()), static_cast<int>(i)});
    }
    if (op == "broadcast_to") RepeatForBatch(made[0], &part);
    arrays_.push_back(std::move(made));
    parts_.push_back(std::move(part));
    return true;
  }

  // A broadcast along a first axis that depends on the batch takes its length from an argument.
  void RepeatForBatch(const ExportArgument& to, ExportPart* part) const {
    const TShape& from = ArrayOf(part->inputs[0]).shapes[0];
    if (from.ndim() == 0 || from[0] != 1 || to.shapes[0][0] == to.shapes[1][0]) return;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const TShape *like = arguments_[i].shapes, *wanted = to.shapes;
      if (like[0].ndim() == 0 || like[0][0] != wanted[0][0] || like[1][0] != wanted[1][0]) continue;
      part->op = registry_.Create("broadcast_like", {{"lhs_axes", "(0,)"}, {"rhs_axes", "(0,)"}});
      part->inputs.push_back({-1, static_cast<int>(i)});
      return;
    }
  }

  [[noreturn]] void RefuseBatch(const std::string& part) const {
    Throw(ErrorKind::kConfig,
          "{} cannot be exported to ONNX: its part {} depends on the size of the batch",
          DescribeNode(layer_), part);
  }

  const mxtrain::Node& layer_;
  const std::vector<ExportArgument>& arguments_;
  const OperatorRegistry& registry_;
  const std::function<bool(const std::string&)>& has_converter_;
  std::vector<ExportPart> parts_;
  std::vector<std::vector<ExportArgument>> arrays_;  // of the parts' outputs
  int counter_ = 0;                                  // of names
};

}  // namespace

TShape MergedShape(const TShape& a, const TShape& b) {
  TShape merged = a;
  for (int axis = 0; axis < a.ndim(); ++axis) {
    if (a[axis] != b[axis]) merged[axis] = TShape::kUnknown;
  }
  return merged;
}

std::optional<ExportParts> FindParts(const mxtrain::Node& layer,
                                     const std::vector<ExportArgument>& arguments,
                                     const std::set<int>& read, const OperatorRegistry& registry,
                                     const std::function<bool(const std::string&)>& has_converter) {
  Finder finder(layer, arguments, registry, has_converter);
  std::vector<Value> in;
  for (size_t i = 0; i < arguments.size(); ++i) in.push_back({-1, static_cast<int>(i)});
  ExportParts found;
  const auto op = ForPrediction(layer.op, registry);
  if (!finder.Expand({op, op}, in, layer.name, &found.outputs)) return std::nullopt;
  found.parts = finder.TakeParts();
  MarkNeeded(read, &found);
  return found;
}

}  // namespace mxtrain::onnx
