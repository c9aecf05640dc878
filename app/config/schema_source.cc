// SPDX-License-Identifier: Apache-2.0
#include "app/config/schema_source.h"

#include <algorithm>

#include "app/config/schema_kinds.h"
#include "mxtrain/base/error.h"
#include "mxtrain/io/image_targets.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::config {
namespace {

std::vector<const io::SourceKind*> SourcesOfConfigurations() {
  std::vector<const io::SourceKind*> kinds;
  for (const io::SourceKind& kind : io::Sources().kinds()) {
    if (kind.in_configurations) kinds.push_back(&kind);
  }
  return kinds;
}

// A parameter of one or several kinds of sources: one key.
struct SourceParam {
  FieldInfo field;
  CheckParamText check;
  std::vector<std::string> sources;
  bool of_cells = false;  // how the cells of a table are read: it stands after `columns`
  // Explanations and the sources that they are of.
  std::vector<std::pair<std::string, std::vector<std::string>>> help;

  bool IsOf(const FieldInfo& other, bool cells) const {
    return field.name == other.name && field.type == other.type &&
           field.default_text == other.default_text && field.range == other.range &&
           field.required == other.required && of_cells == cells;
  }
  void Add(const io::SourceKind& kind, const std::string& text) {
    sources.push_back(kind.name);
    for (auto& [known, of] : help) {
      if (known == text) return of.push_back(kind.name);
    }
    help.push_back({text, {kind.name}});
  }
  void Explain(KeyInfo* key) const {
    key->help = help[0].first;
    if (help.size() == 1) return;
    std::vector<std::string> texts;
    for (const auto& [text, of] : help) {
      texts.push_back(format("{}: {}", join(of, ", "), text));
      for (const std::string& source : of) key->help_for.emplace_back(source, text);
    }
    key->help = format("{}", join(texts, "; "));
  }
};

std::vector<SourceParam> SourceParams() {
  std::vector<SourceParam> params;
  for (const io::SourceKind* kind : SourcesOfConfigurations()) {
    bool after_columns = false;
    for (FieldInfo field : kind->parameters) {
      after_columns = after_columns || (kind->is_table && field.name == "data_fields");
      if (field.internal) continue;
      // Every data set of a configuration says where it is.
      field.required = field.required || field.name == "path";
      auto found = std::find_if(params.begin(), params.end(),
                                [&](const SourceParam& p) { return p.IsOf(field, after_columns); });
      if (found == params.end()) {
        params.push_back({field, kind->check, {}, after_columns, {}});
        found = params.end() - 1;
      }
      found->Add(*kind, field.help);
    }
  }
  return params;
}

void AddParams(bool of_cells, Section<SourceConfig>* section) {
  for (const SourceParam& param : SourceParams()) {
    if (param.of_cells != of_cells) continue;
    KeyInfo& key = section->AddParam(param.field, &SourceConfig::params, param.check);
    param.Explain(&key);
    key.selector = "source";
    key.only_for = param.sources;
    key.also = OtherNamesOfSourceParam(key.name);
  }
}

}  // namespace

