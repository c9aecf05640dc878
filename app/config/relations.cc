// SPDX-License-Identifier: Apache-2.0
#include "app/config/relations.h"

#include <algorithm>
#include <cmath>

#include "app/config/schema_kinds.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/metric/metric.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain::config {
namespace {

std::unique_ptr<Metric> MetricOf(const Named& metric) {
  return Metric::Create(metric.name, ParamsOfMetric(metric.params));
}

// "top_5_accuracy" of {top_k: 5}.
std::string NameInReports(const Named& metric) {
  return MetricOf(metric)->name();
}

// If several metrics are of the same kind, each is called OUTPUT_KIND; the outputs are known once
// the net is built.
bool IsCalled(const std::string& name, const std::string& kind) {
  return name == kind || name.ends_with("_" + kind);
}

// Without a source, validation data is a part of the training set, or one of its folds.
void CheckValidation(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const SourceConfig& val = loaded.config.data.val;
  if (!val.place || !val.source.empty() || diagnostics->num_errors() > 0) return;
  if (val.holdout == 0 && val.folds == 0) {
    diagnostics->Error(val.place, "data.val needs the key 'source', 'split' or 'folds'",
                       "split: 0.1 holds out a tenth of the training set, folds: 5 a fifth");
  } else if (val.holdout > 0 && val.folds > 0) {
    diagnostics->Error(loaded.PlaceOf("data.val.folds"),
                       "data.val.split and data.val.folds exclude each other", "keep one of them");
  } else if (val.folds == 0 && val.fold > 0) {
    diagnostics->Error(loaded.PlaceOf("data.val.fold"),
                       format("data.val.fold = {} needs data.val.folds", val.fold),
                       "set data.val.folds to the number of folds");
  } else if (val.folds == 1 || (val.folds > 0 && val.fold >= val.folds)) {
    diagnostics->Error(loaded.PlaceOf(val.folds == 1 ? "data.val.folds" : "data.val.fold"),
                       val.folds == 1 ? "data.val.folds = 1 leaves nothing to train on"
                                      : format("data.val.fold = {} is out of range for {} folds",
                                               val.fold, val.folds),
                       val.folds == 1 ? "use 5 or 10, for example" : "folds count from 0");
  }
}

// Groups of rows are told by a column, those of files by their paths.
void CheckGroups(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const SourceConfig &train = loaded.config.data.train, &val = loaded.config.data.val;
  const io::SourceKind* const kind = io::Sources().Find(train.source);
  if (!val.group.empty() && !val.group_pattern.empty()) {
    diagnostics->Error(loaded.PlaceOf("data.val.group_pattern"),
                       "data.val.group and data.val.group_pattern exclude each other",
                       "keep one of them");
  } else if (!val.group.empty() && kind && !kind->Parameter("group")) {
    diagnostics->Error(
        loaded.PlaceOf("data.val.group"),
        format("data.val.group names a column of a table, and data.train is {}", train.source),
        "group_pattern is for paths of files");
  }
}

// Of a list, `columns` says where the weight of an example is, and nothing else.
void CheckWeightColumns(const SourceConfig& set, Diagnostics* diagnostics) {
  const io::SourceKind* const kind = io::Sources().Find(set.source);
  if (!kind || kind->is_table) return;
  for (const Column& column : set.columns) {
    const Place place = column.places.empty() ? set.place : column.places[0];
    const std::optional<int64_t> number =
        column.columns.size() == 1 ? Value::Scalar(column.columns[0]).AsInteger() : std::nullopt;
    if (column.input != kWeightColumn) {
      diagnostics->Error(place,
                         format("'{}' is no column of a {}, whose lines are paths, labels "
                                "and perhaps a weight",
                                column.input, set.source),
                         "write columns: {weight: 2}, or use a table: source: csv");
    } else if (!number || *number < 1) {
      diagnostics->Error(
          place,
          format("the weight of an example is one column of a {}, by its number", set.source),
          "column 0 is the path, 1 the label: columns: {weight: 2}");
    }
  }
}

// Images of the validation data have targets as those of the training data.
void CheckTargets(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const SourceConfig &train = loaded.config.data.train, &val = loaded.config.data.val;
  const auto check = [&](const SourceConfig& set, const std::string& label, const char* key) {
    if (!set.targets.empty() && label == "given")
      diagnostics->Error(loaded.PlaceOf(key), format("{} needs label: image or mask", key),
                         "add label: image beside it, or label: mask, or remove it");
    const io::SourceKind* const kind = io::Sources().Find(set.source);
    if (label == "mask" && kind && kind->is_table) {
      diagnostics->Error(set.place, format("label: mask is not for {}", set.source),
                         "use images in a folder or a list, and the folder of their masks as "
                         "targets");
    } else if (label == "mask" && set.targets.empty() && !(kind && kind->make_masks)) {
      diagnostics->Error(set.place, "label: mask needs the folder of the masks",
                         "add targets: FOLDER, with a mask for each image, of its name");
    }
  };
  check(train, train.label, "data.train.targets");
  if (val.source.empty()) return;
  const std::string& label = val.label.empty() ? train.label : val.label;
  check(val, label, "data.val.targets");
  if (label == "image" && train.label == "image" && val.targets.empty() && !train.targets.empty()) {
    diagnostics->Error(val.place,
                       "data.train has targets and data.val has none, so that each of its images "
                       "would be its own target",
                       "add targets: FOLDER, with the images that belong to those of data.val");
  }
}

void CheckOptimizer(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const TrainConfig& train = loaded.config.train;
  const bool plain = train.lr_schedule.name == "constant" && train.lr_schedule.params.empty();
  if (plain || diagnostics->num_errors() > 0 ||
      Optimizer::Create(train.optimizer.name, train.optimizer.params)->takes_schedule())
    return;
  diagnostics->Error(train.lr_schedule.place,
                     format("optimizer {} requires a constant learning rate", train.optimizer.name),
                     "remove train.lr_schedule");
}

// Accuracy is undefined for an example with several classes or none.
void CheckLabelSets(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  if (loaded.config.data.train.Param("label_delim").empty()) return;
  for (const Named& metric : *loaded.config.train.metrics) {
    const bool one_class = metric.name == "accuracy" || metric.name == "top_k" ||
                           metric.name == "f1" || metric.name == "cross_entropy" ||
                           metric.name == "perplexity";
    const bool other_label = std::any_of(metric.params.begin(), metric.params.end(),
                                         [](const auto& p) { return p.first == "label"; });
    if (!one_class || other_label) continue;
    diagnostics->Error(
        metric.place ? metric.place : loaded.PlaceOf("data.train.label_delim"),
        format("metric {} requires exactly one class per example; label_delim allows any number",
               metric.name),
        "train.metrics: [multilabel_accuracy, multilabel_f1, auc] are for multi-label data");
  }
}

// Checks each transform separately, so that errors are reported at its line. `bits`: data.bits.
void CheckTransforms(const std::vector<Named>& transforms, int bits, Diagnostics* diagnostics) {
  for (const Named& transform : transforms) {
    const bool last = &transform == &transforms.back();
    // The values of normalize are per channel, and the channels are not known here.
    if (transform.name == "normalize") {
      if (!last)
        diagnostics->Error(transform.place, "normalize is not the last of the transforms",
                           "move it to the end");
      continue;
    }
    try {
      const io::Augmenter alone(std::vector<io::TransformSpec>{{transform.name, transform.params}},
                                3);
      if (bits > 8) alone.RequireDeep();
    } catch (const Error& error) {
      diagnostics->Error(transform.place, error.what());
      continue;
    }
    for (const auto& [key, text] : transform.params) {
      const std::optional<double> angle =
          key == "degrees" ? Value::Scalar(text).AsNumber() : std::nullopt;
      if (!angle || *angle == 0 || std::abs(*angle) >= 1) continue;
      diagnostics->Warning(transform.place,
                           format("{}: {} is less than a degree", transform.name, text),
                           format("angles are in degrees; {} of a full turn, as in Keras, is {}",
                                  text, 360 * *angle));
    }
  }
}

// early_stop.target must be reachable by its metric.
void CheckTarget(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const TrainConfig& train = loaded.config.train;
  const std::optional<double>& target = train.early_stop.target;
  const std::string best = !train.best.metric.empty() ? train.best.metric[0]
                           : train.metrics->empty()   ? "loss"
                                                      : NameInReports(train.metrics->front());
  if (!target || *target <= 1 || best == "loss") return;
  for (const Named& metric : *train.metrics) {
    const std::unique_ptr<Metric> measured = MetricOf(metric);
    if (!measured->higher_is_better() || !IsCalled(best, measured->name())) continue;
    diagnostics->Error(loaded.PlaceOf("train.early_stop.target"),
                       format("train.early_stop.target = {}: {} is at most 1", *target, best),
                       format("{} % is {}", *target, *target / 100));
  }
}

// Streams are read in their order, a row of the batch each; carried states need them.
void CheckStreams(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const DataConfig& data = loaded.config.data;
  const auto streams = [](const SourceConfig& set) {
    const std::string given = set.Param("streams");
    return given == "0" ? "" : given;
  };
  const std::string batch = std::to_string(data.batch_size);
  for (const SourceConfig* set : {&data.train, &data.val}) {
    const std::string key = set == &data.train ? "data.train" : "data.val", given = streams(*set);
    if (!given.empty() && given != batch)
      diagnostics->Error(loaded.PlaceOf(key + ".streams"),
                         format("{}.streams = {}: data.batch_size is {}", key, given,
                                data.batch_size == 0 ? "auto" : batch),
                         "a batch has a row of each stream: give both the same number");
    if (given.empty() && !loaded.config.net.carry.empty() && !set->source.empty())
      diagnostics->Error(set->place, format("net.carry needs {}.streams", key),
                         format("streams: {} makes row k of each batch go on where row k of the "
                                "one before it ended",
                                data.batch_size));
  }
  if (!streams(data.train).empty() && data.train.shuffle) {
    const Place given = loaded.PlaceOf("data.train.shuffle");
    diagnostics->Error(given ? given : loaded.PlaceOf("data.train.streams"),
                       "data.train.streams are read in their order, and data.train.shuffle is true",
                       "set data.train.shuffle to false");
  }
  if (!streams(data.train).empty() && (data.val.holdout > 0 || data.val.folds > 0))
    diagnostics->Error(data.val.place,
                       "streams cannot be divided into training and validation data",
                       "give data.val a source of its own, or both a `part`");
}

// What LoRA does not train comes from a file, and nothing else says what learns.
void CheckLora(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const TrainConfig& train = loaded.config.train;
  if (train.lora.layers.empty()) return;
  if (train.weights.file.empty()) {
    diagnostics->Error(loaded.PlaceOf("train.lora.layers"),
                       "train.lora needs train.weights.file, the net that it adapts",
                       "checkpoints hold what was added to it");
  }
  const std::pair<const char*, bool> refused[] = {{"layers", !train.freeze.layers.empty()},
                                                  {"except", !train.freeze.except.empty()},
                                                  {"epochs", train.freeze.epochs > 0}};
  for (const auto& [key, given] : refused) {
    const std::string path = format("train.freeze.{}", key);
    if (given)
      diagnostics->Error(loaded.PlaceOf(path),
                         format("{} does not go with train.lora, which freezes the net", path),
                         "remove it; train.lora.whole names parameters that learn all the same");
  }
}

// Without training steps, the model must come from a file.
void CheckEpochs(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const TrainConfig& train = loaded.config.train;
  if (train.epochs > 0 || !train.weights.file.empty() || !loaded.config.net.onnx.empty()) return;
  diagnostics->Error(loaded.PlaceOf("train.epochs"),
                     "train.epochs = 0 trains nothing, and train.weights names no model to save",
                     "set train.weights.file, or at least one epoch");
}

}  // namespace

