// SPDX-License-Identifier: Apache-2.0
// The table of configuration keys. A key is listed only if the program acts on it.
#include "app/config/schema.h"
#include "app/config/schema_source.h"
#include "app/config/schema_train.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/tiles.h"

namespace mxtrain::config {
namespace {

Section<NetConfig> NetSection() {
  Section<NetConfig> s;
  s.Describe(
      "use", "string",
      "a net that comes with the program, by its name in `mxtrain nets`; with layers or a "
      "decoder, up to `until` or the last one that these take by its name; brings its blocks, "
      "variables, initializers and list of names for train.weights");
  s.Describe("classes", "integer",
             "with use: number of classes; default: as many as the training data has");
  s.Describe(
      "decoder", "string",
      "with use: what makes scores of classes for each pixel of layers of that net: "
      "pyramid, deeplab, unet; variables: decoder_width, decoder_dropout; or what makes boxes "
      "of objects: boxes");
  s.Describe("until", "string",
             "with use: where that net ends, the name of a stage (features: what the last layer "
             "reads; stride2 to stride32) or of a layer; layers follow it, and all begin with "
             "train.initializer, not with that of the net");
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
  s.Add("carry", &NetConfig::carry)
      .Default({})
      .Help(
          "names of RNN layers whose states go on from batch to batch, from zeros at the beginning "
          "of an epoch; for data of streams (data.train.streams)")
      .Also({"stateful", "carry_state"});
  s.Add("outputs", &NetConfig::outputs)
      .Default({})
      .Help("names of the heads; losses and the last layer by default")
      .Also({"heads"});
  return s;
}

Section<TilesConfig> TilesSection() {
  Section<TilesConfig> s;
  s.Add("size", &TilesConfig::size)
      .Required()
      .Range(io::kLeastTile, io::kLongestEdge)
      .Help("read each image in tiles of so many of its pixels, each an example of its own")
      .Also({"tile", "tile_size", "slice_size"});
  s.Add("overlap", &TilesConfig::overlap)
      .Range(0, io::kLongestEdge / 2)
      .Help("pixels that neighbouring tiles share, at least; default: an eighth of the size")
      .Also({"tile_overlap"});
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
  s.Below("tiles", &C::tiles, TilesSection(), "large images are read in parts", false, "size");
  s.Add("bucket_lengths", &C::bucket_lengths)
      .QuietDefault({})
      .Help(
          "lengths below that of the net's input, the width of images or the ids of texts: a batch "
          "has examples of similar length, padded to the first of these that all fit in; images "
          "by `letterbox`")
      .Also({"bucket_sizes", "bucket_boundaries", "group_by_length"});
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
    s.Add("task", &Config::task)
        .QuietDefault("")
        .Help(
            "what is learned, where losses alone do not tell: classification, multilabel, "
            "regression, image_to_image, segmentation, detection, text_lines, language_model; "
            "decides metrics, reports and what `infer` writes")
        .Also({"problem", "problem_type", "task_type"});
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
