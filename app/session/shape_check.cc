// SPDX-License-Identifier: Apache-2.0
#include "app/session/shape_check.h"

#include <algorithm>
#include <map>
#include <span>

#include "app/session/source_params.h"
#include "app/session/train_options.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/symbol/graph.h"
#include "mxtrain/train/evaluation.h"

namespace mxtrain::session {
namespace {

// Shapes of the net's parameters when its images have this size.
std::vector<TShape> ParameterShapes(const config::Net& net, const std::string& input,
                                    const TShape& size) {
  std::map<std::string, TShape> known = config::BatchShapes(net, 1);
  for (const config::NetInput& label : net.labels) known.erase(label.name);  // may be of that size
  TShape& batch = known.at(input);
  for (int i = 0; i < size.ndim(); ++i) batch[i + 1] = size[i];
  const Symbol::Shapes shapes = net.symbol.InferShape(known);
  const std::vector<std::string> arguments = net.symbol.ListArguments(),
                                 names = config::ParametersOf(net);
  std::vector<TShape> parameters = shapes.auxiliaries;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (std::ranges::find(names, arguments[i]) != names.end())
      parameters.push_back(shapes.arguments[i]);
  }
  return parameters;
}

// Without the batch.
TShape OfExample(const TShape& shape) {
  return TShape(std::span(shape.begin() + 1, static_cast<size_t>(shape.ndim() - 1)));
}

// Of the input's shape.
config::Place DeclarationOf(const config::NetConfig& net, const config::NetInput& input) {
  const config::Member* member = net.inputs.is_map() ? net.inputs.Find(input.name) : nullptr;
  return member ? member->value.place : net.input.place;
}

// At the net's declaration if that comes from the command line, else at the data. No transform
// changes the columns of a table.
void ReportShape(const config::NetInput& input, const TShape& given, const config::SourceConfig& c,
                 const SessionView& session) {
  const config::NetConfig& net = session.config().net;
  const config::Place declared = DeclarationOf(net, input);
  const bool table = IsTable(c) && given.ndim() == 1;
  const bool overridden = session.diagnostics.sources().Where(declared) == "command line";
  const std::string key = net.inputs.is_map() ? "net.inputs." + input.name : "net.input";
  session.diagnostics.Error(
      overridden ? declared : c.place,
      format("the data has shape {} for input '{}', but the net declares {}", given.ToString(),
             input.name, input.shape.ToString()),
      table ? format("change {} to {}, or list {} columns for '{}' in `columns`", key,
                     given.ToString(), input.shape.Size(), input.name)
            : format("change {} to {}, or add a transform that produces {}", key, given.ToString(),
                     input.shape.ToString()));
}

// Arrays of zeros.
class Zeros {
 public:
  TBlob Add(const TShape& shape) {
    std::vector<float>& values = values_.emplace_back(static_cast<size_t>(shape.Size()));
    return {values.data(), shape, DType::kFloat32, {}, Context::cpu()};
  }

 private:
  std::vector<std::vector<float>> values_;
};

}  // namespace

bool TakesSize(const config::Net& net, const config::NetInput& input, const TShape& size) {
  if (size.ndim() != 3 || input.shape.ndim() != 3 || size[0] != input.shape[0]) return false;
  try {
    return ParameterShapes(net, input.name, size) == ParameterShapes(net, input.name, input.shape);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    return false;
  }
}

BatchArrays DeclaredArrays(const DataIter& iter, const config::Net& net) {
  std::vector<BatchArrays> sizes = iter.sizes();
  const auto is_declared = [&net](const BatchArrays& arrays) {
    return std::ranges::any_of(arrays.data, [&net](const DataDesc& desc) {
      return !net.inputs.empty() && desc.name == net.inputs[0].name &&
             OfExample(desc.shape) == net.inputs[0].shape;
    });
  };
  const auto found = std::ranges::find_if(sizes, is_declared);
  return found == sizes.end() ? std::move(sizes.back()) : std::move(*found);
}

std::vector<TShape> OutputShapes(const DataIter& iter, const config::Net& net) {
  std::map<std::string, TShape> known = config::BatchShapes(net, iter.batch_size());
  for (const DataDesc& label : DeclaredArrays(iter, net).label) {
    const bool read = std::any_of(net.labels.begin(), net.labels.end(),
                                  [&](const config::NetInput& l) { return l.name == label.name; });
    if (read) known[label.name] = label.shape;
  }
  const Graph& graph = net.symbol.graph();
  const InferredSpecs specs = InferSpecs(graph, known, {}, /*allow_partial=*/false);
  std::vector<TShape> shapes;
  for (const NodeEntry& head : graph.heads) {
    shapes.push_back(specs.shapes[static_cast<size_t>(head.node)][static_cast<size_t>(head.index)]);
  }
  return shapes;
}

