// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "mxtrain/base/file.h"
#include "mxtrain/base/philox.h"
#include "tests/support/data_dir.h"
#include "tests/support/error_message.h"
#include "tests/support/pipeline_data.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

const std::vector<TransformSpec> kRandomTransforms = {
    {"random_resized_crop", {{"", "16"}, {"area", "0.3, 1"}}},
    {"flip", {}},
    {"normalize", {{"mean", "0.5"}, {"std", "0.25"}}}};

}  // namespace

TEST_CASE("batches do not depend on the number of threads, nor on the engine") {
  const TempDir dir;
  WriteImages(dir, 23);
  std::vector<Copied> reference;
  for (const auto& [engine, workers] :
       {std::pair{"naive", "1"}, {"threaded", "1"}, {"threaded", "2"}, {"threaded", "4"}}) {
    CAPTURE(engine);
    CAPTURE(workers);
    Runtime runtime = MakeRuntime(engine);
    const auto iter = NewPipeline(runtime, Folder(dir), kRandomTransforms,
                                  Param({{"batch_size", "4"},
                                         {"shuffle", "True"},
                                         {"seed", "5"},
                                         {"workers", workers},
                                         {"prefetch", "2"}}));
    CHECK(iter->provide_data()[0].shape == TShape{4, 3, 16, 16});
    CHECK(iter->provide_label()[0].name == "softmax_label");
    CHECK(iter->provide_label()[0].shape == TShape{4});
    CHECK(iter->batches_per_epoch() == 5);
    std::vector<Copied> batches;
    for (const int64_t epoch : {0, 1}) {
      iter->Reset(epoch);
      DataBatch batch;
      while (iter->Next(&batch)) batches.push_back(CopyOf(batch));
    }
    REQUIRE(batches.size() == 10);
    if (reference.empty()) reference = batches;
    CHECK((batches == reference));
    CHECK(iter->stats().bytes > 0);
  }
  CHECK(reference[0].index != reference[5].index);  // another order in another epoch
  const std::vector<int64_t> all = Indices({reference.begin(), reference.begin() + 5});
  CHECK(std::set<int64_t>(all.begin(), all.end()).size() == 20);
}

TEST_CASE("seeking equals running") {
  const TempDir dir;
  WriteImages(dir, 20);
  Runtime runtime = MakeRuntime();
  const PipelineParam param = Param({{"batch_size", "4"}, {"shuffle", "True"}, {"workers", "2"}});
  const auto run = NewPipeline(runtime, Folder(dir), kRandomTransforms, param);
  run->Reset(3);
  const std::vector<Copied> whole = RunOut(*run);
  const auto seek = NewPipeline(runtime, Folder(dir), kRandomTransforms, param);
  for (const int64_t first : {2, 0, 4, 5, 1}) {
    seek->Reset(3, first);
    DataBatch batch;
    for (size_t b = static_cast<size_t>(first); b < whole.size(); ++b) {
      REQUIRE(seek->Next(&batch));
      CHECK((CopyOf(batch) == whole[b]));
      if (first == 1) break;  // leave in the middle of the epoch
    }
    if (first != 1) CHECK_FALSE(seek->Next(&batch));
  }
  CHECK(MessageOf([&] { seek->Reset(0, 6); }).find("there is no batch 6") != std::string::npos);
}

TEST_CASE("training drops the remainder or keeps it, evaluation pads") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Counting>(10);
  const auto run = [&](Kwargs kwargs) {
    kwargs.emplace_back("batch_size", "4");
    return RunOut(*NewPipeline(runtime, source, {}, Param(kwargs)));
  };
  CHECK(run({}).size() == 2);
  for (const Kwargs& kwargs :
       {Kwargs{{"keep_remainder", "True"}}, Kwargs{{"mode", "evaluation"}}}) {
    const auto batches = run(kwargs);
    REQUIRE(batches.size() == 3);
    CHECK(batches[1].count == 4);
    CHECK(batches[2].count == 2);
    CHECK(batches[2].index == std::vector<int64_t>{8, 9});
    CHECK(batches[2].data == std::vector<float>{8, 9, 0, 1});
  }
  CHECK(MessageOf([&] {
          NewPipeline(runtime, source, {}, Param({{"batch_size", "11"}}));
        }) == "batch_size = 11 is more than the 10 examples; use a smaller one");
  CHECK(NewPipeline(runtime, source, {}, Param({{"batch_size", "11"}, {"mode", "evaluation"}}))
            ->batches_per_epoch() == 1);
}

