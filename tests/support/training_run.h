// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small complete runs of the trainer: a table of examples, nets, a process that trains, and its
// results for comparison.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "mxtrain/base/file.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/train/model.h"
#include "mxtrain/train/trainer.h"
#include "tests/support/operator_case.h"
#include "tests/support/row_bits.h"
#include "tests/support/small_nets.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {

inline constexpr int kExamples = 44, kBatch = 8, kSide = 6;  // 5 batches per epoch, and a remainder

// A table of images in three classes that differ in brightness. `weights`: of the examples; or
// none.
inline void WriteTable(const TempDir& folder, const std::vector<double>& weights = {}) {
  std::string text = "class";
  for (int i = 0; i < kSide * kSide; ++i) text += format(",p{}", i);
  if (!weights.empty()) text += ",weight";
  text += "\n";
  for (int n = 0; n < kExamples; ++n) {
    const int label = n % 3;
    text += std::to_string(label);
    for (double v : ValuesFor(format("example {}", n), kSide * kSide))
      text += format(",{:.4f}", v + label - 1);
    if (!weights.empty()) text += format(",{}", weights[static_cast<size_t>(n)]);
    text += "\n";
  }
  folder.Write("table.csv", text);
}

// The same as image files: a folder of PNG files for each class.
inline void WriteImages(const TempDir& folder) {
  for (int n = 0; n < kExamples; ++n) {
    io::Image image;
    image.Resize(kSide + n % 3, kSide + n % 2, 3);
    const std::vector<double> values =
        ValuesFor(format("image {}", n), static_cast<int64_t>(image.pixels.size()));
    for (size_t i = 0; i < values.size(); ++i)
      image.pixels[i] =
          static_cast<uint8_t>(std::clamp(128 + 60 * (values[i] + n % 3 - 1), 0.0, 255.0));
    folder.Write(format("images/{}/{:02}.png", n % 3, n), io::EncodePng(image));
  }
}

struct RunSpec {
  std::string engine = "threaded";
  Context ctx = Context::cpu();
  std::function<std::unique_ptr<Runtime>(const RunSpec&)> make_runtime;  // empty: NewRuntime
  int data_threads = 1;
  bool images = false;    // use WriteImages instead of the table
  bool weighed = false;   // the examples of the table have weights
  bool as_pixels = true;  // if batches are for a GPU
  Symbol symbol;
  int workers = 1;               // on ctx
  std::vector<Context> devices;  // one worker on each; empty: all on ctx
  std::string kvstore = "local";
  CommunicatorFactory new_communicator;
  std::shared_ptr<ProcessGroup> group;  // not with "local": dist_sync; `batch` is of all ranks
  DistOptions dist;                     // of dist_sync, dist_async and device
  int64_t epochs = 3;
  NamedSpec optimizer{"sgd", {{"lr", "0.1"}, {"momentum", "0.9"}, {"weight_decay", "0.001"}}};
  std::optional<double> clip_norm;
  bool sync_batch_norm = false;
  int64_t bucket_bytes = BindOptions().bucket_bytes;
  executor::MemoryBudget memory_budget;
  std::optional<DType> amp;
  bool deterministic = false;
  std::map<std::string, Context> group2ctx;
  KernelChoices::Table kernel_choices;  // of a checkpoint
  std::string folder;
  uint64_t seed = 5;
  int64_t batch = kBatch, max_steps = 0, save_every_steps = 0, grad_accum = 1;
  NamedSpec lr_schedule{"multistep",
                        {{"milestones", "[7, 12]"}, {"unit", "steps"}, {"factor", "0.5"}}};
  LrPatterns lr_mult;
  std::optional<double> average_decay;
  EarlyStop early_stop;
  std::vector<std::string> best_metrics;
  double time_limit_seconds = 0;
  int64_t report_steps = 0;
  double report_seconds = 0;
};

class Log final : public TrainListener {
 public:
  void OnEpoch(const EpochEvent& e) override { epochs.push_back(e); }
  void OnSave(const SaveEvent&) override { ++saves; }
  std::vector<EpochEvent> epochs;
  int saves = 0;
};

// Ends a run after this many steps.
class StopAfter final : public TrainListener {
 public:
  StopAfter(int64_t step, std::atomic<int>* stop) : step_(step), stop_(stop) {}
  void OnStep(const StepEvent& e) override {
    if (e.step == step_) *stop_ = 1;
  }

