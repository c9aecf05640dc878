// SPDX-License-Identifier: Apache-2.0
#include "app/session/pipeline_spec.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/io/column_statistics.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/first_record.h"
#include "mxtrain/io/image_targets.h"

namespace mxtrain::session {
namespace {

Json FromKwargs(const Kwargs& kwargs) {
  Json list = Json::array();
  for (const auto& [key, value] : kwargs) list.push_back({key, value});
  return list;
}

Kwargs ToKwargs(const Json& list) {
  Kwargs kwargs;
  for (const Json& item : list)
    kwargs.emplace_back(item.at(0).get<std::string>(), item.at(1).get<std::string>());
  return kwargs;
}

// How sizes and positions are rounded unless the transforms say otherwise. Older checkpoints do not
// name it.
constexpr const char* kRounding = "torchvision";

void KeepEarlierRounding(std::vector<io::TransformSpec>* transforms) {
  for (io::TransformSpec& t : *transforms) {
    if (t.name == "resize" || t.name == "center_crop") t.kwargs.emplace_back("rounding", "earlier");
  }
}

}  // namespace

std::vector<std::string> PipelineSpec::ValuesOf(const std::string& parameter,
                                                const std::string& field) const {
  std::vector<std::string> values;
  for (const auto& [key, text] : source_params) {
    if (key != parameter) continue;
    std::vector<std::string> named;  // FIELD=VALUE
    params::Parse(text, &named);
    for (const std::string& item : named) {
      if (item.starts_with(field + "=")) values.push_back(item.substr(field.size() + 1));
    }
  }
  return values;
}

std::vector<std::string> PipelineSpec::ColumnsOf(const std::string& field) const {
  const std::vector<std::string> columns = ValuesOf("data_fields", field);
  return columns.empty() ? ValuesOf("label_fields", field) : columns;
}

std::vector<std::string> PipelineSpec::ClassesOf(const std::string& label) const {
  return ValuesOf("field_classes", label);
}

std::map<size_t, std::vector<std::string>> PipelineSpec::WordsOf(const std::string& input) const {
  std::map<size_t, std::vector<std::string>> words;
  for (const std::string& item : ValuesOf("field_words", input)) {  // K=WORD
    int64_t column = 0;
    const size_t equals = item.find('=');
    params::Parse(item.substr(0, equals), &column);
    words[static_cast<size_t>(column)].push_back(item.substr(equals + 1));
  }
  return words;
}

std::optional<Standardization> PipelineSpec::UnitsOf(const std::string& label) const {
  Standardization units;
  for (const std::string& text : ValuesOf("field_means", label))
    params::Parse(text, &units.mean.emplace_back());
  for (const std::string& text : ValuesOf("field_stds", label))
    params::Parse(text, &units.std.emplace_back());
  if (units.std.empty()) return std::nullopt;
  if (units.mean.size() != units.std.size())
    Throw(ErrorKind::kData,
          "the model's input pipeline is damaged: '{}' has {} means and {} deviations", label,
          units.mean.size(), units.std.size());
  for (const std::string& text : ValuesOf("field_transforms", label))
    units.transforms.push_back(ColumnTransform::FromText(text));
  if (!units.transforms.empty() && units.transforms.size() != units.mean.size())
    Throw(ErrorKind::kData,
          "the model's input pipeline is damaged: '{}' has {} means and {} transforms", label,
          units.mean.size(), units.transforms.size());
  return io::UnitsOfColumns(units.mean, units.std, std::move(units.transforms));
}

bool PipelineSpec::IsTable() const {
  const io::SourceKind* const kind = io::Sources().Find(source);
  return kind && kind->is_table;
}

bool PipelineSpec::NeedsTable() const {
  if (!IsTable()) return false;
  std::vector<std::string> columns, images;
  for (const auto& [key, text] : source_params) {
    if (key == "data_fields") params::Parse(text, &columns);
    if (key == "picture_fields") params::Parse(text, &images);
  }
  return images.size() != 1 || columns.size() != 1;
}

std::string PipelineSpec::ImageColumn() const {
  std::vector<std::string> columns;  // FIELD=COLUMN
  for (const auto& [key, text] : source_params) {
    if (key == "data_fields") params::Parse(text, &columns);
  }
  return columns.empty() ? "" : columns[0].substr(columns[0].find('=') + 1);
}

bool PipelineSpec::BeginsTable(std::string beginning) const {
  std::string delimiter = "auto";
  for (const auto& [key, text] : source_params) {
    if (key == "delimiter") delimiter = text;
  }
  const std::string column = ImageColumn();
  const std::vector<std::string> cells = io::FirstRecord(std::move(beginning), delimiter);
  if (std::find(cells.begin(), cells.end(), column) != cells.end()) return true;
  size_t number = 0;
  const auto [end, status] = std::from_chars(column.data(), column.data() + column.size(), number);
  const bool numbered = status == std::errc() && end == column.data() + column.size();
  return numbered && cells.size() > std::max<size_t>(number, 1);
}

Kwargs PipelineSpec::ParamsOfOther(const io::RecognizedSource& other,
                                   const std::vector<std::string>& classes,
                                   bool with_labels) const {
  const io::SourceKind& kind = *other.kind;
  Kwargs kwargs = other.recognition.params;
  for (const auto& [key, value] : source_params) {
    const FieldInfo* const field = kind.Parameter(key);
    const bool given = std::any_of(kwargs.begin(), kwargs.end(), [&name = key](const auto& param) {
      return param.first == name;
    });
    if (std::ranges::count(kind.of_own_data, key) > 0) continue;
    const bool carried = std::ranges::count(kind.carried, key) > 0;
    if (field && (!field->internal || carried) && field->type != "path" && !given)
      kwargs.emplace_back(key, value);
  }
  bool own_labels = true;  // not those of files of targets
  for (const auto& [key, value] : source_params) {
    if (!with_labels || !io::IsTargetsParam(key)) continue;
    own_labels = own_labels && key == "label" && value == "mask" && kind.make_masks;
    kwargs.emplace_back(key,
                        key == "targets" ? TargetsBeside(value, other.recognition.params) : value);
  }
  if (const std::string weight = TextOf("weight_column");
      with_labels && !weight.empty() && kind.Parameter("weight_column")) {
    kwargs.emplace_back("weight_column", weight);
    kwargs.emplace_back("weight_optional", "True");
  }
  if (with_labels && own_labels && !classes.empty() && kind.NamesClasses(kwargs))
    kwargs.emplace_back("classes", params::Print(classes));
  if (!with_labels && kind.Parameter("labels")) kwargs.emplace_back("labels", "False");
  return kwargs;
}

io::RecognizedSource PipelineSpec::Recognize(const std::string& path) const {
  io::RecognizedSource found = io::RecognizeSource(path, source);
  if (EncoderText().empty() || (found.kind && found.recognition.certain)) return found;
  found.kind = io::Sources().Find(source);
  found.recognition = {false, {{"path", path == "-" ? "/dev/stdin" : path}}};
  return found;
}

// Targets lie beside other data as beside the run's own: ../masks.
std::string PipelineSpec::TargetsBeside(const std::string& targets, const Kwargs& other) const {
  const auto path_of = [](const Kwargs& params) {
    for (const auto& [key, value] : params) {
      if (key == "path") return std::filesystem::absolute(value).lexically_normal();
    }
    return std::filesystem::path();
  };
  const std::filesystem::path own = path_of(source_params), given = path_of(other),
                              own_targets = std::filesystem::absolute(targets).lexically_normal();
  if (own == given) return targets;
  const std::filesystem::path beside = own_targets.lexically_relative(own),
                              found = (given / beside).lexically_normal();
  std::error_code none;
  if (!own.empty() && std::filesystem::is_directory(found, none)) return found.string();
  Throw(ErrorKind::kUsage,
        "{} are images; which images they are compared with is not known: those of the run lie in "
        "{} beside its own, and {} is no folder; put them there, or give a configuration with "
        "data.val.path and data.val.targets in place of the folder",
        given.string(), beside.string(), found.string());
}

Kwargs PipelineSpec::TableParams(const std::string& file, bool with_labels) const {
  static constexpr std::string_view kOfLabels[] = {"label_fields", "label_delim", "classes",
                                                   "field_classes", "image_labels"};
  Kwargs kwargs{{"path", file == "-" ? "/dev/stdin" : file}};
  bool root = false, images = false;
  for (const auto& [key, value] : source_params) {
    const bool label =
        std::find(std::begin(kOfLabels), std::end(kOfLabels), key) != std::end(kOfLabels);
    if (key == "path" || key.starts_with("holdout") || key == "group" || (label && !with_labels))
      continue;
    kwargs.emplace_back(key, value);
    root = root || key == "root";
    images = images || key == "picture_fields";
  }
  if (!std::filesystem::is_regular_file(file) && images && !root) kwargs.emplace_back("root", ".");
  if (with_labels && !ColumnsOf(kExampleWeight).empty())
    kwargs.emplace_back("weight_optional", "True");
  return kwargs;
}

PipelineSpec PipelineSpec::OfInputs(const std::vector<InputInfo>& inputs) const {
  PipelineSpec spec = *this;
  bool named = false;  // a table of numbered columns may lack a header, which all of them determine
  for (auto& [key, value] : spec.source_params) {
    if (key != "data_fields" && key != "picture_fields") continue;
    std::vector<std::string> fields;  // FIELD=COLUMN or FIELD
    params::Parse(value, &fields);
    std::erase_if(fields, [&inputs](const std::string& field) {
      return std::none_of(inputs.begin(), inputs.end(), [&field](const InputInfo& input) {
        return input.name == field.substr(0, field.find('='));
      });
    });
    for (const std::string& field : fields) {
      const size_t equals = field.find('=');
      named = named || (equals != std::string::npos &&
                        field.find_first_not_of("0123456789", equals + 1) != std::string::npos);
    }
    value = params::Print(fields);
  }
  return named ? spec : *this;
}

std::string PipelineSpec::TextOf(std::string_view parameter) const {
  for (const auto& [key, text] : source_params) {
    if (key == parameter) return text;
  }
  return "";
}

std::string PipelineSpec::TokenizerText() const {
  return TextOf("tokenizer_text");
}

std::string PipelineSpec::ChatText() const {
  return TextOf("chat_text");
}

std::string PipelineSpec::EncoderText() const {
  return TextOf("encoder_text");
}

bool PipelineSpec::NamesData() const {
  return !source.empty() && std::any_of(source_params.begin(), source_params.end(),
                                        [](const auto& param) { return param.first == "path"; });
}

bool PipelineSpec::HoldsOut() const {
  return std::any_of(source_params.begin(), source_params.end(), [](const auto& param) {
    return param.first == "holdout_side" && param.second == "held_out";
  });
}

PipelineSpec PipelineSpec::WithoutPaths() const {
  PipelineSpec spec = *this;
  std::erase_if(spec.source_params, [](const auto& param) {
    return param.first == "path" || param.first == "root" || param.first == "targets";
  });
  return spec;
}

PipelineSpec PipelineSpec::OfPrediction() const {
  PipelineSpec spec = *this;
  std::erase_if(spec.transforms,
                [](const io::TransformSpec& step) { return step.name == "gaussian_noise"; });
  return spec;
}

PipelineSpec PipelineSpec::OfArrays() const {
  PipelineSpec spec = *this;
  spec.transforms.clear();
  spec.bits = 8;
  spec.tiles.reset();
  return spec;
}

std::string PipelineSpec::ToJson() const {
  Json chain = Json::array();
  for (const io::TransformSpec& t : transforms)
    chain.push_back({{"name", t.name}, {"params", FromKwargs(t.kwargs)}});
  Json measures = Json::array();
  for (const MetricSpec& m : metrics) {
    measures.push_back({{"name", m.name},
                        {"params", FromKwargs(m.params)},
                        {"output", m.output},
                        {"label", m.label}});
  }
  // A path that is not UTF-8 is stored with U+FFFD.
  Json json{{"source", source},    {"params", FromKwargs(source_params)}, {"transforms", chain},
            {"metrics", measures}, {"exact_decode", exact_decode},        {"rounding", kRounding}};
  if (bits != 8) json["bits"] = bits;
  if (!task.empty()) json["task"] = task;
  if (tiles) json["tiles"] = {tiles->side, tiles->overlap};
  if (seed != 0) json["seed"] = seed;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

PipelineSpec PipelineSpec::FromJson(const std::string& text) {
  PipelineSpec spec;
  if (text.empty()) return spec;
  try {
    const Json json = ReadJsonOf<Json>("the model's input pipeline is damaged", text);
    spec.source = json.at("source");
    spec.source_params = ToKwargs(json.at("params"));
    for (const Json& t : json.at("transforms"))
      spec.transforms.push_back({t.at("name"), ToKwargs(t.at("params"))});
    for (const Json& m : json.at("metrics"))
      spec.metrics.push_back(
          {m.at("name"), ToKwargs(m.at("params")), m.at("output"), m.at("label")});
    spec.exact_decode = json.value("exact_decode", false);
    spec.bits = json.value("bits", 8);
    spec.task = json.value("task", "");
    if (json.contains("tiles")) spec.tiles = io::TilesOf(json["tiles"].at(0), json["tiles"].at(1));
    spec.seed = json.value("seed", uint64_t{0});
    if (json.value("rounding", "") != kRounding) KeepEarlierRounding(&spec.transforms);
  } catch (const nlohmann::json::exception& e) {
    Throw(ErrorKind::kData, "the model's input pipeline is damaged: {}", e.what());
  }
  return spec;
}

std::unique_ptr<DataIter> NewModelIter(Runtime& runtime, std::shared_ptr<const io::Source> source,
                                       const PipelineSpec& spec, const ModelInfo& model,
                                       int64_t batch_size, Context device) {
  // One thread per CPU: decoding is often the larger part, and a net that waits for images needs no
  // CPU.
  Kwargs kwargs{{"batch_size", params::Print(batch_size)},
                {"mode", "evaluation"},
                {"workers", params::Print(std::min(UsableCpuCount(), 256))},
                {"exact_decode", params::Print(spec.exact_decode)},
                {"bits", params::Print(spec.bits)},
                {"seed", std::to_string(spec.seed)}};
  std::vector<io::TransformSpec> transforms = spec.transforms;
  if (source->data_fields().size() == 1 && model.inputs.size() == 1) {
    kwargs.emplace_back("data_name", model.inputs[0].name);
    const bool image = source->data_fields()[0].kind == io::FieldKind::kImage;
    const TShape& input = model.inputs[0].shape;
    if (image && input.ndim() == 3) {
      kwargs.emplace_back("channels", params::Print(input[0]));
      // A model trained on images of one size (MNIST) or without a pipeline defines no resizing:
      // resize to its input.
      const bool any_size = !source->data_fields()[0].shape.known();
      if (any_size && transforms.empty())
        transforms.push_back({"resize", {{"size", params::Print(TShape{input[1], input[2]})}}});
    }
  }
  if (io::HasOneLabel(*source) && model.labels.size() == 1)
    kwargs.emplace_back("label_name", model.labels[0].name);
  io::PipelineParam param;
  param.Init(kwargs, "data");
  param.origins = true;
  param.Feed(device);
  auto iter = io::NewPipeline(runtime, std::move(source), transforms, param);
  for (const DataDesc& desc : iter->provide_data()) {
    for (const InputInfo& input : model.inputs) {
      const TShape given(
          std::span(desc.shape.begin() + 1, static_cast<size_t>(desc.shape.ndim() - 1)));
      if (input.name != desc.name || !input.shape.known() || input.shape == given) continue;
      const bool image = input.shape.ndim() == 3;
      Throw(ErrorKind::kConfig,
            "the {} have shape {} for input '{}', but the model was trained on {}{}",
            image ? "images" : "data", given.ToString(), input.name, input.shape.ToString(),
            image ? "; resize them first" : "");
    }
  }
  return iter;
}

}  // namespace mxtrain::session