TEST_CASE("an iterator may be abandoned at any moment") {
  const TempDir dir;
  WriteImages(dir, 16);
  for (int round = 0; round < 12; ++round) {
    Runtime runtime = MakeRuntime(round % 3 == 2 ? "naive" : "threaded");
    DataBatch kept;
    std::vector<float> before;
    {
      const auto iter = NewPipeline(runtime, Folder(dir), kRandomTransforms,
                                    Param({{"batch_size", "2"}, {"workers", "2"}}));
      if (round % 2) iter->Reset(round);
      for (int i = 0; i < round / 2; ++i) CHECK(iter->Next(&kept));
      if (round > 8) iter->Reset(0, 3);
      if (!kept.data.empty()) before = kept.data[0].ToVector();
    }
    if (!kept.data.empty()) CHECK(kept.data[0].ToVector() == before);  // outlives its iterator
    runtime.engine().WaitForAll();
  }
}

TEST_CASE("a batch is overwritten only when it was dropped and its readers have finished") {
  Runtime runtime = MakeRuntime();
  const auto iter = NewPipeline(runtime, std::make_shared<Counting>(200), {},
                                Param({{"batch_size", "4"}, {"prefetch", "1"}, {"workers", "2"}}));
  std::vector<float> seen(50, -1);
  std::vector<DataBatch> held;
  DataBatch batch;
  for (size_t b = 0; iter->Next(&batch); ++b) {
    // A slow reader, pushed and not awaited; its batch is dropped by the next call of Next.
    const NDArray data = batch.data[0];
    const engine::VarHandle reads[] = {data.var()};
    runtime.engine().PushSync(
        [data, &seen, b](RunContext) {
          if (b % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
          seen[b] = data.data().dptr<float>()[3];
        },
        reads, {}, {});
    if (b % 5 == 0) held.push_back(batch);  // more than the ring has slots
  }
  runtime.engine().WaitForAll();
  for (size_t b = 0; b < 50; ++b) CHECK(seen[b] == static_cast<float>(4 * b + 3));
  for (size_t i = 0; i < held.size(); ++i)
    CHECK(held[i].data[0].ToVector()[0] == static_cast<float>(20 * i));
}

TEST_CASE(
    "the engine never waits for the caller, and an error of a batch's array is passed on once") {
  Runtime runtime = MakeRuntime();
  const auto iter = NewPipeline(runtime, std::make_shared<Counting>(40), {},
                                Param({{"batch_size", "4"}, {"prefetch", "1"}}));
  DataBatch batch;
  REQUIRE(iter->Next(&batch));
  runtime.engine().WaitForAll();  // with open and delivered slots
  const engine::VarHandle writes[] = {batch.data[0].var()};
  engine::PushOptions options;
  options.name = "scale";
  runtime.engine().PushSync([](RunContext) { Throw(ErrorKind::kData, "no luck"); }, {}, writes,
                            options);
  int errors = 0, batches = 1;
  for (bool more = true; more && errors < 10;) {
    const std::string why = MessageOf([&] { more = iter->Next(&batch); });
    if (!why.empty()) {
      ++errors;
      CHECK(why.find("no luck") != std::string::npos);
    } else if (more) {
      CHECK(batch.batch == batches++);
    }
  }
  CHECK(errors == 1);
  CHECK(batches == 10);
}

TEST_CASE("decoding shows in a trace") {
  const TempDir dir;
  Runtime runtime = MakeRuntime();
  const auto iter = NewPipeline(runtime, std::make_shared<Counting>(40), {},
                                Param({{"batch_size", "4"}, {"workers", "1"}}));
  runtime.engine().StartProfile();
  RunOut(*iter);
  runtime.engine().StopProfile(dir.path("trace.json"));
  CHECK(ReadFile(dir.path("trace.json")).find("decode 0") != std::string::npos);
}

TEST_CASE("images without labels, names of fields, channels") {
  const TempDir dir;
  WriteImages(dir, 4);
  Runtime runtime = MakeRuntime();
  const std::shared_ptr<const Source> list =
      MakeSource("image_list", {{"path", dir.path()}, {"recursive", "True"}});
  const auto iter = NewPipeline(
      runtime, list, kPlainTransforms,
      Param(
          {{"batch_size", "4"}, {"mode", "evaluation"}, {"channels", "1"}, {"data_name", "left"}}));
  CHECK(iter->provide_label().empty());
  CHECK(iter->provide_data()[0].name == "left");
  CHECK(iter->provide_data()[0].shape == TShape{4, 1, 8, 8});
  CHECK(RunOut(*iter).size() == 1);
  CHECK(MessageOf([&] {
          NewPipeline(runtime, std::make_shared<Counting>(4), kPlainTransforms,
                      Param({{"batch_size", "1"}}));
        }) == "transforms work on images, but the data are numbers: remove 'resize'");
  CHECK(MessageOf([&] {
          NewPipeline(runtime, list, {}, Param({{"batch_size", "1"}}));
        }).find("different sizes") != std::string::npos);
  CHECK(MessageOf([&] {
          NewPipeline(runtime, list, kPlainTransforms,
                      Param({{"batch_size", "1"}, {"part_index", "2"}}));
        }) == "part_index = 2 must be less than num_parts = 1");
}

// Bit-exact on processors with FMA.
TEST_CASE("pixels normalized on the device give the numbers of float32 batches") {
  const TempDir dir;
  WriteImages(dir, 13);
  dir.Write("even/broken.png", "no image");
  Runtime runtime = MakeRuntime();
  const std::vector<TransformSpec> whole_steps = {{"resize", {{"", "20"}}},
                                                  {"random_crop", {{"", "16"}}},
                                                  {"rotate", {{"", "10"}}},
                                                  {"flip", {}}};
  for (const auto& transforms : {kRandomTransforms, kPlainTransforms, whole_steps}) {
    for (const Kwargs& more : {Kwargs{}, Kwargs{{"cache", "ram"}}, Kwargs{{"channels", "1"}},
                               Kwargs{{"mode", "training"}, {"max_bad", "0.5"}}}) {
      PipelineParam param = Param({{"batch_size", "4"},
                                   {"mode", "evaluation"},
                                   {"shuffle", "True"},
                                   {"seed", "3"},
                                   {"workers", "2"}});
      Kwargs kwargs = param.ToKwargs();
      kwargs.insert(kwargs.end(), more.begin(), more.end());
      param = Param(kwargs);
      const auto numbers = NewPipeline(runtime, Folder(dir), transforms, param);
      param.pixels = true;
      const auto pixels = NewPipeline(runtime, Folder(dir), transforms, param);
      const DataDesc as_numbers = numbers->provide_data()[0], as_pixels = pixels->provide_data()[0];
      CHECK(as_pixels.shape == as_numbers.shape);
      CHECK(as_pixels.type == DType::kFloat32);
      const TShape& shape = as_pixels.shape;
      DataBatch a, b;
      int64_t batches = 0;
      for (; numbers->Next(&a); ++batches) {
        REQUIRE(pixels->Next(&b));
        CHECK(b.data[0].dtype() == DType::kUint8);
        CHECK(b.data[0].shape() == TShape{4, shape[2], shape[3], shape[1]});
        CHECK(b.index == a.index);
        CHECK(b.label[0].ToVector() == a.label[0].ToVector());
        const std::vector<float> expected = InputValues(as_numbers, a.data[0]),
                                 values = InputValues(as_pixels, b.data[0]);
        // The rest is padding.
        const auto real = static_cast<ptrdiff_t>(a.count * shape.Size() / shape[0]);
        CHECK(std::equal(expected.begin(), expected.begin() + real, values.begin()));
      }
      CHECK(batches == numbers->batches_per_epoch());
      CHECK_FALSE(pixels->Next(&b));
    }
  }
}

TEST_CASE("numbers that are not images stay numbers") {
  Runtime runtime = MakeRuntime();
  PipelineParam param = Param({{"batch_size", "4"}});
  param.pixels = true;
  const auto iter = NewPipeline(runtime, std::make_shared<Counting>(8), {}, param);
  CHECK_FALSE(iter->provide_data()[0].pixels);
  CHECK(RunOut(*iter)[1].data == std::vector<float>{4, 5, 6, 7});
}

TEST_CASE("a cache changes no pixel and reads no file twice") {
  const TempDir dir;
  WriteImages(dir, 12);
  dir.Write("even/broken.png", "no image");
  Runtime runtime = MakeRuntime();
  const std::vector<TransformSpec> chain = {{"resize", {{"", "20"}}},
                                            {"random_crop", {{"", "16"}}},
                                            {"rotate", {{"", "10"}}},
                                            {"flip", {}},
                                            {"normalize", {{"mean", "0.5"}}}};
  const auto make = [&](const std::vector<TransformSpec>& transforms, const Kwargs& more) {
    Kwargs kwargs{{"batch_size", "4"}, {"shuffle", "True"}, {"seed", "3"},
                  {"max_bad", "0.5"},  {"workers", "2"},    {"exact_decode", "True"}};
    kwargs.insert(kwargs.end(), more.begin(), more.end());
    return NewPipeline(runtime, Folder(dir), transforms, Param(kwargs));
  };
  for (const auto& transforms : {chain, kRandomTransforms, kPlainTransforms}) {
    const auto plain = make(transforms, {}), cached = make(transforms, {{"cache", "ram"}}),
               small = make(transforms, {{"cache", "ram"}, {"cache_bytes", "3000"}});
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      for (const auto* iter : {&plain, &cached, &small}) (*iter)->Reset(epoch);
      const std::vector<Copied> reference = RunOut(*plain);
      CHECK(reference.size() == 3);
      CHECK((RunOut(*cached) == reference));
      CHECK((RunOut(*small) == reference));
    }
    const int64_t once = cached->stats().bytes;
    CHECK(plain->stats().bytes > 2 * once);
    CHECK(small->stats().bytes > once);
    CHECK(cached->stats().bad.size() == plain->stats().bad.size());
  }
}

