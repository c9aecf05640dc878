// SPDX-License-Identifier: Apache-2.0
#include "app/session/code_columns.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>

namespace mxtrain::session {
namespace {

std::string ParamOf(const Node& node, std::string_view name) {
  for (const auto& [key, text] : node.op->GetParams()) {
    if (key == name) return text;
  }
  return "";
}

int64_t NumberOf(const Node& node, std::string_view name) {
  int64_t number = 0;
  params::Parse(ParamOf(node, name), &number);
  return number;
}

// The rows that the codes of a node choose from; 0: it reads none.
int64_t RowsOf(const Node& node) {
  const std::string type = node.op->TypeString();
  if (type == "Embedding" || type == "EmbeddingBag") return NumberOf(node, "input_dim");
  return type == "one_hot" ? NumberOf(node, "depth") : 0;
}

// What an array holds of one input.
struct Part {
  std::string input;
  std::vector<size_t> numbers;  // of an example, in order
  bool list = false;            // the axes are that of the batch and one of these numbers
  bool clear = true;            // `numbers` is right
};

bool Moves(const std::string& type) {
  static constexpr std::string_view kMoving[] = {"Cast",        "_copy",     "Reshape", "Flatten",
                                                 "expand_dims", "BlockGrad", "squeeze"};
  return std::ranges::count(kMoving, type) > 0;
}

Part Slice(const Part& part, int64_t begin, int64_t end) {
  const auto size = static_cast<int64_t>(part.numbers.size());
  begin = std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size);
  end = std::clamp<int64_t>(end < 0 ? end + size : end, begin, size);
  Part slice = part;
  slice.numbers.assign(part.numbers.begin() + begin, part.numbers.begin() + end);
  return slice;
}

// Output `index` of a node that reads this part alone.
Part Follow(const Node& node, int index, const Part& read) {
  const std::string type = node.op->TypeString();
  Part part = read;
  if (Moves(type)) {
    part.list = type == "Flatten" || (read.list && type != "Reshape" && type != "expand_dims");
    return part;
  }
  const bool list = read.clear && read.list;
  if (list && type == "slice_axis" &&
      (NumberOf(node, "axis") == 1 || NumberOf(node, "axis") == -1)) {
    const std::string end = ParamOf(node, "end");
    const auto size = static_cast<int64_t>(read.numbers.size());
    return Slice(read, NumberOf(node, "begin"), end == "None" ? size : NumberOf(node, "end"));
  }
  if (list && type == "SliceChannel" && NumberOf(node, "axis") == 1) {
    const int64_t parts = NumberOf(node, "num_outputs");
    const int64_t size = static_cast<int64_t>(read.numbers.size()) / std::max<int64_t>(parts, 1);
    part = Slice(read, index * size, (index + 1) * size);
    part.list = ParamOf(node, "squeeze_axis") != "True" && ParamOf(node, "squeeze_axis") != "1";
    return part;
  }
  part.clear = false;
  part.numbers.clear();
  return part;
}

class Search {
 public:
  explicit Search(const config::Net& net) : net_(net), graph_(net.symbol.graph()) {
    parts_.resize(graph_.nodes.size());
    for (const config::NetInput& input : net.inputs) {
      if (input.shape.known())
        found_[input.name].rows.assign(static_cast<size_t>(input.shape.Size()), 0);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) Visit(i);
  }
  std::map<std::string, CodeColumns> Take() { return std::move(found_); }

 private:
  void Visit(size_t index) {
    const Node& node = graph_.nodes[index];
    std::vector<std::vector<Part>>& outputs = parts_[index];
    outputs.resize(static_cast<size_t>(NumOutputs(node)));
    if (node.is_variable()) return Begin(node, &outputs[0]);
    if (node.kind != Node::Kind::kForward) return;
    const int64_t rows = RowsOf(node);
    if (rows > 0) return NoteCodes(node, rows, PartsAt(node.inputs[0]));
    for (const NodeEntry& entry : node.inputs) {
      for (const Part& part : PartsAt(entry)) {
        for (size_t k = 0; k < outputs.size(); ++k)
          Add(Follow(node, static_cast<int>(k), part), &outputs[k]);
      }
    }
  }
  void Begin(const Node& node, std::vector<Part>* output) const {
    const auto input = std::ranges::find(net_.inputs, node.name, &config::NetInput::name);
    if (input == net_.inputs.end() || !input->shape.known()) return;
    Part part{node.name, {}, input->shape.ndim() == 1};
    part.numbers.resize(static_cast<size_t>(input->shape.Size()));
    std::iota(part.numbers.begin(), part.numbers.end(), 0);
    output->push_back(std::move(part));
  }
  // What is not clear is one part of each input, however many ways lead there.
  static void Add(Part part, std::vector<Part>* to) {
    const bool known = !part.clear && std::ranges::any_of(*to, [&part](const Part& other) {
      return !other.clear && other.input == part.input;
    });
    if (!known) to->push_back(std::move(part));
  }
  const std::vector<Part>& PartsAt(const NodeEntry& entry) const {
    return parts_[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
  }
  void NoteCodes(const Node& node, int64_t rows, const std::vector<Part>& parts) {
    for (const Part& part : parts) {
      CodeColumns& of = found_[part.input];
      if (!part.clear) {
        of.unclear = node.name;
        continue;
      }
      for (const size_t number : part.numbers)
        of.rows[number] = of.rows[number] == 0 ? rows : std::min(of.rows[number], rows);
    }
  }

  const config::Net& net_;
  const Graph& graph_;
  std::vector<std::vector<std::vector<Part>>> parts_;  // by node and output; of several inputs all
  std::map<std::string, CodeColumns> found_;
};

}  // namespace

bool CodeColumns::any() const {
  return std::ranges::any_of(rows, [](int64_t count) { return count > 0; });
}

std::map<std::string, CodeColumns> FindCodeColumns(const config::Net& net) {
  if (net.inputs.empty() || net.symbol.NumOutputs() == 0) return {};  // not built yet
  return Search(net).Take();
}

}  // namespace mxtrain::session
