// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/internal/export_node.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::onnx {

std::string ModelBuilder::NewName(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !names_.insert(name).second; ++i) name = format("{}_{}", wanted, i);
  return name;
}

std::string ModelBuilder::Add(const std::string& op, const std::vector<std::string>& inputs,
                              const Attributes& attributes, const std::string& output) {
  model_.nodes.push_back({op, output, "", inputs, {output}, attributes});
  return output;
}

std::string ModelBuilder::AddArray(Tensor tensor, const std::string& wanted) {
  const std::string name = NewName(wanted);
  model_.initializers[name] = std::move(tensor);
  return name;
}

ExportNode::ExportNode(const mxtrain::Node& node, std::vector<Array> inputs,
                       std::vector<TShape> outputs, ModelBuilder* builder)
    : node_(node),
      op_(node.op->TypeString()),
      inputs_(std::move(inputs)),
      out_shapes_(std::move(outputs)),
      params_(node.op->GetParams()),
      builder_(*builder),
      results_(out_shapes_.size()) {}

const std::string& ExportNode::in(int i) const {
  const std::string& name = inputs_[static_cast<size_t>(i)].name;
  if (name.empty())
    Refuse("it reads the label '{}', and predictions are made without labels",
           node_.op->ListArguments()[static_cast<size_t>(i)]);
  return name;
}

bool ExportNode::SameLength(int a, int b, int axis) const {
  const int64_t length = in_shape(a)[axis];
  if (length != TShape::kUnknown) return in_shape(b)[axis] == length;
  const auto &x = inputs_[static_cast<size_t>(a)].of_batches,
             &y = inputs_[static_cast<size_t>(b)].of_batches;
  return x[0].ndim() > axis && y[0].ndim() > axis && x[0][axis] == y[0][axis] &&
         x[1][axis] == y[1][axis];
}

const std::string& ExportNode::Text(std::string_view name) const {
  const auto found = std::find_if(params_.begin(), params_.end(),
                                  [name](const auto& param) { return param.first == name; });
  if (found == params_.end())
    Throw(ErrorKind::kBug, "{} has no parameter '{}' for ONNX", op_, name);
  return found->second;
}

int64_t ExportNode::Truncated(double value) const {
  if (!(std::abs(value) < 0x1p63)) Refuse("{} is not within the range of integers", value);
  return static_cast<int64_t>(value);
}

std::string ExportNode::Add(const std::string& op, const std::vector<std::string>& inputs,
                            const Attributes& attributes) {
  return builder_.Add(op, inputs, attributes,
                      builder_.NewName(format("{}_{}", node_.name, Lower(op))));
}

std::string ExportNode::NewValue(int output) {
  const std::vector<std::string> names = node_.op->ListOutputs();
  return builder_.NewName(format("{}_{}", node_.name, names[static_cast<size_t>(output)]));
}

void ExportNode::Out(const std::string& op, const std::vector<std::string>& inputs,
                     const Attributes& attributes, int output) {
  OutIs(builder_.Add(op, inputs, attributes, NewValue(output)), output);
  builder_.model().nodes.back().name = node_.name;
}

void ExportNode::OutIs(const std::string& value, int output) {
  results_[static_cast<size_t>(output)] = value;
}

void ExportNode::OutAll(const std::string& op, const std::vector<std::string>& inputs,
                        const Attributes& attributes) {
  std::vector<std::string> outputs;
  for (size_t i = 0; i < results_.size(); ++i) {
    outputs.push_back(NewValue(static_cast<int>(i)));
    OutIs(outputs.back(), static_cast<int>(i));
  }
  builder_.model().nodes.push_back({op, node_.name, "", inputs, outputs, attributes});
}

std::string ExportNode::Scalar(float value) {
  return builder_.AddArray(Tensor::Scalar(value), node_.name + "_scalar");
}

std::string ExportNode::Ints(const std::vector<int64_t>& values) {
  return builder_.AddArray(Tensor::Ints({static_cast<int64_t>(values.size())}, values),
                           node_.name + "_ints");
}

std::string ExportNode::Floats(std::vector<int64_t> dims, const std::vector<float>& values) {
  return builder_.AddArray(Tensor::Floats(std::move(dims), values), node_.name + "_constant");
}

std::string ExportNode::Int(int64_t value) {
  return builder_.AddArray(Tensor::Ints({}, {value}), node_.name + "_int");
}

std::string ExportNode::LengthOf(int input, int axis) {
  const int64_t length = in_shape(input)[axis];
  if (length != TShape::kUnknown) return Ints({length});
  return Add("Slice", {Add("Shape", {in(input)}), Ints({axis}), Ints({axis + 1})});
}