 private:
  int64_t step_;
  std::atomic<int>* stop_;
};

// Everything in one training process.
struct Process {
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<DataIter> train, val;
  std::unique_ptr<Trainer> trainer;

  Process(const TempDir& data, const RunSpec& spec)
      : runtime(spec.make_runtime ? spec.make_runtime(spec)
                                  : NewRuntime(spec.engine, 2, spec.seed)) {
    train = Iter(data, spec, true);
    val = Iter(data, spec, false);
    TrainOptions options;
    options.symbol = spec.symbol;
    options.workers = spec.devices.empty()
                          ? std::vector<Context>(static_cast<size_t>(spec.workers), spec.ctx)
                          : spec.devices;
    options.kvstore = spec.kvstore;
    options.new_communicator = spec.new_communicator;
    options.group = spec.group;
    if (spec.group && spec.kvstore == "local") options.kvstore = "dist_sync";
    if (options.kvstore != "local") options.dist = spec.dist;
    options.epochs = spec.epochs;
    options.optimizer = spec.optimizer;
    options.lr_schedule = spec.lr_schedule;
    options.lr_mult = spec.lr_mult;
    options.grad_accum = spec.grad_accum;
    options.average_decay = spec.average_decay;
    options.early_stop = spec.early_stop;
    options.best_metrics = spec.best_metrics;
    options.time_limit_seconds = spec.time_limit_seconds;
    options.metrics = {{"accuracy", {}, "", ""}, {"cross_entropy", {}, "", ""}};
    options.clip_norm = spec.clip_norm;
    options.sync_batch_norm = spec.sync_batch_norm;
    options.bucket_bytes = spec.bucket_bytes;
    options.memory_budget = spec.memory_budget;
    options.modes.amp = spec.amp;
    options.modes.deterministic = spec.deterministic;
    options.modes.group2ctx = spec.group2ctx;
    options.model.kernel_choices = spec.kernel_choices;
    options.checkpoint_folder = spec.folder;
    options.report_steps = spec.report_steps;
    options.report_seconds = spec.report_seconds;
    options.max_steps = spec.max_steps;
    options.save.every_steps = spec.save_every_steps;
    trainer = std::make_unique<Trainer>(*runtime, options, *train, val.get());
  }

  // Without weights also of a table with other names of columns.
  static Kwargs TableParams(const TempDir& data, bool weighed) {
    if (!weighed)
      return {{"path", data.path("table.csv")},
              {"label_columns", "class"},
              {"data_shape", format("(1, {}, {})", kSide, kSide)}};
    std::vector<std::string> columns;
    for (int i = 0; i < kSide * kSide; ++i) columns.push_back(format("data=p{}", i));
    return {{"path", data.path("table.csv")},
            {"data_fields", params::Print(columns)},
            {"label_fields", "(label=class, example_weight=weight)"},
            {"field_shapes", format("data=1x{0}x{0}", kSide)}};
  }

  std::unique_ptr<DataIter> Iter(const TempDir& data, const RunSpec& spec, bool training) {
    std::shared_ptr<const io::Source> source =
        spec.images ? io::MakeSource("image_folder", {{"path", data.path("images")}})
                    : io::MakeSource("csv", TableParams(data, spec.weighed));
    std::vector<io::TransformSpec> transforms;
    if (spec.images && training)
      transforms = {{"random_crop", {{"", std::to_string(kSide)}}}, {"flip", {}}};
    if (spec.images && !training) transforms = {{"resize", {{"", format("({0}, {0})", kSide)}}}};
    if (spec.images)
      transforms.push_back(
          {"normalize", {{"mean", "0.485, 0.456, 0.406"}, {"std", "0.229, 0.224, 0.225"}}});
    io::PipelineParam param;
    const int ranks = spec.group ? spec.group->size() : 1;
    param.Init({{"batch_size", std::to_string(spec.batch / ranks)},
                {"part_index", std::to_string(spec.group ? spec.group->rank() : 0)},
                {"num_parts", std::to_string(ranks)},
                {"mode", training ? "training" : "evaluation"},
                {"shuffle", training ? "True" : "False"},
                {"seed", std::to_string(spec.seed)},
                {"workers", std::to_string(spec.data_threads)},
                {"label_name", "softmax_label"}},
               "test");
    param.Feed(spec.ctx);
    param.pixels = param.pixels && spec.as_pixels;
    return io::NewPipeline(*runtime, source, transforms, param);
  }
};

