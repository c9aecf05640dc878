// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, and the decoder of the classes that they say at each step.
#include <array>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/export_node.h"
#include "mxtrain/onnx/internal/recurrent_gates.h"
#include "mxtrain/operator/rnn_geometry.h"

namespace mxtrain::onnx {
namespace {

// A layer of ONNX has both directions; several layers are nodes one after the other.
class RecurrentExport {
 public:
  explicit RecurrentExport(ExportNode* node)
      : node_(*node), mode_(RecurrentModeOf(node->Text("mode"))) {
    if (!node_.Is("projection_size", "None")) node_.Refuse("ONNX's LSTM has no projection");
    geometry_.mode = mode_;
    geometry_.steps = node_.in_shape(0)[0];
    geometry_.inputs = node_.in_shape(0)[2];
    geometry_.hidden = geometry_.output = node_.Get<int64_t>("state_size");
    geometry_.layers = node_.Get<int64_t>("num_layers");
    geometry_.directions = node_.Get<bool>("bidirectional") ? 2 : 1;
  }

  void Run() {
    const int states = mode_ == rnn::kLstm ? 2 : 1;  // h, and c of an LSTM
    if (node_.Get<bool>("use_sequence_length")) lengths_ = node_.As("int32", node_.in(2 + states));
    std::string data = node_.in(0);
    std::vector<std::vector<std::string>> last(static_cast<size_t>(states));
    for (int64_t layer = 0; layer < geometry_.layers; ++layer) {
      const std::array<std::string, 3> outputs = AddLayer(layer, data, states);
      // [steps, directions, batch, units] as [steps, batch, directions * units].
      data = node_.Reshape(
          node_.Transpose(outputs[0], {0, 2, 1, 3}),
          TShape{geometry_.steps, TShape::kUnknown, geometry_.directions, geometry_.hidden},
          TShape{geometry_.steps, TShape::kUnknown, geometry_.width()});
      for (size_t i = 0; i < last.size(); ++i) last[i].push_back(outputs[i + 1]);
    }
    node_.OutIs(data);
    if (!node_.Get<bool>("state_outputs")) return;
    for (size_t i = 0; i < last.size(); ++i) {
      const std::string joined =
          last[i].size() == 1 ? last[i][0] : node_.Add("Concat", last[i], {{"axis", int64_t{0}}});
      node_.OutIs(joined, static_cast<int>(i) + 1);
    }
  }

 private:
  // [begin, begin + count) of an axis.
  std::string Part(const std::string& value, int64_t axis, int64_t begin, int64_t count) {
    return node_.Add("Slice",
                     {value, node_.Ints({begin}), node_.Ints({begin + count}), node_.Ints({axis})});
  }
  // An array of both directions, [directions, gates * hidden, columns], its gates in ONNX's order.
  // `at`: where in the parameters that of a direction begins.
  template <typename At>
  std::string Matrices(int64_t columns, const At& at) {
    std::vector<std::string> matrices;
    for (int64_t direction = 0; direction < geometry_.directions; ++direction) {
      const std::string flat =
          Part(node_.in(1), 0, at(direction), geometry_.gate_columns() * columns);
      std::string gates =
          node_.Add("Reshape", {flat, node_.Ints({geometry_.gates(), geometry_.hidden * columns})});
      const std::vector<int64_t> order = OurGates(mode_);
      if (order.size() > 1)
        gates = node_.Add("Gather", {gates, node_.Ints(order)}, {{"axis", int64_t{0}}});
      matrices.push_back(
          node_.Add("Reshape", {gates, node_.Ints({1, geometry_.gate_columns(), columns})}));
    }
    if (matrices.size() == 1) return matrices[0];
    return node_.Add("Concat", matrices, {{"axis", int64_t{0}}});
  }

