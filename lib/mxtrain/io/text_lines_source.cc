// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/text_lines_source.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/image_files.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/internal/text_columns.h"
#include "mxtrain/io/internal/text_rows.h"
#include "mxtrain/io/letters.h"
#include "mxtrain/io/list_line.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

constexpr size_t kMostLinesBytes = size_t{4} << 30;
constexpr int64_t kMostLabelValues = int64_t{1} << 32;
constexpr size_t kLettersTold = 200;  // bytes

bool IsTableName(const std::string& path) {
  std::filesystem::path name(Lower(path));
  if (name.extension() == ".gz") name.replace_extension();
  const std::string ending = name.extension().string();
  return ending == ".tsv" || ending == ".csv" || ending == ".tab" || ending == ".jsonl" ||
         ending == ".ndjson";
}

// Paths as `texts`, and what is written in the images as `labels`. A path ends at the tab of its
// line, or else at the first comma or blank.
TextRows ReadList(const TextLinesParam& param) {
  TextRows rows;
  const std::string all =
      PlainText(ReadMaybeGzip(param.path, kMostLinesBytes, Readable::kFileOrPipe), param.path);
  ForEachLine(all, [&](std::string_view line, int64_t number) {
    if (line.starts_with('#')) return;
    const bool tab = line.find('\t') != std::string_view::npos;
    const size_t end = std::min(line.find_first_of(tab ? "\t" : ", "), line.size());
    const std::string_view path = Trim(line.substr(0, end), kBlanks);
    CheckPath(path, [&] { return format("{}:{}", param.path, number); });
    if (end == line.size() && param.labels) {
      Throw(ErrorKind::kData, "{}:{}: expected PATH TEXT, got '{}'", param.path, number,
            Shortened(line));
    }
    rows.Add(std::string(path), number);
    if (param.labels)
      rows.labels.emplace_back(Trim(line.substr(std::min(end + 1, line.size())), kBlanks));
  });
  return rows;
}

class TextLinesSource final : public Source {
 public:
  explicit TextLinesSource(const TextLinesParam& param)
      : path_(param.path), is_other_(param.label_length > 0) {
    rows_ = IsTableName(path_) ? ReadTextRows(path_, {{param.image_column},
                                                      param.labels ? param.text_column : "",
                                                      "",
                                                      param.delimiter})
                               : ReadList(param);
    if (rows_.texts.empty()) Throw(ErrorKind::kData, "{} names no images", path_);
    if (!rows_.note.empty()) notes_.push_back(rows_.note);
    const std::filesystem::path root = param.root.empty()
                                           ? std::filesystem::path(path_).parent_path()
                                           : std::filesystem::path(param.root);
    for (std::string& image : rows_.texts) {
      CheckPath(image, [this] { return path_; });
      image = (root / image).string();
    }
    if (param.labels) ReadTexts(param);
  }

