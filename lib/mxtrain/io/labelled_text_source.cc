// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/labelled_text_source.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/image_files.h"
#include "mxtrain/io/internal/text_rows.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/io/text_files.h"
#include "mxtrain/text/text_encoder.h"

namespace mxtrain::io {
namespace {

using text::TextEncoder;

constexpr int64_t kMostExactIds = 1 << 24;  // in float32
constexpr int64_t kMostValues = int64_t{1} << 32;

text::TokenizerPtr NewTokenizerFor(const LabelledTextParam& param,
                                   const text::EncoderOptions& options,
                                   const std::vector<std::string>& texts) {
  if (!param.tokenizer_file.empty()) return OpenTokenizer(param.tokenizer_file);
  if (param.tokenizer == LabelledTextParam::kBytes) return text::MakeByteTokenizer();
  std::string corpus;
  for (const std::string& text : texts) {
    std::string line = TextEncoder::Prepared(text, options);
    std::ranges::replace(line, '\n', ' ');
    corpus += line + '\n';
  }
  if (param.tokenizer == LabelledTextParam::kCharacters)
    return text::MakeCharacterTokenizer(corpus, "<unk>");
  constexpr int64_t kSpecial = 2;  // <unk>, and the end of a line
  text::WordOptions words;
  words.minimum_count = param.least_count;
  words.maximum_size = param.vocabulary > 0 ? param.vocabulary + kSpecial : 0;
  return text::MakeWordTokenizer(corpus, words);
}

TextEncoder EncoderOf(const LabelledTextParam& param, const std::vector<std::string>& texts) {
  if (!param.encoder_text.empty())
    return TextEncoder::FromText(param.encoder_text, "the model's tokenizer");
  const bool words = param.tokenizer_file.empty() && param.tokenizer == LabelledTextParam::kWords;
  if (!words && (param.vocabulary > 0 || param.least_count > 1)) {
    Throw(ErrorKind::kConfig, "{} is for tokenizer: words",
          param.vocabulary > 0 ? format("vocabulary = '{}'", param.vocabulary)
                               : format("least_count = '{}'", param.least_count));
  }
  if (param.special_tokens && param.tokenizer_file.empty())
    Throw(ErrorKind::kConfig, "special_tokens = 'True' is for tokenizer_file");
  const text::EncoderOptions options{param.lowercase, param.split_punctuation, param.ngrams,
                                     param.buckets, param.special_tokens};
  return {NewTokenizerFor(param, options, texts), options};
}

class LabelledTextSource final : public Source {
 public:
  explicit LabelledTextSource(const LabelledTextParam& param)
      : path_(param.path), length_(param.length), rows_(ReadRows(param)) {
    const TextEncoder encoder = EncoderOf(param, rows_.texts);
    Encode(encoder);
    found_ = {{"encoder_text", encoder.ToText()}};
    if (param.labels) ReadLabels(param);
    notes_.push_back(
        format("{}: {}, {}{}", path_, Counted(size(), "text"), encoder.Describe(), DescribeCuts()));
    WarnOf([](const std::string& text) { return Trim(text, " \t\r\n").empty(); }, "empty");
    WarnOf([](const std::string& text) { return !IsUtf8(text); },
           "not UTF-8; what is invalid there is read as bytes or as U+FFFD");
  }

  int64_t size() const override { return std::ssize(rows_.texts); }
  const std::vector<FieldSpec>& data_fields() const override { return data_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(label_.size());
    sample->data[0].values = RowOf(ids_, length_, index);
    if (!label_.empty()) sample->labels[0].values = RowOf(labels_, width_, index);
  }
  std::string Name(int64_t index) const override {
    return format("{}:{}", path_, rows_.lines[static_cast<size_t>(index)]);
  }
  std::string TextOf(int64_t index) const override {
    return rows_.texts[static_cast<size_t>(index)];
  }
  bool IsCut(int64_t index) const override { return cut_[static_cast<size_t>(index)]; }
  std::optional<int> ClassOf(int64_t index) const override {
    if (label_.empty() || sets_) return std::nullopt;
    return static_cast<int>(labels_[static_cast<size_t>(index)]);
  }
  const std::vector<std::string>& class_names() const override { return classes_; }
  int64_t num_tokens() const override { return num_ids_; }

 private:
  TextRows ReadRows(const LabelledTextParam& param) {
    TextRows rows =
        ReadTextRows(param.path, {param.text_columns, param.labels ? param.label_column : "",
                                  param.label_delim, param.delimiter});
    if (rows.texts.empty()) Throw(ErrorKind::kData, "{} holds no texts", param.path);
    if (!rows.note.empty()) notes_.push_back(rows.note);
    return rows;
  }

