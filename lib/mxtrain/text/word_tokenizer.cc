// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/text/internal/simple_tokenizers.h"
#include "mxtrain/text/internal/utf8.h"
#include "mxtrain/text/internal/vocabulary.h"

namespace mxtrain::text {
namespace {

constexpr const char* kUnknownWord = "<unk>";
constexpr const char* kEndOfLine = "<eos>";
constexpr TokenId kUnknownWordId = 0, kEndOfLineId = 1, kFirstWordId = 2;
constexpr std::string_view kBlanks = " \t\v\f\r", kBlanksAndNewline = " \t\v\f\r\n";

// Calls on_word(word) and on_end() for the words and the ends of lines.
template <typename OnWord, typename OnEnd>
void ForEachWord(std::string_view text, const OnWord& on_word, const OnEnd& on_end) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    for (line = Trim(line, kBlanks); !line.empty(); line = Trim(line, kBlanks)) {
      const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
      on_word(word);
      line.remove_prefix(word.size());
    }
    on_end();
  }
}

class WordTokenizer final : public Tokenizer {
 public:
  explicit WordTokenizer(const std::vector<std::string>& words) : vocabulary_(TokensOf(words)) {}

  void Encode(std::string_view text, const EncodeOptions& options, Ids* ids) const override {
    std::string buffer;
    ForEachWord(
        ValidText(text, &buffer),
        [&](std::string_view word) { ids->push_back(IdOfWord(word, options.parse_special)); },
        [&] { ids->push_back(kEndOfLineId); });
  }
  size_t LastCut(std::string_view text) const override { return text.rfind('\n') + 1; }
  std::string Decode(std::span<const TokenId> ids, bool skip_special) const override {
    std::string text;
    for (const TokenId id : ids) {
      const std::string_view word = vocabulary_.TokenOf(id);
      if (skip_special && id < kFirstWordId) continue;
      if (id == kEndOfLineId) {
        text += '\n';
      } else {
        if (!text.empty() && text.back() != '\n') text += ' ';
        text += word;
      }
    }
    return text;
  }
  int64_t vocabulary_size() const override { return vocabulary_.size(); }
  std::optional<TokenId> IdOf(std::string_view token) const override {
    return vocabulary_.IdOf(token);
  }
  std::string TokenOf(TokenId id) const override { return std::string(vocabulary_.TokenOf(id)); }
  std::vector<SpecialToken> special_tokens() const override {
    return {{kUnknownWord, kUnknownWordId}, {kEndOfLine, kEndOfLineId}};
  }
  std::optional<TokenId> end_of_text() const override { return kEndOfLineId; }
  std::string Describe() const override {
    return format("{} with <unk> and <eos>", Counted(vocabulary_.count(), "word"));
  }
  std::string ToText() const override {
    FileJson json = SimpleJson(kWordKind);
    json["words"] = FileJson::array();
    vocabulary_.ForEach([&](std::string_view word, TokenId id) {
      if (id >= kFirstWordId) json["words"].push_back(word);
    });
    return json.dump();
  }

 private:
  static std::vector<std::pair<std::string, TokenId>> TokensOf(
      const std::vector<std::string>& words) {
    std::vector<std::pair<std::string, TokenId>> tokens = {{kUnknownWord, kUnknownWordId},
                                                           {kEndOfLine, kEndOfLineId}};
    for (const std::string& word : words)
      tokens.emplace_back(word, static_cast<TokenId>(tokens.size()));
    return tokens;
  }
  // "<unk>" in a text is that token, as in corpora whose rare words were replaced.
  TokenId IdOfWord(std::string_view word, bool parse_special) const {
    const TokenId id = vocabulary_.IdOf(word).value_or(kUnknownWordId);
    return id == kEndOfLineId && !parse_special ? kUnknownWordId : id;
  }

  const Vocabulary vocabulary_;
};

}  // namespace

TokenizerPtr MakeWordTokenizer(Corpus corpus, const WordOptions& options) {
  const int64_t size = options.maximum_size;
  if (options.minimum_count < 1)
    Throw(ErrorKind::kConfig, "the minimum count of a word is {}; it must be at least 1",
          options.minimum_count);
  if (size < 0 || size == 1)
    Throw(ErrorKind::kConfig,
          "the size of the vocabulary of words is {}; it must be at least 2, for <unk> and <eos>, "
          "or 0 for no limit",
          size);
  std::deque<std::string> buffers;  // which words view, too
  std::unordered_map<std::string_view, int64_t> counts;
  for (const std::string_view text : corpus) {
    const std::string_view valid = ValidText(text, &buffers.emplace_back());
    ForEachWord(
        valid, [&](std::string_view word) { ++counts[word]; }, [] {});
  }
  counts.erase(kUnknownWord);
  counts.erase(kEndOfLine);
  std::vector<std::pair<std::string_view, int64_t>> words(counts.begin(), counts.end());
  std::erase_if(words, [&](const auto& word) { return word.second < options.minimum_count; });
  std::sort(words.begin(), words.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (size > 0) words.resize(std::min(words.size(), static_cast<size_t>(size) - kFirstWordId));
  std::vector<std::string> names;
  for (const auto& [word, count] : words) names.emplace_back(word);
  return std::make_shared<WordTokenizer>(names);
}

TokenizerPtr ReadWordTokenizer(const JsonNode& root) {
  const JsonNode node = root.At("words");
  std::vector<std::string> words;
  for (size_t i = 0; i < node.ArraySize(); ++i) {
    const std::string& word = node.At(i).Text();
    if (word.empty() || word.find_first_of(kBlanksAndNewline) != std::string::npos)
      node.At(i).Fail("'" + Shortened(word) + "' is not a word without blanks");
    words.push_back(word);
  }
  return AtNode(node, [&] { return std::make_shared<WordTokenizer>(words); });
}

}  // namespace mxtrain::text