TEST_CASE(
    "neither what fits into a cache nor which thread is first changes a pixel of a JPEG that may "
    "be decoded reduced") {
  const TempDir dir;
  for (int i = 0; i < 8; ++i) {
    Image image;
    image.Resize(160, 200, 3);
    for (size_t p = 0; p < image.pixels.size(); ++p)
      image.pixels[p] = static_cast<uint8_t>((p * p >> 7) + p * 31 * static_cast<size_t>(i + 1));
    dir.Write(format("all/{}.jpg", i), EncodeJpeg(image));
  }
  Runtime runtime = MakeRuntime();
  const std::vector<TransformSpec> cut = {{"random_resized_crop",
                                           {{"size", "20"}, {"area", "[0.9, 1]"}}}},
                                   reduced = {{"resize", {{"", "64"}}},
                                              {"random_crop", {{"", "20"}}}};
  for (const auto& transforms : {cut, reduced}) {
    std::vector<std::vector<Copied>> reference;
    // Room for all, none, and some of the images.
    for (const char* bytes : {"100000000", "1", "250000", "30000"}) {
      for (const char* workers : {"1", "3"}) {
        const auto iter = NewPipeline(runtime, Folder(dir), transforms,
                                      Param({{"batch_size", "4"},
                                             {"shuffle", "True"},
                                             {"cache", "ram"},
                                             {"cache_bytes", bytes},
                                             {"workers", workers}}));
        std::vector<std::vector<Copied>> epochs;
        for (int64_t epoch = 0; epoch < 3; ++epoch) {
          iter->Reset(epoch);
          epochs.push_back(RunOut(*iter));
        }
        if (reference.empty()) reference = epochs;
        CHECK_MESSAGE((epochs == reference), bytes << " bytes, " << workers << " threads");
      }
    }
  }
}