  void Encode(const TextEncoder& encoder) {
    num_ids_ = encoder.num_ids();
    if (num_ids_ > kMostExactIds) {
      Throw(ErrorKind::kData, "{} ids are too many: ids up to {} are exact in float32", num_ids_,
            kMostExactIds);
    }
    if (size() > kMostValues / length_)
      Throw(ErrorKind::kData, "{}: {} of {} ids do not fit", path_, Counted(size(), "text"),
            length_);
    data_ = {{"data", FieldKind::kValues, TShape{length_}}};
    ids_.assign(static_cast<size_t>(size() * length_), static_cast<float>(encoder.padding()));
    text::Ids ids;
    for (int64_t i = 0; i < size(); ++i) {
      ids.clear();
      try {
        encoder.Encode(rows_.texts[static_cast<size_t>(i)], &ids);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kData) throw;
        Throw(ErrorKind::kData, "{}: {}", Name(i), error.what());
      }
      cut_.push_back(std::ssize(ids) > length_);
      longest_ = std::max<int64_t>(longest_, std::ssize(ids));
      encoder.Cut(length_, &ids);
      std::copy(ids.begin(), ids.end(), ids_.begin() + i * length_);
    }
  }

  void ReadLabels(const LabelledTextParam& param) {
    sets_ = !param.label_delim.empty();
    const auto place = [this](size_t row) { return Name(static_cast<int64_t>(row)); };
    for (size_t row = 0; row < rows_.labels.size() && !sets_; ++row) {
      if (rows_.labels[row].empty())
        Throw(ErrorKind::kData, "{}: the label is empty; write a class, or remove the line",
              place(row));
    }
    ClassLabels numbered =
        sets_ ? NumberClassSets(rows_.labels, param.label_delim, param.classes, place)
              : NumberClasses(rows_.labels, param.classes, place);
    labels_ = std::move(numbered.labels);
    classes_ = std::move(numbered.classes);
    rows_.labels = {};
    width_ = sets_ ? std::ssize(classes_) : 1;
    label_ = {
        {"label", FieldKind::kValues, sets_ ? TShape{width_} : TShape(std::span<const int64_t>{})}};
  }

  std::string DescribeCuts() const {
    const int64_t cut = std::ranges::count(cut_, true);
    if (cut == 0) return "";
    return format("; {} longer than {} ids and cut (the longest has {})",
                  cut == 1 ? "1 is" : format("{} are", cut), length_, longest_);
  }

  // Of the texts for which the predicate holds; `what`: they are.
  template <typename IsSo>
  void WarnOf(const IsSo& is_so, const std::string& what) {
    const int64_t count = std::ranges::count_if(rows_.texts, is_so);
    if (count == 0) return;
    const int64_t first = std::ranges::find_if(rows_.texts, is_so) - rows_.texts.begin();
    warnings_.push_back(format("{} {} (first: {})",
                               count == 1 ? "a text is" : Counted(count, "text") + " are", what,
                               Name(first)));
  }

  static std::span<const float> RowOf(const std::vector<float>& values, int64_t width,
                                      int64_t index) {
    return std::span(values).subspan(static_cast<size_t>(index * width),
                                     static_cast<size_t>(width));
  }

  const std::string path_;
  const int64_t length_;
  TextRows rows_;
  std::vector<float> ids_, labels_;  // [size, length_], [size, width_]
  std::vector<bool> cut_;
  std::vector<std::string> classes_;
  int64_t num_ids_ = 0, longest_ = 0, width_ = 1;
  bool sets_ = false;  // of classes
  std::vector<FieldSpec> data_, label_;
};

// Tables may be of numbers, and .txt of images; JSON lines are of texts, with classes or without.
std::optional<Recognition> RecognizeJsonLines(const std::string& path) {
  std::filesystem::path name(Lower(path));
  if (name.extension() == ".gz") name.replace_extension();
  std::error_code none;
  const bool named = name.extension() == ".jsonl" || name.extension() == ".ndjson";
  if (!named || !std::filesystem::is_regular_file(path, none)) return std::nullopt;
  return Recognition{/*certain=*/false, {{"path", path}}};
}

}  // namespace

std::unique_ptr<Source> NewLabelledTextSource(const LabelledTextParam& param) {
  if (param.length == 0)
    Throw(ErrorKind::kConfig, "length = '0': an example needs at least one token");
  if (param.text_columns.empty())
    Throw(ErrorKind::kConfig, "text_columns = '()': expected at least one column");
  return std::make_unique<LabelledTextSource>(param);
}

MXTRAIN_SOURCE(labelled_text_source, sources) {
  SourceKind kind = SourceKindOf<LabelledTextParam, NewLabelledTextSource>(
      "labelled_text", "texts with a class each, in a table or JSON lines");
  kind.carried = {"encoder_text"};
  kind.of_training = {"tokenizer", "tokenizer_file",    "vocabulary", "least_count",
                      "lowercase", "split_punctuation", "ngrams",     "buckets"};
  kind.recognize = RecognizeJsonLines;
  sources.Add(std::move(kind));
}

}  // namespace mxtrain::io
