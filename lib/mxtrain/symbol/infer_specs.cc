// SPDX-License-Identifier: Apache-2.0
// InferSpecs: shapes and types flow along the edges in both directions until nothing changes.
#include <algorithm>
#include <deque>

#include "mxtrain/base/suggest.h"
#include "mxtrain/symbol/graph.h"
#include "mxtrain/symbol/internal/attrs.h"

namespace mxtrain {
namespace {

// What is known of one output, and its most recent source.
// Or the id of the node whose rules gave it.
enum : int { kNobody = -1, kGiven = -2, kAttribute = -3, kAssumed = -4 };

bool Merge(const TShape& from, TShape* into) {
  return MergeShape(from, into);
}
bool Merge(DType from, DType* into) {
  if (from == DType::kUnknown) return true;
  if (*into != DType::kUnknown && *into != from) return false;
  *into = from;
  return true;
}
// Throws if no array can satisfy a fact.
void CheckFact(const TShape& shape) {
  if (shape.has_rank()) shape.KnownProduct(0, shape.ndim());
}
void CheckFact(DType) {}

bool IsKnown(const TShape& shape) {
  return shape.known();
}
bool IsKnown(DType type) {
  return type != DType::kUnknown;
}
std::string Text(const TShape& shape) {
  return shape.ToString();
}
std::string Text(DType type) {
  return NameOf(type);
}

bool RunRules(const OperatorProperty& op, std::vector<TShape>* in, std::vector<TShape>* out,
              std::vector<TShape>* aux) {
  return op.InferShape(in, out, aux);
}
bool RunRules(const OperatorProperty& op, std::vector<DType>* in, std::vector<DType>* out,
              std::vector<DType>* aux) {
  return op.InferType(in, out, aux);
}

// Nodes that read each node's outputs.
std::vector<std::vector<int>> ReadersOf(const Graph& graph) {
  std::vector<std::vector<int>> readers(graph.nodes.size());
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    for (const NodeEntry& input : graph.nodes[id].inputs) {
      std::vector<int>& list = readers[static_cast<size_t>(input.node)];
      if (list.empty() || list.back() != static_cast<int>(id)) list.push_back(static_cast<int>(id));
    }
  }
  return readers;
}

// The fixed point for one kind of fact, T = TShape or DType. A node is queued when something
// adjacent has become known.
template <typename T>
class Inference {
 public:
  Inference(const Graph& graph, const std::vector<std::vector<int>>& readers, T unknown)
      : graph_(graph), readers_(readers), queued_(graph.nodes.size()) {
    for (const Node& node : graph.nodes) {
      facts.emplace_back(static_cast<size_t>(NumOutputs(node)), unknown);
      sources_.emplace_back(static_cast<size_t>(NumOutputs(node)), kNobody);
    }
    for (size_t id = 0; id < graph.nodes.size(); ++id) Enqueue(static_cast<int>(id));
  }

  // A fact from outside.
  void Tell(NodeEntry entry, const T& fact, int source) { Learn(entry, fact, source); }
  // A given fact wins over the variable's attribute, as in MXNet: this binds a net to another batch
  // size.
  void TellVariables(const std::map<std::string, T>& given, T (*attribute)(const Node&),
                     T unknown) {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      if (!node(id).is_variable()) continue;
      const auto found = given.find(node(id).name);
      const bool is_given = found != given.end() && !(found->second == unknown);
      Tell({id, 0}, is_given ? found->second : attribute(node(id)), is_given ? kGiven : kAttribute);
    }
  }

  void Run() {
    while (!queue_.empty() || !wide_.empty()) {
      std::deque<int>& from = queue_.empty() ? wide_ : queue_;
      const int id = from.front();
      from.pop_front();
      queued_[static_cast<size_t>(id)] = false;
      if (!node(id).is_variable()) Visit(id);
    }
  }

  std::vector<std::vector<T>> facts;

