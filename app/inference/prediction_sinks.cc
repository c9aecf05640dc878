// SPDX-License-Identifier: Apache-2.0
#include "app/inference/prediction_sinks.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "app/inference/file_names.h"
#include "app/report/annotation.h"
#include "app/report/output.h"
#include "app/report/result_file.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"

namespace mxtrain::inference {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnsure = "unsure";

class Listing final : public PredictionSink {
 public:
  Listing(const std::string& path, std::string format, std::vector<PredictedHead> heads,
          const std::string& what, const std::vector<std::string>& names, bool with_images)
      : out_(path),
        on_terminal_(path.empty() && isatty(STDOUT_FILENO) != 0),
        format_(std::move(format)),
        what_(what),
        heads_(std::move(heads)),
        with_images_(with_images),
        width_(what.size()) {
    for (const std::string& name : names) width_ = std::max(width_, report::Printable(name).size());
    if (format_ == "table") out_.Write(mxtrain::format("{:<{}}  prediction\n", what_, width_));
    if (format_ == "csv") out_.Write(CsvHeader());
  }

  void Take(Prediction& p) override {
    if (format_ == "jsonl") {
      out_.Write(Line(ToJson(p)) + "\n");
    } else if (format_ == "csv") {
      WriteCsv(p);
    } else {
      std::string line = mxtrain::format("{:<{}}", report::Printable(p.name), width_);
      for (size_t h = 0; h < heads_.size(); ++h) {
        if (heads_.size() > 1) line += mxtrain::format("  {}:", report::Printable(heads_[h].name));
        line +=
            "  " + report::Printable(ShowsImage(h) && !p.images[h].empty() ? p.images[h]
                                                                           : p.heads[h]->Text());
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

  // As many lines as the head with the most; cells of the others stay empty after theirs.
  void WriteCsv(const Prediction& p) {
    std::vector<std::vector<std::vector<std::string>>> of_heads;
    size_t lines = 0;
    for (const auto& head : p.heads) {
      of_heads.push_back(head->CellRows());
      lines = std::max(lines, of_heads.back().size());
    }
    for (size_t i = 0; i < lines; ++i) {
      std::string line = Cell(p.name);
      for (size_t h = 0; h < heads_.size(); ++h) {
        const auto& rows = of_heads[h];
        for (size_t c = 0; c < rows[0].size(); ++c)
          line += "," + (i < rows.size() ? Cell(rows[i][c]) : "");
        if (ShowsImage(h)) line += "," + Cell(p.images[h]);
      }
      out_.Write(line + "\n");
    }
  }

  bool ShowsImage(size_t h) const {
    return with_images_ && heads_[h].predictor->abilities().images;
  }

  std::string CsvHeader() const {
    std::string line = Cell(what_);
    for (size_t h = 0; h < heads_.size(); ++h) {
      const std::string prefix = heads_.size() > 1 ? heads_[h].name + "_" : "";
      for (const std::string& column : heads_[h].predictor->Columns())
        line += "," + Cell(prefix + column);
      if (ShowsImage(h)) line += "," + Cell(prefix + "image");
    }
    return line + "\n";
  }

  Json OfHead(const Prediction& p, size_t h) const {
    Json json = p.heads[h]->ToJson();
    if (ShowsImage(h) && !p.images[h].empty()) json["image"]["file"] = p.images[h];
    return json;
  }

  Json ToJson(const Prediction& p) const {
    Json json = {{what_, p.name}};
    if (heads_.size() == 1) json.update(OfHead(p, 0));
    for (size_t h = 0; h < heads_.size() && heads_.size() > 1; ++h)
      json["heads"][heads_[h].name] = OfHead(p, h);
    return json;
  }

  report::ResultFile out_;
  const bool on_terminal_;
  const std::string format_, what_;
  const std::vector<PredictedHead> heads_;
  const bool with_images_;
  size_t width_;
};

// A folder that takes files under unique names and overwrites none.
class Shelf {
 public:
  explicit Shelf(fs::path folder) : folder_(std::move(folder)) { MakeFolders(folder_.string()); }

  // Returns the path of the copy.
  std::string Put(const fs::path& name, const std::string& bytes) const {
    for (int number = 1;; ++number) {
      const std::string more = number > 1 ? mxtrain::format("-{}", number) : "";
      const fs::path path =
          folder_ / Shortened(name.stem().string(), more + name.extension().string());
      if (!fs::exists(path)) {
        WriteFileAtomically(path.string(), bytes);
        return path.string();
      }
      if (fs::file_size(path) == bytes.size() && ReadFile(path.string()) == bytes)
        return path.string();
    }
  }

 private:
  fs::path folder_;
};

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

  void Take(Prediction& p) override {
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

  void Take(Prediction& p) override {
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
    report::DrawLabel(captions.empty() ? "-" : mxtrain::format("{}", join(captions, ", ")), &image);
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
      : folder_(folder), log_(std::move(log)) {
    Shelf{folder_};  // fail before the first image if it cannot be created
    for (const PredictedHead& head : heads)
      predicts_.push_back(head.predictor->abilities().images ? head.name : "");
    several_ = std::ranges::count_if(predicts_, [](const auto& name) { return !name.empty(); }) > 1;
  }

  void Take(Prediction& p) override {
    p.images.resize(predicts_.size());
    for (size_t h = 0; h < predicts_.size(); ++h) {
      if (predicts_[h].empty()) continue;
      const std::string png = p.heads[h]->PredictedPng();
      if (png.empty()) continue;
      const fs::path stem = StemBelow(p.file, p.name);
      const Shelf shelf(fs::path(folder_) / stem.parent_path());
      p.images[h] = shelf.Put(
          stem.filename().string() + (several_ ? "-" + FileName(predicts_[h]) : "") + ".png", png);
      ++written_;
    }
  }
  void Finish() override {
    log_.Write(LogLevel::kInfo,
               mxtrain::format("{} in {}", Counted(written_, "predicted image"), folder_));
  }

 private:
  const std::string folder_;
  const Logger log_;
  std::vector<std::string> predicts_;  // names of the heads that predict images; "" for others
  bool several_ = false;
  int64_t written_ = 0;
};

class ScoreFiles final : public PredictionSink {
 public:
  ScoreFiles(const std::string& path, const std::vector<PredictedHead>& heads, int64_t rows,
             Logger log)
      : log_(std::move(log)), names_(ScoreFilesOf(path, heads)) {
    for (size_t h = 0; h < heads.size(); ++h) {
      writers_.push_back(std::make_unique<report::NpyWriter>(names_[h], rows,
                                                             TShape{heads[h].predictor->width()}));
    }
  }
  void Take(Prediction& p) override {
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
  const std::vector<std::string> names_;
  std::vector<std::unique_ptr<report::NpyWriter>> writers_;  // of each head
};

}  // namespace

std::unique_ptr<PredictionSink> NewListing(const std::string& path, const std::string& format,
                                           const std::vector<PredictedHead>& heads,
                                           const std::string& what,
                                           const std::vector<std::string>& names,
                                           bool with_images) {
  return std::make_unique<Listing>(path, format, heads, what, names, with_images);
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

std::vector<std::string> ScoreFilesOf(const std::string& path,
                                      const std::vector<PredictedHead>& heads) {
  if (heads.size() == 1) return {path};
  std::vector<std::string> files;
  for (const PredictedHead& head : heads) {
    fs::path file = path;
    file.replace_filename(mxtrain::format("{}-{}{}", file.stem().string(), FileName(head.name),
                                          file.extension().string()));
    files.push_back(file.string());
  }
  return files;
}

std::unique_ptr<PredictionSink> NewScoreFiles(const std::string& path,
                                              const std::vector<PredictedHead>& heads, int64_t rows,
                                              const Logger& log) {
  return std::make_unique<ScoreFiles>(path, heads, rows, log);
}

}  // namespace mxtrain::inference
