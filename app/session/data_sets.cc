// SPDX-License-Identifier: Apache-2.0
#include "app/session/data_sets.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include "app/config/near_file.h"
#include "app/session/head_tasks.h"
#include "app/session/normalized_columns.h"
#include "app/session/pipeline_spec.h"
#include "app/session/source_params.h"
#include "app/session/train_options.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/io/column_statistics.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/image_targets.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::session {
namespace {

// Where the files of a published set come from, and how to say where they are.
std::string OriginOf(const std::string& source) {
  std::string files;
  if (source == "mnist")
    files =
        "the four files of MNIST (train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, "
        "t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz), or of Fashion-MNIST,";
  if (source == "cifar10" || source == "cifar100")
    files = format("the unpacked binary version of {} (www.cs.toronto.edu/~kriz/cifar.html)",
                   source == "cifar10" ? "CIFAR-10" : "CIFAR-100");
  return files.empty() ? ""
                       : files +
                             " have to be downloaded by hand; name their folder with "
                             "data.train.path=FOLDER data.val.path=FOLDER";
}

// Labels that are numbers with units.
std::vector<std::string> Targets(const SessionView& session) {
  std::vector<std::string> targets;
  for (const auto& task : TasksOf(session)) {
    const std::string& label = task->head().label;
    if (task->TakesNumbers() && std::ranges::count(targets, label) == 0) targets.push_back(label);
  }
  return targets;
}

// How targets are read is said once, for the training data.
void InheritTargets(const config::SourceConfig& training, Kwargs* kwargs) {
  for (const auto& [key, text] : training.params) {
    const bool own = std::ranges::any_of(
        *kwargs, [&name = key](const auto& param) { return param.first == name; });
    if (io::IsTargetsParam(key) && !own) kwargs->emplace_back(key, text);
  }
}

// What was found in the training data, and other data of this kind is read with.
void Carry(const Kwargs& found, const std::string& source, Kwargs* kwargs) {
  const io::SourceKind* const kind = io::Sources().Find(source);
  for (const auto& [key, text] : found) {
    if (kind && std::ranges::count(kind->carried, key) > 0) kwargs->emplace_back(key, text);
  }
}

using NormalizedByField = std::map<std::string, std::vector<NormalizedColumn>>;

io::TransformKinds TransformsOf(const NormalizedByField& chosen) {
  io::TransformKinds kinds;
  for (const auto& [field, columns] : chosen) {
    const bool any = std::ranges::any_of(columns, [](const NormalizedColumn& column) {
      return column.transform != ColumnTransform::kNone;
    });
    for (const NormalizedColumn& column : columns) {
      if (any) kinds[field].push_back(column.transform);
    }
  }
  return kinds;
}

// As parameters of the source of a table. Returns how many columns are standardized, and how many
// transformed.
std::pair<int64_t, int64_t> AddStatistics(const std::vector<io::ColumnStatistics>& measured,
                                          const NormalizedByField& chosen, Kwargs* params) {
  std::vector<std::string> means, stds, transforms;
  int64_t count = 0, transformed = 0;
  for (const io::ColumnStatistics& of : measured) {
    const auto own = chosen.find(of.field);
    for (size_t k = 0; k < of.mean.size(); ++k) {
      means.push_back(format("{}={}", of.field, params::Print(of.mean[k])));
      if (!of.transforms.empty())
        transforms.push_back(format("{}={}", of.field, of.transforms[k].ToText()));
      if (own == chosen.end()) continue;
      const NormalizedColumn& column = own->second[k];
      stds.push_back(
          format("{}={}", of.field, column.standardized ? params::Print(of.std[k]) : "0"));
      count += column.standardized ? 1 : 0;
      transformed += column.transform != ColumnTransform::kNone ? 1 : 0;
    }
  }
  params->emplace_back("field_means", params::Print(means));
  if (!stds.empty()) params->emplace_back("field_stds", params::Print(stds));
  if (!transforms.empty()) params->emplace_back("field_transforms", params::Print(transforms));
  return {count, transformed};
}

}  // namespace

