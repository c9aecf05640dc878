// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/segmentation/mask_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "app/report/output.h"
#include "app/tasks/class_colours.h"
#include "app/tasks/prediction.h"
#include "app/tasks/side_by_side.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/io/source.h"
#include "mxtrain/metric/boundary_f.h"
#include "mxtrain/metric/class_map.h"

namespace mxtrain::tasks {
namespace {

double Part(int64_t of, int64_t all) {
  return all > 0 ? static_cast<double>(of) / static_cast<double>(all)
                 : std::numeric_limits<double>::quiet_NaN();
}

std::string Cell(double value) {
  return std::isnan(value) ? "" : format("{}", value);
}

Json OrNull(double value) {
  return std::isnan(value) ? Json(nullptr) : Json(value);
}

io::Image Painted(io::Image image, const io::Image& classes) {
  PaintClasses(classes, &image);
  return image;
}

}  // namespace

double MaskReport::Row::Iou() const {
  return Part(right, labelled + guessed - right);
}
double MaskReport::Row::Dice() const {
  return Part(2 * right, labelled + guessed);
}
double MaskReport::Row::Precision() const {
  return Part(right, guessed);
}
double MaskReport::Row::Recall() const {
  return Part(right, labelled);
}

io::Image ClassImage(std::span<const float> label, int64_t height, int64_t width) {
  io::Image image;
  image.Resize(static_cast<int>(height), static_cast<int>(width), 1);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] =
        label[i] >= 0 && label[i] < io::kNoClass ? static_cast<uint8_t>(label[i]) : io::kNoClass;
  return image;
}

std::vector<MaskReport::Row> MaskReport::RowsOf(const Counts& counts) {
  std::vector<Row> rows(counts.size());
  for (size_t truth = 0; truth < counts.size(); ++truth) {
    for (size_t guess = 0; guess < counts.size(); ++guess) {
      rows[truth].labelled += counts[truth][guess];
      rows[guess].guessed += counts[truth][guess];
    }
    rows[truth].right = counts[truth][truth];
  }
  return rows;
}

double MaskReport::MeanIouOf(const std::vector<Row>& rows) {
  double sum = 0;
  int64_t count = 0;
  for (const Row& row : rows) {
    if (row.labelled + row.guessed == 0) continue;
    sum += row.Iou();
    ++count;
  }
  return sum / static_cast<double>(count);
}

double MaskReport::AccuracyOf(const Counts& counts) {
  int64_t right = 0, all = 0;
  for (const Row& row : RowsOf(counts)) right += row.right, all += row.labelled;
  return Part(right, all);
}

std::vector<MaskReport::Row> MaskReport::Rows() const {
  std::vector<Row> rows = RowsOf(counts_);
  for (size_t k = 0; k < rows.size(); ++k) {
    rows[k].name = names_[static_cast<int64_t>(k)];
    if (k < boundaries_.size()) rows[k].boundary_f = boundaries_[k].value();
  }
  return rows;
}
double MaskReport::MeanIou() const {
  return MeanIouOf(RowsOf(counts_));
}
double MaskReport::MeanIouOfImages() const {
  return image_ious_ / static_cast<double>(images_);
}
double MaskReport::PixelAccuracy() const {
  return AccuracyOf(counts_);
}

double MaskReport::BoundaryF() const {
  return image_boundaries_.value();
}

void MaskReport::WriteEach(const LineOutput& lines) {
  lines_ = lines;
  if (lines.begins && lines.format == report::EachFormat::kCsv)
    lines.file->Write(format("{}file,mean_iou,pixel_accuracy\n", lines.with_head ? "head," : ""));
}

void MaskReport::WriteLine(const Measured& image, bool finite) const {
  if (!lines_.file) return;
  if (lines_.format == report::EachFormat::kJsonLines) {
    Json line = {{"file", image.name}, {"mean_iou", nullptr}, {"pixel_accuracy", nullptr}};
    if (finite)
      line.update(
          {{"mean_iou", OrNull(image.mean_iou)}, {"pixel_accuracy", OrNull(image.accuracy)}});
    if (lines_.with_head) line["head"] = head().name;
    return lines_.file->Write(report::JsonText(line) + "\n");
  }
  lines_.file->Write(
      format("{}{},{}\n", lines_.with_head ? report::QuoteCsv(head().name) + "," : "",
             report::QuoteCsv(image.name),
             finite ? format("{},{}", Cell(image.mean_iou), Cell(image.accuracy)) : "nan,nan"));
}

void MaskReport::AddTo(const Counts& from, Counts* to) {
  for (size_t t = 0; t < from.size(); ++t) {
    for (size_t g = 0; g < from.size(); ++g) (*to)[t][g] += from[t][g];
  }
}