void CheckRelations(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const auto place_of = [&](std::string_view path) { return loaded.PlaceOf(path); };
  auto not_both = [&](const std::string& a, const std::string& b) {
    if (place_of(a) && place_of(b))
      diagnostics->Error(std::max(place_of(a), place_of(b)),
                         format("{} and {} exclude each other", a, b), "keep one of them");
  };
  not_both("train.clip.value", "train.clip.norm");
  const TrainConfig& train = loaded.config.train;
  CheckValidation(loaded, diagnostics);
  CheckGroups(loaded, diagnostics);
  CheckWeightColumns(loaded.config.data.train, diagnostics);
  CheckWeightColumns(loaded.config.data.val, diagnostics);
  CheckTargets(loaded, diagnostics);
  CheckOptimizer(loaded, diagnostics);
  if (diagnostics->num_errors() > 0) return;
  auto not_zero = [&](const std::string& key, std::optional<double> bound) {
    if (bound.value_or(1) == 0)
      diagnostics->Error(place_of(key), format("{} = 0 removes the whole gradient", key),
                         "remove the key to disable clipping");
  };
  not_zero("train.clip.value", train.clip.value);
  not_zero("train.clip.norm", train.clip.norm);
  const int bits = loaded.config.data.bits;
  if (bits != 8 && bits != 16) {
    diagnostics->Error(place_of("data.bits"), format("data.bits = {}: expected 8 or 16", bits),
                       "16 keeps the bits of images that have more than 8 per channel");
  }
  CheckTransforms(loaded.config.data.train.transforms, bits, diagnostics);
  CheckTransforms(loaded.config.data.val.transforms, bits, diagnostics);
  CheckEpochs(loaded, diagnostics);
  CheckLora(loaded, diagnostics);
  CheckStreams(loaded, diagnostics);
  if (train.early_stop.min_delta > 0 && train.early_stop.patience == 0) {
    diagnostics->Error(place_of("train.early_stop.min_delta"),
                       "train.early_stop.min_delta needs train.early_stop.patience",
                       "patience: 5 stops the run after five epochs without improvement");
  }
}

void CheckMetrics(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  if (diagnostics->num_errors() > 0) return;
  const TrainConfig& train = loaded.config.train;
  CheckLabelSets(loaded, diagnostics);
  CheckTarget(loaded, diagnostics);
  std::vector<std::string> names;
  for (const Named& metric : *train.metrics) names.push_back(NameInReports(metric));
  for (const std::string& best : train.best.metric) {
    const auto is_best = [&best](const std::string& name) { return IsCalled(best, name); };
    if (best == "loss" || std::any_of(names.begin(), names.end(), is_best)) continue;
    diagnostics->Error(loaded.PlaceOf("train.best.metric"),
                       format("train.best.metric: '{}' is not measured", best),
                       format("train.metrics contains {}", join(names, ", ")));
  }
}

}  // namespace mxtrain::config