TEST_CASE("a full cache is reported once, with figures") {
  const TempDir dir;
  WriteImages(dir, 12);
  std::vector<std::string> warnings;
  RuntimeOptions options;
  options.log = std::make_shared<Log>();
  options.log->AddSink([&](const LogMessage& message) { warnings.emplace_back(message.text); },
                       LogLevel::kWarning);
  Runtime runtime(options, nullptr);
  const auto iter = NewPipeline(
      runtime, Folder(dir), kPlainTransforms,
      Param({{"batch_size", "4"}, {"cache", "ram"}, {"cache_bytes", "1500"}, {"workers", "1"}}));
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    iter->Reset(epoch);
    RunOut(*iter);
  }
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("the cache is full: ") == 0);
  CHECK(warnings[0].find(" of 12 examples take 0 MiB; the others are decoded each time") !=
        std::string::npos);
}

TEST_CASE("MNIST comes as pixel / 255" * doctest::test_suite("mnist") * doctest::skip()) {
  const auto folder = test::DataDir("mnist");
  if (!folder) return;
  Runtime runtime = MakeRuntime();
  const std::shared_ptr<const Source> source =
      MakeSource("mnist", {{"path", *folder}, {"split", "test"}});
  const auto iter =
      NewPipeline(runtime, source, {},
                  Param({{"batch_size", "64"}, {"shuffle", "True"}, {"mode", "evaluation"}}));
  CHECK(iter->provide_data()[0].shape == TShape{64, 1, 28, 28});
  CHECK(iter->batches_per_epoch() == 157);
  std::vector<bool> seen(10000);
  DataBatch batch;
  Sample sample;
  while (iter->Next(&batch)) {
    const std::vector<float> data = batch.data[0].ToVector(), label = batch.label[0].ToVector();
    for (int64_t row = 0; row < batch.count; ++row) {
      const int64_t index = batch.index[static_cast<size_t>(row)];
      seen[static_cast<size_t>(index)] = true;
      source->Read(index, &sample);
      REQUIRE(label[static_cast<size_t>(row)] == sample.labels[0].values[0]);
      for (const size_t pixel : {size_t{210}, size_t{405}, size_t{600}}) {
        REQUIRE(data[static_cast<size_t>(row) * 784 + pixel] ==
                static_cast<float>(sample.data[0].pixels[pixel] / 255.0));
      }
    }
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](bool b) { return b; }));
}

