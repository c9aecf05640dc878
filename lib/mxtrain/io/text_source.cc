// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/text_source.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/encode_texts.h"
#include "mxtrain/io/internal/packed_rows.h"
#include "mxtrain/io/internal/token_names.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/io/text_files.h"
#include "mxtrain/io/token_position.h"
#include "mxtrain/text/token_file.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;
using text::TokenId;
using text::TokenizerPtr;

TokenizerPtr TokenizerOf(const TextParam& param, const TextPaths& texts) {
  static constexpr const char* kNames[] = {"characters", "words", "bytes"};  // of TextParam::Kind
  if (!param.tokenizer_text.empty())
    return text::TokenizerFromText(param.tokenizer_text, "the model's tokenizer");
  return OpenTokenizer(
      param.tokenizer_file.empty() ? kNames[param.tokenizer] : param.tokenizer_file, texts);
}

// Directly in a folder.
bool HasTextFiles(const std::string& path) {
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, none)) {
    if (Lower(entry.path().extension().string()) == ".txt") return true;
  }
  return false;
}

// The tokens of the files: of texts in memory, of a token file where they are.
struct TextTokens {
  TokenizerPtr tokenizer;
  std::unique_ptr<text::TokenFile> file;  // null: ids
  text::Ids ids;
  std::vector<std::string> invalid;  // files that are not UTF-8
  std::vector<int64_t> ends;         // behind the last token of each text

  int64_t size() const { return file ? static_cast<int64_t>(file->tokens()) : std::ssize(ids); }
};

TextTokens OfTokenFile(const TextParam& param) {
  TextTokens tokens;
  tokens.file = std::make_unique<text::TokenFile>(param.path);
  tokens.tokenizer = tokens.file->NewTokenizer();
  for (uint64_t d = 1; param.pack != TextParam::kNoPacking && d <= tokens.file->documents(); ++d)
    tokens.ends.push_back(static_cast<int64_t>(tokens.file->BeginOf(d)));
  if (!param.tokenizer_text.empty() && tokens.tokenizer->ToText() != param.tokenizer_text)
    Throw(ErrorKind::kData, "the tokens of {} are of another tokenizer than the model's",
          param.path);
  return tokens;
}

TextTokens OfTexts(const TextParam& param) {
  TextTokens tokens;
  const TextPaths texts{TextFiles(param.path), param.text_columns};
  tokens.tokenizer = TokenizerOf(param, texts);
  for (const std::string& file : texts.files) {
    if (!HoldsRows(file) && !IsUtf8(TextFile(file).text())) tokens.invalid.push_back(file);
  }
  EncodeTexts(*tokens.tokenizer, texts, [&](EncodedPart&& part) {
    for (const size_t end : part.ends)
      tokens.ends.push_back(std::ssize(tokens.ids) + static_cast<int64_t>(end));
    tokens.ids.insert(tokens.ids.end(), part.ids.begin(), part.ids.end());
  });
  return tokens;
}

// The token that ends a document; -1 if none does.
int64_t TerminatorOf(const text::Tokenizer& tokenizer, int packing) {
  if (packing == TextParam::kTexts) {
    const std::optional<TokenId> end = SeparatorOf(tokenizer);
    return end ? int64_t{*end} : -1;
  }
  const text::Ids one = EncodeBeginning(tokenizer, "\n"), two = EncodeBeginning(tokenizer, "\n\n");
  if (one.size() == 1 && two == text::Ids{one[0], one[0]}) return int64_t{one[0]};
  Throw(ErrorKind::kConfig,
        "pack = 'lines': in {} the end of a line is no token of its own; use a tokenizer of "
        "characters, bytes or words, or pack = 'texts'",
        tokenizer.Describe());
}

class TextSource final : public Source {
 public:
  TextSource(const TextParam& param, TextTokens tokens)
      : path_(param.path),
        length_(param.length),
        streams_(param.streams),
        stride_(param.stride > 0 ? param.stride : param.length),
        all_(std::move(tokens)),
        names_(TokenNames(*all_.tokenizer)) {
    const auto all = static_cast<double>(all_.size());
    begin_ = static_cast<int64_t>(all * param.part[0]);
    const auto end = static_cast<int64_t>(all * param.part[1]);
    const int64_t parts = std::max<int64_t>(streams_, 1);
    of_stream_ = (end - begin_) / parts;
    if (param.pack != TextParam::kNoPacking) {
      Pack(param.pack, end);
    } else {
      if (of_stream_ <= length_) {
        Throw(ErrorKind::kData, "{}: {} of {} are too few for an example of {} and the next one{}",
              path_, Counted(end - begin_, "token"), Counted(all_.size(), "token"), length_,
              streams_ > 0 ? format(" in each of {}", Counted(streams_, "stream")) : "");
      }
      size_ = parts * ((of_stream_ - 1 - length_) / stride_ + 1);
    }
    const TShape shape{length_};
    data_ = {{"data", FieldKind::kValues, shape}};
    label_ = {{"label", FieldKind::kValues, shape}};
    if (packs_) label_.push_back({kTokenPosition, FieldKind::kValues, shape});
    found_ = {{"tokenizer_text", all_.tokenizer->ToText()}};
    if (!all_.invalid.empty()) {
      warnings_.push_back(
          format("{} not UTF-8 (first: {}); what is invalid there is read as bytes or as U+FFFD",
                 all_.invalid.size() == 1 ? "a text is"
                                          : Counted(std::ssize(all_.invalid), "text") + " are",
                 all_.invalid[0]));
    }
    notes_.push_back(
        format("{}: {}, {}", path_, Counted(end - begin_, "token"), all_.tokenizer->Describe()));
  }