std::shared_ptr<const io::Source> DataSets::Open(bool validation) {
  std::shared_ptr<const io::Source>& source = validation ? validation_ : training_;
  const config::SourceConfig& c = ConfigOf(validation);
  if (source || c.source.empty()) return source;
  RequirePath(c);
  CheckColumns(c);
  source = Make(c, ParamsOf(validation));
  if (!validation) class_names_ = source->class_names();
  const std::vector<std::string> notes =
      source->notes();  // of what it found, which it is told later
  if (!validation && IsTable(c)) CompleteTable();
  if (validation && HoldsOut()) return source;  // the training set has reported the warnings
  for (const std::string& text : notes) session_.log.Write(LogLevel::kInfo, text);
  if (const auto weights = io::SummarizeWeights(*source)) {
    session_.log.Write(LogLevel::kInfo,
                       format("weights of the examples {}: {}",
                              validation ? "of validation" : "to train on", weights->ToText()));
  }
  for (const std::string& text : source->remarks()) session_.log.Write(LogLevel::kWarning, text);
  return source;
}

// For the names of its inputs and labels, if it matters that one is that of weights. What is wrong
// with it is reported when the net is built.
config::Net DataSets::NetOfOneClass(const OperatorRegistry& operators) const {
  const std::vector<config::Column>& columns = config().data.train.columns;
  if (std::ranges::find(columns, config::kWeightColumn, &config::Column::input) == columns.end())
    return {};
  config::Diagnostics ignored(session_.diagnostics.shared_sources());
  return config::BuildNet(
      config(), operators, [](std::string_view) { return std::optional<int64_t>(1); }, &ignored);
}

std::optional<int64_t> DataSets::CountClasses(const OperatorRegistry& operators) {
  const config::SourceConfig& c = config().data.train;
  if (c.label == "image") return std::nullopt;
  std::vector<std::string> named;
  const bool own_classes = c.label.empty() || c.label == "given" || HasOwnMasks(c, c.label);
  params::Parse(c.Param(own_classes ? "classes" : "mask_classes"), &named);
  if (!named.empty()) return std::ssize(named);  // `plan` needs no data
  int64_t classes = 0;
  const io::SourceKind* const kind = io::Sources().Find(c.source);
  if (kind && kind->is_table) {
    RequirePath(c);
    if (const auto labels = LabelParams(c, config().net.inputs, NetOfOneClass(operators)))
      classes = Make(c, *labels)->num_classes();
  } else if (TakesLengthOfNet(c)) {
    classes = BeforeNet()->num_classes();
  } else if (kind && kind->num_classes > 0 && !std::filesystem::exists(c.path())) {
    classes = kind->num_classes;  // `plan` needs no data
  } else {
    Open(false);
    classes = static_cast<int64_t>(class_names_.size());
  }
  return classes > 0 ? std::optional(classes) : std::nullopt;
}

std::optional<int64_t> DataSets::CountTokens() {
  const int64_t tokens = TakesLengthOfNet(config().data.train) ? BeforeNet()->num_tokens()
                         : Open(false)                         ? training_->num_tokens()
                                                               : 0;
  return tokens > 0 ? std::optional(tokens) : std::nullopt;
}

// The net that says how long examples are is built with their numbers of classes and tokens: they
// are opened anew.
std::shared_ptr<const io::Source> DataSets::BeforeNet() const {
  if (training_) return training_;
  RequirePath(config().data.train);
  return Make(config().data.train, WholeParamsOf(false));
}

// Checkpoints of older versions do not name how validation data was drawn.
void DataSets::KeepFindings(const std::string& pipeline) {
  const PipelineSpec spec = PipelineSpec::FromJson(pipeline);
  const Kwargs& params = spec.source_params;
  Carry(params, spec.source, &kept_);
  const auto named = [&params](std::string_view name) {
    return std::find_if(params.begin(), params.end(),
                        [name](const auto& param) { return param.first == name; });
  };
  if (named("holdout") == params.end()) return;
  const auto draw = named("holdout_draw");
  draw_ = draw == params.end() ? "position" : draw->second;
  if (const auto seed = named("holdout_seed"); seed != params.end()) draw_seed_ = seed->second;
}

