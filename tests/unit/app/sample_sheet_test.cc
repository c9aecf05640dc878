// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/first_batch.h"

#include <doctest/doctest.h>

#include "app/tasks/task_list.h"
#include "mxtrain/base/file.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/temp_dir.h"

using namespace mxtrain;

namespace {

// The head of a net that tells even images from odd ones.
tasks::Head Odd() {
  tasks::Head head;
  head.name = head.label = "softmax_label";
  LossReport::Head& loss = head.loss.emplace();
  loss.name = "softmax";
  loss.kind = LossReport::Head::Kind::kSoftmax;
  head.facts.classes = {"even", "odd"};
  return head;
}

}  // namespace

TEST_CASE("the sheet of the first batch is the same where images travel as pixels") {
  const test::TempDir dir;
  io::Image image;
  image.Resize(6, 5, 3);
  for (int n = 0; n < 8; ++n) {
    for (size_t i = 0; i < image.pixels.size(); ++i)
      image.pixels[i] = static_cast<uint8_t>(37 * n + 11 * i);
    dir.Write(format("images/{}/{}.png", n % 2 ? "odd" : "even", n), io::EncodePng(image));
  }
  Runtime runtime(RuntimeOptions(), nullptr);
  using Chain = std::vector<io::TransformSpec>;
  const Chain transforms = {{"center_crop", {{"", "5"}}},
                            {"flip", {}},
                            {"normalize", {{"mean", "0.4"}, {"std", "0.2, 0.3, 0.4"}}}};
  const auto save = [&](const std::string& folder, bool pixels) {
    io::PipelineParam param;
    param.Init({{"batch_size", "4"}}, "data");
    param.pixels = pixels;
    const auto iter = io::NewPipeline(
        runtime, io::MakeSource("image_folder", {{"path", dir.path("images")}}), transforms, param);
    CHECK(iter->provide_data()[0].pixels.has_value() == pixels);
    const auto tasks = tasks::TasksOf({Odd()}, "");
    tasks::SaveFirstBatch(dir.path(folder), *iter, report::ImageReader(transforms), tasks);
    return ReadFile(dir.path(folder) + "/train_batch.png");
  };
  CHECK(save("numbers", false) == save("pixels", true));
}

TEST_CASE("the lines of a sheet are full where a shape near that of a screen allows it") {
  using report::SheetColumns;
  for (const size_t images : {4, 6, 8, 9, 10, 12, 15, 16, 20, 24, 25, 28, 30, 32, 36}) {
    CAPTURE(images);
    CHECK(images % SheetColumns(images, 124, 150, 1150) == 0);
  }
  CHECK(SheetColumns(20, 124, 150, 1150) == 5);
  CHECK(SheetColumns(32, 124, 150, 1150) == 8);
  // At most one line has holes, and none is empty.
  for (size_t images = 1; images < 60; ++images) {
    const size_t columns = SheetColumns(images, 124, 150, 1150);
    REQUIRE(columns >= 1);
    CHECK(columns <= std::min<size_t>(images, 9));
  }
  CHECK(SheetColumns(7, 2000, 100, 1150) == 1);
}

TEST_CASE("the end of a long name is seen below its image") {
  report::SheetImage one;
  one.image.Resize(4, 4, 3);
  one.lines = {std::string(100, 'x') + "_17.jpg"};
  const std::string svg = plot::ToSvg(report::DrawSheet("title", {one, one}));
  CHECK(svg.find("xxx\u2026xxx") != std::string::npos);
  CHECK(svg.find("_17.jpg</text>") != std::string::npos);
}
