// SPDX-License-Identifier: Apache-2.0
#pragma once
// A configuration as typed structs, independent of YAML. The meaning, default and range of every
// key are in schema_table.cc; members have the names of their keys. Paths are absolute.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config/value.h"
#include "mxtrain/base/params.h"

namespace mxtrain::config {

// The name and parameters of something that a factory creates, as text: {"random_resized_crop",
// {{"size", "(128, 128)"}}}.
struct Named {
  std::string name;
  Kwargs params;
  Place place;
  std::vector<std::string> texts = {};  // the parameters that are texts, whatever they look like
};

// "10min", "500steps", "1epoch"; a bare number counts epochs. count == 0: never.
struct Interval {
  enum class Unit { kEpochs, kSteps, kSeconds };
  int64_t count = 0;
  Unit unit = Unit::kEpochs;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// "2GiB", "512MiB", "64KiB", "1.5GB" (powers of ten), or a bare number of bytes.
struct ByteCount {
  int64_t bytes = 0;
  friend bool operator==(const ByteCount&, const ByteCount&) = default;
};
// Nothing if `text` does not have that form.
std::optional<ByteCount> ParseByteCount(std::string_view text);

// A ByteCount, or a percentage of the use without a limit: "75%".
struct ByteLimit : ByteCount {
  double percent = 0;  // above 0: used instead of bytes
  friend bool operator==(const ByteLimit&, const ByteLimit&) = default;
};

// "90min", "2h", "30s".
struct Duration {
  int64_t seconds = 0;
  friend bool operator==(const Duration&, const Duration&) = default;
};

// Numbers and kinds by name pattern, in order.
using PatternNumbers = std::vector<std::pair<std::string, double>>;
using PatternKinds = std::vector<std::pair<std::string, Named>>;

// Loss weights by class: automatic (rare classes weigh more), a number for each in order, or by
// name (others have 1). Empty: all 1.
struct ClassWeights {
  bool automatic = false;
  std::vector<double> numbers;
  PatternNumbers by_name;
  bool empty() const { return !automatic && numbers.empty() && by_name.empty(); }
};

// Columns of a table that make up one input or label.
struct Column {
  std::string input;
  std::vector<std::string> columns;
  std::vector<Place> places;  // of their names
};

// The key of `columns` for the weight of an example (io/example_weight.h).
inline constexpr const char* kWeightColumn = "weight";

// Which columns of a table are standardized, and what is done to their numbers before.
struct NormalizedColumns {
  bool automatic = false;            // all numbers
  std::vector<std::string> columns;  // these alone, with those of log and quantile
  std::vector<std::string> except;   // all numbers but these
  std::vector<std::string> log, quantile;
  friend bool operator==(const NormalizedColumns&, const NormalizedColumns&) = default;
  bool any() const { return automatic || !columns.empty() || !log.empty() || !quantile.empty(); }
};

// The net as written; net.h makes a Symbol of it.
struct NetConfig {
  Value input, inputs, labels, layers, outputs;
  std::string onnx = {};                // a file whose layers come first
  std::vector<std::string> carry = {};  // layers whose states go on from batch to batch
  Place place;
};

// One data set, for training or validation.
struct SourceConfig {
  std::string source;  // a kind of io::Sources(); empty: none, or held out of the training set
  Kwargs params;       // of that kind, those of io::SourceKind that are not internal
  // The text of a parameter; "" if the kind has none of this name.
  std::string Param(std::string_view name) const {
    for (const auto& [key, text] : params) {
      if (key == name) return text;
    }
    return "";
  }
  std::string path() const { return Param("path"); }
  std::string label;        // "given", "image" or "mask"; of data.val "": that of data.train
  std::string targets;      // folder of images or masks; "": of images, the data's own
  double holdout = 0;       // data.val without a source: the fraction removed from the training set
  int folds = 0, fold = 0;  // instead of a fraction: one of several equal parts
  bool stratified = true;
  std::string group, group_pattern;  // of both parts no group: a column, or a pattern of paths
  int64_t holdout_seed = 0;
  bool shuffle = false;
  bool balanced = false;          // data.train
  std::vector<Named> transforms;  // of images, in order
  std::vector<Column> columns;    // of a table
  NormalizedColumns normalize;    // of a table, data.train
  Place place;
};

// Images are read in tiles.
struct TilesConfig {
  int size = 0;                    // 0: whole
  std::optional<int64_t> overlap;  // none: an eighth of the size
};

struct DataConfig {
  int batch_size = 0;  // 0: auto, until the net is known
  SourceConfig train, val;
  int workers = 0;   // 0: half of the cores
  int prefetch = 0;  // batches
  bool exact_decode = false;
  int bits = 8;
  TilesConfig tiles;
  std::vector<int64_t> bucket_lengths;  // rising lengths below that of the net's input
  std::string cache;                    // "none", "ram" or "features"
  ByteCount cache_bytes;                // 0: half of what is free
  double max_bad = 0;
};

struct BestConfig {
  std::vector<std::string> metric;  // none: the first of train.metrics
};

struct EarlyStopConfig {
  int64_t patience = 0;          // epochs; 0: off
  std::optional<double> target;  // of the best metric; none: off
  double min_delta = 0;
};

// mixup or cutmix
struct MixConfig {
  double alpha = 0;        // 0: off
  int64_t off_epochs = 0;  // at the end
};

struct MosaicConfig {
  double probability = 0;  // 0: off
  int64_t off_epochs = 0;  // at the end
};

struct MultiScaleConfig {
  std::vector<double> scale;  // least and most, of the net's input; none: off
  int64_t multiple = 0, batches = 0;
  int64_t off_epochs = 0;  // at the end
};

struct EmaConfig {
  std::optional<double> decay;  // none: off
};

struct MonitorConfig {
  std::string pattern;                  // of names of arrays; "": off
  int64_t every = 0;                    // steps
  std::vector<std::string> statistics;  // of StatisticNames()
};

struct SaveConfig {
  Interval every;
  int keep = 0;
};

struct ClipConfig {
  std::optional<double> value, norm;
};

// Initial weights from a file; no file: only from the initializer.
struct WeightsConfig {
  std::string file, map, state;
  bool partial = false;  // they may be of another net, as far as arrays have its names
};

struct CompressionConfig {
  std::string type;  // "none" or "2bit"
  double threshold = 0;
};

struct KVStoreConfig {
  std::string type;
  int workers = 0;    // logical workers that share one batch
  std::string batch;  // between processes: whether data.batch_size is "global" or "per_rank"
  bool scale_lr = false;
  bool sync_batch_norm = false;
  int64_t staleness = 0;  // of dist_async; 0: by the number of processes
  // Between processes; the first three of dist_sync.
  std::string wire;  // type of gradients between processes: "float32" or "bfloat16"
  CompressionConfig compression;
  bool shard_states = false;
  Duration timeout;