bool DataSets::HoldsOut() const {
  const config::SourceConfig& val = config().data.val;
  return val.source.empty() && (val.holdout > 0 || val.folds > 0);
}

const config::SourceConfig& DataSets::ConfigOf(bool validation) const {
  return validation && !HoldsOut() ? config().data.val : config().data.train;
}

Kwargs DataSets::WholeParamsOf(bool validation) const {
  const config::SourceConfig& c = ConfigOf(validation);
  const std::string& label = c.label.empty() ? config().data.train.label : c.label;
  Kwargs kwargs = SourceParams(c, session_.net, class_names_, label);
  if (validation && !HasOwnMasks(c, label)) InheritTargets(config().data.train, &kwargs);
  if (!kept_.empty() || training_)
    Carry(kept_.empty() ? training_->found() : kept_, c.source, &kwargs);
  if (IsTable(ConfigOf(validation)))
    kwargs.insert(kwargs.end(), table_params_.begin(), table_params_.end());
  return kwargs;
}

Kwargs DataSets::ParamsOf(bool validation) const {
  Kwargs kwargs = WholeParamsOf(validation);
  if (!HoldsOut()) return kwargs;
  const config::SourceConfig& val = config().data.val;
  const Kwargs holdout = {
      {"holdout", params::Print(val.holdout)},
      {"holdout_folds", params::Print(val.folds)},
      {"holdout_fold", params::Print(val.fold)},
      {"holdout_side", validation ? "held_out" : "rest"},
      {"holdout_seed", draw_seed_.empty() ? std::to_string(val.holdout_seed) : draw_seed_},
      {"holdout_draw", draw_},
      {"holdout_stratified", params::Print(val.stratified)},
      {"holdout_group_pattern", val.group_pattern}};
  if (!val.group.empty()) kwargs.emplace_back("group", val.group);
  kwargs.insert(kwargs.end(), holdout.begin(), holdout.end());
  return kwargs;
}

// What the source refuses is reported at the key, or the name of a column, that it is about.
std::shared_ptr<const io::Source> DataSets::Make(const config::SourceConfig& c,
                                                 const Kwargs& params) const {
  try {
    return io::MakeSource(c.source, params);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    session_.diagnostics.Error(PlaceOfError(c, e.what()), e.what());
    session_.diagnostics.ThrowIfErrors();
    throw;
  }
}

config::Place DataSets::PlaceOfError(const config::SourceConfig& c, const std::string& what) const {
  for (const config::Column& column : c.columns) {
    for (size_t i = 0; i < column.columns.size(); ++i) {
      if (what.find(format("column '{}'", column.columns[i])) != std::string::npos)
        return column.places[i];
    }
  }
  const std::string set = &c == &config().data.val ? "data.val." : "data.train.";
  for (const auto& [key, text] : c.params) {
    if (what.find(format("{} = '", key)) != std::string::npos && session_.loaded.PlaceOf(set + key))
      return session_.loaded.PlaceOf(set + key);
  }
  return c.place;
}

void DataSets::RequirePath(const config::SourceConfig& c) const {
  const std::string path = c.path();
  if (std::filesystem::exists(path)) return;
  const std::string guess = config::DidYouMeanFile(path, config::NearFiles::kData),
                    origin = OriginOf(c.source);
  Throw(ErrorKind::kData, "{}: {} does not exist{}", session_.diagnostics.sources().Where(c.place),
        path,
        !guess.empty() ? guess
        : !origin.empty()
            ? "; " + origin
            : "; paths are relative to the file that names them, on the command line to "
              "the working folder");
}

