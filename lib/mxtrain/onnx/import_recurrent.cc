// SPDX-License-Identifier: Apache-2.0
// RNN, LSTM and GRU as the operator RNN, whose parameters are one array.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/onnx/internal/import_parts.h"
#include "mxtrain/onnx/internal/recurrent_gates.h"

namespace mxtrain::onnx {
namespace {

class RecurrentImport {
 public:
  explicit RecurrentImport(ImportNode* node) : node_(*node) {
    const std::string direction = Lower(node_.Word("direction", "forward"));
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      Throw(ErrorKind::kData, "{}: there is no direction '{}'", node_.Describe(), direction);
    backward_ = direction == "reverse";
    geometry_.directions = direction == "bidirectional" ? 2 : 1;
    geometry_.mode = Mode();
    RequirePlainCells();
    batch_first_ = node_.Int("layout", 0) != 0;
    if (node_.ndim(0) != 3)
      Throw(ErrorKind::kData, "{}: its data have {} axes instead of 3", node_.Describe(),
            node_.ndim(0));
    geometry_.inputs = node_.shape(0)[2];
    const std::vector<int64_t>& dims = node_.array(kRecurrent).dims;
    if (dims.size() != 3)
      Throw(ErrorKind::kData, "{}: its input R has {} axes instead of 3", node_.Describe(),
            dims.size());
    geometry_.hidden = geometry_.output = dims[2];
    if (const int64_t said = node_.Int("hidden_size", dims[2]); said != dims[2])
      Throw(ErrorKind::kData, "{}: hidden_size is {}, and R has {} columns", node_.Describe(), said,
            dims[2]);
  }

  void Run() {
    const std::string parameters = node_.OwnParameter("parameters", Packed());
    std::string data = Swapped(node_.ref(0));
    const bool has_lengths = node_.has(kLengths);
    const std::string lengths = has_lengths ? node_.ref(kLengths, 1) : "";
    if (backward_) data = Reversed(data, lengths);

    std::vector<std::string> inputs = {data, parameters};
    const bool has_states = HasState(kState) || HasState(kCell);
    if (has_states || has_lengths) {
      for (int i = kState; i <= (IsLstm() ? kCell : kState); ++i)
        inputs.push_back(HasState(i) ? Swapped(node_.ref(i, 3)) : Zeros());
    }
    if (has_lengths) inputs.push_back(lengths);
    const std::vector<std::string> outputs =
        node_.AddAll("RNN", inputs,
                     {{"mode", kRecurrentModes[geometry_.mode]},
                      {"state_size", params::Print(geometry_.hidden)},
                      {"num_layers", "1"},
                      {"bidirectional", params::Print(geometry_.directions == 2)},
                      {"use_sequence_length", params::Print(has_lengths)},
                      {"state_outputs", "True"}});

    if (Wants(0)) {
      const std::string all = backward_ ? Reversed(outputs[0], lengths) : outputs[0];
      Shapes to = node_.ShapesOf(all);
      for (TShape& s : to) s = TShape{s[0], s[1], geometry_.directions, geometry_.hidden};
      const std::vector<int64_t> order =
          batch_first_ ? std::vector<int64_t>{1, 0, 2, 3} : std::vector<int64_t>{0, 2, 1, 3};
      node_.OutIs(Permuted(node_, node_.Reshape(all, to), order));
    }
    for (int i = 1; i <= (IsLstm() ? 2 : 1); ++i) {
      if (Wants(i)) node_.OutIs(Swapped(outputs[static_cast<size_t>(i)]), i);
    }
  }

 private:
  enum Input { kWeight = 1, kRecurrent, kBias, kLengths, kState, kCell, kPeepholes };

  bool IsLstm() const { return geometry_.mode == rnn::kLstm; }
  bool Wants(int output) const {
    return output < node_.num_outputs() && !node_.output(static_cast<size_t>(output)).empty();
  }

  // By the operator and, of RNN, its activation. Others than the usual ones are refused.
  int Mode() const {
    std::vector<std::string> given = node_.Words("activations");
    for (std::string& word : given) word = Lower(word);
    const auto all_are = [&](const std::vector<std::string>& usual) {
      if (given.size() != usual.size() * static_cast<size_t>(geometry_.directions)) return false;
      for (size_t i = 0; i < given.size(); ++i) {
        if (given[i] != usual[i % usual.size()]) return false;
      }
      return true;
    };
    const int mode = node_.op() == "LSTM"  ? rnn::kLstm
                     : node_.op() == "GRU" ? rnn::kGru
                     : all_are({"relu"})   ? rnn::kRelu
                                           : rnn::kTanh;
    const std::vector<std::string> usual =
        mode == rnn::kLstm   ? std::vector<std::string>{"sigmoid", "tanh", "tanh"}
        : mode == rnn::kGru  ? std::vector<std::string>{"sigmoid", "tanh"}
        : mode == rnn::kRelu ? std::vector<std::string>{"relu"}
                             : std::vector<std::string>{"tanh"};
    if (!given.empty() && !all_are(usual))
      node_.Refuse("activations = {} have no equivalent", join(given, ", "));
    return mode;
  }

