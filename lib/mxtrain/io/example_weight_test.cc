// SPDX-License-Identifier: Apache-2.0
// Weights of examples: in tables and lists, through pipelines, and mixed.
#include "mxtrain/io/example_weight.h"

#include <doctest/doctest.h>

#include <algorithm>

#include <cmath>

#include "mxtrain/io/class_counts.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/source_error.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_checks.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

const Kwargs kWeighedTable = {{"data_fields", "(x=a, x=b)"},
                              {"label_fields", "(kind=kind, example_weight=w)"}};

std::shared_ptr<const Source> Opened(const TempDir& dir, const std::string& kind,
                                     const std::string& text, Kwargs more) {
  dir.Write("examples", text);
  more.emplace_back("path", dir.path("examples"));
  return MakeSource(kind, more);
}

std::string WhyNotOpened(const TempDir& dir, const std::string& kind, const std::string& text,
                         Kwargs more) {
  dir.Write("examples", text);
  more.emplace_back("path", dir.path("examples"));
  return WhyNoSource(kind, more);
}

std::vector<float> WeightsOf(const Source& source) {
  std::vector<float> weights;
  Sample sample;
  const size_t field = WeightField(source).value();
  for (int64_t i = 0; i < source.size(); ++i) {
    weights.push_back(source.LabelOf(i, field, &sample)[0]);
    source.Read(i, &sample);
    CHECK(sample.labels[field].values[0] == weights.back());
  }
  return weights;
}

void WriteSmallImages(const TempDir& dir, int count) {
  Image image;
  image.Resize(4, 4, 1);
  for (int n = 0; n < count; ++n) {
    for (size_t k = 0; k < image.pixels.size(); ++k)
      image.pixels[k] = static_cast<uint8_t>(20 * n + static_cast<int>(k));
    dir.Write(format("{}.png", n), EncodePng(image));
  }
}

}  // namespace

TEST_CASE("csv: a column is the weight of examples, beside one label") {
  const TempDir dir;
  const auto source =
      Opened(dir, "csv", "a,b,w,kind\n1,2,0.5,cat\n3,4,0,dog\n5,6,2,cat\n", kWeighedTable);
  CHECK(WeightsOf(*source) == std::vector<float>{0.5f, 0, 2});
  CHECK(HasOneLabel(*source));
  CHECK(source->class_names() == std::vector<std::string>{"cat", "dog"});
  CHECK(CountClasses(*source, "any name", 2) == std::vector<int64_t>{2, 1});
  const WeightSummary summary = SummarizeWeights(*source).value();
  CHECK(summary.examples == 3);
  CHECK(summary.ToText() == "from 0 to 2, mean 0.8333; 1 of 3 are 0");
  CHECK(summary.heaviest == 2);
  CHECK(summary.Share() == doctest::Approx(0.8));
  CHECK_FALSE(SummarizeWeights(*MakeSource(
      "csv", {{"path", dir.path("examples")}, {"data_fields", "x=a"}, {"label_fields", "y=b"}})));

  SUBCASE("a table of sets of classes, whose label comes later") {
    const auto sets = Opened(dir, "csv", "a,w,kinds\n1,3,cat;dog\n2,1,dog\n",
                             {{"data_fields", "x=a"},
                              {"label_fields", "(example_weight=w, kinds=kinds)"},
                              {"label_delim", ";"}});
    CHECK(WeightsOf(*sets) == std::vector<float>{3, 1});
    CHECK(sets->label_fields()[1].shape == TShape{2});
  }
  SUBCASE("another table need not have it") {
    Kwargs optional = kWeighedTable;
    optional.emplace_back("weight_optional", "True");
    const auto other = Opened(dir, "csv", "a,b,kind\n1,2,cat\n", optional);
    CHECK_FALSE(WeightField(*other));
    CHECK(other->label_fields().size() == 1);
    CheckHas(WhyNotOpened(dir, "csv", "a,b,kind\n1,2,cat\n", kWeighedTable), "has no column 'w'");
  }
  SUBCASE("half of it is held out with its weights") {
    Kwargs half = kWeighedTable;
    for (const auto& [key, value] :
         Kwargs{{"holdout", "0.5"}, {"holdout_side", "held_out"}, {"holdout_seed", "1"}})
      half.emplace_back(key, value);
    const auto held = Opened(dir, "csv", "a,b,w,kind\n1,2,7,cat\n3,4,8,cat\n", half);
    REQUIRE(held->size() == 1);
    Sample sample;
    held->Read(0, &sample);
    CHECK(WeightsOf(*held)[0] == (sample.data[0].values[0] == 1 ? 7 : 8));
  }
}

