// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/chat_source.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/chat_file.h"
#include "mxtrain/io/internal/packed_rows.h"
#include "mxtrain/io/internal/token_names.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/io/text_files.h"
#include "mxtrain/io/token_position.h"

namespace mxtrain::io {
namespace {

using text::ChatFormat;
using text::TokenId;
using text::TokenizerPtr;

constexpr size_t kJudgedChatBytes = size_t{1} << 16;

TokenizerPtr ChatTokenizerOf(const ChatParam& param, const std::vector<Chat>& chats) {
  if (!param.tokenizer_text.empty())
    return text::TokenizerFromText(param.tokenizer_text, "the model's tokenizer");
  if (!param.tokenizer_file.empty()) return OpenTokenizer(param.tokenizer_file);
  if (param.tokenizer == ChatParam::kBytes) return text::MakeByteTokenizer();
  // All that any format may write.
  std::string markers = "\n" + param.system + param.user + param.assistant + param.turn_end;
  if (param.format == ChatParam::kChatMl) markers += "<|im_start|>systemuserassistant<|im_end|>";
  std::vector<std::string_view> corpus{markers};
  for (const Chat& chat : chats) {
    for (const text::ChatTurn& turn : chat.turns) corpus.emplace_back(turn.content);
  }
  return text::MakeCharacterTokenizer(corpus);
}

ChatFormat FormatOf(const ChatParam& param, const text::Tokenizer& tokenizer) {
  if (!param.chat_text.empty())
    return ChatFormat::FromText(param.chat_text, "the model's chat format");
  if (param.format == ChatParam::kChatMl) return ChatFormat::ChatMl();
  for (const std::string* text : {&param.system, &param.user, &param.assistant, &param.turn_end}) {
    if (!IsUtf8(*text)) Throw(ErrorKind::kConfig, "'{}' is not UTF-8", EscapedBytes(*text));
  }
  std::string end = param.turn_end, between;
  if (end.empty()) {
    const std::optional<TokenId> end_of_text = SeparatorOf(tokenizer);
    end = end_of_text ? tokenizer.TokenOf(*end_of_text) : "\n";
    if (end_of_text) between = "\n";
  }
  return {{param.system, param.user, param.assistant}, end, between};
}

class ChatSource final : public Source {
 public:
  ChatSource(const ChatParam& param, const std::vector<Chat>& chats, TokenizerPtr tokenizer)
      : path_(param.path),
        length_(param.length),
        tokenizer_(std::move(tokenizer)),
        names_(TokenNames(*tokenizer_)) {
    const ChatFormat format_of = FormatOf(param, *tokenizer_);
    for (const Chat& chat : chats) Add(chat, format_of, param.learn == ChatParam::kAll);
    if (pieces_.empty() && cut_ == 0) {
      Throw(ErrorKind::kData, "{}: nothing is learnt of its {}: they have no answers", path_,
            Counted(std::ssize(chats), "conversation"));
    }
    rows_ = param.pack ? PackedRows(pieces_, length_) : PackedRows::OneEach(pieces_);
    const TShape shape{length_};
    data_ = {{"data", FieldKind::kValues, shape}};
    label_ = {{"label", FieldKind::kValues, shape}};
    if (param.pack) label_.push_back({kTokenPosition, FieldKind::kValues, shape});
    found_ = {{"tokenizer_text", tokenizer_->ToText()}, {"chat_text", format_of.ToText()}};
    Tell(std::ssize(chats), format_of);
  }

  int64_t size() const override { return rows_.size(); }
  const std::vector<FieldSpec>& data_fields() const override { return data_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(label_.size());
    FillRow(
        rows_.Row(index), length_,
        [this](int64_t first, std::span<TokenId> ids) {
          std::copy_n(ids_.begin() + first, ids.size(), ids.begin());
        },
        [this](int64_t place) { return learnt_[static_cast<size_t>(place)]; },
        {&sample->data[0], &sample->labels[0], label_.size() > 1 ? &sample->labels[1] : nullptr});
  }
  std::string Name(int64_t index) const override {
    const std::span<const TextPiece> row = rows_.Row(index);
    const auto piece = std::ranges::lower_bound(pieces_, row[0].first, {}, &TextPiece::first);
    return format("{}:{}{}", path_, lines_[static_cast<size_t>(piece - pieces_.begin())],
                  row.size() > 1 ? " and others" : "");
  }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return names_; }
  int64_t num_tokens() const override { return std::ssize(names_); }
  bool ignores_labels() const override { return true; }