  void RequirePlainCells() const {
    if (node_.has("clip")) node_.Refuse("clipped cells have no equivalent");
    if (node_.Int("input_forget", 0) != 0)
      node_.Refuse("gates that are coupled (input_forget) have no equivalent");
    if (node_.has(kPeepholes) && !(node_.is_array(kPeepholes) && AllZero(node_.array(kPeepholes))))
      node_.Refuse("peepholes have no equivalent");
    if (geometry_.mode == rnn::kGru && node_.Int("linear_before_reset", 0) == 0)
      node_.Refuse(
          "a reset gate before the product (linear_before_reset = 0) has no equivalent; PyTorch "
          "and "
          "Keras export linear_before_reset = 1");
  }

  static bool AllZero(const Tensor& tensor) {
    return std::ranges::all_of(tensor.bytes, [](char byte) { return byte == 0; });
  }
  // Whether a state is more than zeros.
  bool HasState(int i) const {
    if (!node_.has(i)) return false;
    const ImportValue& value = node_.in(i);
    return !value.is_constant() || !AllZero(*value.constant[0]) || !AllZero(*value.constant[1]);
  }
  // States that are zeros, [directions, batch, hidden].
  std::string Zeros() {
    const std::vector<int64_t> dims = {geometry_.directions, 1, geometry_.hidden};
    return node_.LikeBatch(
        node_.OwnArray("zeros", Tensor::Floats(dims, std::vector<float>(
                                                         static_cast<size_t>(dims[0] * dims[2])))),
        1);
  }

  // With batch and steps, or batch and directions, the other way round where the file has them so.
  std::string Swapped(const std::string& value) {
    return batch_first_ ? Permuted(node_, value, {1, 0, 2}) : value;
  }
  std::string Reversed(const std::string& value, const std::string& lengths) {
    if (lengths.empty()) return node_.Add("SequenceReverse", {value});
    return node_.Add("SequenceReverse", {value, lengths}, {{"use_sequence_length", "True"}});
  }

  // Checked, as numbers.
  std::vector<float> Numbers(int input, const std::vector<int64_t>& dims, const char* name) const {
    const Tensor& tensor = node_.array(input);
    if (tensor.dims != dims)
      Throw(ErrorKind::kData, "{}: its input {} is [{}], expected [{}]", node_.Describe(), name,
            join(tensor.dims, ", "), join(dims, ", "));
    return tensor.ToFloats();
  }

  // W, R and B in the order of the operator's parameters.
  Tensor Packed() const {
    const rnn::Geometry& g = geometry_;
    if (g.hidden < 1 || g.inputs < 1)
      Throw(ErrorKind::kData, "{}: {} units that read {} numbers", node_.Describe(), g.hidden,
            g.inputs);
    const std::vector<float> weight =
        Numbers(kWeight, {g.directions, g.gate_columns(), g.inputs}, "W");
    const std::vector<float> recurrent =
        Numbers(kRecurrent, {g.directions, g.gate_columns(), g.hidden}, "R");
    std::vector<float> bias(static_cast<size_t>(g.directions * g.biases()));
    if (node_.has(kBias)) bias = Numbers(kBias, {g.directions, g.biases()}, "B");

    std::vector<float> packed(static_cast<size_t>(g.ParameterCount()));
    // The gates that begin at `from`, of `size` numbers each.
    const auto put = [&](const std::vector<float>& all, int64_t from, int64_t size, int64_t to) {
      const std::vector<int64_t> ours = OurGates(g.mode);
      for (size_t gate = 0; gate < ours.size(); ++gate) {
        const auto begin = all.begin() + from + static_cast<int64_t>(gate) * size;
        std::copy(begin, begin + size, packed.begin() + to + ours[gate] * size);
      }
    };
    for (int64_t d = 0; d < g.directions; ++d) {
      put(weight, d * g.gate_columns() * g.inputs, g.hidden * g.inputs, g.InputWeights(0, d));
      put(recurrent, d * g.gate_columns() * g.hidden, g.hidden * g.hidden,
          g.RecurrentWeights(0, d));
      put(bias, d * g.biases(), g.hidden, g.InputBias(0, d));
      put(bias, d * g.biases() + g.gate_columns(), g.hidden, g.RecurrentBias(0, d));
    }
    return Tensor::Floats({g.ParameterCount()}, packed);
  }

  ImportNode& node_;
  rnn::Geometry geometry_;
  bool backward_ = false, batch_first_ = false;
};

void Recurrent(ImportNode& node) {
  RecurrentImport(&node).Run();
}

}  // namespace

std::vector<ImportEntry> RecurrentImports() {
  return {{"RNN", Recurrent}, {"LSTM", Recurrent}, {"GRU", Recurrent}};
}

}  // namespace mxtrain::onnx
