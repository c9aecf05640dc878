// SPDX-License-Identifier: Apache-2.0
#include "app/commands/predictions.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "app/report/output.h"
#include "app/report/result_file.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/draw_label.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnsure = "unsure";

// Of a score or value that is not finite, and of a prediction from such scores.
constexpr const char* kNotFinite = "nan";

std::string TextOf(float value) {
  return std::isnan(value) ? kNotFinite : mxtrain::format("{}", value);  // without a sign
}

// "cat 0.9312"; "x 31.25" of a value.
std::string TextOf(const AnswerHead& head, const std::pair<int64_t, float>& scored) {
  return head.answer == Answer::kValues
             ? mxtrain::format("{} {}", head.names[scored.first], TextOf(scored.second))
             : mxtrain::format("{} {:.4f}", head.names[scored.first], scored.second);
}

class Listing final : public PredictionSink {
 public:
  Listing(const std::string& path, std::string format, const std::vector<AnswerHead>& heads,
          const std::string& what, const std::vector<std::string>& names, int top_k)
      : out_(path),
        on_terminal_(path.empty() && isatty(STDOUT_FILENO) != 0),
        format_(std::move(format)),
        what_(what),
        heads_(heads),
        top_k_(top_k),
        width_(what.size()) {
    for (const std::string& name : names) width_ = std::max(width_, report::Printable(name).size());
    if (format_ == "table") out_.Write(mxtrain::format("{:<{}}  prediction\n", what_, width_));
    if (format_ == "csv") out_.Write(CsvHead());
  }

  void Take(const Prediction& p) override {
    if (format_ == "jsonl") {
      out_.Write(Line(ToJson(p)) + "\n");
    } else if (format_ == "csv") {
      std::string line = Cell(p.name);
      for (size_t h = 0; h < heads_.size(); ++h) line += CsvCells(heads_[h], p.heads[h]);
      out_.Write(line + "\n");
    } else {
      std::string line = mxtrain::format("{:<{}}", report::Printable(p.name), width_);
      for (size_t h = 0; h < heads_.size(); ++h) {
        if (heads_.size() > 1) line += mxtrain::format("  {}:", report::Printable(heads_[h].name));
        for (const auto& scored : p.heads[h].best)
          line += "  " + report::Printable(TextOf(heads_[h], scored));
        if (p.heads[h].best.empty()) line += p.heads[h].finite ? "  -" : "  nan";
      }
      out_.Write(line + "\n");
    }
  }

  void Finish() override { out_.Finish(); }

 private:
  // Names are arbitrary text: printable on a terminal, their bytes in files and pipes.
  std::string Cell(const std::string& text) const {
    return report::QuoteCsv(on_terminal_ ? report::Printable(text) : text);
  }
  std::string Line(const Json& json) const {
    std::string line = report::JsonText(json);
    const bool escape = on_terminal_ && report::Printable(line) != line;
    return escape ? json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace)
                  : line;
  }

  // Classes in a line.
  int64_t Listed(const AnswerHead& head) const {
    return head.answer == Answer::kOneClass ? std::min<int64_t>(top_k_, head.width) : 1;
  }

  std::string CsvHead() const {
    std::string line = Cell(what_);
    for (const AnswerHead& head : heads_) {
      const std::string prefix = heads_.size() > 1 ? head.name + "_" : "";
      const auto add = [&](const std::string& name) { line += "," + Cell(prefix + name); };
      if (head.answer == Answer::kValues) {
        for (int64_t k = 0; k < head.width; ++k) add("predicted_" + head.names[k]);
        continue;
      }
      add("predicted");
      add("score");
      for (int64_t k = 2; k <= Listed(head); ++k) {
        add(mxtrain::format("predicted_{}", k));
        add(mxtrain::format("score_{}", k));
      }
    }
    return line + "\n";
  }

  static Json ToJson(const AnswerHead& head, const HeadPrediction& p) {
    if (!p.finite && head.answer != Answer::kValues) return {{"predictions", nullptr}};
    Json best = Json::array();
    for (const auto& [k, score] : p.best) {
      best.push_back(head.answer == Answer::kValues
                         ? Json(score)
                         : Json{{"class", head.names[k]}, {"index", k}, {"score", score}});
    }
    return {{head.answer == Answer::kValues ? "values" : "predictions", best}};
  }

  Json ToJson(const Prediction& p) const {
    Json json = {{what_, p.name}};
    if (heads_.size() == 1) json.update(ToJson(heads_[0], p.heads[0]));
    for (size_t h = 0; h < heads_.size() && heads_.size() > 1; ++h)
      json["heads"][heads_[h].name] = ToJson(heads_[h], p.heads[h]);
    return json;
  }

  // Multi-label classes share one cell, separated by semicolons; so do their scores.
  std::string CsvCells(const AnswerHead& head, const HeadPrediction& p) const {
    std::string cells;
    if (!p.finite && head.answer != Answer::kValues) {
      for (int64_t k = 0; k < Listed(head); ++k) cells += mxtrain::format(",,{}", kNotFinite);
      return cells;
    }
    if (head.answer == Answer::kAnyClasses) {
      std::vector<std::string> classes, scores;
      for (const auto& [k, score] : p.best) {
        classes.push_back(head.names[k]);
        scores.push_back(mxtrain::format("{}", score));
      }
      return "," + Cell(mxtrain::format("{}", join(classes, ";"))) + "," +
             mxtrain::format("{}", join(scores, ";"));
    }
    for (const auto& [k, score] : p.best) {
      cells += head.answer == Answer::kValues
                   ? "," + TextOf(score)
                   : mxtrain::format(",{},{}", Cell(head.names[k]), score);
    }
    return cells;
  }

  report::ResultFile out_;
  const bool on_terminal_;
  const std::string format_, what_;
  const std::vector<AnswerHead> heads_;
  const int top_k_;
  size_t width_;
};