  // "data [64, 784] (from Flatten 'flatten0'), weight [10, 800] (given)"
  std::string Situation(int id) const {
    std::string text;
    for (size_t i = 0; i < node(id).inputs.size(); ++i) {
      if (IsKnown(At(node(id).inputs[i])) || SourceAt(node(id).inputs[i]) != kNobody)
        Append(&text, InputName(id, i), node(id).inputs[i], id);
    }
    const int outputs = NumOutputs(node(id));  // may list all of them
    for (int k = 0; k < outputs; ++k) {
      const NodeEntry out{id, k};
      if (SourceAt(out) != kNobody && SourceAt(out) != id) Append(&text, "output", out, id);
    }
    return text;
  }

 private:
  const Node& node(int id) const { return graph_.nodes[static_cast<size_t>(id)]; }
  const T& At(NodeEntry e) const {
    return facts[static_cast<size_t>(e.node)][static_cast<size_t>(e.index)];
  }
  int SourceAt(NodeEntry e) const {
    return sources_[static_cast<size_t>(e.node)][static_cast<size_t>(e.index)];
  }

  void Enqueue(int id) {
    if (queued_[static_cast<size_t>(id)]) return;
    queued_[static_cast<size_t>(id)] = true;
    (node(id).inputs.size() > kManyInputs ? wide_ : queue_).push_back(id);
  }

  // Merges a fact into an output and wakes its neighbours if that adds anything. `source` may be a
  // node: the one whose rules gave the fact.
  void Learn(NodeEntry entry, const T& fact, int source) {
    T& known = facts[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
    const T before = known;
    if (!Merge(fact, &known)) ThrowContradiction(entry, fact, source);
    if (known == before) return;
    try {
      CheckFact(known);
    } catch (const Error& error) {
      throw Error(error.kind(), MessageAtNode(node(entry.node), error.what()));
    }
    sources_[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)] = source;
    if (entry.node != source) Enqueue(entry.node);
    for (int reader : readers_[static_cast<size_t>(entry.node)]) Enqueue(reader);
  }

  void Visit(int id) {
    const Node& n = node(id);
    if (n.kind == Node::Kind::kBackward) {
      Throw(ErrorKind::kBug, "{}: inference runs on forward graphs, before the gradient pass",
            DescribeNode(n));
    }
    std::vector<T> in, aux, out = facts[static_cast<size_t>(id)];
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      (n.op && i >= static_cast<size_t>(n.num_args) ? aux : in).push_back(At(n.inputs[i]));
    }
    if (n.op) {
      try {
        RunRules(*n.op, &in, &out, &aux);
      } catch (const Error& error) {
        const std::string situation = Situation(id);
        throw Error(error.kind(), MessageAtNode(n, error.what()) +
                                      (situation.empty() ? "" : "; there: " + situation));
      }
    } else {  // kReorder, kCopy
      Merge(in[0], &out[0]);
      Merge(out[0], &in[0]);
    }
    for (size_t i = 0; i < n.inputs.size(); ++i)
      Learn(n.inputs[i], i < in.size() ? in[i] : aux[i - in.size()], id);
    for (int k = 0; k < static_cast<int>(out.size()); ++k)
      Learn({id, k}, out[static_cast<size_t>(k)], id);
  }

  std::string InputName(int id, size_t i) const {
    const Node& n = node(id);
    if (!n.op) return "input";
    const auto arguments = n.op->ListArguments();
    return i < arguments.size() ? arguments[i] : n.op->ListAuxiliaryStates()[i - arguments.size()];
  }

  std::string SourceText(NodeEntry e, int source) const {
    if (source == kGiven) return "given";
    if (source == kAssumed) return "assumed";
    if (source == kAttribute) return "declared";
    if (source == e.node) return "from " + DescribeNode(node(e.node));
    return "needed by " + DescribeNode(node(source));
  }

  void Append(std::string* text, const std::string& role, NodeEntry e, int reader) const {
    if (!text->empty()) *text += ", ";
    *text += role + " " + Text(At(e));
    const int source = SourceAt(e);
    std::string origin;
    if (source != kNobody && source != reader) origin = SourceText(e, source);
    if (node(e.node).is_variable())
      origin = "'" + node(e.node).name + "'" + (origin.empty() ? "" : ", " + origin);
    if (!origin.empty()) *text += " (" + origin + ")";
  }

  [[noreturn]] void ThrowContradiction(NodeEntry e, const T& fact, int source) const {
    const char* what = std::is_same_v<T, TShape> ? "shape" : "type";
    const std::string known = format("{} {} ({})", what, Text(At(e)), SourceText(e, SourceAt(e)));
    MXTRAIN_ASSERT(source >= 0);  // outside facts come first, one per variable
    Throw(ErrorKind::kConfig, "{} has {}, but {} gives {}; there: {}",
          e.node == source ? "the output of " + DescribeNode(node(e.node))
                           : DescribeNode(node(e.node)),
          known, DescribeNode(node(source)), Text(fact), Situation(source));
  }

  const Graph& graph_;
  const std::vector<std::vector<int>>& readers_;
  std::vector<std::vector<int>> sources_;
  // Nodes with many inputs wait until the others are stable: visiting them after each input would
  // be quadratic.
  static constexpr size_t kManyInputs = 16;
  std::deque<int> queue_, wide_;
  std::vector<bool> queued_;
};

