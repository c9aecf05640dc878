// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/detection/box_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "app/report/output.h"
#include "app/report/plot/chart.h"
#include "app/tasks/detection/found_boxes.h"
#include "app/tasks/side_by_side.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

constexpr double kCurveIou = 0.5;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string CellOf(double value) {
  return std::isnan(value) ? "" : format("{}", value);
}
std::string Shown(double value) {
  return std::isnan(value) ? "-" : format("{:.4f}", value);
}
Json NumberOrNull(double value) {
  return std::isnan(value) ? Json(nullptr) : Json(value);
}

// Of boxes that are right, wrong and missing; 1 where there is nothing to find and nothing found.
double F1Of(const BoxErrors& errors) {
  const int64_t wrong = errors.found() - errors.right;
  const double all = static_cast<double>(2 * errors.right + wrong + errors.missed + errors.other);
  return all > 0 ? 2.0 * static_cast<double>(errors.right) / all : 1.0;
}

// Where F1 is best on a curve.
void FindBestF1(const std::vector<CurvePoint>& curve, BoxReport::Row* row) {
  double best = -1;
  for (const CurvePoint& point : curve) {
    const double sum = point.precision + point.recall;
    const double f1 = sum > 0 ? 2 * point.precision * point.recall / sum : 0;
    if (f1 <= best) continue;
    best = f1;
    row->score = point.score, row->precision = point.precision, row->recall = point.recall;
  }
}

// The label of the examples as the source has it; none if there is no source, or it has no boxes.
std::optional<size_t> BoxLabelOf(const io::Source* source) {
  if (!source) return std::nullopt;
  const std::vector<io::FieldSpec>& fields = source->label_fields();
  const auto found = std::ranges::find(fields, io::FieldKind::kBoxes, &io::FieldSpec::kind);
  if (found == fields.end()) return std::nullopt;
  return static_cast<size_t>(found - fields.begin());
}

}  // namespace

void BoxReport::WriteEach(const LineOutput& lines) {
  lines_ = lines;
  if (lines.begins && lines.format == report::EachFormat::kCsv)
    lines.file->Write(
        format("{}file,objects,right,wrong,missed\n", lines.with_head ? "head," : ""));
}

void BoxReport::WriteLine(const std::string& name, const BoxErrors& errors) const {
  if (!lines_.file) return;
  const int64_t objects = errors.right + errors.other + errors.missed,
                wrong = errors.found() - errors.right;
  if (lines_.format == report::EachFormat::kJsonLines) {
    Json line = {{"file", name},
                 {"objects", objects},
                 {"right", errors.right},
                 {"wrong", wrong},
                 {"missed", errors.missed}};
    if (lines_.with_head) line["head"] = head().name;
    return lines_.file->Write(report::JsonText(line) + "\n");
  }
  lines_.file->Write(format("{}{},{},{},{},{}\n",
                            lines_.with_head ? report::QuoteCsv(head().name) + "," : "",
                            report::QuoteCsv(name), objects, errors.right, wrong, errors.missed));
}

void BoxReport::Add(const Examples& examples, const std::vector<NDArray>& outputs) {
  const auto compared = Compare(head(), examples, outputs);
  if (!compared || examples.count() == 0) return;
  const TShape& label_shape = compared->label_shape;
  if (label_shape.ndim() != 3 || label_shape[2] < io::kBoxColumns) return;
  const auto columns = static_cast<size_t>(label_shape[2]);
  const size_t label_width = compared->label.size() / static_cast<size_t>(label_shape[0]),
               width = compared->outputs.size() / static_cast<size_t>(compared->outputs_shape[0]);
  io::Sample scratch;
  for (size_t i = 0; i < examples.count(); ++i) {
    const Example example = examples[i];
    const std::span rows(compared->outputs.data() + i * width, width),
        label(compared->label.data() + i * label_width, label_width);
    Measured image{example.name(), {}, BoxesInFile(rows, example)};
    if (const io::Tile* const tile = example.tile()) {
      if (tiles_.Add(*tile)) joined_ = {};
      joined_.Add(*tile, std::move(image.found));
      if (!tiles_.complete()) continue;
      image.found = joined_.Take();
    }
    if (const auto position = BoxLabelOf(example.source())) {
      const auto spec = example.source()->label_fields()[*position];
      image.truth = ObjectsOf(example.source()->LabelOf(example.index(), *position, &scratch),
                              static_cast<size_t>(spec.shape[1]));
    } else {
      image.truth = ObjectsOf(label, columns);
    }
    std::vector<FoundBox> shown = image.found;
    std::erase_if(shown, [](const FoundBox& box) { return box.score < kShownScore; });
    const BoxErrors errors = ErrorsOf(image.truth, shown, nullptr);
    WriteLine(image.name, errors);
    Keep(example, errors, rows, label, columns);
    images_.push_back(std::move(image));
  }
}

