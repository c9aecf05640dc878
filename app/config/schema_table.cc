// SPDX-License-Identifier: Apache-2.0
// The table of configuration keys. A key is listed only if the program acts on it.
#include "app/config/schema.h"
#include "app/config/schema_kinds.h"
#include "app/config/schema_train.h"
#include "mxtrain/io/pipeline.h"

namespace mxtrain::config {
namespace {

Section<NetConfig> NetSection() {
  Section<NetConfig> s;
  s.Describe("use", "string",
             "instead of layers: a net that comes with the program, by its name in `mxtrain nets`; "
             "brings its blocks, variables, initializers and list of names for train.weights");
  s.Describe("classes", "integer",
             "with use: number of classes; default: as many as the training data has");
  s.Add("input", &NetConfig::input)
      .Default({})
      .Help("shape of one example, as the input 'data': [channels, height, width]")
      .Also({"data_shape", "image_shape", "input_shape", "input_size", "image_size", "img_size",
             "imgsz"});
  s.Add("inputs", &NetConfig::inputs)
      .Default({})
      .Help("several inputs by name: a shape, or {shape, dtype}");
  s.Add("labels", &NetConfig::labels)
      .Default({})
      .Help(
          "labels that layers read as inputs, by name: a shape, or {shape, dtype}; `infer` gives "
          "the outputs that do not depend on them");
  s.Add("onnx", &NetConfig::onnx)
      .IsPath()
      .Default("")
      .Help(
          "an ONNX file: its layers and inputs come first, its arrays are the initial values "
          "unless "
          "train.weights names others; `mxtrain import` shows the layers");
  s.Add("layers", &NetConfig::layers)
      .Default({})
      .Help(
          "operators in order; each takes the output of the previous one; required without `use` "
          "and `onnx`")
      .Also({"layer", "backbone", "modules"});
  s.Add("outputs", &NetConfig::outputs)
      .Default({})
      .Help("names of the heads; losses and the last layer by default")
      .Also({"heads"});
  return s;
}

// Validation data may be held out of the training set; it then has no source of its own.
Section<SourceConfig> SourceSection(bool validation) {
  using C = SourceConfig;
  const std::vector<std::string> sources = {"mnist",        "cifar10", "cifar100",
                                            "image_folder", "list",    "csv"};
  std::vector<std::string> with_transforms = sources;
  if (validation) with_transforms.emplace_back();
  Section<C> s;
  auto source = s.Add("source", &C::source);
  source.Choices(sources).Help("what kind of data").Also({"type", "dataset"});
  validation ? source.Default("") : source.Required();
  s.Add("path", &C::path)
      .IsPath()
      .Required()
      .OnlyFor("source", sources)
      .Help("file or folder")
      .Also({"dir", "directory", "folder", "file", "path_imgrec", "path_imglist", "data_csv"});
  s.Add("root", &C::root)
      .IsPath()
      .Default("")
      .OnlyFor("source", {"list", "csv"})
      .Help("folder that image paths are relative to; default: the folder of the file")
      .Also({"path_root"});
  s.Add("label_delim", &C::label_delim)
      .Default("")
      .OnlyFor("source", {"list", "csv"})
      .Help(
          "separator between the classes of a multi-label example, such as ';' in 'cat;dog'; the "
          "label is then 0 or 1 for "
          "each class")
      .Also({"label_delimiter", "label_sep", "multi_label", "multilabel"});
  s.Add("split", &C::split)
      .Default("train")
      .Choices({"train", "test"})
      .OnlyFor("source", {"mnist", "cifar10", "cifar100"})
      .Help("which of the two sets to read");
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
      .Help(validation ? "image transforms, in order; for held-out data the default is the "
                         "training set's resizing and cropping without "
                         "its random transforms"
                       : "image transforms, in order")
      .Also({"augment", "augmentation", "transform", "aug"});
  s.Add("columns", &C::columns)
      .Required()
      .OnlyFor("source", {"csv"})
      .Help(
          "columns of each input and label, by their names in the net: {data: file, softmax_label: "
          "kind}; several columns "
          "form one array: {data: [x, y]}; other columns are ignored. A label of words names "
          "classes");
  s.Add("delimiter", &C::delimiter)
      .Default("auto")
      .OnlyFor("source", {"csv"})
      .Help(
          "separator between cells: one character, tab, or blanks (any number of spaces and tabs); "
          "auto: whichever of , ; tab | is most frequent in the first line, blanks if there is "
          "none")
      .Also({"sep", "separator", "delim"});
  s.Add("missing", &C::missing)
      .Default("error")
      .Choices({"error", "mean", "drop"})
      .OnlyFor("source", {"csv"})
      .Help(
          "empty cells (in numeric columns also nan, NA, n/a, null): error: refuse them; mean: in "
          "inputs, use the column's mean "
          "over the training set, and skip rows without a label; drop: skip their rows")
      .Also(
          {"missing_value_strategy", "missing_values", "na", "nan", "fillna", "dropna", "impute"});
  if (!validation) {
    s.Add("normalize", &C::normalize)
        .Default("none")
        .Choices({"none", "auto"})
        .OnlyFor("source", {"csv"})
        .Help(
            "auto: standardize numeric input columns, and labels of LinearRegressionOutput and "
            "MAERegressionOutput, with the mean "
            "and standard deviation of the training set, also in validation, eval and infer; "
            "losses are in standardized units, "
            "metrics and predictions in the label's own")
        .Also({"standardize", "standardise", "normalization", "scale", "zscore"});
  }
  return s;
}

Section<DataConfig> DataSection() {
  using C = DataConfig;
  Section<C> s;
  s.Add("batch_size", &C::batch_size)
      .Default(32)
      .Range(1, io::kMostBatch)
      .OrWord("auto", 0)
      .Help(
          "examples per step; auto: the largest power of two up to 256 that the data can fill and "
          "whose training takes at most "
          "half of the free memory")
      .Also({"batch", "batchsize", "bs", "batch-size", "mini_batch"});
  s.Below("train", &C::train, SourceSection(false), "the training set", true);
  s.Below("val", &C::val, SourceSection(true), "the validation set", false);
  s.Add("workers", &C::workers)
      .Default(0)
      .Range(0, 256)
      .Help("threads that read and decode data; 0: half of the cores")
      .Also({"num_workers", "preprocess_threads", "data_nthreads", "nw"});
  s.Add("prefetch", &C::prefetch)
      .Default(3)
      .Range(1, 64)
      .Help("batches prepared ahead")
      .Also({"prefetch_buffer", "prefetch_factor"});
  s.Add("exact_decode", &C::exact_decode)
      .Default(false)
      .Help(
          "decode JPEG at full size and accuracy, as other programs do, so that an exported model "
          "gets the same pixels from them; otherwise decoding large files is faster, pixels differ "
          "slightly, and cropped-away parts are not decoded");
  s.Add("bits", &C::bits)
      .Default(8)
      .Range(8, 16)
      .Help(
          "16: images of more than 8 bits per channel (PNG, TIFF, PNM) reach the net with all of "
          "them; transforms are then crops, resizes without antialiasing, flips and normalize. 8: "
          "such images are reduced to 8 bits")
      .Also({"bit_depth", "bits_per_channel"});
  s.Add("cache", &C::cache)
      .Default("none")
      .Choices({"none", "ram", "features"})
      .Help(
          "ram: keep decoded images in memory, after the transforms that are not random; features: "
          "compute the outputs of the layers before the first that learns once, keep them in "
          "memory, and train the rest on them (for frozen layers, without random transforms)")
      .Also({"cache_features", "feature_cache"});
  s.Add("cache_bytes", &C::cache_bytes)
      .Default({})
      .Help("memory limit of the cache, such as 2GiB; 0: half of the memory free at the start")
      .Also({"cache_size"});
  s.Add("max_bad", &C::max_bad)
      .Default(0.01)
      .Range(0, 1)
      .Help(
          "maximum fraction of unreadable examples tolerated in training: damaged files, images of "
          "more than 100 million pixels "
          "or an edge above 65535")
      .Also({"max_errors"});
  return s;
}

}  // namespace

const std::vector<Key>& Schema() {
  static const std::vector<Key> schema = [] {
    Section<Config> s;
    s.Add("name", &Config::name)
        .Default("")
        .Help("name of the run folder; default: the name of the file")
        .Also({"project", "experiment", "run_name"});
    s.Add("seed", &Config::seed)
        .Default(0)
        .Help("seed of all random numbers")
        .Also({"random_seed", "manual_seed", "rng_seed"});
    s.Below("net", &Config::net, NetSection(), "the net", true, "",
            {"model", "network", "architecture"});
    s.Below("data", &Config::data, DataSection(), "training and validation data", true);
    s.Below("train", &Config::train, TrainSection(), "how to train", false);
    s.Add("vars", &Config::vars)
        .Default({})
        .Help("named values for ${...}")
        .Also({"variables", "params", "define"});
    s.Add("blocks", &Config::blocks)
        .Default({})
        .Help("named sub-nets: {params, inputs, layers, outputs}")
        .Also({"block", "modules"});
    s.Describe("include", "list of paths", "files merged below this one; paths are relative to it");
    s.Add("plugins", &Config::plugins)
        .Default({})
        .IsPath()
        .Help("shared objects with operators")
        .Also({"plugin"});
    return s.Take();
  }();
  return schema;
}

}  // namespace mxtrain::config
