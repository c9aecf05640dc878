// SPDX-License-Identifier: Apache-2.0
#include "app/report/sample_sheet.h"

#include <doctest/doctest.h>

#include "mxtrain/base/file.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/temp_dir.h"

using namespace mxtrain;

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
    report::SaveFirstBatch(dir.path(folder), *iter, report::ImageReader(transforms),
                           {"even", "odd"});
    return ReadFile(dir.path(folder) + "/train_batch.png");
  };
  CHECK(save("numbers", false) == save("pixels", true));
}