void BoxReport::Keep(const Example& example, const BoxErrors& errors, std::span<const float> rows,
                     std::span<const float> label, size_t columns) {
  const double f1 = F1Of(errors);
  if (most_ == 0 || (worst_.size() >= most_ && f1 >= std::prev(worst_.end())->first)) return;
  Bad bad{example.name(), errors, {}};
  if (auto input = example.tile() ? std::nullopt : example.Shown(*reader_)) {
    io::Image labelled = *input;
    DrawObjects(ObjectsOf(label, columns), names_, &labelled);
    std::vector<FoundBox> found = BoxesInFile(rows, Example());  // as the net sees them
    std::erase_if(found, [](const FoundBox& box) { return box.score < kShownScore; });
    DrawFound(found, names_, &*input);
    bad.shown = Beside(labelled, *input);
  }
  worst_.emplace(f1, std::move(bad));
  if (worst_.size() > most_) worst_.erase(std::prev(worst_.end()));
}

void BoxReport::Finish() {
  size_t classes = given_.size();
  for (const Measured& image : images_) {
    for (const TrueBox& object : image.truth)
      classes = std::max(classes, static_cast<size_t>(object.label) + 1);
    for (const FoundBox& box : image.found)
      classes = std::max(classes, static_cast<size_t>(box.label) + 1);
  }
  BoxScores scores(static_cast<int>(classes));
  rows_.assign(classes, {});
  confusion_.assign(classes + 1, std::vector<int64_t>(classes + 1));
  errors_ = {};
  for (const Measured& image : images_) {
    scores.Add(image.truth, image.found);
    for (const TrueBox& object : image.truth) {
      if (!object.crowd && !object.difficult) ++rows_[static_cast<size_t>(object.label)].objects;
    }
    std::vector<FoundBox> shown = image.found;
    std::erase_if(shown, [](const FoundBox& box) { return box.score < kShownScore; });
    errors_ += ErrorsOf(image.truth, shown, &confusion_);
  }
  coco_ = scores.CocoStats();
  const std::vector<double> ap = scores.ClassAp(), ap50 = scores.ClassApAt(kCurveIou);
  curves_.clear();
  for (size_t k = 0; k < classes; ++k) {
    Row& row = rows_[k];
    row.name = names_[static_cast<int64_t>(k)];
    row.ap = ap[k], row.ap50 = ap50[k];
    row.score = row.precision = row.recall = kNone;
    curves_.push_back(scores.Curve(static_cast<int>(k), kCurveIou));
    FindBestF1(curves_.back(), &row);
  }
}

std::string BoxReport::Text(int worst, bool /*several*/) const {
  int64_t objects = 0;
  size_t width = 5;
  for (const Row& row : rows_) {
    objects += row.objects;
    width = std::max(width, report::Printable(row.name).size());
  }
  std::string text = format(
      "\n{}: mean AP {} (IoU 0.5 to 0.95), {} at IoU 0.5, {} at 0.75; {} in {}\n"
      "by size: small {}, medium {}, large {}; recall of at most 100 boxes {}\n",
      head().name, Shown(coco_.ap), Shown(coco_.ap50), Shown(coco_.ap75),
      Counted(objects, "object"), Counted(static_cast<int64_t>(images_.size()), "image"),
      Shown(coco_.ap_small), Shown(coco_.ap_medium), Shown(coco_.ap_large), Shown(coco_.ar100));
  text += format("{:<{}}  {:>7}  {:>9}  {:>8}  {:>9}  {:>7}  {:>8}\n", "class", width, "AP",
                 "AP at 0.5", "objects", "precision", "recall", "at score");
  for (const Row& row : rows_)
    text += format("{:<{}}  {:>7}  {:>9}  {:>8}  {:>9}  {:>7}  {:>8}\n",
                   report::Printable(row.name), width, Shown(row.ap), Shown(row.ap50), row.objects,
                   Shown(row.precision), Shown(row.recall), Shown(row.score));
  text += "(precision and recall at IoU 0.5, at the score where F1 is best)\n";
  text += format(
      "boxes with a score of at least {}: {} right, {} of another class, {} out of place, {} both, "
      "{} of an object found already, {} of nothing; {} missed\n",
      kShownScore, errors_.right, errors_.other, errors_.misplaced, errors_.both, errors_.twice,
      errors_.background, Counted(errors_.missed, "object"));
  if (!worst_.empty() && worst > 0) text += "\nworst images\n";
  for (const auto& [f1, bad] : worst_) {
    if (worst-- <= 0) break;
    text += format("  {}: {} right, {} wrong, {} missed\n", report::Printable(bad.name),
                   bad.errors.right, bad.errors.found() - bad.errors.right, bad.errors.missed);
  }
  return text;
}

