// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs on images whose first layers are frozen, with features computed once or in every step.
#include "mxtrain/base/math.h"
#include "mxtrain/io/subset.h"
#include "tests/support/layers.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {

// A convolution with batch norm, and a head; `dropped`: with a dropout behind the trunk.
inline Symbol TrunkAndHead(bool dropped = false, bool normed = true) {
  Symbol net = Layer("Convolution", "conv", {Symbol::Variable("data")},
                     {{"num_filter", "6"}, {"kernel", "(3, 3)"}, {"no_bias", "True"}});
  if (normed) net = Layer("BatchNorm", "bn", {net}, {{"fix_gamma", "False"}});
  net = Layer("Activation", "act", {net}, {{"act_type", "relu"}});
  if (dropped) net = Layer("Dropout", "drop", {net}, {{"p", "0.5"}});
  net = Layer("Flatten", "flat", {net});
  net = Layer("FullyConnected", "fc", {net}, {{"num_hidden", "3"}});
  return Layer("SoftmaxOutput", "softmax", {net});
}

// A trunk that sees images, and a head that reads its features, numbers and codes.
inline Symbol TrunkAndInputs() {
  Symbol image = Layer("Convolution", "conv", {Symbol::Variable("data")},
                       {{"num_filter", "6"}, {"kernel", "(3, 3)"}});
  image = Layer("Flatten", "flat", {Layer("Activation", "act", {image}, {{"act_type", "relu"}})});
  const Symbol code = Layer("Embedding", "of_code", {Symbol::Variable("code")},
                            {{"input_dim", "4"}, {"output_dim", "2"}});
  const Symbol row = Symbol::Create(
      TestRegistry(), "Concat", "row", {{"num_args", "3"}, {"dim", "1"}},
      std::vector{image, Symbol::Variable("size"), Layer("Flatten", "code_row", {code})});
  return Layer("SoftmaxOutput", "softmax",
               {Layer("FullyConnected", "fc", {row}, {{"num_hidden", "3"}})});
}

// The images of WriteImages with two numbers and a code each.
inline void WriteImageTable(const TempDir& folder) {
  std::string text = "photo,width,height,code,class\n";
  for (int n = 0; n < kExamples; ++n) {
    const std::vector<double> values = ValuesFor(format("numbers {}", n), 2);
    text += format("images/{}/{:02}.png,{:.6f},{:.6f},{},{}\n", n % 3, n, values[0], values[1],
                   n * 7 % 4, n % 3);
  }
  folder.Write("table.csv", text);
}

// Counts what is read of another source.
class CountingSource final : public io::Source {
 public:
  explicit CountingSource(std::shared_ptr<const io::Source> source) : source_(std::move(source)) {}
  int64_t reads() const { return reads_; }

  int64_t size() const override { return source_->size(); }
  const std::vector<io::FieldSpec>& data_fields() const override { return source_->data_fields(); }
  const std::vector<io::FieldSpec>& label_fields() const override {
    return source_->label_fields();
  }
  void Read(int64_t index, io::Sample* sample) const override {
    ++reads_;
    source_->Read(index, sample);
  }
  std::string Name(int64_t index) const override { return source_->Name(index); }
  std::optional<int> ClassOf(int64_t index) const override { return source_->ClassOf(index); }
  const std::vector<std::string>& class_names() const override { return source_->class_names(); }

 private:
  const std::shared_ptr<const io::Source> source_;
  mutable std::atomic<int64_t> reads_ = 0;
};

struct FrozenSpec {
  bool table = false;  // of images with numbers, as WriteImageTable writes it
  Symbol net = TrunkAndHead();
  FreezeOptions freeze{{"conv*", "bn*"}, 0, true};
  bool cached = false;
  int64_t limit_bytes = 0;
  int64_t epochs = 4, grad_accum = 1;
  std::optional<double> average_decay = 0.9;
  NamedSpec optimizer{"adam", {{"lr", "0.01"}}};
  EarlyStop early_stop;
  std::string folder;
  int batch = kBatch, side = kSide, val_side = kSide;
  std::string shared;  // FeatureOptions::folder
  std::string preparation = "as is";
  std::vector<int64_t> examples;  // to train on; empty: all
  uint64_t seed = 5;              // of the initial values
  std::shared_ptr<mxtrain::Log> log;
};

inline std::unique_ptr<Runtime> NewFrozenRuntime(const FrozenSpec& spec) {
  RuntimeOptions options;
  options.threads = 2;
  options.seed = spec.seed;
  options.log = spec.log;
  return std::make_unique<Runtime>(
      options, std::shared_ptr<const OperatorRegistry>(std::shared_ptr<void>(), &TestRegistry()));
}