using Bits = std::map<std::string, std::vector<float>>;

// The arrays of a checkpoint.
inline Bits BitsOf(const Checkpoint& c) {
  Bits bits;
  for (const auto* arrays : {&c.args, &c.auxs, &c.optimizer}) {
    for (const auto& [name, array] : *arrays) bits[name] = array.ToVector();
  }
  for (const auto& [name, array] : c.averages) bits["average of " + name] = array.ToVector();
  return bits;
}

// Dropout and BatchNorm.
inline Symbol NoisyNet() {
  return DropoutNet(TestRegistry()).losses;
}

inline Symbol QuietNet() {
  const OperatorRegistry& registry = TestRegistry();
  const std::vector data{Symbol::Variable("data")};
  const std::vector hidden{
      Symbol::Create(registry, "FullyConnected", "fc1", {{"num_hidden", "16"}}, data)};
  const std::vector bent{
      Symbol::Create(registry, "Activation", "act1", {{"act_type", "tanh"}}, hidden)};
  const std::vector scores{
      Symbol::Create(registry, "FullyConnected", "fc2", {{"num_hidden", "3"}}, bent)};
  return Symbol::Create(registry, "SoftmaxOutput", "softmax", {}, scores);
}

struct Outcome {
  std::string last;  // bytes of the checkpoint
  std::vector<EpochEvent> epochs;
  Bits bits;
};

// Of a run that has ended, from its last checkpoint.
inline Outcome OutcomeOf(const Process& process, const RunSpec& spec, const Log& log) {
  const std::string last = CheckpointFolder(spec.folder).File("last");
  return {ReadFile(last), log.epochs, BitsOf(LoadCheckpoint(*process.runtime, last))};
}

inline Outcome RunWhole(const TempDir& data, RunSpec spec) {
  const TempDir folder;
  spec.folder = folder.path("checkpoints");
  Process process(data, spec);
  Log log;
  const TrainResult result = process.trainer->Run(log);
  CHECK(result.epochs == spec.epochs);
  CHECK(result.end == RunEnd::kComplete);
  return OutcomeOf(process, spec, log);
}

// Between two runs of one net.
inline double LargestDifference(const Bits& a, const Bits& b) {
  double largest = 0;
  REQUIRE(a.size() == b.size());
  for (const auto& [name, values] : a) {
    const std::vector<float>& others = b.at(name);
    REQUIRE(others.size() == values.size());
    for (size_t i = 0; i < values.size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(values[i]) - others[i]));
  }
  return largest;
}

// Of runs that differ in the batches of validation, of which a checkpoint holds the best value.
inline void CheckSameCheckpoint(const Outcome& a, const Outcome& b) {
  CHECK(a.bits == b.bits);
  if (!RowsDependOnBatch()) CHECK(a.last == b.last);
}

// Of runs that evaluate in other batches, and add the losses of an epoch in other orders; counts
// are exact. On some processors a row of float32 is rounded otherwise in a batch of another size
// (row_bits.h; convolutions too, whose shapes it does not try).
inline void CheckNearlySameEpochs(const Outcome& a, const Outcome& b) {
  constexpr double kTolerance = 1e-6;
  REQUIRE(a.epochs.size() == b.epochs.size());
  for (size_t e = 0; e < a.epochs.size(); ++e) {
    for (const auto& [of_a, of_b] : {std::pair{&a.epochs[e].train, &b.epochs[e].train},
                                     std::pair{&a.epochs[e].val, &b.epochs[e].val}}) {
      REQUIRE(of_a->size() == of_b->size());
      for (size_t k = 0; k < of_a->size(); ++k) {
        const auto& [name, value] = (*of_a)[k];
        CHECK(name == (*of_b)[k].first);
        if (name == "accuracy") CHECK(value == (*of_b)[k].second);
        CHECK(value == doctest::Approx((*of_b)[k].second).epsilon(kTolerance));
      }
    }
  }
}

inline void CheckSameEpoch(const EpochEvent& a, const EpochEvent& b) {
  CHECK(a.epoch == b.epoch);
  CHECK(a.step == b.step);
  CHECK(a.lr == b.lr);
  CHECK(a.train == b.train);
  CHECK(a.val == b.val);
  CHECK(a.best == b.best);
}

}  // namespace mxtrain::test