std::string BoxReport::CsvLines(bool with_head) const {
  std::string lines;
  for (const Row& row : rows_)
    lines +=
        format("{}{},{},{},{},{},{},{}\n",
               with_head ? report::QuoteCsv(report::ListedName(head().name)) + "," : "",
               report::QuoteCsv(report::ListedName(row.name)), CellOf(row.ap), CellOf(row.ap50),
               row.objects, CellOf(row.score), CellOf(row.precision), CellOf(row.recall));
  return lines;
}

Json BoxReport::ToJson(int worst) const {
  Json classes = Json::object(), list = Json::array();
  for (const Row& row : rows_)
    classes[row.name] = {{"ap", NumberOrNull(row.ap)},
                         {"ap50", NumberOrNull(row.ap50)},
                         {"objects", row.objects},
                         {"score", NumberOrNull(row.score)},
                         {"precision", NumberOrNull(row.precision)},
                         {"recall", NumberOrNull(row.recall)}};
  for (const auto& [f1, bad] : worst_) {
    if (worst-- <= 0) break;
    list.push_back({{"example", bad.name},
                    {"right", bad.errors.right},
                    {"wrong", bad.errors.found() - bad.errors.right},
                    {"missed", bad.errors.missed}});
  }
  return {{"ap", NumberOrNull(coco_.ap)},
          {"ap50", NumberOrNull(coco_.ap50)},
          {"ap75", NumberOrNull(coco_.ap75)},
          {"ap_small", NumberOrNull(coco_.ap_small)},
          {"ap_medium", NumberOrNull(coco_.ap_medium)},
          {"ap_large", NumberOrNull(coco_.ap_large)},
          {"ar1", NumberOrNull(coco_.ar1)},
          {"ar10", NumberOrNull(coco_.ar10)},
          {"ar100", NumberOrNull(coco_.ar100)},
          {"images", images_.size()},
          {"errors",
           {{"score", kShownScore},
            {"right", errors_.right},
            {"other_class", errors_.other},
            {"out_of_place", errors_.misplaced},
            {"both", errors_.both},
            {"twice", errors_.twice},
            {"background", errors_.background},
            {"missed", errors_.missed}}},
          {"classes", classes},
          {"worst", list}};
}

void BoxReport::AddTo(Json* result, int worst, bool several) const {
  if (several) {
    (*result)["boxes"][head().name] = ToJson(worst);
  } else {
    (*result)["boxes"] = ToJson(worst);
  }
}

void BoxReport::WriteFiles(const std::string& folder) const {
  MakeFolders(folder);
  WriteFileAtomically(folder + "/classes.csv", CsvHeader() + "\n" + CsvLines(false));
  std::string confusion = "true", curves = "class,score,precision,recall\n";
  plot::Chart chart;
  chart.title = "precision and recall at IoU 0.5";
  chart.x = {.label = "recall", .low = 0, .high = 1};
  chart.y = {.label = "precision", .low = 0, .high = 1};
  const auto name = [this](size_t k) { return k < rows_.size() ? rows_[k].name : "(nothing)"; };
  for (size_t k = 0; k <= rows_.size(); ++k) confusion += "," + report::QuoteCsv(name(k));
  confusion += "\n";
  for (size_t k = 0; k <= rows_.size(); ++k) {
    confusion += report::QuoteCsv(name(k));
    for (const int64_t count : confusion_[k]) confusion += format(",{}", count);
    confusion += "\n";
  }
  constexpr size_t kMostCurves = 8;
  for (size_t k = 0; k < rows_.size(); ++k) {
    plot::Chart::Series series{.name = format("{} (AP {})", rows_[k].name, Shown(rows_[k].ap50)),
                               .colour = plot::SeriesColour(k)};
    for (const CurvePoint& point : curves_[k]) {
      curves += format("{},{},{},{}\n", report::QuoteCsv(rows_[k].name), point.score,
                       point.precision, point.recall);
      series.points.push_back({point.recall, point.precision});
    }
    if (!series.points.empty() && chart.series.size() < kMostCurves)
      chart.series.push_back(std::move(series));
  }
  WriteFileAtomically(folder + "/confusion.csv", confusion);
  WriteFileAtomically(folder + "/curves.csv", curves);
  if (!chart.series.empty()) plot::Save(plot::Draw(chart, 560, 480), folder + "/curves");
  std::vector<report::SheetImage> sheet;
  for (const auto& [f1, bad] : worst_) {
    if (bad.shown.pixels.empty()) break;
    sheet.push_back({bad.shown,
                     {std::filesystem::path(bad.name).filename().string(),
                      format("{} right, {} wrong, {} missed", bad.errors.right,
                             bad.errors.found() - bad.errors.right, bad.errors.missed)}});
  }
  if (sheet.empty()) return;
  plot::SaveAs(report::DrawSheet("the worst images: labels, boxes found", sheet),
               folder + "/worst.png");
}

}  // namespace mxtrain::tasks
