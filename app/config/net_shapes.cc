// SPDX-License-Identifier: Apache-2.0
#include "app/config/net_shapes.h"

#include <algorithm>
#include <optional>

#include "mxtrain/base/error.h"
#include "mxtrain/operator/param_of.h"
#include "mxtrain/symbol/graph.h"

namespace mxtrain::config {
namespace {

bool Holds(const std::vector<NetInput>& inputs, const std::string& name) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&name](const NetInput& input) { return input.name == name; });
}

// Index of the first label, or of the first other argument, of unknown shape; beyond the last if
// there is none.
size_t FirstUnknown(const Net& net, const Symbol::Shapes& shapes, bool label) {
  const std::vector<std::string> names = net.symbol.ListArguments();
  size_t i = 0;
  while (i < shapes.arguments.size() &&
         (shapes.arguments[i].known() || Holds(net.labels, names[i]) != label))
    ++i;
  return i;
}

// "FullyConnected 'fc' (net.yaml:7)".
std::string ReaderOf(const Net& net, const std::string& variable) {
  const Graph& graph = net.symbol.graph();
  for (const Node& node : graph.nodes) {
    for (const NodeEntry& input : node.inputs) {
      if (graph.nodes[static_cast<size_t>(input.node)].name == variable) return DescribeNode(node);
    }
  }
  return "nothing";
}

// Throws kConfig if a shape does not follow from the given ones. That of a label may be left to the
// data.
void CheckComplete(const Net& net, const Symbol::Shapes& shapes,
                   const std::map<std::string, TShape>& given) {
  if (shapes.complete) return;
  const size_t label = FirstUnknown(net, shapes, /*label=*/true),
               other = FirstUnknown(net, shapes, /*label=*/false);
  if (other <= label) InferSpecs(net.symbol.graph(), given, {}, /*allow_partial=*/false);  // throws
  if (other == shapes.arguments.size()) return;
  const std::string name = net.symbol.ListArguments()[other];
  Throw(ErrorKind::kConfig, "the shape of variable '{}' is not known: {} implies only {}", name,
        ReaderOf(net, name), shapes.arguments[other].ToString());
}

// What does not fit when batches have `batch` examples instead of those of `shapes`; "" if all
// does.
std::string Misfit(const Net& net, const Symbol::Shapes& shapes, int64_t batch) {
  const std::map<std::string, TShape> given = BatchShapes(net, batch);
  Symbol::Shapes found;
  try {
    found = net.symbol.InferShape(given);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    return e.what();
  }
  const std::vector<std::string> names = net.symbol.ListArguments();
  for (size_t i = 0; i < names.size(); ++i) {
    const TShape &before = shapes.arguments[i], &now = found.arguments[i];
    if (given.contains(names[i]) || !before.known() || !now.known()) continue;
    const bool label = Holds(net.labels, names[i]);  // has the batch as an axis, a parameter not
    if (label == (before != now)) continue;
    const std::string reader = ReaderOf(net, names[i]);
    if (label) return format("the label '{}' of {} stays {}", names[i], reader, now.ToString());
    return format("the parameter '{}' of {} would be {} instead of {}", names[i], reader,
                  now.ToString(), before.ToString());
  }
  return "";
}

// The largest distance of the points of a detector; 0 without any.
int64_t LargestStride(const Net& net, std::string* layer) {
  int64_t largest = 0;
  for (const Node& node : net.symbol.graph().nodes) {
    const std::string text = node.op ? ParamOf(*node.op, "strides") : "";
    if (text.empty()) continue;
    TShape strides;
    params::Parse(text, &strides);
    for (const int64_t stride : strides) {
      if (stride <= largest) continue;
      largest = stride;
      *layer = DescribeNode(node);
    }
  }
  return largest;
}

// For a net of points whose shapes contradict each other: an image whose sides the largest distance
// of them does not divide. "" if that is not so.
std::string MisfitOfSides(const Net& net, std::string* help) {
  std::string layer;
  const int64_t stride = LargestStride(net, &layer);
  for (const NetInput& input : net.inputs) {
    const TShape& s = input.shape;
    if (stride < 1 || s.ndim() != 3 || !s.known()) continue;
    if (s[1] % stride == 0 && s[2] % stride == 0) continue;
    const auto fitting = [stride](int64_t side) {
      return std::max<int64_t>(side / stride, 1) * stride;
    };
    *help = format("for example [{}, {}, {}], and the transforms to that size", s[0], fitting(s[1]),
                   fitting(s[2]));
    return format(
        "the input '{}' is {}: its sides must be multiples of {}, the distance of the points of {}",
        input.name, s.ToString(), stride, layer);
  }
  return "";
}

}  // namespace

void CheckNetShapes(const Net& net, int64_t batch, const Place& input, const Place& fallback,
                    Diagnostics* diagnostics) {
  const std::map<std::string, TShape> given = BatchShapes(net, batch);
  Symbol::Shapes shapes;
  try {
    shapes = net.symbol.InferShape(given);
    CheckComplete(net, shapes, given);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    std::string help;
    if (const std::string misfit = MisfitOfSides(net, &help); !misfit.empty())
      return diagnostics->Error(input ? input : fallback, misfit, help);
    Diagnostic diagnostic = ToDiagnostic(net, e, fallback);
    const size_t unknown = FirstUnknown(net, shapes, /*label=*/false);
    if (unknown < shapes.arguments.size() &&
        net.origins.contains(net.symbol.ListArguments()[unknown]))
      diagnostic.help = "write the shape into the Variable: {shape: [...]}";
    return diagnostics->Add(std::move(diagnostic));
  }
  for (const int64_t other : {batch + 1, int64_t{1}}) {
    const std::string misfit = other == batch ? "" : Misfit(net, shapes, other);
    if (misfit.empty()) continue;
    Diagnostic diagnostic = ToDiagnostic(net, Error(ErrorKind::kConfig, misfit), fallback);
    diagnostic.severity = Severity::kWarning;
    diagnostic.message =
        format("the net fits batches of {}, but not of {}: {}", batch, other, misfit);
    diagnostic.help =
        other == 1 ? "`infer` may fail for a single example; squeeze without `axis` also removes a "
                     "batch of 1: give it the axes"
                   : "`eval` and `infer` may need just this batch size; write shapes without it: 0 "
                     "in a Reshape copies it, 1 in a Variable is broadcast";
    return diagnostics->Add(std::move(diagnostic));
  }
}

}  // namespace mxtrain::config