[[noreturn]] void ThrowUnknown(const Graph& graph, size_t id, const Inference<TShape>& shapes,
                               const std::map<std::string, TShape>& known) {
  const Node& node = graph.nodes[id];
  std::vector<std::string> unused;
  for (const auto& [name, shape] : known) {
    if (std::none_of(graph.nodes.begin(), graph.nodes.end(),
                     [&name = name](const Node& n) { return n.is_variable() && n.name == name; })) {
      unused.push_back(name);
    }
  }
  const std::string advice =
      unused.empty()
          ? ""
          : format(" (a shape was given for {}, which is not a variable here)", join(unused, ", "));
  if (node.is_variable()) {
    const std::vector<int> readers = ReadersOf(graph)[id];
    std::string reason = "nothing reads it";
    if (!readers.empty()) {
      reason = DescribeNode(graph.nodes[static_cast<size_t>(readers[0])]) +
               (readers.size() > 1 ? " and other readers imply only " : " implies only ") +
               shapes.facts[id][0].ToString();
    }
    Throw(ErrorKind::kConfig,
          "the shape of {} is not known: {}; declare its shape, or pass it when binding{}",
          DescribeNode(node), reason, advice);
  }
  const std::string situation = shapes.Situation(static_cast<int>(id));
  Throw(ErrorKind::kConfig,
        "{}: the output's shape does not follow from its inputs{}{}; give the shapes marked ?{}",
        DescribeNode(node), situation.empty() ? "" : ": ", situation, advice);
}

std::vector<std::vector<DType>> InferTypes(const Graph& graph,
                                           const std::vector<std::vector<int>>& readers,
                                           const std::map<std::string, DType>& known) {
  Inference<DType> types(graph, readers, DType::kUnknown);
  types.TellVariables(known, TypeAttr, DType::kUnknown);
  types.Run();
  // Variables first: what operators say of their own outputs wins over an assumption about an
  // output.
  for (const bool variables : {true, false}) {
    for (size_t id = 0; id < graph.nodes.size(); ++id) {
      if (graph.nodes[id].is_variable() != variables) continue;
      for (size_t k = 0; k < types.facts[id].size(); ++k) {
        if (types.facts[id][k] != DType::kUnknown) continue;
        types.Tell({static_cast<int>(id), static_cast<int>(k)}, DType::kFloat32, kAssumed);
        types.Run();
      }
    }
  }
  return std::move(types.facts);
}

}  // namespace

InferredSpecs InferSpecs(const Graph& graph, const std::map<std::string, TShape>& known_shapes,
                         const std::map<std::string, DType>& known_types, bool allow_partial) {
  const std::vector<std::vector<int>> readers = ReadersOf(graph);
  Inference<TShape> shapes(graph, readers, TShape());
  shapes.TellVariables(known_shapes, ShapeAttr, TShape());
  shapes.Run();

  InferredSpecs specs;
  specs.complete = true;
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    if (std::all_of(shapes.facts[id].begin(), shapes.facts[id].end(),
                    [](const TShape& s) { return s.known(); }))
      continue;
    if (!allow_partial) ThrowUnknown(graph, id, shapes, known_shapes);
    specs.complete = false;
  }
  specs.types = InferTypes(graph, readers, known_types);
  specs.shapes = std::move(shapes.facts);
  return specs;
}

}  // namespace mxtrain