MaskReport::Counts MaskReport::CountsOf(const Example& example, std::span<const float> truth,
                                        std::span<const int32_t> guesses, const TShape& shape) {
  const auto classes = static_cast<size_t>(shape[1]);
  const auto width = static_cast<size_t>(shape[3]);
  const io::Tile* const tile = example.tile();
  const io::PointMap to_file = tile ? example.to_file() : io::PointMap();
  const auto is_own = [&](size_t pixel) {
    const io::Point at = to_file(
        {static_cast<double>(pixel % width) + 0.5, static_cast<double>(pixel / width) + 0.5});
    const io::Box& own = tile->own;
    return at.x >= own.x && at.y >= own.y && at.x < own.x + own.width && at.y < own.y + own.height;
  };
  Counts counts(classes, std::vector<int64_t>(classes));
  for (size_t k = 0; k < truth.size(); ++k) {
    if (!(truth[k] >= 0 && truth[k] < static_cast<float>(classes))) continue;
    if (tile && !is_own(k)) continue;
    ++counts[static_cast<size_t>(truth[k])][static_cast<size_t>(guesses[k])];
  }
  return counts;
}

bool MaskReport::AddTile(const io::Tile& tile, Counts* counts, bool* finite) {
  if (tiles_.Add(tile)) {
    tile_counts_ = *counts;
    finite_ = *finite;
  } else {
    AddTo(*counts, &tile_counts_);
    finite_ = finite_ && *finite;
  }
  if (!tiles_.complete()) return false;
  *counts = std::move(tile_counts_);
  *finite = finite_;
  return true;
}

void MaskReport::AddBoundaries(std::span<const float> truth, std::span<const int32_t> guesses,
                               const TShape& shape) {
  const auto classes = static_cast<float>(shape[1]);
  std::vector<int32_t> labelled;
  for (const float label : truth)
    labelled.push_back(label >= 0 && label < classes ? static_cast<int32_t>(label) : -1);
  const std::vector<BoundaryMatch> matches = MatchBoundaries(
      labelled, guesses, shape[2], shape[3], shape[1], BoundaryTolerance(shape[2], shape[3]));
  boundaries_.resize(matches.size());
  Mean of_image;
  for (size_t k = 0; k < matches.size(); ++k) {
    boundaries_[k].Add(matches[k].F());
    of_image.Add(matches[k].F());
  }
  image_boundaries_.Add(of_image.value());
}

void MaskReport::Add(const Examples& examples, const std::vector<NDArray>& outputs) {
  const auto compared = Compare(head(), examples, outputs);
  if (!compared) return;
  const TShape& shape = compared->outputs_shape;
  if (shape.ndim() != 4 || compared->label_shape.Size() * shape[1] != shape.Size()) return;
  const auto classes = static_cast<size_t>(shape[1]);
  const auto pixels = static_cast<size_t>(shape[2] * shape[3]);
  if (counts_.empty()) counts_.assign(classes, std::vector<int64_t>(classes));
  std::vector<int32_t> guesses(pixels);
  for (size_t i = 0; i < examples.count(); ++i) {
    const std::span<const float> truth(compared->label.data() + i * pixels, pixels),
        scores(compared->outputs.data() + i * pixels * classes, pixels * classes);
    const Example example = examples[i];
    bool finite = IsFinite(scores);
    if (finite) BestClasses(scores, shape[1], guesses);
    Counts own = finite ? CountsOf(example, truth, guesses, shape)
                        : Counts(classes, std::vector<int64_t>(classes));
    const io::Tile* const tile = example.tile();
    if (tile && !AddTile(*tile, &own, &finite)) continue;
    Measured image{example.name(), 0, 0, {}};
    if (!finite) {
      WriteLine(image, /*finite=*/false);
      continue;
    }
    image.accuracy = AccuracyOf(own);
    image.mean_iou = MeanIouOf(RowsOf(own));
    WriteLine(image, /*finite=*/true);
    if (std::isnan(image.accuracy)) continue;  // no pixel has a class
    ++images_;
    image_ious_ += image.mean_iou;
    AddTo(own, &counts_);
    if (!tile) AddBoundaries(truth, guesses, shape);
    const bool among_worst =
        most_ > 0 && (worst_.size() < most_ || image.mean_iou < std::prev(worst_.end())->first);
    if (!among_worst) continue;
    const auto input = tile ? std::nullopt : example.Shown(*reader_);
    if (input && input->height == shape[2] && input->width == shape[3]) {
      const std::vector<float> guess(guesses.begin(), guesses.end());
      image.shown = Beside(*input, Beside(Painted(*input, ClassImage(truth, shape[2], shape[3])),
                                          Painted(*input, ClassImage(guess, shape[2], shape[3]))));
    }
    const double iou = image.mean_iou;
    worst_.emplace(iou, std::move(image));
    if (worst_.size() > most_) worst_.erase(std::prev(worst_.end()));
  }
}

