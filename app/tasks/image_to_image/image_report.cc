// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/image_to_image/image_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "app/report/output.h"
#include "app/tasks/image_to_image/planes.h"
#include "app/tasks/prediction.h"
#include "app/tasks/side_by_side.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

// JSON has no infinity.
Json Finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

}  // namespace

double PeakSignalToNoise(double mse) {
  return mse > 0 ? -10 * std::log10(mse) : std::numeric_limits<double>::infinity();
}

void ImageReport::WriteEach(const LineOutput& lines) {
  lines_ = lines;
  if (lines.begins && lines.format == report::EachFormat::kCsv)
    lines.file->Write(format("{}file,mse,mae,psnr\n", lines.with_head ? "head," : ""));
}

void ImageReport::WriteLine(const Measured& example, bool finite) const {
  if (!lines_.file) return;
  const double psnr = PeakSignalToNoise(example.mse);
  if (lines_.format == report::EachFormat::kJsonLines) {
    Json line = {{"file", example.name}, {"mse", nullptr}, {"mae", nullptr}, {"psnr", nullptr}};
    if (finite) line.update({{"mse", example.mse}, {"mae", example.mae}, {"psnr", Finite(psnr)}});
    if (lines_.with_head) line["head"] = head().name;
    return lines_.file->Write(report::JsonText(line) + "\n");
  }
  lines_.file->Write(
      format("{}{},{}\n", lines_.with_head ? report::QuoteCsv(head().name) + "," : "",
             report::QuoteCsv(example.name),
             finite ? format("{},{},{}", example.mse, example.mae, psnr) : "nan,nan,nan"));
}

void ImageReport::Add(const Examples& examples, const std::vector<NDArray>& outputs) {
  const auto compared = Compare(head(), examples, outputs);
  if (!compared || compared->label_shape.Size() != compared->outputs_shape.Size()) return;
  const TShape& shape = compared->outputs_shape;
  const auto width = static_cast<size_t>(shape.Size() / shape[0]);
  for (size_t i = 0; i < examples.count(); ++i) {
    const std::span<const float> truth(compared->label.data() + i * width, width),
        guess(compared->outputs.data() + i * width, width);
    Measured example{examples[i].name(), 0, 0, {}};
    for (size_t k = 0; k < width; ++k) {
      const double error = static_cast<double>(guess[k]) - truth[k];
      example.mse += error * error / static_cast<double>(width);
      example.mae += std::abs(error) / static_cast<double>(width);
    }
    const bool finite = IsFinite(guess);
    WriteLine(example, finite);
    if (!finite) continue;
    ++examples_;
    mse_ += example.mse;
    mae_ += example.mae;
    if (most_ == 0 || (worst_.size() == most_ && example.mse <= std::prev(worst_.end())->first))
      continue;
    if (shape.ndim() == 4)
      example.shown = Beside(ImageOfPlanes(truth, shape), ImageOfPlanes(guess, shape));
    const auto input = examples[i].Shown(*reader_);
    if (input && !example.shown.pixels.empty()) example.shown = Beside(*input, example.shown);
    const double mse = example.mse;
    worst_.emplace(mse, std::move(example));
    if (worst_.size() > most_) worst_.erase(std::prev(worst_.end()));
  }
}

std::string ImageReport::Text(int worst, bool /*several*/) const {
  const auto count = static_cast<double>(examples_);
  std::string text =
      format("\n{}: mse {:.6f}, mae {:.6f}, psnr {:.2f} dB of {}\n", head().name, mse_ / count,
             mae_ / count, PeakSignalToNoise(mse_ / count), Counted(examples_, "image"));
  if (!worst_.empty() && worst > 0) text += "\nworst images\n";
  for (const auto& [mse, example] : worst_) {
    if (worst-- <= 0) break;
    text += format("  {}: mse {:.6f}, psnr {:.2f} dB\n", report::Printable(example.name), mse,
                   PeakSignalToNoise(mse));
  }
  return text;
}

std::string ImageReport::CsvLines(bool with_head) const {
  const auto count = static_cast<double>(examples_);
  return format("{}{},{},{},{}\n",
                with_head ? report::QuoteCsv(report::ListedName(head().name)) + "," : "", examples_,
                mse_ / count, mae_ / count, PeakSignalToNoise(mse_ / count));
}

Json ImageReport::ToJson(int worst) const {
  const auto count = static_cast<double>(examples_);
  Json list = Json::array();
  for (const auto& [mse, example] : worst_) {
    if (worst-- <= 0) break;
    list.push_back({{"example", example.name}, {"mse", mse}, {"mae", example.mae}});
  }
  return {{"mse", mse_ / count},
          {"mae", mae_ / count},
          {"psnr", Finite(PeakSignalToNoise(mse_ / count))},
          {"worst", list}};
}

void ImageReport::AddTo(Json* result, int worst, bool several) const {
  if (several) {
    (*result)["images"][head().name] = ToJson(worst);
  } else {
    (*result)["images"] = ToJson(worst);
  }
}

void ImageReport::WriteFiles(const std::string& folder) const {
  std::vector<report::SheetImage> sheet;
  for (const auto& [mse, example] : worst_) {
    if (example.shown.pixels.empty()) break;
    sheet.push_back(
        {example.shown,
         {std::filesystem::path(example.name).filename().string(), format("mse {:.5f}", mse)}});
  }
  if (sheet.empty()) return;
  MakeFolders(folder);
  plot::SaveAs(report::DrawSheet("the worst images: input, label, prediction", sheet),
               folder + "/worst.png");
}

}  // namespace mxtrain::tasks