// A folder that takes files under unique names and overwrites none.
class Shelf {
 public:
  explicit Shelf(fs::path folder) : folder_(std::move(folder)) { MakeFolders(folder_.string()); }

  void Put(const fs::path& name, const std::string& bytes) const {
    for (int number = 1;; ++number) {
      fs::path path = folder_ / name;
      if (number > 1)
        path.replace_filename(
            mxtrain::format("{}-{}{}", name.stem().string(), number, name.extension().string()));
      if (!fs::exists(path)) return WriteFileAtomically(path.string(), bytes);
      if (fs::file_size(path) == bytes.size() && ReadFile(path.string()) == bytes) return;
    }
  }

 private:
  fs::path folder_;
};

// The name of a class or a head as that of a folder or file. Names too long for the file system are
// truncated and made unique by a checksum of the whole name.
std::string FileName(std::string name) {
  constexpr size_t kLongest = 255;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
  if (name.size() > kLongest) {
    const std::string sum = mxtrain::format("~{:016x}", Checksum(name));
    size_t end = kLongest - sum.size();
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80)
      --end;  // not inside a UTF-8 character
    name = name.substr(0, end) + sum;
  }
  return name.empty() || name == "." || name == ".." ? "_" + name : name;
}

// The files in the sub-folders of a folder: copies of an earlier run, under any name.
class Shelves {
 public:
  explicit Shelves(const fs::path& parent) {
    std::error_code missing;
    for (const auto& folder : fs::directory_iterator(parent, missing)) {
      if (!folder.is_directory(missing)) continue;
      for (const auto& file : fs::directory_iterator(folder.path(), missing)) {
        if (file.is_regular_file(missing))
          by_size_[file.file_size(missing)].push_back({file.path(), std::nullopt});
      }
    }
  }
  // Files with the same bytes in other folders.
  std::vector<std::string> Holding(const std::string& bytes,
                                   const std::vector<std::string>& folders) {
    std::vector<std::string> holding;
    const auto alike = by_size_.find(bytes.size());
    if (alike == by_size_.end()) return holding;
    const uint64_t sum = Checksum(bytes);
    for (auto& [path, its_sum] : alike->second) {
      if (!its_sum) its_sum = Checksum(ReadFile(path.string()));
      const bool elsewhere =
          std::find(folders.begin(), folders.end(), path.parent_path().filename()) == folders.end();
      if (elsewhere && *its_sum == sum) holding.push_back(path.string());
    }
    return holding;
  }

 private:
  // Files by their size, with checksums that are computed on demand.
  std::map<uintmax_t, std::vector<std::pair<fs::path, std::optional<uint64_t>>>> by_size_;
};

class Sorter final : public PredictionSink {
 public:
  Sorter(const std::string& folder, const std::vector<AnswerHead>& heads, size_t head,
         double least_score, report::Console& console)
      : folder_(folder),
        answer_(heads[head].answer),
        names_(heads[head].names),
        head_(head),
        least_score_(least_score),
        console_(console),
        before_(folder_) {
    if (answer_ == Answer::kAnyClasses && names_.Contains(kUnsure)) {
      Throw(
          ErrorKind::kUsage,
          "--copy-to puts images without a class into the folder '{0}', but there is a class '{0}'",
          kUnsure);
    }
    if (least_score > 0 && names_.Contains(kUnsure)) {
      Throw(ErrorKind::kUsage,
            "--min-score puts images into the folder '{0}', but there is a class '{0}'; remove "
            "--min-score",
            kUnsure);
    }
    Shelf{folder_};  // fail before the first image if it cannot be created
  }

  void Take(const Prediction& p) override {
    std::vector<std::string> folders;
    for (const auto& [k, score] : p.heads[head_].best) {
      if (score >= least_score_ && (folders.empty() || answer_ == Answer::kAnyClasses))
        folders.push_back(FileName(names_[k]));
    }
    ++(folders.empty() ? unsure_ : sorted_);
    if (folders.empty()) folders.emplace_back(kUnsure);
    const std::string bytes = ReadFile(p.file);
    for (const std::string& folder : folders)
      Shelf(folder_ / folder).Put(fs::path(p.file).filename(), bytes);
    for (std::string& other : before_.Holding(bytes, folders))
      elsewhere_.push_back(std::move(other));
  }