std::string MaskReport::Text(int worst, bool /*several*/) const {
  std::string text = format(
      "\n{}: mean IoU {:.4f} ({:.4f} as the mean of images), pixel accuracy {:.4f}{} of {}\n",
      head().name, MeanIou(), MeanIouOfImages(), PixelAccuracy(),
      std::isnan(BoundaryF()) ? "" : format(", boundary F {:.4f}", BoundaryF()),
      Counted(images_, "image"));
  const std::vector<Row> rows = Rows();
  size_t width = 5;
  for (const Row& row : rows) width = std::max(width, report::Printable(row.name).size());
  text += format("{:<{}}  {:>7}  {:>7}  {:>10}  {:>9}  {:>7}  {:>10}\n", "class", width, "IoU",
                 "Dice", "boundary F", "precision", "recall", "pixels");
  const auto cell = [](double value) {
    return std::isnan(value) ? std::string("-") : format("{:.4f}", value);
  };
  for (const Row& row : rows)
    text += format("{:<{}}  {:>7}  {:>7}  {:>10}  {:>9}  {:>7}  {:>10}\n",
                   report::Printable(row.name), width, cell(row.Iou()), cell(row.Dice()),
                   cell(row.boundary_f), cell(row.Precision()), cell(row.Recall()), row.labelled);
  if (!worst_.empty() && worst > 0) text += "\nworst images\n";
  for (const auto& [iou, image] : worst_) {
    if (worst-- <= 0) break;
    text += format("  {}: mean IoU {:.4f}, pixel accuracy {:.4f}\n", report::Printable(image.name),
                   iou, image.accuracy);
  }
  return text;
}

std::string MaskReport::CsvLines(bool with_head) const {
  std::string lines;
  for (const Row& row : Rows())
    lines +=
        format("{}{},{},{},{},{},{},{}\n",
               with_head ? report::QuoteCsv(report::ListedName(head().name)) + "," : "",
               report::QuoteCsv(report::ListedName(row.name)), Cell(row.Iou()), Cell(row.Dice()),
               Cell(row.boundary_f), Cell(row.Precision()), Cell(row.Recall()), row.labelled);
  return lines;
}

Json MaskReport::ToJson(int worst) const {
  Json classes = Json::object(), list = Json::array();
  for (const Row& row : Rows())
    classes[row.name] = {{"iou", OrNull(row.Iou())},
                         {"dice", OrNull(row.Dice())},
                         {"boundary_f", OrNull(row.boundary_f)},
                         {"precision", OrNull(row.Precision())},
                         {"recall", OrNull(row.Recall())},
                         {"pixels", row.labelled}};
  for (const auto& [iou, image] : worst_) {
    if (worst-- <= 0) break;
    list.push_back(
        {{"example", image.name}, {"mean_iou", iou}, {"pixel_accuracy", image.accuracy}});
  }
  return {{"mean_iou", MeanIou()},
          {"mean_iou_of_images", MeanIouOfImages()},
          {"pixel_accuracy", PixelAccuracy()},
          {"boundary_f", OrNull(BoundaryF())},
          {"images", images_},
          {"classes", classes},
          {"worst", list}};
}

void MaskReport::AddTo(Json* result, int worst, bool several) const {
  if (several) {
    (*result)["masks"][head().name] = ToJson(worst);
  } else {
    (*result)["masks"] = ToJson(worst);
  }
}

void MaskReport::WriteFiles(const std::string& folder) const {
  MakeFolders(folder);
  WriteFileAtomically(folder + "/classes.csv", CsvHeader() + "\n" + CsvLines(false));
  std::string confusion = "true";
  const std::vector<Row> rows = Rows();
  for (const Row& row : rows) confusion += "," + report::QuoteCsv(row.name);
  confusion += "\n";
  for (size_t t = 0; t < rows.size(); ++t) {
    confusion += report::QuoteCsv(rows[t].name);
    for (const int64_t count : counts_[t]) confusion += format(",{}", count);
    confusion += "\n";
  }
  WriteFileAtomically(folder + "/confusion.csv", confusion);
  std::vector<report::SheetImage> sheet;
  for (const auto& [iou, image] : worst_) {
    if (image.shown.pixels.empty()) break;
    sheet.push_back(
        {image.shown,
         {std::filesystem::path(image.name).filename().string(), format("mean IoU {:.4f}", iou)}});
  }
  if (sheet.empty()) return;
  plot::SaveAs(report::DrawSheet("the worst images: input, label, prediction", sheet),
               folder + "/worst.png");
}

}  // namespace mxtrain::tasks
