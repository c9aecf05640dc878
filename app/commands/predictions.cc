#include "app/commands/predictions.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "app/report/output.h"
#include "app/report/result_file.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/io/draw_label.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnsure = "unsure";

// "cat 0.9312"; "x 31.25" of a value.
std::string TextOf(Answer answer, const ClassNames& names, const std::pair<int64_t, float>& scored) {
  return answer == Answer::kValues ? mxtrain::format("{} {}", names[scored.first], scored.second)
                                   : mxtrain::format("{} {:.4f}", names[scored.first], scored.second);
}

class Listing final : public PredictionSink {
 public:
  Listing(const std::string& path, std::string format, Answer answer, const ClassNames& names, const std::vector<std::string>& files, int count)
      : out_(path), format_(std::move(format)), answer_(answer), names_(names) {
    for (const std::string& file : files) width_ = std::max(width_, file.size());
    if (format_ == "table") out_.Write(mxtrain::format("{:<{}}  prediction\n", "file", width_));
    if (format_ == "csv") out_.Write(CsvHead(count));
  }

  void Take(const Prediction& p) override {
    if (format_ == "jsonl") {
      out_.Write(report::JsonText(ToJson(p)) + "\n");
    } else if (format_ == "csv") {
      out_.Write(report::QuoteCsv(p.file) + CsvCells(p) + "\n");
    } else {
      std::string line = mxtrain::format("{:<{}}", p.file, width_);
      for (const auto& scored : p.best) line += "  " + TextOf(answer_, names_, scored);
      out_.Write(line + (p.best.empty() ? "  -\n" : "\n"));
    }
  }

  void Finish() override { out_.Finish(); }

 private:
  std::string CsvHead(int count) const {
    std::string head = "file";
    if (answer_ != Answer::kValues) head += ",predicted,score";
    for (int k = 2; k <= count && answer_ == Answer::kOneClass; ++k) head += mxtrain::format(",predicted_{0},score_{0}", k);
    for (int k = 0; k < count && answer_ == Answer::kValues; ++k) head += "," + report::QuoteCsv("predicted_" + names_[k]);
    return head + "\n";
  }

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

  report::ResultFile out_;
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

// What lies in the folders of a folder: where a former run has put its copies, whatever they are called.
class Shelves {
 public:
  explicit Shelves(const fs::path& parent) {
    std::error_code missing;
    for (const auto& folder : fs::directory_iterator(parent, missing)) {
      if (!folder.is_directory(missing)) continue;
      for (const auto& file : fs::directory_iterator(folder.path(), missing)) {
        if (file.is_regular_file(missing)) by_size_[file.file_size(missing)].push_back({file.path(), std::nullopt});
      }
    }
  }
  // The files of these bytes in other folders than these.
  std::vector<std::string> Holding(const std::string& bytes, const std::vector<std::string>& folders) {
    std::vector<std::string> holding;
    const auto alike = by_size_.find(bytes.size());
    if (alike == by_size_.end()) return holding;
    const uint64_t sum = Checksum(bytes);
    for (auto& [path, its_sum] : alike->second) {
      if (!its_sum) its_sum = Checksum(ReadFile(path.string()));
      const bool elsewhere = std::find(folders.begin(), folders.end(), path.parent_path().filename()) == folders.end();
      if (elsewhere && *its_sum == sum) holding.push_back(path.string());
    }
    return holding;
  }

 private:
  std::map<uintmax_t, std::vector<std::pair<fs::path, std::optional<uint64_t>>>> by_size_;  // checksums as they are asked for
};

class Sorter final : public PredictionSink {
 public:
  Sorter(const std::string& folder, Answer answer, const ClassNames& names, double least_score, report::Console& console)
      : folder_(folder), answer_(answer), names_(names), least_score_(least_score), console_(console), before_(folder_) {
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
    ++(folders.empty() ? unsure_ : sorted_);
    if (folders.empty()) folders.emplace_back(kUnsure);
    const std::string bytes = ReadFile(p.file);
    for (const std::string& folder : folders) Shelf(folder_ / folder).Put(fs::path(p.file).filename(), bytes);
    for (std::string& other : before_.Holding(bytes, folders)) elsewhere_.push_back(std::move(other));
  }

  void Finish() override {
    const std::string unsure = unsure_ > 0 ? mxtrain::format(", {} into {}", unsure_, (folder_ / kUnsure).string()) : "";
    console_.Message(LogLevel::kInfo, mxtrain::format("{} sorted into the folders of {}{}", sorted_, folder_.string(), unsure));
    if (elsewhere_.empty()) return;
    console_.Message(LogLevel::kWarning,
                     mxtrain::format("{} copies of these pictures lie in another folder too, from a sort before this one; remove those, or sort into a new "
                                     "folder: {}", elsewhere_.size(), FirstOf(elsewhere_, 3)));
  }

 private:
  const fs::path folder_;
  const Answer answer_;
  const ClassNames names_;
  const double least_score_;
  report::Console& console_;
  Shelves before_;
  int64_t sorted_ = 0, unsure_ = 0;
  std::vector<std::string> elsewhere_;  // copies in other folders than this run's
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

std::unique_ptr<PredictionSink> NewListing(const std::string& path, const std::string& format, Answer answer, const ClassNames& names,
                                           const std::vector<std::string>& files, int count) {
  return std::make_unique<Listing>(path, format, answer, names, files, count);
}

std::unique_ptr<PredictionSink> NewSorter(const std::string& folder, Answer answer, const ClassNames& names, double least_score,
                                          report::Console& console) {
  return std::make_unique<Sorter>(folder, answer, names, least_score, console);
}

std::unique_ptr<PredictionSink> NewAnnotator(const std::string& folder, Answer answer, const ClassNames& names) {
  return std::make_unique<Annotator>(folder, answer, names);
}

std::unique_ptr<PredictionSink> NewScoreFile(const std::string& path, int64_t rows, int64_t classes) {
  return std::make_unique<ScoreFile>(path, rows, classes);
}

}  // namespace mxtrain::commands
