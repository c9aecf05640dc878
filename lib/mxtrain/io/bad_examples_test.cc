// SPDX-License-Identifier: Apache-2.0
// Examples that cannot be read: replaced in training within the tolerance, reported in evaluation.
#include <doctest/doctest.h>

#include "tests/support/error_message.h"
#include "tests/support/pipeline_data.h"

namespace mxtrain::test {
namespace {

TEST_CASE("a bad example is replaced by the next good one, named and counted") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Counting>(12);
  source->broken = {4, 5, 11};
  for (const char* workers : {"1", "3"}) {
    const auto iter =
        NewPipeline(runtime, source, {},
                    Param({{"batch_size", "4"}, {"max_bad", "0.25"}, {"workers", workers}}));
    const auto batches = RunOut(*iter);
    CHECK(Indices(batches) == std::vector<int64_t>{0, 1, 2, 3, 6, 6, 6, 7, 8, 9, 10, 0});
    CHECK(batches[1].data == std::vector<float>{6, 6, 6, 7});
    const DataIter::Stats stats = iter->stats();
    REQUIRE(stats.bad.size() == 3);
    CHECK(stats.bad[0] == std::pair<std::string, std::string>("number 4", "broken"));
    iter->Reset(1);
    RunOut(*iter);
    CHECK(iter->stats().bad.size() == 3);  // counted once
  }
}

TEST_CASE("too many bad examples end training, with a name") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Counting>(12);
  source->broken = {4, 5, 11};
  const auto iter = NewPipeline(runtime, source, {},
                                Param({{"batch_size", "4"}, {"max_bad", "0.2"}, {"workers", "2"}}));
  DataBatch batch;
  CHECK(iter->Next(&batch));
  CHECK(iter->Next(&batch));
  CHECK(MessageOf([&] { iter->Next(&batch); }) ==
        "3 of 12 examples are unreadable so far, more than max_bad = 0.2 (data.max_bad) allows; "
        "the last "
        "is number 11: broken; `mxtrain check` lists them all: "
        "repair or remove them, or allow more");
  for (int64_t i = 0; i < 12; ++i) source->broken.insert(i);
  const auto hopeless =
      NewPipeline(runtime, source, {}, Param({{"batch_size", "4"}, {"max_bad", "1"}}));
  CHECK(MessageOf([&] { hopeless->Next(&batch); }).find("none of the 12 examples can be read") !=
        std::string::npos);
}

TEST_CASE("evaluation reports a bad image and continues") {
  const TempDir dir;
  WriteImages(dir, 6);
  dir.Write("odd/005.png", "no image");
  dir.Write("even/000.jpg", EncodeJpeg(Numbered(0)).substr(0, 300));
  Runtime runtime = MakeRuntime();
  const auto iter =
      NewPipeline(runtime, Folder(dir), kPlainTransforms,
                  Param({{"batch_size", "4"}, {"mode", "evaluation"}, {"workers", "2"}}));
  DataBatch batch;
  REQUIRE(iter->Next(&batch));
  REQUIRE(batch.bad.size() == 1);
  CHECK(batch.bad[0].name == dir.path("even/000.jpg"));
  CHECK(batch.bad[0].reason.find("JPEG") != std::string::npos);
  CHECK(batch.count == 3);
  // Sorted by class: even/002, even/004, odd/001.
  CHECK(batch.index == std::vector<int64_t>{1, 2, 3});
  const std::vector<float> data = batch.data[0].ToVector(), label = batch.label[0].ToVector();
  CHECK(std::vector<float>(label.begin(), label.begin() + 3) == std::vector<float>{0, 0, 1});
  const auto alone =
      NewPipeline(runtime, MakeSource("image_list", {{"path", dir.path("even/002.png")}}),
                  kPlainTransforms, Param({{"batch_size", "1"}, {"mode", "evaluation"}}));
  DataBatch single;
  REQUIRE(alone->Next(&single));
  CHECK(single.data[0].ToVector() == std::vector<float>(data.begin(), data.begin() + 3 * 64));
  REQUIRE(iter->Next(&batch));
  CHECK(batch.count == 1);
  REQUIRE(batch.bad.size() == 1);
  CHECK(batch.bad[0].reason ==
        "not a JPEG, PNG, BMP, TGA, PNM, GIF, WebP or TIFF (begins with 'no image')");
  CHECK(iter->ExampleName(batch.index[0]) == dir.path("odd/003.jpg"));
  CHECK_FALSE(iter->Next(&batch));
}