TEST_CASE("csv: weights that are none are refused where they stand") {
  const TempDir dir;
  const auto why = [&](const std::string& cell, Kwargs more = {}) {
    more.insert(more.end(), kWeighedTable.begin(), kWeighedTable.end());
    return WhyNotOpened(dir, "csv", "a,b,w,kind\n1,2,1,cat\n3,4," + cell + ",dog\n", more);
  };
  CheckHas(why("-1"), "examples:3: column 'w': the weight -1 is not a finite number from 0");
  CheckHas(why("much"), "examples:3: column 'w': 'much' is not a number");
  CheckHas(why("inf"), "examples:3: column 'w': 'inf' is not a finite number");
  CheckHas(why(""), "examples:3: column 'w': the example has no weight; missing: drop skips");
  CHECK(why("", {{"missing", "drop"}}) == "");
  CHECK(why("", {{"missing", "mean"}}) == "");  // its row is dropped as one without a label
  CheckHas(WhyNotOpened(dir, "csv", "a,b,w,kind\n1,2,0,cat\n", kWeighedTable),
           "examples: every example has the weight 0");
  CheckHas(WhyNotOpened(dir, "csv", "a,b,w,kind\n1,2,0,cat\n",
                        {{"data_fields", "x=a"},
                         {"label_fields",
                          "(kind=kind, example_weight=w, "
                          "example_weight=b)"}}),
           "the weight of an example is one column of numbers");
}

TEST_CASE("list: a column of each line is the weight") {
  const TempDir dir;
  WriteSmallImages(dir, 3);
  const auto source =
      Opened(dir, "list", "0.png cat 3\n1.png dog 0\n2.png cat 0.5\n", {{"weight_column", "2"}});
  CHECK(WeightsOf(*source) == std::vector<float>{3, 0, 0.5f});
  CHECK(source->class_names() == std::vector<std::string>{"cat", "dog"});
  CHECK(source->ClassOf(1) == 1);
  CHECK(HasOneLabel(*source));
  CHECK(CountClasses(*source, "any name", 2) == std::vector<int64_t>{2, 1});

  const auto first = Opened(dir, "list", "0.png 3 cat\n1.png 1 dog\n", {{"weight_column", "1"}});
  CHECK(WeightsOf(*first) == std::vector<float>{3, 1});
  const auto numbers = Opened(dir, "list", "0.png 0.25 3 0.5\n", {{"weight_column", "2"}});
  CHECK(WeightsOf(*numbers) == std::vector<float>{3});
  CHECK(numbers->label_fields()[0].shape == TShape{2});
  const auto sets = Opened(dir, "list", "0.png\tcat;dog\t3\n1.png\tdog\t1\n",
                           {{"weight_column", "2"}, {"label_delim", ";"}});
  CHECK(WeightsOf(*sets) == std::vector<float>{3, 1});
  const auto targets = Opened(dir, "list", "0.png cat 3\n1.png dog 1\n",
                              {{"weight_column", "2"}, {"label", "image"}});
  CHECK(targets->label_fields()[0].kind == FieldKind::kImage);
  CHECK(WeightsOf(*targets) == std::vector<float>{3, 1});

  const auto why = [&](const std::string& text) {
    return WhyNotOpened(dir, "list", text, {{"weight_column", "2"}});
  };
  CheckHas(why("0.png cat 1\n1.png dog\n"),
           "examples:2: 2 columns, but the weight is column 2, counted from 0, which is the path");
  CheckHas(why("0.png cat 1\n1.png dog x\n"), "examples:2: the weight 'x' is not a number");
  CheckHas(why("0.png cat 1\n1.png dog -2\n"), "examples:2: the weight -2 is not a finite number");
  CheckHas(why("0.png cat -1\n1.png dog 1\n2.png dog -2\n0.png dog -3\n"),
           "as none; other wrong weights: ");
  CheckHas(why("0.png cat 1\n1.png dog nan\n"), "examples:2: the weight");
  CheckHas(why("0.png cat 0\n1.png dog 0\n"), "every example has the weight 0");
}

TEST_CASE("list: whether another list has weights is told by how many columns its lines have") {
  const TempDir dir;
  WriteSmallImages(dir, 3);
  for (const char* column : {"1", "2"}) {
    CAPTURE(column);
    const Kwargs optional = {{"weight_column", column}, {"weight_optional", "True"}};
    const auto classes = Opened(dir, "list", "0.png 1\n1.png 0\n", optional);
    CHECK_FALSE(WeightField(*classes));
    CHECK(classes->ClassOf(0) == 1);
    Kwargs optional_sets = optional;
    optional_sets.emplace_back("label_delim", ";");
    const auto sets = Opened(dir, "list", "0.png\n1.png\t1;0\n2.png\t0\n", optional_sets);
    CHECK_FALSE(WeightField(*sets));
    CHECK(sets->class_names() == std::vector<std::string>{"0", "1"});
  }
  const auto weighed = Opened(dir, "list", "0.png 3 cat\n1.png 2 dog\n",
                              {{"weight_column", "1"}, {"weight_optional", "True"}});
  CHECK(WeightsOf(*weighed) == std::vector<float>{3, 2});
}