TEST_CASE("the real photographs can all be read" * doctest::test_suite("clothing") *
          doctest::skip()) {
  const auto folder = test::DataDir("clothing/validation");
  if (!folder) return;
  Runtime runtime = MakeRuntime();
  const std::shared_ptr<const Source> source = MakeSource("image_folder", {{"path", *folder}});
  const auto iter =
      NewPipeline(runtime, source, {{"resize", {{"", "144"}}}, {"center_crop", {{"", "128"}}}},
                  Param({{"batch_size", "32"}, {"mode", "evaluation"}, {"workers", "2"}}));
  CHECK(iter->examples() == 341);
  RunOut(*iter);
  CHECK(iter->stats().bad.empty());
}

TEST_CASE("files of one size need no resize; of two, both are named with their sizes") {
  const TempDir dir;
  Runtime runtime = MakeRuntime();
  const auto write = [&dir](const std::string& name, int height, int width) {
    Image image;
    image.Resize(height, width, 3);
    dir.Write(name, EncodePng(image));
  };
  write("a/0.png", 12, 16);
  write("b/1.png", 12, 16);
  dir.Write("a/2.png", "no image");
  const PipelineParam batches = Param({{"batch_size", "1"}});
  CHECK(NewPipeline(runtime, Folder(dir), {}, batches)->provide_data()[0].shape ==
        TShape{1, 3, 12, 16});
  CHECK(NewPipeline(runtime, Folder(dir), {{"resize", {{"", "6"}}}}, batches)
            ->provide_data()[0]
            .shape == TShape{1, 3, 6, 8});
  write("b/3.png", 16, 12);
  const std::string why = MessageOf([&] {
    NewPipeline(runtime, Folder(dir), {{"flip", {}}}, batches);
  });
  CHECK(why == "the transforms produce images of different sizes: " + dir.path() +
                   "/a/0.png has 16x12 pixels, " + dir.path() +
                   "/b/3.png has 12x16; end the transforms with a fixed one: resize: [height, "
                   "width], letterbox, center_crop, random_crop or random_resized_crop");
  CHECK(NewPipeline(runtime, Folder(dir), {{"center_crop", {{"fraction", "0.5"}}}}, batches)
            ->provide_data()[0]
            .shape == TShape{1, 3, 6, 6});
}
