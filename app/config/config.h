#pragma once
// A configuration as typed structs, free of YAML: what the commands work with. Every key's meaning, default and range stand in one table,
// schema_table.cc; the members here bear the same names. Paths are absolute.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/config/value.h"
#include "mxtrain/base/params.h"

namespace mxtrain::config {

// A thing made by a factory: its name and its parameters as text: {"random_resized_crop", {{"size", "(128, 128)"}}}.
struct Named {
  std::string name;
  Kwargs params;
  Place place;
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
std::optional<ByteCount> ParseByteCount(std::string_view text);  // nothing when it is not of that form

// A ByteCount, or so many hundredths of what there would be without a limit: "75%".
struct ByteLimit : ByteCount {
  double percent = 0;  // above 0: this, and no bytes
  friend bool operator==(const ByteLimit&, const ByteLimit&) = default;
};

// "90min", "2h", "30s".
struct Duration {
  int64_t seconds = 0;
  friend bool operator==(const Duration&, const Duration&) = default;
};

// Numbers and kinds by patterns on names, in order.
using PatternNumbers = std::vector<std::pair<std::string, double>>;
using PatternKinds = std::vector<std::pair<std::string, Named>>;

// Factors of the loss by class: in proportion to how rare they are, a number for each in their order, or by name (others have 1). Empty: 1 each.
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
};

// The net as it was written; net.h makes a Symbol of it.
struct NetConfig {
  Value input, inputs, labels, layers, outputs;
  Place place;
};

// One data set, for training or validation.
struct SourceConfig {
  std::string source;  // a kind of io::MakeSource; empty: there is none, or it is held out of the training set
  std::string path;
  std::string root;     // list, csv: of the pictures' paths; empty: the folder of `path`
  std::string split;    // mnist, cifar10, cifar100: "train" or "test"
  std::string label_delim;  // list, csv: what parts the classes of an example that has several; empty: it has one
  double holdout = 0;   // data.val without a source: its part of the training set, which loses it
  int folds = 0, fold = 0;  // in place of a part: one of so many equal ones
  bool stratified = true;
  bool shuffle = false;
  bool balanced = false;  // data.train
  std::vector<Named> transforms;  // of pictures, in order
  std::vector<Column> columns;    // csv
  std::string delimiter, missing;  // csv, as io::CsvParam has them
  std::string normalize;           // csv, data.train: "none" or "auto"
  Place place;
};

struct DataConfig {
  int batch_size = 0;  // 0: auto, until the net is known
  SourceConfig train, val;
  int workers = 0;   // 0: half of the cores
  int prefetch = 0;  // batches
  bool exact_decode = false;
  std::string cache;        // "none" or "ram"
  int64_t cache_bytes = 0;  // 0: half of what is free
  double max_bad = 0;
};

struct BestConfig {
  std::vector<std::string> metric;  // none: the first of train.metrics
};

struct EarlyStopConfig {
  int64_t patience = 0;  // epochs; 0: off
  std::optional<double> target;  // of the best metric; none: off
  double min_delta = 0;
};

// Of mixup or cutmix.
struct MixConfig {
  double alpha = 0;        // 0: off
  int64_t off_epochs = 0;  // at the end
};

struct EmaConfig {
  std::optional<double> decay;  // none: off
};

struct SaveConfig {
  Interval every;
  int keep = 0;
};

struct ClipConfig {
  std::optional<double> value, norm;
};

// First values from a file; no file: from the initializer alone.
struct WeightsConfig {
  std::string file, map;
};

struct KVStoreConfig {
  std::string type;
  int workers = 0;  // logical workers that share one batch
};

struct TrainConfig {
  int64_t epochs = 0;
  int64_t max_steps = 0;  // 0: no limit
  Duration time_limit;    // of one call; 0: no limit
  EarlyStopConfig early_stop;
  int64_t grad_accum = 1;  // batches in a step
  Named optimizer;        // of Optimizer::Create
  Named lr_schedule;      // of LrSchedule::Create
  PatternNumbers lr_mult;
  std::vector<std::string> freeze;  // patterns
  EmaConfig ema;
  MixConfig mixup, cutmix;
  ClassWeights class_weights;
  Named initializer;
  WeightsConfig weights;
  PatternKinds initializers;
  std::string math;       // fast | exact | tf32
  bool measure_kernels = true;
  ByteLimit memory_budget;  // of the arena in training; 0: no limit
  std::string amp;        // off | bf16 | fp16
  // Of Metric::Create, but for `output` and `label`, which tie one to a head and a label. None: as the net's first loss wants, once it is known.
  std::optional<std::vector<Named>> metrics;
  BestConfig best;
  int64_t report_every = 0;    // steps; 0: by time
  SaveConfig save;
  ClipConfig clip;
  KVStoreConfig kvstore;
};

struct Config {
  std::string name;
  uint64_t seed = 0;
  NetConfig net;
  DataConfig data;
  TrainConfig train;
  Value vars, blocks;                // as written: named values and sub-nets
  std::vector<std::string> plugins;  // shared objects with operators
};

}  // namespace mxtrain::config
