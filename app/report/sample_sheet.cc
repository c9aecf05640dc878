// SPDX-License-Identifier: Apache-2.0
#include "app/report/sample_sheet.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/report/plot/font.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/math.h"
#include "mxtrain/base/params.h"

namespace mxtrain::report {

plot::Drawing DrawSheet(const std::string& title, const std::vector<SheetImage>& images) {
  constexpr double kMargin = 16, kGap = 12, kLeast = 112, kLine = 14, kTextSize = 11, kTitle = 30;
  const io::Image& first = images.at(0).image;
  const double enlarged = std::max(1.0, std::ceil(kLeast / std::max(first.width, first.height)));
  const double width = enlarged * first.width, height = enlarged * first.height;
  const double cell = std::max(width, kLeast);
  size_t lines = 0;
  for (const SheetImage& p : images) lines = std::max(lines, p.lines.size());
  const double row = height + kLine * static_cast<double>(lines) + kGap;
  // Somewhat wider than high, like a screen.
  const double wanted = std::sqrt(1.5 * static_cast<double>(images.size()) * row / (cell + kGap));
  const size_t columns =
      std::clamp<size_t>(static_cast<size_t>(std::lround(wanted)), 1, images.size());
  const size_t rows = CeilDivide(images.size(), columns);
  const double sheet = static_cast<double>(columns) * (cell + kGap) - kGap;
  const double page = 2 * kMargin + std::max(sheet, plot::TextWidth(title, 15));
  plot::Drawing drawing(page, 2 * kMargin + kTitle + row * static_cast<double>(rows) - kGap);
  drawing.AddText({kMargin, kMargin + 14}, title, {.size = 15});
  for (size_t i = 0; i < images.size(); ++i) {
    const size_t across = i % columns, down = i / columns;
    const plot::Point at{kMargin + static_cast<double>(across) * (cell + kGap),
                         kMargin + kTitle + static_cast<double>(down) * row};
    drawing.AddImage({at.x + (cell - width) / 2, at.y}, width, height, images[i].image);
    for (size_t k = 0; k < images[i].lines.size(); ++k) {
      const std::string text = plot::FitText(images[i].lines[k], kTextSize, cell);
      drawing.AddText({at.x + cell / 2, at.y + height + kLine * static_cast<double>(k + 1) - 1},
                      text, {.size = kTextSize, .anchor = plot::Anchor::kMiddle});
    }
  }
  return drawing;
}

ImageReader::ImageReader(const std::vector<io::TransformSpec>& transforms) {
  if (transforms.empty() || transforms.back().name != "normalize") return;
  for (const auto& [key, value] : transforms.back().kwargs) {
    if (key == "mean") params::Parse(value, &mean_);
    if (key == "std") params::Parse(value, &std_);
  }
}

bool ImageReader::IsImage(const DataDesc& input) {
  return input.shape.ndim() == 4 && (input.shape[1] == 1 || input.shape[1] == 3) &&
         input.shape[2] > 1 && input.shape[3] > 1;
}

io::Image ImageReader::Read(const float* planes, const TShape& batch_shape) const {
  const auto channels = static_cast<size_t>(batch_shape[1]),
             pixels = static_cast<size_t>(batch_shape[2] * batch_shape[3]);
  io::Image image;
  image.Resize(static_cast<int>(batch_shape[2]), static_cast<int>(batch_shape[3]),
               static_cast<int>(channels));
  for (size_t c = 0; c < channels; ++c) {
    const double mean = mean_[std::min(c, mean_.size() - 1)],
                 std = std_[std::min(c, std_.size() - 1)];
    for (size_t i = 0; i < pixels; ++i) {
      const double level = 255 * (planes[c * pixels + i] * std + mean);
      image.pixels[i * channels + c] =
          static_cast<uint8_t>(std::clamp(std::lround(level), 0L, 255L));
    }
  }
  return image;
}

namespace {

// The class of each example of a batch; empty unless the only label is a class.
std::vector<std::string> ClassesOf(const DataBatch& batch,
                                   const std::vector<std::string>& class_names) {
  std::vector<std::string> names;
  if (batch.label.size() != 1 || class_names.empty() ||
      batch.label[0].shape().Size() != batch.label[0].shape()[0])
    return names;
  for (const float value : batch.label[0].ToVector()) {
    const auto k = static_cast<size_t>(std::max(value, 0.0F));
    names.push_back(k < class_names.size() ? class_names[k] : "");
  }
  return names;
}

// Labels that are images, of values from 0 to 1.
void SaveTargets(const std::string& folder, const std::vector<DataDesc>& labels,
                 const DataBatch& batch) {
  const ImageReader plain(std::vector<io::TransformSpec>{});
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!ImageReader::IsImage(labels[i])) continue;
    const std::vector<float> planes = batch.label[i].ToVector();
    const int64_t size = labels[i].shape.Size() / labels[i].shape[0];
    std::vector<SheetImage> sheet;
    for (int64_t k = 0; k < std::min(batch.count, kMostOfSheet); ++k)
      sheet.push_back(SheetImage{plain.Read(planes.data() + k * size, labels[i].shape), {}});
    plot::SaveAs(DrawSheet("targets of the first training batch", sheet),
                 format("{}/train_batch_{}.png", folder, labels[i].name));
  }
}

}  // namespace

void SaveFirstBatch(const std::string& folder, DataIter& train, const ImageReader& reader,
                    const std::vector<std::string>& class_names) {
  const std::vector<DataDesc> inputs = train.provide_data();
  const auto images = std::count_if(inputs.begin(), inputs.end(), ImageReader::IsImage);
  DataBatch batch;
  train.Reset(0);
  if (images == 0 || !train.Next(&batch)) return;
  MakeOwnFolder(folder);
  const std::vector<std::string> classes = ClassesOf(batch, class_names);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!ImageReader::IsImage(inputs[i])) continue;
    const std::vector<float> planes = InputValues(inputs[i], batch.data[i]);
    const int64_t size = inputs[i].shape.Size() / inputs[i].shape[0];
    std::vector<SheetImage> sheet;
    for (int64_t k = 0; k < std::min(batch.count, kMostOfSheet); ++k) {
      SheetImage& one = sheet.emplace_back(
          SheetImage{reader.Read(planes.data() + k * size, inputs[i].shape), {}});
      if (!classes.empty()) one.lines.push_back(classes[static_cast<size_t>(k)]);
    }
    const std::string name = images > 1 ? "train_batch_" + inputs[i].name : "train_batch";
    plot::SaveAs(DrawSheet("first training batch, as fed to the net", sheet),
                 format("{}/{}.png", folder, name));
  }
  SaveTargets(folder, train.provide_label(), batch);
}

}  // namespace mxtrain::report