TEST_CASE("list: an example with a weight may have no classes") {
  const TempDir dir;
  WriteSmallImages(dir, 3);
  for (const char* optional : {"False", "True"}) {
    CAPTURE(optional);
    const auto opened = [&](const std::string& text, const char* column) {
      const auto source =
          Opened(dir, "list", text,
                 {{"weight_column", column}, {"weight_optional", optional}, {"label_delim", ";"}});
      CHECK(source->class_names() == std::vector<std::string>{"cat", "dog"});
      Sample sample;
      source->Read(0, &sample);
      CHECK(std::ranges::equal(sample.labels[0].values, std::vector<float>{0, 0}));
      return WeightsOf(*source);
    };
    const std::vector<float> weights = {3, 2, 0.5f};
    CHECK(opened("0.png\t\t3\n1.png\tcat;dog\t2\n2.png\tcat\t0.5\n", "2") == weights);
    CHECK(opened("0.png,,3\n1.png,cat;dog,2\n2.png,cat,0.5\n", "2") == weights);
    CHECK(opened("0.png\t3\n1.png\t2\tcat;dog\n2.png\t0.5\tcat\n", "1") == weights);
    CHECK(opened("0.png\t3\t\n1.png\t\t2\t\tcat;dog\n2.png\t0.5\tcat\n", "1") == weights);
  }
  const Kwargs sets = {{"weight_column", "2"}, {"label_delim", ";"}};
  CheckHas(WhyNotOpened(dir, "list", "0.png\tcat\t1\n1.png\tdog\n", sets),
           "examples:2: 2 columns, but the weight is column 2, counted from 0, which is the path");
  CheckHas(WhyNotOpened(dir, "list", "0.png\tcat\t1\n1.png\t\t\n", sets),
           "examples:2: 1 column, but the weight is column 2");
}

TEST_CASE("batches hold the weights after the labels, and mixing weighs the labels by them") {
  const TempDir dir;
  WriteSmallImages(dir, 4);
  const std::shared_ptr<const Source> source = Opened(
      dir, "list", "0.png a 3\n1.png b 0\n2.png a 0\n3.png b 0.5\n", {{"weight_column", "2"}});
  Runtime runtime(RuntimeOptions(), nullptr);
  const auto batch_of = [&](Kwargs more) {
    more.insert(more.begin(), {{"batch_size", "4"}, {"label_name", "softmax_label"}});
    PipelineParam param;
    param.Init(more, "data");
    const auto iter = NewPipeline(runtime, source, {}, param);
    const std::vector<DataDesc> labels = iter->provide_label();
    REQUIRE(labels.size() == 2);
    CHECK(labels[0].name == "softmax_label");
    CHECK(labels[1].name == kExampleWeight);
    CHECK(labels[1].shape == TShape{4});
    DataBatch batch;
    REQUIRE(iter->Next(&batch));
    return std::pair{batch.label[0].ToVector(), batch.label[1].ToVector()};
  };
  const std::vector<float> own = {3, 0, 0, 0.5f};
  CHECK(batch_of({}).second == own);
  const Kwargs soft = {{"soft_labels", "2"}, {"label_smoothing", "0.2"}};
  const auto plain = batch_of(soft);
  CHECK(plain.second == own);
  Kwargs mixing = soft;
  mixing.insert(mixing.end(), {{"mixup", "1"}, {"shuffle", "False"}});
  const auto [labels, weights] = batch_of(mixing);
  // Rows 0 and 3 are a pair, 1 and 2 another one.
  const double share = (weights[0] - 0.5) / 2.5;
  CHECK(share > 0);
  CHECK(share < 1);
  CHECK(weights[3] == doctest::Approx(share * 0.5 + (1 - share) * 3));
  CHECK(weights[1] == 0);
  for (size_t k = 0; k < 2; ++k) {
    // Weighted labels are the mix of the weighted labels, for losses linear in them.
    const double a = 3 * plain.first[k], b = 0.5 * plain.first[6 + k];
    CHECK(weights[0] * labels[k] == doctest::Approx(share * a + (1 - share) * b));
    CHECK(weights[3] * labels[6 + k] == doctest::Approx(share * b + (1 - share) * a));
  }
  for (size_t row = 0; row < 4; ++row)
    CHECK(labels[2 * row] + labels[2 * row + 1] == doctest::Approx(1));
}