void CheckShapes(const DataIter& iter, const config::SourceConfig& c, bool training,
                 const SessionView& session) {
  const std::vector<DataDesc> descs = DeclaredArrays(iter, session.net).data;
  std::vector<std::string> names;
  for (const DataDesc& desc : descs) names.push_back(desc.name);
  for (const config::NetInput& input : session.net.inputs) {
    const auto found = std::find_if(descs.begin(), descs.end(),
                                    [&](const DataDesc& d) { return d.name == input.name; });
    if (found == descs.end()) {
      session.diagnostics.Error(
          c.place,
          format("the data does not provide the net's input '{}'; it provides {}", input.name,
                 join(names, ", ")),
          "list the columns of each input in `columns`" + DidYouMean(input.name, names));
      continue;
    }
    const TShape given = OfExample(found->shape);
    if (given == input.shape || (!training && TakesSize(session.net, input, given))) continue;
    ReportShape(input, given, c, session);
  }
  session.diagnostics.ThrowIfErrors();
}

void CheckTargets(const DataIter& iter, const config::SourceConfig& c, const SessionView& session) {
  // Without the labels, which may not fit.
  const Symbol::Shapes shapes =
      session.net.symbol.InferShape(config::BatchShapes(session.net, iter.batch_size()));
  const std::vector<TShape>& outputs = shapes.outputs;
  if (!shapes.complete) return;
  const std::string& label_kind = c.label.empty() ? session.config().data.train.label : c.label;
  const bool of_masks = label_kind == "mask";
  const LossReport losses(session.net.symbol);
  for (const LossReport::Head& head : losses.heads()) {
    using Kind = LossReport::Head::Kind;
    const TShape& output = outputs[static_cast<size_t>(head.output)];
    for (const DataDesc& label : DeclaredArrays(iter, session.net).label) {
      if (label.name != head.label) continue;
      const bool of_pixels = head.kind == Kind::kSoftmax && head.class_axis_1;
      if (of_masks && !of_pixels) {
        session.diagnostics.Error(c.place,
                                  format("label: mask has a class for each pixel, which '{}' does "
                                         "not take",
                                         head.name),
                                  "end the net with SoftmaxOutput: {multi_output: true, "
                                  "use_ignore: true, normalization: valid}");
        continue;
      }
      // Of the data that say what labels are.
      if (of_masks && !c.label.empty() && (!head.ignores || head.ignore_label != -1)) {
        session.log.Write(LogLevel::kWarning,
                          format("pixels of no class, and padding, have the label -1, which '{}' "
                                 "does not ignore: add use_ignore: true to its SoftmaxOutput",
                                 head.name));
      }
      const bool compared = head.kind == Kind::kLinear || head.kind == Kind::kAbsolute;
      if (head.kind == Kind::kSoftmax && label.shape.ndim() == 3 && output.ndim() == 4 &&
          (label.shape[1] != output[2] || label.shape[2] != output[3])) {
        session.diagnostics.Error(
            c.place,
            format("the label '{}' has a class for each of {}x{} pixels, but '{}' answers {}x{}",
                   label.name, label.shape[2], label.shape[1], head.name, output[3], output[2]),
            "end the net with UpSampling, or an output of that size");
      }
      if (!compared || label.shape.ndim() != 4 || label.shape == output) continue;
      const TShape image = OfExample(label.shape);
      session.diagnostics.Error(
          c.place,
          format("the label '{}' is an image of shape {}, but '{}' answers {}", label.name,
                 image.ToString(), head.name, OfExample(output).ToString()),
          label.shape.Size() == output.Size()
              ? format("add Reshape: {{shape: [0, {}, {}, {}]}} before the loss", image[0],
                       image[1], image[2])
              : "let the net end with an output of that shape");
    }
  }
  session.diagnostics.ThrowIfErrors();
}

void CheckMetrics(const DataIter& iter, const SessionView& session) {
  const Symbol& net = session.net.symbol;
  const LossReport losses(net);
  const std::vector<DataDesc> descs = DeclaredArrays(iter, session.net).label;
  Zeros zeros;
  std::vector<TBlob> outputs;
  try {
    for (const TShape& shape : OutputShapes(iter, session.net)) outputs.push_back(zeros.Add(shape));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    return;  // the net's binding reports that
  }
  std::map<std::string, TBlob> labels;
  for (const DataDesc& label : descs) labels[label.name] = zeros.Add(label.shape);
  const bool misses_label =
      std::any_of(losses.heads().begin(), losses.heads().end(), [&](const LossReport::Head& head) {
        return !head.label.empty() && !labels.contains(head.label);
      });
  if (misses_label) return;  // the trainer reports that
  const std::vector<MetricSpec> specs = MetricsOf(session.config().train);
  std::vector<MetricSpec> sound;
  for (size_t i = 0; i < specs.size(); ++i) {
    sound.push_back(specs[i]);
    try {
      const MetricSet all(net, losses, sound, descs);  // throws for two of one name
      MetricSet(net, losses, {specs[i]}, descs).Update(outputs, labels, iter.batch_size());
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kConfig) throw;
      session.diagnostics.Error((*session.config().train.metrics)[i].place, e.what());
      sound.pop_back();
    }
  }
  session.diagnostics.ThrowIfErrors();
}

}  // namespace mxtrain::session
