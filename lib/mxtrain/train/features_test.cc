// SPDX-License-Identifier: Apache-2.0
// Runs whose first layers are frozen: with features computed once they end in the bits of runs that
// compute them in every step, stopped and resumed or not; frozen for some epochs, they learn from
// then on.
#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/io/subset.h"
#include "mxtrain/train/feature_cut.h"
#include "mxtrain/train/internal/feature_file.h"
#include "tests/support/allocation_count.h"
#include "tests/support/layers.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

// A convolution with batch norm, and a head; `dropped`: with a dropout behind the trunk.
Symbol TrunkAndHead(bool dropped = false, bool normed = true) {
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
Symbol TrunkAndInputs() {
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
void WriteImageTable(const TempDir& folder) {
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

std::unique_ptr<Runtime> NewFrozenRuntime(const FrozenSpec& spec) {
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

FrozenOutcome FrozenOutcomeOf(FrozenProcess& process, const FrozenSpec& spec, Log& log) {
  process.trainer->Run(log);
  const std::string last = CheckpointFolder(spec.folder).File("last");
  return {ReadFile(last), BitsOf(LoadCheckpoint(*process.runtime, last)), log.epochs};
}

FrozenOutcome RunFrozen(const TempDir& data, FrozenSpec spec) {
  const TempDir folder;
  if (spec.folder.empty()) spec.folder = folder.path("checkpoints");
  FrozenProcess process(data, spec);
  Log log;
  return FrozenOutcomeOf(process, spec, log);
}

// Stops after each of these steps and resumes in a new process.
void CheckFrozenResumes(const TempDir& data, FrozenSpec spec, const std::vector<int64_t>& steps) {
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

Bits BitsAtEpoch(const std::string& folder, int epoch) {
  const auto runtime = NewRuntime("naive", 1, 5);
  return BitsOf(
      LoadCheckpoint(*runtime, CheckpointFolder(folder).File(format("epoch-{:04}", epoch))));
}

TEST_CASE(
    "features that are computed once give the bits of a run that computes them in each step") {
  const TempDir data;
  WriteImages(data);
  for (const bool dropped : {false, true}) {
    for (const int64_t grad_accum : {1, 2}) {
      CAPTURE(dropped);
      CAPTURE(grad_accum);
      FrozenSpec spec;
      spec.net = TrunkAndHead(dropped);
      spec.grad_accum = grad_accum;
      const FrozenOutcome plain = RunFrozen(data, spec);
      spec.cached = true;
      const FrozenOutcome cached = RunFrozen(data, spec);
      CHECK(cached.last == plain.last);
      REQUIRE(cached.epochs.size() == 4);
      for (size_t e = 0; e < 4; ++e) CheckSameEpoch(cached.epochs[e], plain.epochs[e]);
    }
  }
}

TEST_CASE("a head on features reads other inputs beside them, as in a run that caches nothing") {
  const TempDir data;
  WriteImages(data);
  WriteImageTable(data);
  FrozenSpec spec;
  spec.net = TrunkAndInputs();
  spec.table = true;
  spec.freeze.patterns = {"conv*"};
  const FrozenOutcome plain = RunFrozen(data, spec);
  spec.cached = true;
  const FrozenOutcome cached = RunFrozen(data, spec);
  CHECK(cached.last == plain.last);
  REQUIRE(cached.epochs.size() == 4);
  for (size_t e = 0; e < 4; ++e) CheckSameEpoch(cached.epochs[e], plain.epochs[e]);
  CheckFrozenResumes(data, spec, {1, 7});
  spec.freeze.epochs = 2;
  CheckFrozenResumes(data, spec, {10, 11});
  FrozenProcess(data, spec).trainer->Rehearse();
  // The images themselves are not kept.
  spec.freeze = {{"of_code*"}, 0, true};
  CHECK_THROWS_WITH(FrozenProcess(data, spec),
                    doctest::Contains("Convolution 'conv' reads the input 'data', and it learns"));
}

// How often a run reads its images. The last batch is filled up.
int64_t ReadsOfRun(const TempDir& data, const FrozenSpec& spec) {
  FrozenProcess process(data, spec);
  const int64_t before = process.trained_on->reads();
  Log log;
  process.trainer->Run(log);
  return process.trained_on->reads() - before;
}

TEST_CASE("a run computes the features that no other run has left for it") {
  const TempDir data, shared;
  WriteImages(data);
  FrozenSpec spec;
  spec.cached = true;
  spec.optimizer.params = {{"lr", "0.02"}};
  const FrozenOutcome alone = RunFrozen(data, spec);

  spec.shared = shared.path("features");
  spec.optimizer.params = {{"lr", "0.01"}};
  // Each image is read to be recognized, and again where its features are computed.
  const int64_t computed = kExamples + RoundUp<int64_t>(kExamples, kBatch);
  CHECK(ReadsOfRun(data, spec) == computed);
  CHECK(ReadsOfRun(data, spec) == kExamples);
  spec.optimizer.params = {{"lr", "0.02"}};
  const FrozenOutcome after = RunFrozen(data, spec);
  CHECK(after.last == alone.last);
  REQUIRE(after.epochs.size() == 4);
  for (size_t e = 0; e < 4; ++e) CheckSameEpoch(after.epochs[e], alone.epochs[e]);

  // Other values of the frozen layers, and other images that they see, have other features.
  spec.seed = 6;
  CHECK(ReadsOfRun(data, spec) == computed);
  spec.seed = 5;
  spec.preparation = "upside down";
  CHECK(ReadsOfRun(data, spec) == computed);
  spec.preparation = "as is";
  spec.batch = 4;
  CHECK(ReadsOfRun(data, spec) == 2 * kExamples);
  spec.batch = kBatch;
  CHECK(ReadsOfRun(data, spec) == kExamples);
}

TEST_CASE("of the features of another fold those of its own images are computed") {
  const TempDir data, shared;
  WriteImages(data);
  FrozenSpec first, second;
  first.cached = second.cached = true;
  for (int64_t i = 0; i < kExamples; ++i) {
    if (i % 4 != 0) first.examples.push_back(i);
    if (i % 4 != 1) second.examples.push_back(i);
  }
  const FrozenOutcome alone = RunFrozen(data, second);
  first.shared = second.shared = shared.path("features");
  const int64_t size = std::ssize(second.examples);
  CHECK(ReadsOfRun(data, first) == size + RoundUp<int64_t>(size, kBatch));
  const int64_t reads = ReadsOfRun(data, second);
  const int64_t missing = RoundUp<int64_t>(kExamples / 4, kBatch),
                all = RoundUp<int64_t>(size, kBatch);
  // Where last bits depend on the place in a batch, features are good for the same list alone.
  CHECK((reads == size + missing || (RowsDependOnBatch() && reads == size + all)));
  CHECK(RunFrozen(data, second).last == alone.last);

  // A file that is damaged is computed again.
  for (const auto& file : std::filesystem::directory_iterator(shared.path("features"))) {
    std::string bytes = ReadFile(file.path());
    bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
    WriteFileAtomically(file.path(), bytes);
  }
  CHECK(RunFrozen(data, second).last == alone.last);
  CHECK(ReadsOfRun(data, second) == size);
}

using FeatureRows = std::vector<std::pair<uint64_t, std::vector<float>>>;

FeatureRows RowsOf(FeatureFile& file) {
  FeatureRows rows;
  const bool is_right = file.Read([&rows](uint64_t identity, std::span<const float> numbers) {
    rows.emplace_back(identity, std::vector<float>(numbers.begin(), numbers.end()));
  });
  return is_right ? rows : FeatureRows();
}

TEST_CASE("features that depend on the place in a batch are good for the same examples in order") {
  const TempDir folder;
  const std::vector<float> a{1, 2}, b{3, 4}, c{5, 6};
  FeatureFile file(folder.path(""), "key", 2, Logger());
  file.Add(7, a);
  file.Add(8, b);
  file.Save(/*any_place=*/false);
  FeatureFile again(folder.path(""), "key", 2, Logger());
  CHECK_FALSE(again.any_place());
  CHECK(again.HoldsInOrder({7, 8}));
  for (const auto& other : std::vector<std::vector<std::optional<uint64_t>>>{
           {8, 7}, {7}, {7, 8, 9}, {7, std::nullopt}, {}})
    CHECK_FALSE(again.HoldsInOrder(other));
  CHECK(FeatureFile(folder.path(""), "another key", 2, Logger()).examples() == 0);

  // What was there stays, and comes first.
  CHECK(RowsOf(again) == FeatureRows{{7, a}, {8, b}});
  again.Add(9, c);
  again.Save(/*any_place=*/true);
  FeatureFile third(folder.path(""), "key", 2, Logger());
  CHECK(third.any_place());
  CHECK(RowsOf(third) == FeatureRows{{7, a}, {8, b}, {9, c}});
  third.Clear();
  third.Add(5, b);
  third.Save(/*any_place=*/true);
  FeatureFile last(folder.path(""), "key", 2, Logger());
  CHECK(RowsOf(last) == FeatureRows{{5, b}});
}

// The messages of a log, by level.
struct Messages {
  std::shared_ptr<mxtrain::Log> log = std::make_shared<mxtrain::Log>();
  std::vector<std::string> warnings, infos;
  Messages() {
    log->AddSink([this](const LogMessage& message) {
      (message.level == LogLevel::kWarning ? warnings : infos).emplace_back(message.text);
    });
  }
  Logger logger() const { return log->For("train"); }
};

TEST_CASE("a file of features with any byte changed, or cut off anywhere, is as none") {
  const TempDir folder;
  const std::vector<float> a{1, 2}, b{3, 4};
  std::string path;
  {
    FeatureFile file(folder.path(""), "key", 2, Logger());
    file.Add(7, a);
    file.Add(8, b);
    file.Save(/*any_place=*/true);
    path = file.path();
  }
  const std::string right = ReadFile(path);
  const auto check = [&](const std::string& bytes) {
    WriteFileAtomically(path, bytes);
    Messages messages;
    FeatureFile file(folder.path(""), "key", 2, messages.logger());
    const FeatureRows rows = RowsOf(file);
    // A header of another key is not damaged, and of no use.
    CHECK((messages.warnings.size() == 1 || (messages.warnings.empty() && rows.empty())));
    CHECK(file.examples() == 0);
    file.Add(9, a);
    file.Save(/*any_place=*/true);
    FeatureFile again(folder.path(""), "key", 2, Logger());
    CHECK(RowsOf(again) == FeatureRows{{9, a}});
  };
  for (size_t i = 0; i < right.size(); ++i) {
    for (const int change : {0x01, 0x20, 0x80, 0xff}) {
      CAPTURE(i);
      CAPTURE(change);
      std::string bytes = right;
      bytes[i] = static_cast<char>(bytes[i] ^ change);
      check(bytes);
    }
  }
  for (size_t size = 0; size < right.size(); ++size) {
    CAPTURE(size);
    check(right.substr(0, size));
  }
  check(right + '\0');
}

TEST_CASE("a header of other types than a file of features has is damaged") {
  const TempDir folder;
  const std::string path = FeatureFile(folder.path(""), "key", 2, Logger()).path();
  for (const std::string header :
       {"[]", "{}", "null", "7", R"("key")", "{\"key\": 1}", "{",
        R"({"key":"key","numbers":2,"examples":"x","any_place":true})",
        R"({"key":"key","numbers":2,"examples":-1,"any_place":true})",
        R"({"key":"key","numbers":2,"examples":0.5,"any_place":true})",
        R"({"key":"key","numbers":2,"examples":18446744073709551615,"any_place":true})",
        R"({"key":"key","numbers":2,"examples":1152921504606846976,"any_place":true})",
        R"({"key":"key","numbers":"2","examples":0,"any_place":true})",
        R"({"key":"key","numbers":3,"examples":0,"any_place":true})",
        R"({"key":"key","numbers":2,"examples":0,"any_place":1})",
        R"({"key":["key"],"numbers":2,"examples":0,"any_place":true})",
        R"({"key":"key","numbers":2,"any_place":true})"}) {
    CAPTURE(header);
    const uint64_t length = header.size(), sum = Checksum("");
    const auto bytes_of = [](const uint64_t& number) {
      return std::string(reinterpret_cast<const char*>(&number), sizeof number);
    };
    WriteFileAtomically(path, "mxtrain features 1\n" + bytes_of(length) + header + bytes_of(sum));
    Messages messages;
    FeatureFile file(folder.path(""), "key", 2, messages.logger());
    CHECK(file.examples() == 0);
    REQUIRE(messages.warnings.size() == 1);
    CHECK(messages.warnings[0].find(path + " is damaged") != std::string::npos);
  }
}

TEST_CASE("features that are read or saved are in memory once") {
  const TempDir folder;
  constexpr int64_t kNumbers = 1000, kRows = 4000;
  constexpr int64_t kAll = kNumbers * kRows * int64_t{sizeof(float)};
  std::vector<float> numbers(static_cast<size_t>(kNumbers * kRows));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 977);
  const auto row = [&numbers](uint64_t k) {
    return std::span<const float>(numbers).subspan(k * kNumbers, kNumbers);
  };
  const PeakBytes peak;
  {
    FeatureFile file(folder.path(""), "key", kNumbers, Logger());
    for (uint64_t k = 0; k < kRows; ++k) file.Add(k, row(k));
    file.Save(/*any_place=*/true);
  }
  FeatureFile file(folder.path(""), "key", kNumbers, Logger());
  bool same = true;
  int64_t rows = 0;
  CHECK(file.Read([&](uint64_t identity, std::span<const float> given) {
    same = same && std::ranges::equal(given, row(identity));
    ++rows;
  }));
  CHECK(same);
  CHECK(rows == kRows);
  file.Save(/*any_place=*/true);
  CHECK(peak.value() < kAll / 4);
  CHECK(ReadFile(file.path()).size() > static_cast<size_t>(kAll));
}

TEST_CASE("a run goes on where its features cannot be saved") {
  const TempDir data, shared;
  WriteImages(data);
  FrozenSpec spec;
  spec.cached = true;
  const FrozenOutcome alone = RunFrozen(data, spec);
  spec.shared = shared.path("features");
  RunFrozen(data, spec);
  // What is in the way of a file is never replaced.
  for (const auto& file : std::filesystem::directory_iterator(shared.path("features"))) {
    const std::filesystem::path path = file.path();
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
  }
  Messages messages;
  spec.log = messages.log;
  CHECK(RunFrozen(data, spec).last == alone.last);
  CHECK(std::ranges::count_if(messages.warnings, [](const std::string& text) {
          return text.ends_with("other runs will compute these features again");
        }) == 2);
}

TEST_CASE("a run that was stopped while it computed features is called again") {
  const TempDir data, shared;
  WriteImages(data);
  FrozenSpec first, second;
  first.cached = second.cached = true;
  for (int64_t i = 0; i < kExamples; i += 2) first.examples.push_back(i);
  const FrozenOutcome alone = RunFrozen(data, second);
  first.shared = second.shared = shared.path("features");
  RunFrozen(data, first);

  const TempDir folder;
  second.folder = folder.path("checkpoints");
  Messages messages;
  second.log = messages.log;
  FrozenProcess process(data, second);
  std::atomic<int> stop = 1;
  Log log;
  CHECK(process.trainer->Run(log, &stop).end == RunEnd::kStopped);
  CHECK(FrozenOutcomeOf(process, second, log).last == alone.last);
  // What is told, too, counts each image once.
  std::vector<std::string> found;
  std::ranges::copy_if(messages.infos, std::back_inserter(found), [](const std::string& text) {
    return text.find(" of 44 training images are in") != std::string::npos;
  });
  REQUIRE(found.size() == 2);
  CHECK(found[0] == found[1]);
  if (!RowsDependOnBatch()) CHECK(found[0].starts_with("features: 22 of 44 "));
  FrozenSpec third = second;
  third.folder.clear();
  Messages all_found;
  third.log = all_found.log;
  CHECK(RunFrozen(data, third).last == alone.last);
  const auto says = [&](const char* text) {
    return std::ranges::any_of(all_found.infos, [text](const std::string& info) {
      return info.find(text) != std::string::npos;
    });
  };
  CHECK(says("features: 44 of 44 training images are in"));
  CHECK(says("in memory, read in"));
  CHECK_FALSE(says("computing the features"));
}

TEST_CASE("the key of features says which processor computes, and with what") {
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  spec.cached = true;
  FrozenProcess process(data, spec);
  TrainOptions options;
  options.features.emplace().preparation = [](bool) { return "as is"; };
  const FeatureCut cut = CutAtFeatures(TestRegistry(), TrunkAndHead(false, /*normed=*/false),
                                       {{"data", {kBatch, 3, kSide, kSide}}}, {"data"},
                                       {"softmax_label"}, {{"conv*", 0}});
  const std::string key =
      FeatureKey(*process.runtime, options, cut, {}, {}, *process.train, /*validation=*/false);
  Backend& backend = process.runtime->backend(Context::cpu());
  const DeviceInfo info = backend.Describe(0);
  CHECK_FALSE(info.name.empty());
  CHECK(key.find("\"" + info.name + "\"") != std::string::npos);
  CHECK(key.find("\"" + info.capability + "\"") != std::string::npos);
  if (__builtin_cpu_supports("avx2")) CHECK(info.capability.find("avx2") != std::string::npos);
  for (const Version& v : backend.Versions())
    CHECK(key.find(format(R"(["{}","{}"])", v.of, v.version)) != std::string::npos);
}

TEST_CASE("validation images of another size have features of another shape") {
  const TempDir data;
  WriteImages(data);
  // Any size of images fits the head.
  Symbol net = Layer("Convolution", "conv", {Symbol::Variable("data")},
                     {{"num_filter", "6"}, {"kernel", "(3, 3)"}});
  net = Layer("Activation", "act", {net}, {{"act_type", "relu"}});
  net = Layer("Convolution", "last", {net}, {{"num_filter", "3"}, {"kernel", "(3, 3)"}});
  net = Layer("Pooling", "pool", {net},
              {{"pool_type", "avg"}, {"kernel", "(1, 1)"}, {"global_pool", "True"}});
  net = Layer("SoftmaxOutput", "softmax", {Layer("Flatten", "flat", {net})});
  for (const auto& [side, val_side] : {std::pair(7, 9), std::pair(9, 7)}) {
    CAPTURE(side);
    FrozenSpec spec;
    spec.net = net;
    spec.freeze.patterns = {"conv*"};
    spec.side = side;
    spec.val_side = val_side;
    const FrozenOutcome plain = RunFrozen(data, spec);
    spec.cached = true;
    const FrozenOutcome cached = RunFrozen(data, spec);
    CHECK(cached.last == plain.last);
    REQUIRE(cached.epochs.size() == 4);
    for (size_t e = 0; e < 4; ++e) CheckSameEpoch(cached.epochs[e], plain.epochs[e]);
  }
}

TEST_CASE("layers before and after the features share a frozen parameter") {
  const TempDir data;
  WriteImages(data);
  const Symbol weight = Symbol::Variable("shared_weight");
  const auto square = [&](const char* name, const Symbol& input) {
    return Symbol::Create(TestRegistry(), "FullyConnected", name,
                          {{"num_hidden", format("{}", 3 * kSide * kSide)}, {"no_bias", "True"}},
                          std::vector{input, weight});
  };
  Symbol net = square("first", Layer("Flatten", "flat", {Symbol::Variable("data")}));
  net = square("second", Layer("Dropout", "drop", {net}, {{"p", "0.5"}}));
  net = Layer("FullyConnected", "fc", {net}, {{"num_hidden", "3"}});
  FrozenSpec spec;
  spec.net = Layer("SoftmaxOutput", "softmax", {net});
  spec.freeze.patterns = {"shared*"};
  const FrozenOutcome plain = RunFrozen(data, spec);
  spec.cached = true;
  const FrozenOutcome cached = RunFrozen(data, spec);
  CHECK(LargestDifference(cached.bits, plain.bits) < 1e-4);
  if (!RowsDependOnBatch()) CHECK(cached.last == plain.last);
  CheckFrozenResumes(data, spec, {7});
}

TEST_CASE("a run on features is stopped and resumed without a difference") {
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  spec.cached = true;
  CheckFrozenResumes(data, spec, {1, 5, 7});
}

TEST_CASE("layers that are frozen for some epochs learn afterwards, from zero optimizer states") {
  const TempDir data, folder;
  WriteImages(data);
  FrozenSpec spec;
  spec.freeze.epochs = 2;
  spec.folder = folder.path("checkpoints");
  const FrozenOutcome plain = RunFrozen(data, spec);
  const Bits first = BitsAtEpoch(spec.folder, 1), second = BitsAtEpoch(spec.folder, 2),
             third = BitsAtEpoch(spec.folder, 3);
  for (const char* name : {"conv_weight", "bn_gamma", "bn_beta", "bn_moving_mean"}) {
    CAPTURE(name);
    CHECK(first.at(name) == second.at(name));
    CHECK(second.at(name) != third.at(name));
  }
  CHECK(first.at("fc_weight") != second.at("fc_weight"));
  CHECK_FALSE(first.contains("conv_weight/0"));
  CHECK_FALSE(second.contains("conv_weight/0"));  // saved before they begin to learn
  CHECK(third.at("conv_weight/0") != std::vector<float>(third.at("conv_weight/0").size()));
  spec.cached = true;
  const TempDir other;
  spec.folder = other.path("checkpoints");
  CHECK(RunFrozen(data, spec).last == plain.last);
  spec.folder.clear();
  CheckFrozenResumes(data, spec, {3, 10, 11, 17});  // 10: where they begin to learn
}

// Adam's first update of a parameter has the size of the rate, whatever its gradient is.
void CheckFirstUpdate(double warmup, double factor) {
  CAPTURE(warmup);
  const TempDir data, folder;
  WriteImages(data);
  FrozenSpec spec;
  spec.freeze.epochs = 2;
  spec.freeze.warmup = warmup;
  spec.average_decay.reset();
  spec.folder = folder.path("checkpoints");
  FrozenProcess process(data, spec);
  std::atomic<int> stop = 0;
  StopAfter listener(11, &stop);  // five steps in an epoch
  process.trainer->Run(listener, &stop);
  const Bits before = BitsAtEpoch(spec.folder, 2),
             after = BitsOf(
                 LoadCheckpoint(*process.runtime, CheckpointFolder(spec.folder).File("last")));
  const double rate = factor * 0.01 * 0.5 * (1 + std::cos(3.14159265358979 * 10 / 20));
  for (size_t i = 0; i < before.at("conv_weight").size(); ++i) {
    const double change = std::abs(static_cast<double>(after.at("conv_weight")[i]) -
                                   static_cast<double>(before.at("conv_weight")[i]));
    CHECK(change < 1.02 * rate);
    CHECK(change > 0.9 * rate);
  }
}

TEST_CASE("an optimizer counts the updates of a parameter from the step in which it is unfrozen") {
  CheckFirstUpdate(0, 1);
}

TEST_CASE("the rate of parameters that are unfrozen rises over a part of the steps that are left") {
  CheckFirstUpdate(0.5, 1.0 / 5);  // of ten steps
  CheckFirstUpdate(1, 1.0 / 10);
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  spec.freeze.epochs = 2;
  const std::string at_once = RunFrozen(data, spec).last;
  spec.freeze.warmup = 0.1;  // one step: the schedule's rate from the first on
  CHECK(RunFrozen(data, spec).last == at_once);
  spec.freeze.warmup = 0.5;
  CHECK(RunFrozen(data, spec).last != at_once);
  CheckFrozenResumes(data, spec, {10, 11, 13, 17});
}

TEST_CASE("early stopping counts anew where frozen layers begin to learn") {
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  spec.net = TrunkAndHead(false, /*normed=*/false);
  spec.freeze.patterns = {"conv*"};
  spec.average_decay.reset();
  spec.epochs = 12;
  spec.optimizer = {"sgd", {{"lr", "0"}}};  // never better
  spec.early_stop = {3, 0};
  CHECK(RunFrozen(data, spec).epochs.size() == 4);
  spec.freeze.epochs = 2;
  CHECK(RunFrozen(data, spec).epochs.size() == 5);
  spec.freeze.epochs = 6;  // longer than the patience
  CHECK(RunFrozen(data, spec).epochs.size() == 9);
}

// How many parameters learn when the run saves, and in the last step.
class WatchLearning final : public TrainListener {
 public:
  explicit WatchLearning(Trainer& trainer) : trainer_(trainer) {}
  void OnSave(const SaveEvent&) override { learning.push_back(Learning()); }
  void OnStep(const StepEvent&) override { last = Learning(); }
  std::vector<size_t> learning;
  size_t last = 0;

 private:
  size_t Learning() const { return trainer_.executor().grads().size(); }
  Trainer& trainer_;
};

TEST_CASE("an epoch is saved before the layers that were frozen are bound anew") {
  const TempDir data, folder;
  WriteImages(data);
  FrozenSpec spec;
  spec.freeze.epochs = 1;
  spec.epochs = 2;
  spec.folder = folder.path("checkpoints");
  FrozenProcess process(data, spec);
  WatchLearning listener(*process.trainer);
  process.trainer->Run(listener);
  REQUIRE(listener.learning.size() >= 2);
  CHECK(listener.learning.front() == 2);
  CHECK(listener.last == 5);
}

TEST_CASE("a rehearsal tries the layers that are frozen at first too") {
  const TempDir data;
  WriteImages(data);
  for (const bool cached : {false, true}) {
    FrozenSpec spec;
    spec.cached = cached;
    spec.freeze.epochs = 1;
    FrozenProcess process(data, spec);
    process.trainer->Rehearse();
    CHECK(process.trainer->executor().grads().size() == 5);
  }
}

TEST_CASE("what cannot be computed once is refused with its reason") {
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  spec.cached = true;
  spec.freeze.fix_statistics = false;
  CHECK_THROWS_WITH(FrozenProcess(data, spec),
                    doctest::Contains("normalizes by the mean and variance of each batch"));
  spec.freeze.fix_statistics = true;
  spec.freeze.patterns = {"bn*"};
  CHECK_THROWS_WITH(FrozenProcess(data, spec),
                    doctest::Contains("Convolution 'conv' reads the input 'data', and it learns"));
  spec.freeze.patterns = {"*"};
  CHECK_THROWS_WITH(FrozenProcess(data, spec),
                    "every parameter is frozen: nothing would be trained");
  spec.freeze.patterns = {"conv*", "bn*"};
  spec.limit_bytes = 1000;
  CHECK_THROWS_WITH(FrozenProcess(data, spec), doctest::Contains("the limit is 1000 B"));
}

TEST_CASE("features that depend on other examples of a batch are noticed") {
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  const Symbol conv = Layer("Convolution", "conv", {Symbol::Variable("data")},
                            {{"num_filter", "6"}, {"kernel", "(3, 3)"}});
  const Symbol mean = Layer("mean", "mean", {conv}, {{"axis", "0"}, {"keepdims", "True"}});
  Symbol net =
      Symbol::Create(TestRegistry(), "broadcast_sub", "centred", {}, std::vector{conv, mean});
  net = Layer("FullyConnected", "fc", {Layer("Flatten", "flat", {net})}, {{"num_hidden", "3"}});
  spec.net = Layer("SoftmaxOutput", "softmax", {net});
  spec.freeze.patterns = {"conv*"};
  spec.cached = true;
  for (const int batch : {kBatch, 2}) {
    spec.batch = batch;
    CHECK_THROWS_WITH(RunFrozen(data, spec),
                      doctest::Contains("flat_output depends on the other examples of a batch"));
  }
}

TEST_CASE("features without an axis of examples, or of other types, are refused") {
  const std::map<std::string, TShape> shapes{{"data", TShape{8, 3, kSide, kSide}}};
  const LrPatterns frozen{{"conv*", 0}};
  const auto cut = [&](Symbol net) {
    net = Layer("SoftmaxOutput", "softmax",
                {Layer("FullyConnected", "fc", {net}, {{"num_hidden", "3"}})});
    CutAtFeatures(TestRegistry(), net, shapes, {"data"}, {"softmax_label"}, frozen);
  };
  const Symbol conv = Layer("Convolution", "conv", {Symbol::Variable("data")},
                            {{"num_filter", "6"}, {"kernel", "(3, 3)"}});
  CHECK_THROWS_WITH(cut(Layer("Reshape", "cells", {conv}, {{"shape", "(-1, 6)"}})),
                    doctest::Contains("cells_output has the shape [128, 6] for a batch of 8"));
  CHECK_THROWS_WITH(cut(Layer("Cast", "half", {conv}, {{"dtype", "float64"}})),
                    doctest::Contains("Cast 'half' is float64, and only float32 can be kept"));
}

TEST_CASE("the cut is behind the last layer that is the same in every step") {
  const std::map<std::string, TShape> shapes{{"data", TShape{8, 3, kSide, kSide}}};
  const LrPatterns frozen{{"conv*", 0}, {"bn*", 0}};
  const Symbol fixed = WithFixedStatistics(TestRegistry(), TrunkAndHead(true), frozen);
  const FeatureCut cut =
      CutAtFeatures(TestRegistry(), fixed, shapes, {"data"}, {"softmax_label"}, frozen);
  CHECK(cut.last == "act");
  CHECK(cut.layers == 3);
  CHECK(cut.names == std::vector<std::string>{"act_features"});
  CHECK(cut.shapes == std::vector<TShape>{TShape{6, 4, 4}});
  CHECK(cut.Numbers() == 96);
  CHECK(cut.head.ListArguments() ==
        std::vector<std::string>{"act_features", "fc_weight", "fc_bias", "softmax_label"});
  CHECK(cut.trunk.ListArguments() ==
        std::vector<std::string>{"data", "conv_weight", "bn_gamma", "bn_beta"});
  CHECK(cut.held_up_by.empty());
  CHECK(cut.inputs.empty());
  const FeatureCut beside =
      CutAtFeatures(TestRegistry(), TrunkAndInputs(),
                    {{"data", {8, 3, kSide, kSide}}, {"size", {8, 2}}, {"code", {8, 1}}},
                    {"data", "size", "code"}, {"softmax_label"}, frozen);
  CHECK(beside.names == std::vector<std::string>{"flat_features"});
  CHECK(beside.inputs == std::vector<std::string>{"code", "size"});
  CHECK(beside.Numbers() == 96 + 2 + 1);
  LrPatterns more = frozen;
  more.emplace_back("fc_weight", 0);
  CHECK(
      CutAtFeatures(TestRegistry(), fixed, shapes, {"data"}, {"softmax_label"}, more).held_up_by ==
      "Dropout 'drop'");
}

}  // namespace
}  // namespace mxtrain::test