// Everything in one training process, on images.
struct FrozenProcess {
  std::unique_ptr<Runtime> runtime;
  std::shared_ptr<const io::Source> source;
  std::shared_ptr<const CountingSource> trained_on;
  std::unique_ptr<DataIter> train, val;
  std::unique_ptr<Trainer> trainer;
  int batch, side, val_side;

  FrozenProcess(const TempDir& data, const FrozenSpec& spec)
      : runtime(NewFrozenRuntime(spec)),
        batch(spec.batch),
        side(spec.side),
        val_side(spec.val_side) {
    source = spec.table
                 ? io::MakeSource(
                       "csv", {{"path", data.path("table.csv")},
                               {"picture_fields", "(data)"},
                               {"data_fields", "(data=photo, size=width, size=height, code=code)"},
                               {"label_fields", "(softmax_label=class)"}})
                 : io::MakeSource("image_folder", {{"path", data.path("images")}});
    trained_on = std::make_shared<const CountingSource>(
        spec.examples.empty() ? source : io::NewSubset(source, spec.examples));
    train = Iter(trained_on, "training", true, true, side);
    val = Iter(source, "evaluation", false, true, val_side);
    TrainOptions options;
    options.symbol = spec.net;
    options.freeze = spec.freeze;
    options.epochs = spec.epochs;
    options.grad_accum = spec.grad_accum;
    options.optimizer = spec.optimizer;
    options.average_decay = spec.average_decay;
    options.early_stop = spec.early_stop;
    options.lr_schedule = {"cosine", {}};
    options.metrics = {{"accuracy", {}, "", ""}};
    options.checkpoint_folder = spec.folder;
    options.save.keep = 0;
    options.report_seconds = 0;
    if (spec.cached) {
      FeatureOptions& features = options.features.emplace();
      features.train = trained_on;
      features.val = source;
      features.folder = spec.shared;
      features.preparation = [text = spec.preparation](bool) { return text; };
      features.limit_bytes = spec.limit_bytes;
      features.whole = [this](bool validation, std::shared_ptr<const io::Source> examples) {
        return Iter(std::move(examples), "evaluation", false, true, validation ? val_side : side);
      };
      features.over = [this](bool validation, std::shared_ptr<const io::Source> over) {
        return Iter(std::move(over), validation ? "evaluation" : "training", !validation, false);
      };
    }
    trainer = std::make_unique<Trainer>(*runtime, options, *train, val.get());
  }

  std::unique_ptr<DataIter> Iter(std::shared_ptr<const io::Source> of, const char* mode,
                                 bool shuffle, bool images, int size = kSide) {
    std::vector<io::TransformSpec> transforms;
    if (images) transforms = {{"resize", {{"", format("({0}, {0})", size)}}}};
    io::PipelineParam param;
    param.Init({{"batch_size", std::to_string(batch)},
                {"mode", mode},
                {"shuffle", shuffle ? "True" : "False"},
                {"seed", "5"},
                {"workers", "1"},
                {"label_name", "softmax_label"}},
               "test");
    return io::NewPipeline(*runtime, std::move(of), transforms, param);
  }
};

struct FrozenOutcome {
  std::string last;  // bytes of the checkpoint
  Bits bits;
  std::vector<EpochEvent> epochs;
};

inline FrozenOutcome FrozenOutcomeOf(FrozenProcess& process, const FrozenSpec& spec, Log& log) {
  process.trainer->Run(log);
  const std::string last = CheckpointFolder(spec.folder).File("last");
  return {ReadFile(last), BitsOf(LoadCheckpoint(*process.runtime, last)), log.epochs};
}

inline FrozenOutcome RunFrozen(const TempDir& data, FrozenSpec spec) {
  const TempDir folder;
  if (spec.folder.empty()) spec.folder = folder.path("checkpoints");
  FrozenProcess process(data, spec);
  Log log;
  return FrozenOutcomeOf(process, spec, log);
}

// Stops after each of these steps and resumes in a new process.
inline void CheckFrozenResumes(const TempDir& data, FrozenSpec spec,
                               const std::vector<int64_t>& steps) {
  const FrozenOutcome whole = RunFrozen(data, spec);
  for (const int64_t step : steps) {
    CAPTURE(step);
    const TempDir folder;
    spec.folder = folder.path("checkpoints");
    {
      FrozenProcess process(data, spec);
      std::atomic<int> stop = 0;
      StopAfter listener(step, &stop);
      CHECK(process.trainer->Run(listener, &stop).end == RunEnd::kStopped);
    }
    FrozenProcess process(data, spec);
    std::vector<std::string> warnings;
    process.trainer->Resume(CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings));
    CHECK(warnings.empty());
    Log log;
    CHECK(FrozenOutcomeOf(process, spec, log).last == whole.last);
  }
}

}  // namespace mxtrain::test
