#include "app/commands/predictions.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "app/report/output.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/io/draw_label.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnsure = "unsure";

// "cat 0.9312", or the value alone where it is none of a class.
std::string TextOf(Answer answer, const ClassNames& names, const std::pair<int64_t, float>& scored) {
  return answer == Answer::kValues ? mxtrain::format("{}", scored.second)
                                   : mxtrain::format("{} {:.4f}", names[scored.first], scored.second);
}

class Listing final : public PredictionSink {
 public:
  Listing(std::ostream& out, std::string format, Answer answer, const ClassNames& names, const std::vector<std::string>& files, int count)
      : out_(out), format_(std::move(format)), answer_(answer), names_(names) {
    for (const std::string& file : files) width_ = std::max(width_, file.size());
    if (format_ == "table") out_ << mxtrain::format("{:<{}}  prediction\n", "file", width_);
    if (format_ != "csv") return;
    out_ << "file" << (answer_ == Answer::kAnyClasses ? ",classes,scores" : "");
    for (int k = 1; k <= count && answer_ == Answer::kOneClass; ++k) out_ << mxtrain::format(",class_{},score_{}", k, k);
    for (int k = 1; k <= count && answer_ == Answer::kValues; ++k) out_ << mxtrain::format(",value_{}", k);
    out_ << "\n";
  }

  void Take(const Prediction& p) override {
    if (format_ == "jsonl") {
      out_ << report::JsonText(ToJson(p)) << "\n";
    } else if (format_ == "csv") {
      out_ << report::QuoteCsv(p.file) << CsvCells(p) << "\n";
    } else {
      out_ << mxtrain::format("{:<{}}", p.file, width_);
      for (const auto& scored : p.best) out_ << "  " << TextOf(answer_, names_, scored);
      out_ << (p.best.empty() ? "  -\n" : "\n");
    }
  }

 private:
  Json ToJson(const Prediction& p) const {
    Json best = Json::array();
    for (const auto& [k, score] : p.best) {
      best.push_back(answer_ == Answer::kValues ? Json(score) : Json{{"class", names_[k]}, {"index", k}, {"score", score}});
    }
    return {{"file", p.file}, {answer_ == Answer::kValues ? "values" : "predictions", best}};
  }

  // Any number of classes stands in one cell, parted by semicolons, and so do their scores.
  std::string CsvCells(const Prediction& p) const {
    std::string cells;
    if (answer_ == Answer::kAnyClasses) {
      std::vector<std::string> classes, scores;
      for (const auto& [k, score] : p.best) {
        classes.push_back(names_[k]);
        scores.push_back(mxtrain::format("{}", score));
      }
      return "," + report::QuoteCsv(mxtrain::format("{}", join(classes, ";"))) + "," + mxtrain::format("{}", join(scores, ";"));
    }
    for (const auto& [k, score] : p.best) {
      cells += answer_ == Answer::kValues ? mxtrain::format(",{}", score) : mxtrain::format(",{},{}", report::QuoteCsv(names_[k]), score);
    }
    return cells;
  }

  std::ostream& out_;
  const std::string format_;
  const Answer answer_;
  const ClassNames names_;
  size_t width_ = 4;
};

// A folder into which files are put under names of their own, none over another.
class Shelf {
 public:
  explicit Shelf(fs::path folder) : folder_(std::move(folder)) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) Throw(ErrorKind::kFileSystem, "cannot make the folder {}: {}", folder_.string(), error.message());
  }

  void Put(const fs::path& name, const std::string& bytes) const {
    for (int number = 1;; ++number) {
      fs::path path = folder_ / name;
      if (number > 1) path.replace_filename(mxtrain::format("{}-{}{}", name.stem().string(), number, name.extension().string()));
      if (!fs::exists(path)) return WriteFileAtomically(path.string(), bytes);
      if (fs::file_size(path) == bytes.size() && ReadFile(path.string()) == bytes) return;
    }
  }

 private:
  fs::path folder_;
};

// A class's name as that of a folder.
std::string FolderName(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name.empty() || name == "." || name == ".." ? "_" + name : name;
}