  void Finish() override {
    const std::string unsure =
        unsure_ > 0 ? mxtrain::format(", {} into {}", unsure_, (folder_ / kUnsure).string()) : "";
    console_.Message(LogLevel::kInfo, mxtrain::format("{} sorted into the folders of {}{}", sorted_,
                                                      folder_.string(), unsure));
    if (elsewhere_.empty()) return;
    console_.Message(LogLevel::kWarning,
                     mxtrain::format("{} copies of these images are also in another folder, from "
                                     "an earlier run; remove those, or sort into a new "
                                     "folder: {}",
                                     elsewhere_.size(), FirstOf(elsewhere_, 3)));
  }

 private:
  const fs::path folder_;
  const Answer answer_;
  const ClassNames names_;
  const size_t head_;
  const double least_score_;
  report::Console& console_;
  Shelves before_;
  int64_t sorted_ = 0, unsure_ = 0;
  std::vector<std::string> elsewhere_;  // copies in folders other than this run's
};

class Annotator final : public PredictionSink {
 public:
  Annotator(const std::string& folder, const std::vector<AnswerHead>& heads)
      : shelf_(folder), heads_(heads) {}

  void Take(const Prediction& p) override {
    io::Image image;
    // The net has seen the image; it may be gone by now.
    if (auto refusal = decoder_.Decode(ReadFile(p.file), {}, &image))
      Throw(ErrorKind::kData, "{}: {}", p.file, refusal->reason);
    io::DrawLabel(Label(p), &image);
    fs::path name = fs::path(p.file).filename();
    const bool jpeg = io::HasEndingOf(io::ImageFormat::kJpeg, p.file);
    shelf_.Put(jpeg ? name : name.replace_extension(".png"),
               jpeg ? io::EncodeJpeg(image) : io::EncodePng(image));
  }

 private:
  std::string Label(const Prediction& p) const {
    std::vector<std::string> parts;
    for (size_t h = 0; h < heads_.size(); ++h) {
      const auto& best = p.heads[h].best;
      if (!p.heads[h].finite) {
        parts.emplace_back(kNotFinite);
      } else if (heads_[h].answer == Answer::kOneClass) {
        parts.push_back(
            mxtrain::format("{} {:.3f}", heads_[h].names[best[0].first], best[0].second));
      } else {
        for (const auto& scored : best) parts.push_back(TextOf(heads_[h], scored));
      }
    }
    return parts.empty() ? "-" : mxtrain::format("{}", join(parts, ", "));
  }

  const Shelf shelf_;
  const std::vector<AnswerHead> heads_;
  io::ImageDecoder decoder_;
};

class ScoreFiles final : public PredictionSink {
 public:
  ScoreFiles(const std::string& path, const std::vector<AnswerHead>& heads, int64_t rows,
             report::Console& console)
      : console_(console) {
    for (const AnswerHead& head : heads) {
      fs::path file = path;
      if (heads.size() > 1) {
        file.replace_filename(mxtrain::format("{}-{}{}", file.stem().string(), FileName(head.name),
                                              file.extension().string()));
      }
      names_.push_back(file.string());
      writers_.push_back(
          std::make_unique<report::NpyWriter>(names_.back(), rows, TShape{head.width}));
    }
  }
  void Take(const Prediction& p) override {
    for (size_t h = 0; h < writers_.size(); ++h) writers_[h]->Write(p.index, p.heads[h].scores);
  }
  void Finish() override {
    for (const auto& writer : writers_) writer->Finish();
    if (names_.size() > 1)
      console_.Message(LogLevel::kInfo, mxtrain::format("scores: {}", join(names_, ", ")));
  }

 private:
  report::Console& console_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<report::NpyWriter>> writers_;  // of each head
};

}  // namespace

std::unique_ptr<PredictionSink> NewListing(const std::string& path, const std::string& format,
                                           const std::vector<AnswerHead>& heads,
                                           const std::string& what,
                                           const std::vector<std::string>& names, int top_k) {
  return std::make_unique<Listing>(path, format, heads, what, names, top_k);
}

std::unique_ptr<PredictionSink> NewSorter(const std::string& folder,
                                          const std::vector<AnswerHead>& heads, size_t head,
                                          double least_score, report::Console& console) {
  return std::make_unique<Sorter>(folder, heads, head, least_score, console);
}

std::unique_ptr<PredictionSink> NewAnnotator(const std::string& folder,
                                             const std::vector<AnswerHead>& heads) {
  return std::make_unique<Annotator>(folder, heads);
}

std::unique_ptr<PredictionSink> NewScoreFiles(const std::string& path,
                                              const std::vector<AnswerHead>& heads, int64_t rows,
                                              report::Console& console) {
  return std::make_unique<ScoreFiles>(path, heads, rows, console);
}

}  // namespace mxtrain::commands
