// SPDX-License-Identifier: Apache-2.0
#include "app/session/source_params.h"

#include <algorithm>

#include "app/session/code_columns.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::session {
namespace {

// FIELD=SHAPE if the columns match the shape that the net declares; mismatches are reported later,
// with their place.
std::optional<std::string> FieldShape(const config::Column& column,
                                      const std::vector<config::NetInput>& declared) {
  for (const config::NetInput& input : declared) {
    const bool fits = input.name == column.input && input.shape.known() &&
                      input.shape.Size() == static_cast<int64_t>(column.columns.size());
    if (fits && input.shape.ndim() > 0)
      return format("{}={}", column.input,
                    join(std::vector<int64_t>(input.shape.begin(), input.shape.end()), "x"));
  }
  return std::nullopt;
}

// Inputs of the net are data; all others are labels: those of losses, and those that only metrics
// read. The weight comes last.
void AddColumns(const config::SourceConfig& c, const config::Net& net, bool label_images,
                Kwargs* kwargs) {
  std::vector<std::string> data, labels, shapes, images, targets, codes, weights;
  for (const config::Column& column : c.columns) {
    if (IsWeight(column, net)) {
      for (const std::string& name : column.columns)
        weights.push_back(format("{}={}", kExampleWeight, name));
      continue;
    }
    const bool input =
        std::any_of(net.inputs.begin(), net.inputs.end(),
                    [&](const config::NetInput& i) { return i.name == column.input; });
    for (const std::string& name : column.columns)
      (input ? data : labels).push_back(format("{}={}", column.input, name));
    if (IsImage(column, net.inputs)) images.push_back(column.input);
    if (!input && label_images) targets.push_back(column.input);
    if (auto shape = FieldShape(column, input ? net.inputs : net.labels)) shapes.push_back(*shape);
  }
  labels.insert(labels.end(), weights.begin(), weights.end());
  for (const auto& [input, of] : FindCodeColumns(net)) {
    const auto columns = std::ranges::find(c.columns, input, &config::Column::input);
    if (!of.any() || columns == c.columns.end() || columns->columns.size() != of.rows.size())
      continue;  // a mismatch is reported later, with its place
    for (const int64_t rows : of.rows) codes.push_back(format("{}={}", input, rows));
  }
  if (!codes.empty()) kwargs->emplace_back("field_codes", params::Print(codes));
  if (!images.empty()) kwargs->emplace_back("picture_fields", params::Print(images));
  if (!targets.empty()) kwargs->emplace_back("image_labels", params::Print(targets));
  kwargs->emplace_back("data_fields", params::Print(data));
  kwargs->emplace_back("label_fields", params::Print(labels));
  kwargs->emplace_back("field_shapes", params::Print(shapes));
}

// The length of examples that are lists, as the net reads them.
std::optional<int64_t> LengthOf(const config::Net& net) {
  if (net.inputs.size() != 1 || !net.inputs[0].shape.known() || net.inputs[0].shape.ndim() != 1)
    return std::nullopt;
  return net.inputs[0].shape[0];
}

// What the configuration gives; a kind has its own default for an empty text.
Kwargs Given(const config::SourceConfig& c) {
  Kwargs kwargs = c.params;
  std::erase_if(kwargs, [](const auto& param) { return param.second.empty(); });
  return kwargs;
}

}  // namespace

bool TakesLengthOfNet(const config::SourceConfig& c) {
  const io::SourceKind* const kind = io::Sources().Find(c.source);
  const std::string given = c.Param("length");
  return kind && kind->Parameter("length") && (given.empty() || given == "0");
}

bool PacksDocuments(const config::SourceConfig& c) {
  const std::string pack = Lower(c.Param("pack"));
  return !pack.empty() && pack != "none" && pack != "false" && pack != "0";
}

bool IsTable(const config::SourceConfig& c) {
  const io::SourceKind* const kind = io::Sources().Find(c.source);
  return kind && kind->is_table;
}

bool IsWeight(const config::Column& column, const config::Net& net) {
  const auto has = [&column](const std::vector<config::NetInput>& inputs) {
    return std::ranges::find(inputs, column.input, &config::NetInput::name) != inputs.end();
  };
  return column.input == config::kWeightColumn && !has(net.inputs) && !has(net.labels);
}

bool HasOwnMasks(const config::SourceConfig& c, const std::string& label) {
  const io::SourceKind* const kind = io::Sources().Find(c.source);
  return label == "mask" && c.targets.empty() && kind && kind->make_masks;
}

Kwargs SourceParams(const config::SourceConfig& c, const config::Net& net,
                    const std::vector<std::string>& classes, const std::string& label) {
  const io::SourceKind& kind = *io::Sources().Find(c.source);
  Kwargs kwargs = Given(c);
  if (kind.is_table) AddColumns(c, net, label == "image", &kwargs);
  if (!kind.is_table && !c.columns.empty())
    kwargs.emplace_back("weight_column", c.columns[0].columns[0]);  // relations.cc has checked it
  const bool own_classes = label == "given" || HasOwnMasks(c, label);
  if (!classes.empty() && own_classes && kind.NamesClasses(kwargs))
    kwargs.emplace_back("classes", params::Print(classes));
  if (TakesLengthOfNet(c)) {
    std::erase_if(kwargs, [](const auto& param) { return param.first == "length"; });
    // Before there is a net any will do, to count classes.
    const std::optional<int64_t> length = net.inputs.empty() ? 1 : LengthOf(net);
    if (length) kwargs.emplace_back("length", params::Print(*length));
  }
  const auto position = [&kind](const auto& param) { return kind.Parameter(param.first); };
  std::stable_sort(kwargs.begin(), kwargs.end(), [&](const auto& one, const auto& other) {
    return position(one) < position(other);
  });
  if (label == "given" || kind.is_table) return kwargs;
  kwargs.emplace_back("label", label);
  if (!c.targets.empty()) kwargs.emplace_back("targets", c.targets);
  return kwargs;
}

std::optional<Kwargs> LabelParams(const config::SourceConfig& c, const config::Value& inputs,
                                  const config::Net& net) {
  std::vector<std::string> labels;
  for (const config::Column& column : c.columns) {
    const bool input =
        inputs.is_map() ? inputs.Find(column.input) != nullptr : column.input == "data";
    for (const std::string& name : column.columns) {
      if (!input && !IsWeight(column, net)) labels.push_back(format("{}={}", column.input, name));
    }
  }
  if (labels.empty()) return std::nullopt;
  Kwargs kwargs = Given(c);
  kwargs.emplace_back("label_fields", params::Print(labels));
  return kwargs;
}

bool IsImage(const config::Column& column, const std::vector<config::NetInput>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const config::NetInput& input) {
    return input.name == column.input && column.columns.size() == 1 && input.shape.ndim() == 3 &&
           input.shape.Size() != 1;
  });
}

std::optional<int64_t> ImageChannels(const io::Source& source,
                                     const std::vector<config::NetInput>& inputs) {
  const std::vector<io::FieldSpec>& fields = source.data_fields();
  for (const io::FieldSpec& field : fields) {
    if (field.kind != io::FieldKind::kImage) continue;
    for (const config::NetInput& input : inputs) {
      const bool meant = input.name == field.name || (fields.size() == 1 && inputs.size() == 1);
      if (meant && input.shape.ndim() == 3) return input.shape[0];
    }
  }
  return std::nullopt;
}

}  // namespace mxtrain::session