class Sorter final : public PredictionSink {
 public:
  Sorter(const std::string& folder, Answer answer, const ClassNames& names, double least_score)
      : folder_(folder), answer_(answer), names_(names), least_score_(least_score) {
    if (answer == Answer::kAnyClasses && names.Contains(kUnsure)) {
      Throw(ErrorKind::kUsage, "--copy-to puts pictures without a class into the folder '{0}', but a class is called '{0}' too", kUnsure);
    }
    if (least_score > 0 && names.Contains(kUnsure)) {
      Throw(ErrorKind::kUsage, "--min-score puts pictures into the folder '{0}', but a class is called '{0}' too; leave --min-score out", kUnsure);
    }
    Shelf{folder_};  // where it cannot be made, that is said before the first picture
  }

  void Take(const Prediction& p) override {
    std::vector<std::string> folders;
    for (const auto& [k, score] : p.best) {
      if (score >= least_score_ && (folders.empty() || answer_ == Answer::kAnyClasses)) folders.push_back(FolderName(names_[k]));
    }
    if (folders.empty()) folders.emplace_back(kUnsure);
    for (const std::string& folder : folders) Shelf(folder_ / folder).Put(fs::path(p.file).filename(), ReadFile(p.file));
  }

 private:
  const fs::path folder_;
  const Answer answer_;
  const ClassNames names_;
  const double least_score_;
};

class Annotator final : public PredictionSink {
 public:
  Annotator(const std::string& folder, Answer answer, const ClassNames& names) : shelf_(folder), answer_(answer), names_(names) {}

  void Take(const Prediction& p) override {
    io::Image image;
    // The net has seen the picture; it may be gone by now.
    if (auto refusal = decoder_.Decode(ReadFile(p.file), {}, &image)) Throw(ErrorKind::kData, "{}: {}", p.file, refusal->reason);
    io::DrawLabel(Label(p), &image);
    fs::path name = fs::path(p.file).filename();
    std::string ending = name.extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool jpeg = ending == ".jpg" || ending == ".jpeg";
    shelf_.Put(jpeg ? name : name.replace_extension(".png"), jpeg ? io::EncodeJpeg(image) : io::EncodePng(image));
  }

 private:
  std::string Label(const Prediction& p) const {
    if (answer_ == Answer::kOneClass) return mxtrain::format("{} {:.3f}", names_[p.best[0].first], p.best[0].second);
    std::vector<std::string> parts;
    for (const auto& scored : p.best) parts.push_back(TextOf(answer_, names_, scored));
    return parts.empty() ? "-" : mxtrain::format("{}", join(parts, ", "));
  }

  const Shelf shelf_;
  const Answer answer_;
  const ClassNames names_;
  io::ImageDecoder decoder_;
};

class ScoreFile final : public PredictionSink {
 public:
  ScoreFile(const std::string& path, int64_t rows, int64_t classes) : writer_(path, rows, {classes}) {}
  void Take(const Prediction& p) override { writer_.Write(p.index, p.scores); }
  void Finish() override { writer_.Finish(); }

 private:
  report::NpyWriter writer_;
};

}  // namespace

std::string ClassNames::operator[](int64_t k) const {
  return static_cast<size_t>(k) < names_.size() ? names_[static_cast<size_t>(k)] : std::to_string(k);
}

bool ClassNames::Contains(const std::string& name) const { return std::find(names_.begin(), names_.end(), name) != names_.end(); }

std::unique_ptr<PredictionSink> NewListing(std::ostream& out, const std::string& format, Answer answer, const ClassNames& names,
                                           const std::vector<std::string>& files, int count) {
  return std::make_unique<Listing>(out, format, answer, names, files, count);
}

std::unique_ptr<PredictionSink> NewSorter(const std::string& folder, Answer answer, const ClassNames& names, double least_score) {
  return std::make_unique<Sorter>(folder, answer, names, least_score);
}

std::unique_ptr<PredictionSink> NewAnnotator(const std::string& folder, Answer answer, const ClassNames& names) {
  return std::make_unique<Annotator>(folder, answer, names);
}

std::unique_ptr<PredictionSink> NewScoreFile(const std::string& path, int64_t rows, int64_t classes) {
  return std::make_unique<ScoreFile>(path, rows, classes);
}

}  // namespace mxtrain::commands
