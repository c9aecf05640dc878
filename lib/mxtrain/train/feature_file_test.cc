// SPDX-License-Identifier: Apache-2.0
// Features that runs leave for each other: which are found, what is damaged, and what they depend
// on.
#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/train/feature_cut.h"
#include "mxtrain/train/internal/feature_file.h"
#include "tests/support/allocation_count.h"
#include "tests/support/frozen_run.h"

namespace mxtrain::test {
namespace {

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

}  // namespace
}  // namespace mxtrain::test