  int64_t size() const override { return size_; }
  const std::vector<FieldSpec>& data_fields() const override { return data_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(label_.size());
    if (packs_) return ReadRow(index, sample);
    const int64_t first = FirstOf(index);
    text::Ids window;  // the example and the token after it
    std::span<const TokenId> ids;
    if (all_.file) {
      window.resize(static_cast<size_t>(length_ + 1));
      all_.file->Read(static_cast<uint64_t>(first), window);
      ids = window;
    } else {
      ids =
          std::span(all_.ids).subspan(static_cast<size_t>(first), static_cast<size_t>(length_ + 1));
    }
    const auto fill = [](std::span<const TokenId> from, FieldValue* value) {
      value->made.assign(from.begin(), from.end());
      value->values = value->made;
    };
    fill(ids.first(ids.size() - 1), &sample->data[0]);
    fill(ids.subspan(1), &sample->labels[0]);
  }
  std::string Name(int64_t index) const override {
    if (packs_) return format("{}, token {} and others", path_, rows_.Row(index)[0].first);
    return format("{}, token {}", path_, FirstOf(index));
  }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return names_; }
  int64_t num_tokens() const override { return std::ssize(names_); }
  bool ignores_labels() const override { return packs_; }
  int64_t streams() const override { return streams_; }

 private:
  void Pack(int packing, int64_t end) {
    const int64_t terminator = TerminatorOf(*all_.tokenizer, packing);
    const std::vector<TextPiece> documents =
        FindDocuments(begin_, end, all_.size(), all_.ends, terminator,
                      [this](int64_t first, std::span<TokenId> ids) { Tokens(first, ids); });
    if (documents.empty()) {
      Throw(ErrorKind::kData, "{}: there is no whole document in its {}", path_,
            Counted(end - begin_, "token"));
    }
    rows_ = PackedRows(documents, length_);
    packs_ = true;
    size_ = rows_.size();
    notes_.push_back(format(
        "{}: {} in {} of {}, {:.1f} % of them padding", path_,
        Counted(std::ssize(documents), "document"), Counted(size_, "row"),
        Counted(length_, "token"),
        100 - 100 * static_cast<double>(rows_.tokens()) / static_cast<double>(size_ * length_)));
  }

  void Tokens(int64_t first, std::span<TokenId> ids) const {
    if (all_.file) return all_.file->Read(static_cast<uint64_t>(first), ids);
    std::copy_n(all_.ids.begin() + first, ids.size(), ids.begin());
  }

  void ReadRow(int64_t index, Sample* sample) const {
    FillRow(rows_.Row(index), length_,
            [this](int64_t first, std::span<TokenId> ids) { Tokens(first, ids); }, nullptr,
            {&sample->data[0], &sample->labels[0], &sample->labels[1]});
  }

  // The first token of an example.
  int64_t FirstOf(int64_t index) const {
    const int64_t parts = std::max<int64_t>(streams_, 1);
    return begin_ + index % parts * of_stream_ + index / parts * stride_;
  }

  const std::string path_;
  const int64_t length_, streams_, stride_;
  int64_t begin_ = 0, size_ = 0;  // begin_: among all tokens of the files
  int64_t of_stream_ = 0;         // tokens; without streams all
  const TextTokens all_;
  const std::vector<std::string> names_;  // of the tokens
  bool packs_ = false;
  PackedRows rows_;
  std::vector<FieldSpec> data_, label_;
};

}  // namespace

std::unique_ptr<Source> NewTextSource(const TextParam& param) {
  const std::vector<double>& part = param.part;
  if (part.size() != 2 || !(part[0] >= 0 && part[0] < part[1] && part[1] <= 1)) {
    Throw(ErrorKind::kConfig, "part = '{}': expected from where to where, as fractions: [0, 0.9]",
          params::Print(part));
  }
  if (param.length == 0)
    Throw(ErrorKind::kConfig, "length = '0': an example needs at least one token");
  if (param.streams > 0 && param.stride > 0)
    Throw(ErrorKind::kConfig, "stride = '{}': examples of streams follow each other; remove it",
          param.stride);
  if (param.pack != TextParam::kNoPacking && (param.streams > 0 || param.stride > 0)) {
    Throw(ErrorKind::kConfig, "pack: documents are no windows of a stream; remove {}",
          param.streams > 0 ? "streams" : "stride");
  }
  TextTokens tokens = IsTokenFileName(param.path) ? OfTokenFile(param) : OfTexts(param);
  return std::make_unique<TextSource>(param, std::move(tokens));
}

MXTRAIN_SOURCE(text_source, sources) {
  SourceKind kind = SourceKindOf<TextParam, NewTextSource>(
      "text", "text, or its tokens, to learn which token comes next");
  kind.carried = {"tokenizer_text"};
  kind.of_training = {"tokenizer", "tokenizer_file"};
  kind.of_own_data = {"part", "pack"};
  kind.recognize = [](const std::string& path) -> std::optional<Recognition> {
    std::error_code none;
    if (!fs::exists(path, none)) return std::nullopt;
    const bool tokens = IsTokenFileName(path) && fs::is_regular_file(path, none);
    // Or a list of images, or texts with classes.
    const bool text = Lower(fs::path(path).extension().string()) == ".txt" || HoldsRows(path);
    if (!tokens && !text && !HasTextFiles(path)) return std::nullopt;
    return Recognition{tokens, {{"path", path}}};
  };
  sources.Add(std::move(kind));
}

}  // namespace mxtrain::io
