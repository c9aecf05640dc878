// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/text_lines/line_report.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "app/report/output.h"
#include "app/tasks/prediction.h"
#include "app/tasks/text_lines/said_text.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/letters.h"
#include "mxtrain/metric/edit_distance.h"

namespace mxtrain::tasks {
namespace {

constexpr size_t kConfusedTold = 12;
constexpr size_t kMostLineShown = 160;  // bytes

std::string Joined(const std::vector<std::string>& letters) {
  return format("{}", join(letters, ""));
}

std::vector<std::string> WordsOf(const std::vector<std::string>& letters) {
  std::vector<std::string> words;
  bool within = false;
  for (const std::string& letter : letters) {
    const bool blank = letter == " " || letter == "\t";
    if (!blank && !within) words.emplace_back();
    if (!blank) words.back() += letter;
    within = !blank;
  }
  return words;
}

double Rate(int64_t errors, int64_t of) {
  return of > 0 ? static_cast<double>(errors) / static_cast<double>(of)
                : std::numeric_limits<double>::quiet_NaN();
}

// JSON has no NaN.
Json FiniteRate(double value) {
  return value == value ? Json(value) : Json(nullptr);
}

std::string QuotedLetter(const std::string& letter) {
  return letter.empty() ? "nothing" : format("'{}'", report::Printable(letter));
}

}  // namespace

double LineReport::cer() const {
  return Rate(replaced_ + left_out_ + put_in_, letters_);
}
double LineReport::wer() const {
  return Rate(word_errors_, words_);
}

void LineReport::WriteEach(const LineOutput& lines) {
  lines_ = lines;
  if (lines.begins && lines.format == report::EachFormat::kCsv) {
    lines.file->Write(
        format("{}file,true,predicted,score,errors\n", lines.with_head ? "head," : ""));
  }
}

void LineReport::WriteLine(const Mistake& line, bool finite) const {
  if (!lines_.file) return;
  if (lines_.format == report::EachFormat::kJsonLines) {
    Json json = {{"file", line.example},
                 {"true", line.truth},
                 {"predicted", nullptr},
                 {"score", nullptr},
                 {"errors", line.errors}};
    if (finite) json.update({{"predicted", line.said}, {"score", line.score}});
    if (lines_.with_head) json["head"] = head().name;
    return lines_.file->Write(report::JsonText(json) + "\n");
  }
  lines_.file->Write(format(
      "{}{},{},{},{},{}\n", lines_.with_head ? report::QuoteCsv(head().name) + "," : "",
      report::QuoteCsv(line.example), report::QuoteCsv(line.truth), report::QuoteCsv(line.said),
      finite ? format("{:.6g}", line.score) : "nan", line.errors));
}

void LineReport::Add(const Examples& examples, const std::vector<NDArray>& outputs) {
  const auto compared = Compare(head(), examples, outputs);
  if (!compared || compared->outputs_shape.ndim() != 3 || compared->outputs_shape[2] != 2) return;
  const auto width = static_cast<size_t>(compared->outputs_shape[1] * 2),
             length = compared->label.size() / static_cast<size_t>(compared->outputs_shape[0]);
  for (size_t i = 0; i < examples.count(); ++i) {
    const std::span rows = std::span(compared->outputs).subspan(i * width, width);
    const Example example = examples[i];
    const std::string whole = example.source() ? example.source()->TextOf(example.index()) : "";
    const std::vector<std::string> truth =
        whole.empty()
            ? LettersOfLabel(std::span(compared->label).subspan(i * length, length), alphabet_)
            : io::LettersOf(whole);
    if (!IsFinite(rows)) {
      WriteLine({example.name(), Joined(truth), "", std::ssize(truth), 1, 0}, false);
      continue;
    }
    const SaidText said = ReadSaidText(rows, alphabet_);
    AddLine(example, truth, said.letters, said.probability);
  }
}

void LineReport::AddLine(const Example& example, const std::vector<std::string>& truth,
                         const std::vector<std::string>& said, double score) {
  int64_t errors = 0;
  for (const Edit& edit : ShortestEdits(truth, said)) {
    if (edit.kind == Edit::kSame) continue;
    ++errors;
    ++(edit.kind == Edit::kReplaced  ? replaced_
       : edit.kind == Edit::kLeftOut ? left_out_
                                     : put_in_);
    ++confused_[{edit.kind == Edit::kPutIn ? "" : truth[static_cast<size_t>(edit.truth)],
                 edit.kind == Edit::kLeftOut ? "" : said[static_cast<size_t>(edit.said)]}];
  }
  const std::vector<std::string> words = WordsOf(truth);
  word_errors_ += EditDistance(words, WordsOf(said));
  words_ += std::ssize(words);
  letters_ += std::ssize(truth);
  ++lines_read_;
  if (errors == 0) ++right_;
  const auto of = std::max<int64_t>(std::ssize(truth), 1);
  Mistake line{example.name(), Joined(truth), Joined(said), errors, Rate(errors, of), score};
  WriteLine(line, true);
  if (errors == 0) return;
  const bool among_worst =
      images_ > 0 && (depicted_.size() < images_ || line.rate > depicted_.begin()->first);
  if (auto image = among_worst ? example.Shown(*reader_) : std::nullopt) {
    line.image = std::move(*image);
    if (depicted_.size() == images_) {
      // Of equal rates the first counts as the worse, here and in Finish.
      const auto least = std::prev(depicted_.upper_bound(depicted_.begin()->first));
      mistakes_[least->second].image = {};
      depicted_.erase(least);
    }
    depicted_.emplace(line.rate, mistakes_.size());
  }
  mistakes_.push_back(std::move(line));
}

void LineReport::Finish() {
  std::stable_sort(mistakes_.begin(), mistakes_.end(),
                   [](const Mistake& a, const Mistake& b) { return a.rate > b.rate; });
  depicted_.clear();
}

std::vector<std::pair<LineReport::Pair, int64_t>> LineReport::MostConfused() const {
  std::vector<std::pair<Pair, int64_t>> all(confused_.begin(), confused_.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return all;
}

std::string LineReport::Text(int worst, bool several) const {
  std::string text = several ? format("\n{}\n", head().name) : "";
  text += format(
      "\ncharacter error rate {:.2f} % ({} replaced, {} deleted, {} inserted, of {})\n"
      "word error rate      {:.2f} % ({} of {})\nlines without error  {:.2f} % ({} of {})\n",
      100 * cer(), replaced_, left_out_, put_in_, Counted(letters_, "letter"), 100 * wer(),
      word_errors_, Counted(words_, "word"), 100 * Rate(right_, lines_read_), right_,
      Counted(lines_read_, "line"));
  const auto confused = MostConfused();
  if (!confused.empty()) text += "\nmost frequent errors\n";
  for (size_t i = 0; i < std::min(confused.size(), kConfusedTold); ++i) {
    const auto& [pair, count] = confused[i];
    text += format("  {} for {}: {}\n", QuotedLetter(pair.second), QuotedLetter(pair.first), count);
  }
  if (!mistakes_.empty() && worst > 0) text += "\nworst mistakes\n";
  for (size_t i = 0; i < mistakes_.size() && i < static_cast<size_t>(worst); ++i) {
    const Mistake& m = mistakes_[i];
    text += format("  {}: '{}' read as '{}' ({:.3f})\n", report::Printable(m.example),
                   report::Printable(Shortened(m.truth, kMostLineShown)),
                   report::Printable(Shortened(m.said, kMostLineShown)), m.score);
  }
  return text;
}

std::string LineReport::CsvLines(bool with_head) const {
  return format("{}{},{},{},{},{},{},{},{},{}\n",
                with_head ? report::QuoteCsv(report::ListedName(head().name)) + "," : "", cer(),
                wer(), right_, lines_read_, letters_, words_, replaced_, left_out_, put_in_);
}

Json LineReport::ToJson(int worst) const {
  Json list = Json::array();
  for (const Mistake& m : mistakes_) {
    if (worst-- <= 0) break;
    list.push_back({{"example", m.example},
                    {"true", m.truth},
                    {"predicted", m.said},
                    {"score", m.score},
                    {"errors", m.errors}});
  }
  return {{"cer", FiniteRate(cer())}, {"wer", FiniteRate(wer())},
          {"right", right_},          {"lines", lines_read_},
          {"letters", letters_},      {"words", words_},
          {"replaced", replaced_},    {"left_out", left_out_},
          {"put_in", put_in_},        {"worst", list}};
}

void LineReport::AddTo(Json* result, int worst, bool several) const {
  if (several) {
    (*result)["text_lines"][head().name] = ToJson(worst);
  } else {
    (*result)["text_lines"] = ToJson(worst);
  }
}

void LineReport::WriteFiles(const std::string& folder) const {
  MakeFolders(folder);
  std::string confused = "true,predicted,count\n";
  for (const auto& [pair, count] : MostConfused()) {
    confused +=
        format("{},{},{}\n", report::QuoteCsv(pair.first), report::QuoteCsv(pair.second), count);
  }
  WriteFileAtomically(folder + "/confused_letters.csv", confused);
  std::vector<report::SheetImage> sheet;
  for (const Mistake& m : mistakes_) {
    if (m.image.pixels.empty()) continue;
    sheet.push_back({m.image, {m.truth, "read as " + m.said}});
  }
  if (sheet.empty()) return;
  plot::SaveAs(report::DrawSheet("the worst lines: what is written, and what was read", sheet),
               folder + "/worst.png");
}

}  // namespace mxtrain::tasks