  int64_t size() const override { return std::ssize(rows_.texts); }
  const std::vector<FieldSpec>& data_fields() const override { return data_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(label_.size());
    if (!label_.empty()) sample->labels[0].values = LabelAt(index);
    sample->data[0].encoded = ReadImageFile(FileOf(index));
  }
  std::span<const float> LabelOf(int64_t index, size_t, Sample*) const override {
    return LabelAt(index);
  }
  std::string Name(int64_t index) const override { return FileOf(index); }
  std::string FileOf(int64_t index) const override {
    return rows_.texts[static_cast<size_t>(index)];
  }
  std::string TextOf(int64_t index) const override {
    return rows_.labels.empty() ? "" : rows_.labels[static_cast<size_t>(index)];
  }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return letters_; }

 private:
  std::string Place(size_t row) const { return format("{}:{}", path_, rows_.lines[row]); }
  std::span<const float> LabelAt(int64_t index) const {
    return std::span(labels_).subspan(static_cast<size_t>(index * length_),
                                      static_cast<size_t>(length_));
  }

  std::string Alphabet() const { return Shortened(format("{}", join(letters_, "")), kLettersTold); }

  void ReadTexts(const TextLinesParam& param) {
    std::vector<std::vector<std::string>> texts;
    int64_t longest = 1, empty = 0;
    std::string first_empty;
    for (size_t row = 0; row < rows_.labels.size(); ++row) {
      if (!IsUtf8(rows_.labels[row]))
        Throw(ErrorKind::kData, "{}: the text is not UTF-8: '{}'; save the file as UTF-8",
              Place(row), Shortened(EscapedBytes(rows_.labels[row])));
      texts.push_back(LettersOf(rows_.labels[row]));
      longest = std::max<int64_t>(longest, std::ssize(texts.back()));
      if (texts.back().empty() && empty++ == 0) first_empty = Place(row);
    }
    FindLetters(param, texts);
    // Other data may have longer texts than the training data.
    length_ = is_other_                ? param.label_length
              : param.most_letters > 0 ? param.most_letters
                                       : longest + longest / 2;
    if (size() > kMostLabelValues / length_)
      Throw(ErrorKind::kData, "{}: {} of {} letters do not fit", path_, Counted(size(), "text"),
            length_);
    label_ = {{"label", FieldKind::kValues, TShape{length_}}};
    NumberLetters(texts);
    if (!is_other_) found_ = {{"label_length", std::to_string(length_)}};
    notes_.push_back(format("{}: {}, at most {}, of an alphabet of {}: {}", path_,
                            Counted(size(), "text"), Counted(longest, "letter"), letters_.size(),
                            Alphabet()));
    if (empty > 0)
      warnings_.push_back(format("{} {} empty (first: {})", Counted(empty, "text"),
                                 empty == 1 ? "is" : "are", first_empty));
  }

  // Those of the training data, those that are given, or those that the texts have.
  void FindLetters(const TextLinesParam& param,
                   const std::vector<std::vector<std::string>>& texts) {
    if (!param.classes.empty()) {
      letters_ = param.classes;
      return;
    }
    if (!param.alphabet.empty()) {
      if (!IsUtf8(param.alphabet)) Throw(ErrorKind::kConfig, "alphabet: it is not UTF-8");
      letters_ = LettersOf(param.alphabet);
      std::set<std::string> seen;
      for (const std::string& letter : letters_) {
        if (!seen.insert(letter).second)
          Throw(ErrorKind::kConfig, "alphabet = '{}': it has the letter '{}' twice",
                Shortened(param.alphabet), letter);
      }
      return;
    }
    std::set<std::string> found;
    for (const auto& text : texts) found.insert(text.begin(), text.end());
    if (found.empty()) Throw(ErrorKind::kData, "{}: all texts are empty", path_);
    letters_.assign(found.begin(), found.end());
  }

  void NumberLetters(const std::vector<std::vector<std::string>>& texts) {
    std::map<std::string, float> number_of;
    for (const std::string& letter : letters_)
      number_of[letter] = static_cast<float>(number_of.size() + 1);
    labels_.assign(static_cast<size_t>(size() * length_), 0);
    int64_t strange = 0, cut = 0;
    std::string first_strange, first_cut;
    for (size_t row = 0; row < texts.size(); ++row) {
      std::vector<float> numbers;
      std::string unknown;
      for (const std::string& letter : texts[row]) {
        const auto found = number_of.find(letter);
        if (found != number_of.end()) {
          numbers.push_back(found->second);
        } else if (unknown.empty()) {
          unknown = letter;
        }
      }
      if (!unknown.empty() && !is_other_)
        Throw(ErrorKind::kData, "{}: the letter '{}' of '{}' is not in the alphabet ({})",
              Place(row), unknown, Shortened(rows_.labels[row]), Alphabet());
      if (std::ssize(numbers) > length_ && !is_other_)
        Throw(ErrorKind::kData, "{}: '{}' has {} letters, more than most_letters = {}", Place(row),
              Shortened(rows_.labels[row]), numbers.size(), length_);
      if (!unknown.empty() && strange++ == 0)
        first_strange = format("'{}' of {}", unknown, Place(row));
      if (std::ssize(numbers) > length_ && cut++ == 0) first_cut = Place(row);
      numbers.resize(static_cast<size_t>(std::min<int64_t>(std::ssize(numbers), length_)));
      std::copy(numbers.begin(), numbers.end(),
                labels_.begin() + static_cast<std::ptrdiff_t>(row) * length_);
    }
    if (strange > 0)
      warnings_.push_back(format(
          "{}: {} with a letter that the training data does not have ({} first); it is skipped in "
          "labels, by which losses and metrics are measured, and is an error in reports",
          path_, Counted(strange, "text"), first_strange));
    if (cut > 0)
      warnings_.push_back(format(
          "{}: {} of more than {} letters (first: {}); labels, by which losses and metrics are "
          "measured, are cut there: most_letters of the training data makes room",
          path_, Counted(cut, "text"), length_, first_cut));
  }

  const std::string path_;
  const bool is_other_;        // not the training data
  TextRows rows_;              // texts: the files; labels: what is written in the images
  int64_t length_ = 0;         // of labels
  std::vector<float> labels_;  // [size, length_]
  std::vector<std::string> letters_;
  std::vector<FieldSpec> data_ = {{"data", FieldKind::kImage, TShape()}}, label_;
};

}  // namespace

std::unique_ptr<Source> NewTextLinesSource(const TextLinesParam& param) {
  return std::make_unique<TextLinesSource>(param);
}

MXTRAIN_SOURCE(text_lines_source, sources) {
  SourceKind kind = SourceKindOf<TextLinesParam, NewTextLinesSource>(
      "text_lines", "images of text, with what is written in them, in a list or a table");
  kind.carried = {"label_length"};
  // Whatever lists images may say what is written in them, which those who read lines expect.
  kind.recognize = [](const std::string& path) -> std::optional<Recognition> {
    if (std::filesystem::is_directory(path)) return std::nullopt;
    return Recognition{false, {{"path", path}}};
  };
  sources.Add(std::move(kind));
}

}  // namespace mxtrain::io
