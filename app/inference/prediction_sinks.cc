// SPDX-License-Identifier: Apache-2.0
#include "app/inference/prediction_sinks.h"

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

namespace mxtrain::inference {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnsure = "unsure";

class Listing final : public PredictionSink {
 public:
  Listing(const std::string& path, std::string format, std::vector<PredictedHead> heads,
          const std::string& what, const std::vector<std::string>& names)
      : out_(path),
        on_terminal_(path.empty() && isatty(STDOUT_FILENO) != 0),
        format_(std::move(format)),
        what_(what),
        heads_(std::move(heads)),
        width_(what.size()) {
    for (const std::string& name : names) width_ = std::max(width_, report::Printable(name).size());
    if (format_ == "table") out_.Write(mxtrain::format("{:<{}}  prediction\n", what_, width_));
    if (format_ == "csv") out_.Write(CsvHeader());
  }

  void Take(const Prediction& p) override {
    if (format_ == "jsonl") {
      out_.Write(Line(ToJson(p)) + "\n");
    } else if (format_ == "csv") {
      std::string line = Cell(p.name);
      for (const auto& head : p.heads) {
        for (const std::string& cell : head->Cells()) line += "," + Cell(cell);
      }
      out_.Write(line + "\n");
    } else {
      std::string line = mxtrain::format("{:<{}}", report::Printable(p.name), width_);
      for (size_t h = 0; h < heads_.size(); ++h) {
        if (heads_.size() > 1) line += mxtrain::format("  {}:", report::Printable(heads_[h].name));
        line += "  " + report::Printable(p.heads[h]->Text());
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

  std::string CsvHeader() const {
    std::string line = Cell(what_);
    for (const PredictedHead& head : heads_) {
      const std::string prefix = heads_.size() > 1 ? head.name + "_" : "";
      for (const std::string& column : head.predictor->Columns())
        line += "," + Cell(prefix + column);
    }
    return line + "\n";
  }

  Json ToJson(const Prediction& p) const {
    Json json = {{what_, p.name}};
    if (heads_.size() == 1) json.update(p.heads[0]->ToJson());
    for (size_t h = 0; h < heads_.size() && heads_.size() > 1; ++h)
      json["heads"][heads_[h].name] = p.heads[h]->ToJson();
    return json;
  }

  report::ResultFile out_;
  const bool on_terminal_;
  const std::string format_, what_;
  const std::vector<PredictedHead> heads_;
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
  Sorter(const std::string& folder, const PredictedHead& head, size_t position, double least_score,
         Logger log)
      : folder_(folder),
        position_(position),
        least_score_(least_score),
        log_(std::move(log)),
        before_(folder_) {
    if (head.predictor->MayBeUnsure(least_score) && head.predictor->HasClass(kUnsure)) {
      Throw(ErrorKind::kUsage,
            "--copy-to puts images that are of no class, or below --min-score, into the folder "
            "'{0}', but there is a class '{0}'",
            kUnsure);
    }
    Shelf{folder_};  // fail before the first image if it cannot be created
  }

  void Take(const Prediction& p) override {
    std::vector<std::string> folders = p.heads[position_]->Folders(least_score_);
    for (std::string& name : folders) name = FileName(std::move(name));
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
    log_.Write(LogLevel::kInfo, mxtrain::format("{} sorted into the folders of {}{}", sorted_,
                                                folder_.string(), unsure));
    if (elsewhere_.empty()) return;
    log_.Write(LogLevel::kWarning,
               mxtrain::format("{} copies of these images are also in another folder, from "
                               "an earlier run; remove those, or sort into a new "
                               "folder: {}",
                               elsewhere_.size(), FirstOf(elsewhere_, 3)));
  }

 private:
  const fs::path folder_;
  const size_t position_;
  const double least_score_;
  const Logger log_;
  Shelves before_;
  int64_t sorted_ = 0, unsure_ = 0;
  std::vector<std::string> elsewhere_;  // copies in folders other than this run's
};

class Annotator final : public PredictionSink {
 public:
  explicit Annotator(const std::string& folder) : shelf_(folder) {}

  void Take(const Prediction& p) override {
    io::Image image;
    // The net has seen the image; it may be gone by now.
    if (auto refusal = decoder_.Decode(ReadFile(p.file), {}, &image))
      Throw(ErrorKind::kData, "{}: {}", p.file, refusal->reason);
    std::vector<std::string> captions;
    for (const auto& head : p.heads) {
      head->DrawOn(&image);
      if (std::string caption = head->Caption(); !caption.empty())
        captions.push_back(std::move(caption));
    }
    io::DrawLabel(captions.empty() ? "-" : mxtrain::format("{}", join(captions, ", ")), &image);
    fs::path name = fs::path(p.file).filename();
    const bool jpeg = io::HasEndingOf(io::ImageFormat::kJpeg, p.file);
    shelf_.Put(jpeg ? name : name.replace_extension(".png"),
               jpeg ? io::EncodeJpeg(image) : io::EncodePng(image));
  }

 private:
  const Shelf shelf_;
  io::ImageDecoder decoder_;
};

class PredictedImages final : public PredictionSink {
 public:
  PredictedImages(const std::string& folder, const std::vector<PredictedHead>& heads, Logger log)
      : folder_(folder), shelf_(folder), log_(std::move(log)) {
    for (const PredictedHead& head : heads)
      predicts_.push_back(head.predictor->abilities().images ? head.name : "");
    several_ = std::ranges::count_if(predicts_, [](const auto& name) { return !name.empty(); }) > 1;
  }

  void Take(const Prediction& p) override {
    for (size_t h = 0; h < predicts_.size(); ++h) {
      if (predicts_[h].empty()) continue;
      const std::optional<io::Image> image = p.heads[h]->PredictedImage();
      if (!image) continue;
      const fs::path of = p.file.empty() ? p.name : p.file;
      const std::string name = FileName(p.file.empty() ? p.name : of.stem().string());
      shelf_.Put(name + (several_ ? "-" + FileName(predicts_[h]) : "") + ".png",
                 io::EncodePng(*image));
      ++written_;
    }
  }
  void Finish() override {
    log_.Write(LogLevel::kInfo,
               mxtrain::format("{} in {}", Counted(written_, "predicted image"), folder_));
  }

 private:
  const std::string folder_;
  const Shelf shelf_;
  const Logger log_;
  std::vector<std::string> predicts_;  // names of the heads that predict images; "" for others
  bool several_ = false;
  int64_t written_ = 0;
};

class ScoreFiles final : public PredictionSink {
 public:
  ScoreFiles(const std::string& path, const std::vector<PredictedHead>& heads, int64_t rows,
             Logger log)
      : log_(std::move(log)) {
    for (const PredictedHead& head : heads) {
      fs::path file = path;
      if (heads.size() > 1) {
        file.replace_filename(mxtrain::format("{}-{}{}", file.stem().string(), FileName(head.name),
                                              file.extension().string()));
      }
      names_.push_back(file.string());
      writers_.push_back(std::make_unique<report::NpyWriter>(names_.back(), rows,
                                                             TShape{head.predictor->width()}));
    }
  }
  void Take(const Prediction& p) override {
    for (size_t h = 0; h < writers_.size(); ++h)
      writers_[h]->Write(p.index, p.heads[h]->numbers().data());
  }
  void Finish() override {
    for (const auto& writer : writers_) writer->Finish();
    if (names_.size() > 1)
      log_.Write(LogLevel::kInfo, mxtrain::format("scores: {}", join(names_, ", ")));
  }

 private:
  const Logger log_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<report::NpyWriter>> writers_;  // of each head
};

}  // namespace

std::unique_ptr<PredictionSink> NewListing(const std::string& path, const std::string& format,
                                           const std::vector<PredictedHead>& heads,
                                           const std::string& what,
                                           const std::vector<std::string>& names) {
  return std::make_unique<Listing>(path, format, heads, what, names);
}

std::unique_ptr<PredictionSink> NewSorter(const std::string& folder,
                                          const std::vector<PredictedHead>& heads, size_t head,
                                          double least_score, const Logger& log) {
  return std::make_unique<Sorter>(folder, heads[head], head, least_score, log);
}

std::unique_ptr<PredictionSink> NewAnnotator(const std::string& folder) {
  return std::make_unique<Annotator>(folder);
}

std::unique_ptr<PredictionSink> NewPredictedImages(const std::string& folder,
                                                   const std::vector<PredictedHead>& heads,
                                                   const Logger& log) {
  return std::make_unique<PredictedImages>(folder, heads, log);
}

std::unique_ptr<PredictionSink> NewScoreFiles(const std::string& path,
                                              const std::vector<PredictedHead>& heads, int64_t rows,
                                              const Logger& log) {
  return std::make_unique<ScoreFiles>(path, heads, rows, log);
}

}  // namespace mxtrain::inference