 private:
  void Add(const Chat& chat, const ChatFormat& format_of, bool all) {
    const size_t first = ids_.size();
    bool answers = false;
    for (size_t i = 0; i < chat.turns.size(); ++i) {
      ChatFormat::Learnt learnt;
      try {
        learnt = format_of.Encode(*tokenizer_, chat.turns[i], &ids_);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kData) throw;
        Throw(ErrorKind::kData, "{}:{}: message {}: {}", path_, chat.line, i + 1, error.what());
      }
      learnt_.resize(ids_.size(), all);
      // The first token of a row has none before it to be learnt from.
      const size_t most = first + static_cast<size_t>(length_) + 1;
      for (size_t k = learnt.begin; chat.is_learnt[i] && k < learnt.end; ++k) {
        learnt_[k] = true;
        answers = answers || (k > first && k < most);
      }
      holds_end_ +=
          chat.is_learnt[i] && chat.turns[i].content.find(format_of.end()) != std::string::npos;
    }
    const int64_t tokens = std::ssize(ids_) - static_cast<int64_t>(first);
    cut_ += tokens > length_ + 1;
    longest_ = std::max(longest_, tokens - 1);
    if (!answers && !(all && tokens > 1)) {
      ++skipped_;
      if (first_skipped_ == 0) first_skipped_ = chat.line;
      ids_.resize(first);
      learnt_.resize(first);
      return;
    }
    pieces_.push_back({static_cast<int64_t>(first), std::min(tokens - 1, length_)});
    lines_.push_back(chat.line);
  }

  void Tell(int64_t chats, const ChatFormat& format_of) {
    if (pieces_.empty()) {
      warnings_.push_back(
          format("{}: no answer begins within {}", path_, Counted(length_, "token")));
      return;
    }
    const int64_t learnt = std::ranges::count(learnt_, true);
    notes_.push_back(format(
        "{}: {} in {} of {}, {:.1f} % of them padding; {} of {}; {}", path_,
        Counted(chats - skipped_, "conversation"), Counted(size(), "row"),
        Counted(length_, "token"),
        100 - 100 * static_cast<double>(rows_.tokens()) / static_cast<double>(size() * length_),
        Counted(learnt, "token") + (learnt == 1 ? " is" : " are") + " learnt",
        Counted(std::ssize(ids_), "token"), tokenizer_->Describe()));
    notes_.push_back(format_of.Describe());
    if (cut_ > 0) {
      warnings_.push_back(
          format("{}: {} longer than {} and cut at {} end (the longest has {})", path_,
                 cut_ == 1 ? "a conversation is" : format("{} conversations are", cut_),
                 Counted(length_, "token"), cut_ == 1 ? "its" : "their", longest_));
    }
    if (skipped_ > 0) {
      warnings_.push_back(
          format("{}: {} skipped, of which nothing is learnt (first: line {})", path_,
                 skipped_ == 1 ? "a conversation is" : format("{} conversations are", skipped_),
                 first_skipped_));
    }
    if (holds_end_ > 0) {
      warnings_.push_back(
          format("{}: {} what ends a turn; a model that writes it has ended its answer", path_,
                 holds_end_ == 1 ? "an answer holds" : format("{} answers hold", holds_end_)));
    }
  }

  const std::string path_;
  const int64_t length_;
  const TokenizerPtr tokenizer_;
  const std::vector<std::string> names_;  // of the tokens
  text::Ids ids_;                         // of all conversations, one behind another
  std::vector<bool> learnt_;              // by token
  std::vector<TextPiece> pieces_;         // a conversation each
  std::vector<int64_t> lines_;            // of pieces_
  int64_t cut_ = 0, longest_ = 0, skipped_ = 0, first_skipped_ = 0, holds_end_ = 0;
  PackedRows rows_;
  std::vector<FieldSpec> data_, label_;
};

bool IsNamedAsJson(const std::string& path) {
  std::filesystem::path name(Lower(path));
  if (name.extension() == ".gz") name.replace_extension();
  const std::string ending = name.extension().string();
  return ending == ".jsonl" || ending == ".ndjson" || ending == ".json";
}

}  // namespace

std::unique_ptr<Source> NewChatSource(const ChatParam& param) {
  if (param.length == 0)
    Throw(ErrorKind::kConfig, "length = '0': an example needs at least one token");
  const std::vector<Chat> chats = ReadChats(param.path);
  return std::make_unique<ChatSource>(param, chats, ChatTokenizerOf(param, chats));
}

MXTRAIN_SOURCE(chat_source, sources) {
  SourceKind kind = SourceKindOf<ChatParam, NewChatSource>(
      "chat", "conversations in JSON lines, to learn their answers");
  kind.carried = {"tokenizer_text", "chat_text"};
  kind.of_training = {"format",   "system",    "user",          "assistant",
                      "turn_end", "tokenizer", "tokenizer_file"};
  kind.recognize = [](const std::string& path) -> std::optional<Recognition> {
    std::error_code none;
    if (!IsNamedAsJson(path) || !std::filesystem::is_regular_file(path, none)) return std::nullopt;
    if (!BeginsAsChat(ReadBeginMaybeGzip(path, kJudgedChatBytes))) return std::nullopt;
    return Recognition{/*certain=*/true, {{"path", path}}};
  };
  sources.Add(std::move(kind));
}

}  // namespace mxtrain::io