Section<SourceConfig> SourceSection(bool validation) {
  using C = SourceConfig;
  std::vector<std::string> sources, help, tables;
  std::vector<std::string> others;   // than tables
  std::vector<std::string> texts;    // sources of them
  std::vector<std::string> weighed;  // those of them whose examples may have weights
  for (const io::SourceKind* kind : SourcesOfConfigurations()) {
    sources.push_back(kind->name);
    help.push_back(kind->help);
    (kind->is_table ? tables : others).push_back(kind->name);
    if (kind->Parameter("weight_column")) weighed.push_back(kind->name);
    // Of texts, which have no images; text_lines are images of them.
    if (kind->Parameter("tokenizer_file")) texts.push_back(kind->name);
  }
  std::vector<std::string> with_transforms = sources;
  if (validation) with_transforms.emplace_back();
  Section<C> s;
  auto source = s.Add("source", &C::source);
  source.Choices(sources, help).Help("what kind of data").Also({"type", "dataset"});
  validation ? source.Default("") : source.Required();
  AddParams(/*of_cells=*/false, &s);
  s.Add("label", &C::label)
      .QuietDefault(validation ? "" : "given")
      .Choices({"given", "image", "mask"},
               {"the labels of the data", "an image of the same size, its pixels from 0 to 1",
                "a class for each pixel of the image"})
      .OnlyFor("source", sources)
      .IdleFor(texts)
      .Help(validation
                ? "what the net is to answer; by default as in data.train"
                : "what the net is to answer; image: the example's own image, as an "
                  "autoencoder does, the one in `targets`, or that in the label's column; "
                  "mask: the classes in an image in `targets`, or in the segmentations of coco")
      .Also({"target", "class_mode"});
  s.Add("targets", &C::targets)
      .QuietDefault("")
      .OnlyFor("source", others)
      .IdleFor(texts)
      .IsPath()
      .Help(
          "with label: image or mask, folder of those images, each with the path of its example's "
          "file; without, each image is its own")
      .Also({"target_path", "targets_dir", "masks"});
  for (const FieldInfo& field : io::TargetsParam::Describe()) {
    if (field.name == "label" || field.name == "targets") continue;
    KeyInfo& key = s.AddParam(field, &C::params, &io::TargetsParam::Check, /*quiet=*/true);
    key.selector = "source";
    key.only_for = others;
    key.idle_for = texts;
  }
  if (validation) {
    s.Add("split", &C::holdout)
        .Default(0)
        .Range(0, 1)
        .OnlyFor("source", {""})
        .Help("fraction of the training set held out for validation when there is no source")
        .Also({"val_split", "validation_split"});
    s.Add("folds", &C::folds)
        .Default(0)
        .Range(0, 1000)
        .OnlyFor("source", {""})
        .Help(
            "instead of split: number of equal parts of the training set, of which part `fold` is "
            "held out; mxtrain sweep "
            "--folds trains on all of them")
        .Also({"k_folds", "kfold", "n_splits", "cv"});
    s.Add("fold", &C::fold)
        .Default(0)
        .Range(0, 999)
        .OnlyFor("source", {""})
        .Help("index of the fold to hold out, from 0");
    s.Add("stratified", &C::stratified)
        .Default(true)
        .OnlyFor("source", {""})
        .Help("keep the class proportions when the data has classes")
        .Also({"stratify"});
    s.Add("group", &C::group)
        .QuietDefault("")
        .OnlyFor("source", {""})
        .Help(
            "of a table: column whose equal cells (of one patient, customer, day) are all in the "
            "training set or all held out; sizes and class proportions are as near as that allows")
        .Also({"groups", "group_by", "group_column"});
    s.Add("group_pattern", &C::group_pattern)
        .QuietDefault("")
        .OnlyFor("source", {""})
        .Help(
            "the same for files: a regular expression searched in their paths below the folder of "
            "the data; files where its first group, or all of it, matches the same text stay "
            "together: '(patient[0-9]+)_'");
    s.Add("seed", &C::holdout_seed)
        .QuietDefault(0)
        .Range(0)
        .OnlyFor("source", {""})
        .Help(
            "of the draw of split and folds: which examples are held out follows from it and from "
            "their names, not from the run's own seed, so that runs of other seeds compare")
        .Also({"split_seed", "random_state"});
  }
  s.Add("shuffle", &C::shuffle)
      .Default(!validation)
      .Help("new order every epoch; by default on for training and off for validation")
      .Also({"random_order"});
  if (!validation) {
    s.Add("balanced", &C::balanced)
        .Default(false)
        .Help(
            "draw every class equally often; the epoch keeps its length, so examples of small "
            "classes repeat; requires shuffle")
        .Also({"balance", "balanced_sampler", "weighted_sampler", "oversample"});
  }
  s.Add("transforms", &C::transforms)
      .Default({})
      .Kinds(TransformKinds())
      .OnlyFor("source", with_transforms)
      .IdleFor(texts)
      .Help(validation ? "image transforms, in order; for held-out data the default is the "
                         "training set's resizing and cropping without "
                         "its random transforms"
                       : "image transforms, in order")
      .Also({"augment", "augmentation", "transform", "aug"});
  std::vector<std::string> with_columns = tables;
  with_columns.insert(with_columns.end(), weighed.begin(), weighed.end());
  auto columns = s.Add("columns", &C::columns);
  columns.Required().OnlyFor("source", with_columns).OptionalFor(weighed);
  columns.Help(
      "columns of each input and label, by their names in the net: {data: file, softmax_label: "
      "kind}; several columns form one array: {data: [x, y]}; other columns are ignored. A label "
      "of words names classes; a column of words that an Embedding or one_hot reads holds "
      "categories, numbered from 1, and 0 for a word that is unknown or missing. missing(COLUMN) "
      "is 1 in rows where that column is missing, else 0. weight, unless the net has one: a column "
      "of numbers from 0, with which examples count in the loss and in metrics");
  columns.HelpFor(weighed,
                  "{weight: K}: each line has in column K, counted from 0, which is the path, a "
                  "number from 0, with which the example counts in the loss and in metrics");
  AddParams(/*of_cells=*/true, &s);
  if (!validation) {
    s.Add("normalize", &C::normalize)
        .Default({})
        .OnlyFor("source", tables)
        .Help(
            "auto: standardize numeric input columns, and labels of LinearRegressionOutput and "
            "MAERegressionOutput, with the mean and standard deviation of the training set, also "
            "in validation, eval and infer; losses are in standardized units, metrics and "
            "predictions in the label's own. Inputs of integers (dtype), columns that an Embedding "
            "reads and missing(COLUMN) stay as they are. {columns: [a, b]}: these columns alone; "
            "{except: [c]}: all but these; beside them or alone, {log: [a], quantile: [b]}: the "
            "logarithm of columns of numbers above 0, also labels; of inputs the place of each "
            "number among those of the training set, as that of a normal distribution")
        .Also({"standardize", "standardise", "normalization", "scale", "zscore"});
  }
  return s;
}

}  // namespace mxtrain::config