TEST_CASE("a failure that is not a bad example reaches the caller") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Counting>(12);
  source->bug = 5;
  const auto iter =
      NewPipeline(runtime, source, {}, Param({{"batch_size", "4"}, {"workers", "2"}}));
  DataBatch batch;
  CHECK(iter->Next(&batch));
  CHECK(MessageOf([&] { iter->Next(&batch); }) == "a bug at 5");
  CHECK(iter->Next(&batch));  // the batch after it
  CHECK(batch.index[0] == 8);
}

TEST_CASE("an image that a transform would make too large is a bad example, in every mode") {
  const TempDir dir;
  Runtime runtime = MakeRuntime();
  WriteImages(dir, 8);
  Image thread;
  thread.Resize(1, 20000, 3);
  dir.Write("odd/thread.png", EncodePng(thread));
  const std::string reason = "resize would make an image of 160000x8 pixels";
  const std::vector<TransformSpec> transforms = {{"resize", {{"", "8"}}},
                                                 {"center_crop", {{"", "8"}}}};
  for (const char* cache : {"none", "ram"}) {
    const auto evaluated =
        NewPipeline(runtime, Folder(dir), transforms,
                    Param({{"batch_size", "3"}, {"mode", "evaluation"}, {"cache", cache}}));
    RunOut(*evaluated);
    REQUIRE(evaluated->stats().bad.size() == 1);
    CHECK(evaluated->stats().bad[0].first == dir.path("odd/thread.png"));
    CHECK(evaluated->stats().bad[0].second.starts_with(reason));
    CHECK(evaluated->stats().examples == 8);

    const auto trained =
        NewPipeline(runtime, Folder(dir), transforms,
                    Param({{"batch_size", "3"}, {"max_bad", "0.2"}, {"cache", cache}}));
    RunOut(*trained);
    CHECK(trained->stats().bad.size() == 1);
  }
  const auto strict =
      NewPipeline(runtime, Folder(dir), transforms, Param({{"batch_size", "3"}, {"max_bad", "0"}}));
  const std::string why = MessageOf([&] { RunOut(*strict); });
  CHECK(why.find("1 of 9 examples are unreadable") == 0);
  CHECK(why.find("odd/thread.png: " + reason) != std::string::npos);
  // The same for one that cannot be rotated.
  thread.Resize(1, 40000, 3);
  dir.Write("odd/thread.png", EncodePng(thread));
  const auto rotated =
      NewPipeline(runtime, Folder(dir), {{"rotate", {{"", "10"}}}, {"resize", {{"", "(8, 8)"}}}},
                  Param({{"batch_size", "3"}, {"max_bad", "0.2"}}));
  RunOut(*rotated);
  REQUIRE(rotated->stats().bad.size() == 1);
  CHECK(rotated->stats().bad[0].second.starts_with("an image of 40000x1 pixels cannot be rotated"));
  // Where the size is that of the first readable image.
  CHECK(NewPipeline(runtime, Folder(dir),
                    {{"resize", {{"", "8"}}}, {"center_crop", {{"fraction", "1"}}}},
                    Param({{"batch_size", "1"}}))
            ->provide_data()[0]
            .shape == TShape{1, 3, 8, 8});
}

}  // namespace
}  // namespace mxtrain::test
