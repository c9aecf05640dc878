// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/layer_groups.h"

#include <algorithm>
#include <cctype>

#include "mxtrain/base/format.h"

namespace mxtrain {
namespace {

using Words = std::vector<std::string>;

// "stage1_unit0_conv" and "layer1.0.conv" as words.
Words WordsOf(const std::string& name) {
  Words words(1);
  for (const char c : name) {
    if (c == '_' || c == '.' || c == '/') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

bool IsNumbered(const std::string& word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word.back()));
}

void KeepCommon(const Words& other, Words* words) {
  const auto differs = std::mismatch(words->begin(), words->end(), other.begin(), other.end());
  words->erase(differs.first, words->end());
}

// A part of the net between two places that one array passes.
struct Part {
  Words name;  // common to its layers with parameters
  std::vector<std::string> parameters;
  bool has_weights = false;

  void Add(const std::string& layer) {
    if (parameters.empty()) {
      name = WordsOf(layer);
    } else {
      KeepCommon(WordsOf(layer), &name);
    }
  }
  void Join(const Part& next) {
    parameters.insert(parameters.end(), next.parameters.begin(), next.parameters.end());
    has_weights = has_weights || next.has_weights;
  }
  // Up to the last number; the whole name without one.
  Words Key() const {
    const auto last = std::find_if(name.rbegin(), name.rend(), IsNumbered);
    return last == name.rend() ? name : Words(name.begin(), last.base());
  }
};

class Divider {
 public:
  Divider(const Graph& graph, const std::set<std::string>& inputs,
          const std::set<std::string>& labels)
      : graph_(graph), inputs_(inputs), labels_(labels), of_data_(graph.nodes.size()) {
    taken_.resize(graph.nodes.size());
    FindLastReaders();
  }

  std::vector<Part> Parts() {
    std::vector<Part> parts(1);
    size_t live = 0;  // nodes of examples that are still read
    std::vector<size_t> dying(graph_.nodes.size() + 1);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!of_data_[i]) continue;
      if (graph_.nodes[i].op) AddParameters(i, graph_.nodes[i].name, &parts.back());
      ++live;
      ++dying[last_reader_[i]];
      live -= dying[i];
      if (live <= 1 && graph_.nodes[i].op) parts.emplace_back();
    }
    std::erase_if(parts, [](const Part& part) { return part.parameters.empty(); });
    return parts;
  }

 private:
  void FindLastReaders() {
    const size_t end = graph_.nodes.size();
    last_reader_.assign(end, 0);
    for (size_t i = 0; i < end; ++i) {
      const Node& node = graph_.nodes[i];
      of_data_[i] = node.kind == Node::Kind::kVariable && inputs_.contains(node.name);
      last_reader_[i] = i;
      for (const NodeEntry& input : node.inputs)
        of_data_[i] = of_data_[i] || of_data_[static_cast<size_t>(input.node)];
      if (!of_data_[i]) continue;
      for (const NodeEntry& input : node.inputs) last_reader_[static_cast<size_t>(input.node)] = i;
    }
    for (const NodeEntry& head : graph_.heads) last_reader_[static_cast<size_t>(head.node)] = end;
  }

  // Those that the node reads, also through layers that see parameters only; in the order of their
  // depth-first visits.
  void AddParameters(size_t node, const std::string& layer, Part* part) {
    struct Visit {
      size_t node;
      std::vector<std::string> names;  // of the arguments
      size_t next = 0;                 // input
    };
    const auto visit = [this](size_t id) {
      const Node& reader = graph_.nodes[id];
      return Visit{id, reader.op ? reader.op->ListArguments() : std::vector<std::string>()};
    };
    std::vector<Visit> path{visit(node)};
    while (!path.empty()) {
      Visit& reader = path.back();
      if (reader.next == graph_.nodes[reader.node].inputs.size()) {
        path.pop_back();
        continue;
      }
      const size_t i = reader.next++;
      const auto input = static_cast<size_t>(graph_.nodes[reader.node].inputs[i].node);
      const Node& source = graph_.nodes[input];
      if (of_data_[input] || taken_[input]) continue;
      taken_[input] = true;
      if (source.op) {
        path.push_back(visit(input));
      } else if (source.kind == Node::Kind::kVariable && !labels_.contains(source.name)) {
        part->Add(layer);
        part->parameters.push_back(source.name);
        part->has_weights =
            part->has_weights || (i < reader.names.size() && reader.names[i] == "weight");
      }
    }
  }

  const Graph& graph_;
  const std::set<std::string>& inputs_;
  const std::set<std::string>& labels_;
  std::vector<bool> of_data_, taken_;
  std::vector<size_t> last_reader_;  // the node itself if there is none
};

// Neighbours of one name become one.
std::vector<Part> JoinNamesakes(const std::vector<Part>& parts) {
  std::vector<Part> joined;
  for (const Part& part : parts) {
    if (!joined.empty() && !part.name.empty() && joined.back().Key() == part.Key()) {
      joined.back().name = part.Key();
      joined.back().Join(part);
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

}  // namespace

std::vector<LayerGroup> LayerGroups(const Symbol& net, const std::set<std::string>& inputs,
                                    const std::set<std::string>& labels) {
  std::vector<Part> parts;
  for (const Part& part : JoinNamesakes(Divider(net.graph(), inputs, labels).Parts())) {
    if (parts.empty() || (part.has_weights && parts.back().has_weights)) {
      parts.push_back(part);
    } else if (part.has_weights) {  // what has no weights before the first ones
      Part first = part;
      first.parameters = parts.back().parameters;
      first.Join(part);
      parts.back() = first;
    } else {
      parts.back().Join(part);
    }
  }
  std::vector<LayerGroup> groups;
  for (Part& part : parts)
    groups.push_back({format("{}", fmt::join(part.Key(), "_")), std::move(part.parameters)});
  return groups;
}

}  // namespace mxtrain