  // The names of Y, Y_h and Y_c.
  std::array<std::string, 3> AddLayer(int64_t layer, const std::string& data, int states) {
    const rnn::Geometry& g = geometry_;
    const std::string weights =
        Matrices(g.InputsOf(layer), [&](int64_t d) { return g.InputWeights(layer, d); });
    const std::string recurrent =
        Matrices(g.hidden, [&](int64_t d) { return g.RecurrentWeights(layer, d); });
    const auto bias = [&](bool of_states) {
      const std::string column = Matrices(1, [&](int64_t d) {
        return of_states ? g.RecurrentBias(layer, d) : g.InputBias(layer, d);
      });
      return node_.Add("Squeeze", {column, node_.Ints({2})});
    };
    const std::string first_bias = bias(false), second_bias = bias(true);
    const std::string biases =
        node_.Add("Concat", {first_bias, second_bias}, {{"axis", int64_t{1}}});
    std::vector<std::string> inputs = {data, weights, recurrent, biases, lengths_};
    for (int i = 0; i < states; ++i) {
      inputs.push_back(node_.is_omitted(2 + i)
                           ? ""
                           : Part(node_.in(2 + i), 0, layer * g.directions, g.directions));
    }
    while (inputs.back().empty()) inputs.pop_back();
    Attributes attributes{
        {"hidden_size", g.hidden},
        {"direction", std::string(g.directions == 2 ? "bidirectional" : "forward")}};
    if (mode_ == rnn::kGru) attributes["linear_before_reset"] = int64_t{1};
    if (const std::string kind = ActivationOf(mode_); !kind.empty())
      attributes["activations"] = std::vector<std::string>(static_cast<size_t>(g.directions), kind);
    std::array<std::string, 3> outputs;
    const char* const endings[] = {"_all", "_last", "_last_cell"};
    for (size_t i = 0; i <= static_cast<size_t>(states); ++i)
      outputs[i] = node_.builder().NewName(node_.name() + endings[i]);
    std::vector<std::string> made(outputs.begin(), outputs.begin() + 1 + states);
    node_.builder().model().nodes.push_back(
        {OperatorOf(mode_), node_.name(), "", inputs, made, attributes});
    return outputs;
  }

  ExportNode& node_;
  const int mode_;
  rnn::Geometry geometry_;
  std::string lengths_;  // "": all sequences are whole
};

void Rnn(ExportNode& node) {
  RecurrentExport(&node).Run();
}

// Steps [batch, steps] become labels without loops: each step has the number of its run of equal
// classes, and each label, the first step of such a run, its place in the row; other steps go to a
// column behind the last one, which is cut off.
void CtcGreedyDecoder(ExportNode& node) {
  const int64_t steps = node.in_shape(0)[0], classes = node.in_shape(0)[2],
                blank = node.Is("blank_label", "first") ? 0 : classes - 1;
  const auto by_sequence = [&](const std::string& value) { return node.Transpose(value, {1, 0}); };
  const auto columns = [&](const std::string& value, int64_t begin, int64_t end) {
    return node.Add("Slice", {value, node.Ints({begin}), node.Ints({end}), node.Ints({1})});
  };
  const Attributes second{{"axis", int64_t{1}}};

  const std::string softmax = node.Add("Softmax", {node.in(0)}, {{"axis", int64_t{2}}});
  const std::string p = by_sequence(node.Reduce("ReduceMax", softmax, {2}, false));
  std::string said = by_sequence(
      node.Add("ArgMax", {node.in(0)}, {{"axis", int64_t{2}}, {"keepdims", int64_t{0}}}));
  if (node.Get<bool>("use_data_lengths")) {
    const std::string lengths = node.Unsqueeze(node.AsInt(node.in(1)), {1});
    const std::string counts = node.Add("Less", {node.PositionsOf(0, 0), lengths});
    said = node.Add("Where", {counts, said, node.Int(blank)});
  }

  const std::string none = node.Add("Sub", {columns(said, 0, 1), node.Int(1)});
  const std::string before = node.Add("Concat", {none, columns(said, 0, steps - 1)}, second);
  const std::string begins = node.Add("Not", {node.Add("Equal", {said, before})});
  const auto count = [&](const std::string& truth) {
    return node.Add("CumSum", {node.AsInt(truth), node.Int(1)});
  };
  const std::string run = count(begins);
  const std::string same = node.Add("Equal", {node.Unsqueeze(run, {2}), node.Unsqueeze(run, {1})});
  const std::string of_run = node.Reduce(
      "ReduceMax", node.Add("Where", {same, node.Unsqueeze(p, {1}), node.Scalar(0)}), {2}, false);

  const std::string is_blank = node.Add("Equal", {said, node.Int(blank)});
  const std::string is_label = node.Add("And", {begins, node.Add("Not", {is_blank})});
  const std::string place = node.Add(
      "Where", {is_label, node.Add("Sub", {count(is_label), node.Int(1)}), node.Int(steps)});
  const std::string shape = node.Add("Add", {node.Add("Shape", {said}), node.Ints({0, 1})});
  const std::string padding =
      node.Add("ConstantOfShape", {shape}, {{"value", Tensor::Floats({1}, {-1})}});
  const auto placed = [&](const std::string& value) {
    const std::string all = node.Add("ScatterElements", {padding, place, value}, second);
    return node.Unsqueeze(columns(all, 0, steps), {2});
  };
  const std::string labels = placed(node.AsFloat(said)), probabilities = placed(of_run);
  node.Out("Concat", {labels, probabilities}, {{"axis", int64_t{2}}});
}

}  // namespace

std::vector<ExportEntry> RecurrentExports() {
  return {{"RNN", Rnn}, {"ctc_greedy_decoder", CtcGreedyDecoder}};
}

}  // namespace mxtrain::onnx