// Every input of the net must have columns before a table can be read.
void DataSets::CheckColumns(const config::SourceConfig& c) const {
  if (!IsTable(c)) return;
  const config::Net& net = session_.net;
  std::vector<std::string> names;
  for (const config::Column& column : c.columns) names.push_back(column.input);
  for (const auto* wanted : {&net.inputs, &net.labels}) {
    for (const config::NetInput& input : *wanted) {
      if (std::find(names.begin(), names.end(), input.name) != names.end()) continue;
      session_.diagnostics.Error(c.place,
                                 format("`columns` names no columns for the net's {} '{}'{}",
                                        wanted == &net.inputs ? "input" : "label", input.name,
                                        DidYouMean(input.name, names)),
                                 format("add {}: [COLUMN, ...] to columns", input.name));
    }
  }
  session_.diagnostics.ThrowIfErrors();
  if (!net.inputs.empty()) WarnOfUnreadColumns(c);  // else the net could not be built, as reported
}

void DataSets::WarnOfUnreadColumns(const config::SourceConfig& c) const {
  const config::Net& net = session_.net;
  const std::vector<MetricSpec> metrics = MetricsOf(config().train);
  for (const config::Column& column : c.columns) {
    const std::string& name = column.input;
    const auto same = [&name](const config::NetInput& input) { return input.name == name; };
    const bool read = IsWeight(column, net) ||
                      std::any_of(net.inputs.begin(), net.inputs.end(), same) ||
                      std::any_of(net.labels.begin(), net.labels.end(), same) ||
                      std::any_of(metrics.begin(), metrics.end(),
                                  [&name](const MetricSpec& m) { return m.label == name; });
    if (!read)
      session_.log.Write(LogLevel::kWarning,
                         format("{}: columns '{}' are not read by any input, loss or metric",
                                session_.diagnostics.sources().Where(c.place), name));
  }
}

// The training set of a table determines means and deviations; other tables for this net use the
// same values.
void DataSets::CompleteTable() {
  table_params_ = training_->found();
  std::vector<std::string> targets = Targets(session_);
  if (config().data.train.label == "image") targets.clear();  // are no numbers
  CheckTargets(targets);
  const bool standardizes = config().data.train.normalize.any();
  const NormalizedByField chosen =
      standardizes ? NormalizedFields(session_, *training_, targets) : NormalizedByField();
  const bool fills =
      ConfigOf(false).Param("missing") == "mean" || ConfigOf(true).Param("missing") == "mean";
  std::vector<std::string> fields;
  for (const io::FieldSpec& field : training_->data_fields()) {
    if (field.kind == io::FieldKind::kValues && (chosen.contains(field.name) || fills))
      fields.push_back(field.name);
  }
  const size_t inputs = fields.size();
  std::ranges::copy_if(targets, std::back_inserter(fields),
                       [&chosen](const std::string& target) { return chosen.contains(target); });
  if (fields.empty()) return;
  const auto [count, transformed] = AddStatistics(
      io::MeasureColumns(*training_, fields, TransformsOf(chosen)), chosen, &table_params_);
  training_ = io::MakeSource(config().data.train.source, ParamsOf(false));
  if (count == 0) return;
  session_.log.Write(
      LogLevel::kInfo,
      format("normalize: {}means and standard deviations of {}{}, from {} rows{}",
             config().data.train.normalize.automatic ? "auto: " : "", Counted(count, "column"),
             transformed > 0 ? format(", {} of them transformed", transformed) : "",
             training_->size(),
             fields.size() > inputs ? "; losses are of standardized labels, metrics and "
                                      "predictions in the labels' own units"
                                    : ""));
}

void DataSets::CheckTargets(const std::vector<std::string>& targets) const {
  const PipelineSpec table{config().data.train.source, table_params_, {}, {}};
  for (const std::string& target : targets) {
    const std::vector<std::string> classes = table.ClassesOf(target);
    if (classes.empty()) continue;
    Throw(ErrorKind::kConfig,
          "{}: the column of '{}' contains words ({}), but its loss takes numbers; use a numeric "
          "column, or end the net with SoftmaxOutput",
          session_.diagnostics.sources().Where(config().data.train.place), target,
          FirstOf(classes, 4));
  }
}

}  // namespace mxtrain::session