std::string ExportNode::PositionsOf(int input, int axis) {
  const int64_t length = in_shape(input)[axis];
  if (length == TShape::kUnknown) {
    const std::string scalar = Add("Squeeze", {LengthOf(input, axis), Ints({0})});
    return Add("Range", {Int(0), scalar, Int(1)});
  }
  std::vector<int64_t> positions(static_cast<size_t>(length));
  std::iota(positions.begin(), positions.end(), 0);
  return Ints(positions);
}

std::string ExportNode::Reduce(const std::string& op, const std::string& value,
                               const std::vector<int64_t>& axes, bool keep) {
  Attributes attributes{{"keepdims", int64_t{keep}}};
  if (op == "ReduceSum" || builder_.model().opset >= 18)
    return Add(op, {value, Ints(axes)}, attributes);
  attributes["axes"] = axes;
  return Add(op, {value}, attributes);
}

std::string ExportNode::Reshape(const std::string& value, const TShape& from, const TShape& to) {
  if (from == to) return value;
  std::vector<int64_t> dims(to.begin(), to.end());
  int dynamic = 0;
  for (int i = 0; i < to.ndim(); ++i) {
    if (to[i] != TShape::kUnknown) continue;
    // The same axis of the input: 0 copies its length.
    const bool same = dynamic == 0 && i == 0 && from.ndim() > 0 && from[0] == TShape::kUnknown &&
                      from.KnownProduct(1, from.ndim()) == to.KnownProduct(1, to.ndim()) &&
                      std::find(from.begin() + 1, from.end(), TShape::kUnknown) == from.end();
    if (same) {
      dims[0] = 0;
      return Add("Reshape", {value, Ints(dims)});
    }
    ++dynamic;
  }
  if (dynamic > 1)
    Refuse("several axes of its output {} depend on the size of the batch", to.ToString());
  return Add("Reshape", {value, Ints(dims)});
}

std::string ExportNode::Transpose(const std::string& value, const std::vector<int64_t>& order) {
  return Add("Transpose", {value}, {{"perm", order}});
}

std::string ExportNode::AlongAxis(const std::string& value, int64_t length, int axis, int ndim) {
  if (axis == ndim - 1) return value;
  std::vector<int64_t> dims(static_cast<size_t>(ndim - axis), 1);
  dims[0] = length;
  return Add("Reshape", {value, Ints(dims)});
}

std::string ExportNode::Unsqueeze(const std::string& value, const std::vector<int64_t>& axes) {
  return axes.empty() ? value : Add("Unsqueeze", {value, Ints(axes)});
}

ExportNode::Order ExportNode::TopK(const std::string& value, const std::string& count, int axis,
                                   bool largest) {
  const Order order{builder_.NewName(name() + "_values"), builder_.NewName(name() + "_indices")};
  builder_.model().nodes.push_back(
      {"TopK",
       name() + "_topk",
       "",
       {value, count},
       {order.values, order.indices},
       {{"axis", int64_t{axis}}, {"largest", int64_t{largest}}, {"sorted", int64_t{1}}}});
  return order;
}

std::string ExportNode::AsBool(const std::string& value) {
  return Add("Cast", {value}, {{"to", static_cast<int64_t>(ElementType::kBool)}});
}

std::string ExportNode::AsFloat(const std::string& value) {
  return Add("Cast", {value}, {{"to", static_cast<int64_t>(ElementType::kFloat)}});
}

std::string ExportNode::AsInt(const std::string& value) {
  return Add("Cast", {value}, {{"to", static_cast<int64_t>(ElementType::kInt64)}});
}

std::string ExportNode::AsIndices(const std::string& value, int64_t length, bool wrap) {
  const std::string whole = AsInt(value);
  return wrap ? Add("Mod", {whole, Int(length)}) : Add("Clip", {whole, Int(0), Int(length - 1)});
}

ElementType ExportNode::TypeOf(const std::string& dtype) const {
  const std::pair<const char*, ElementType> types[] = {{"float32", ElementType::kFloat},
                                                       {"int32", ElementType::kInt32},
                                                       {"int64", ElementType::kInt64},
                                                       {"uint8", ElementType::kUint8}};
  for (const auto& [name, type] : types) {
    if (dtype == name) return type;
  }
  Refuse("dtype = {}; expected float32, int32, int64 or uint8", dtype);
}

std::string ExportNode::As(const std::string& dtype, const std::string& value) {
  return Add("Cast", {value}, {{"to", static_cast<int64_t>(TypeOf(dtype))}});
}

void ExportNode::OutAs(const std::string& dtype, const std::string& value, int output) {
  Out("Cast", {value}, {{"to", static_cast<int64_t>(TypeOf(dtype))}}, output);
}

void ExportNode::ThrowRefusal(const std::string& reason) const {
  Throw(ErrorKind::kConfig, "{} cannot be exported to ONNX: {}", DescribeNode(node_), reason);
}

}  // namespace mxtrain::onnx