  bool between_processes() const { return type.starts_with("dist_"); }
};

struct FreezeConfig {
  std::vector<std::string> layers, except;  // patterns of parameter names
  int64_t epochs = 0;                       // 0: all
  double warmup = 0.3;                      // of the steps after them
  bool global_stats = false;
};

// Low-rank factors that learn instead of the weights of some layers; no layers: off.
struct LoraConfig {
  std::vector<std::string> layers, whole;  // patterns of names of layers, of parameters
  int64_t rank = 0;
  double alpha = 0, dropout = 0;
};

struct TrainConfig {
  int64_t epochs = 0;
  int64_t max_steps = 0;  // 0: no limit
  Duration time_limit;    // of one call; 0: no limit
  EarlyStopConfig early_stop;
  int64_t grad_accum = 1;  // batches in a step
  Named optimizer;         // of Optimizer::Create
  Named lr_schedule;       // of LrSchedule::Create
  PatternNumbers lr_mult;
  double lr_decay = 1;
  FreezeConfig freeze;
  LoraConfig lora;
  EmaConfig ema;
  MixConfig mixup, cutmix;
  MosaicConfig mosaic;
  MultiScaleConfig multi_scale;
  ClassWeights class_weights;
  Named initializer;
  WeightsConfig weights;
  PatternKinds initializers;
  std::string math;  // fast | exact | tf32
  bool measure_kernels = true;
  ByteLimit memory_budget;  // of the arena in training; 0: no limit
  std::string amp;          // off | bf16 | fp16
  // For Metric::Create, except `output` and `label`, which choose a head and a label. Empty: the
  // default of the net's first loss.
  std::optional<std::vector<Named>> metrics;
  BestConfig best;
  int64_t report_every = 0;  // steps; 0: by time
  MonitorConfig monitor;
  SaveConfig save;
  ClipConfig clip;
  KVStoreConfig kvstore;
};

struct Config {
  std::string name;
  uint64_t seed = 0;
  std::string task;  // of tasks::Tasks(); "": told by the losses
  NetConfig net;
  DataConfig data;
  TrainConfig train;
  Value vars, blocks;                // as written: named values and sub-nets
  std::vector<std::string> plugins;  // shared objects with operators
};

}  // namespace mxtrain::config
