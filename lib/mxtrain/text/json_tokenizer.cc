// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/json_tokenizer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "mxtrain/base/text.h"
#include "mxtrain/text/internal/json_models.h"
#include "mxtrain/text/internal/utf8.h"

namespace mxtrain::text {
namespace {

// Names of the token between documents, in the order in which they are looked for.
constexpr std::string_view kEndsOfText[] = {"<|endoftext|>", "<|end_of_text|>", "<|im_end|>",
                                            "</s>",          "<eos>",           "[SEP]"};

// Of the model, and of the added tokens those that the model does not have.
Vocabulary JoinedVocabulary(const JsonNode& root, Vocabulary own,
                            const std::vector<AddedToken>& added) {
  std::vector<std::pair<std::string, TokenId>> tokens;
  std::set<std::string_view> contents;
  for (size_t i = 0; i < added.size(); ++i) {
    const AddedToken& token = added[i];
    const auto fail = [&](const std::string& what) {
      root.At("added_tokens").At(i).Fail("the token '" + Shortened(token.content) + "' " + what);
    };
    if (!contents.insert(token.content).second) fail("is there twice");
    const auto known = own.IdOf(token.content);
    if (known && *known != token.id)
      fail(format("has the id {}, and in model.vocab the id {}", token.id, *known));
    if (!known) tokens.emplace_back(token.content, token.id);
  }
  if (tokens.empty()) return own;
  own.ForEach([&](std::string_view token, TokenId id) { tokens.emplace_back(token, id); });
  return AtNode(root.At("added_tokens"), [&] { return Vocabulary(tokens); });
}

}  // namespace

// Gives pieces to the model, and keeps what it makes of the short ones.
class JsonTokenizer::ModelSink final : public PieceSink {
 public:
  ModelSink(const JsonTokenizer& tokenizer, Scratch* scratch, Ids* ids)
      : tokenizer_(tokenizer), scratch_(*scratch), ids_(ids) {}

  void Put(std::string_view piece) override {
    if (piece.size() > PieceCache::kMostBytes) return Encode(piece);
    const PieceCache::Key key = PieceCache::KeyOf(piece);
    if (const auto* const found = scratch_.cache.Find(key)) {
      ids_->insert(ids_->end(), found->begin(), found->end());
      return;
    }
    const size_t begin = ids_->size();
    Encode(piece);
    scratch_.cache.Put(key, std::span(*ids_).subspan(begin));
  }

 private:
  void Encode(std::string_view piece) {
    if (tokenizer_.bpe_)
      tokenizer_.bpe_->Encode(piece, &scratch_.bpe, ids_);
    else
      tokenizer_.word_piece_->Encode(piece, ids_);
  }

  const JsonTokenizer& tokenizer_;
  Scratch& scratch_;
  Ids* const ids_;
};

JsonTokenizer::JsonTokenizer(const JsonNode& root) : json_(root.value().dump()) {
  const JsonNode model = root.At("model");
  std::vector<AddedToken> added;
  if (const auto node = root.Find("added_tokens")) added = ReadAddedTokens(*node);
  const JsonNode tokens = model.At("vocab");
  Vocabulary own = AtNode(tokens, [&] { return Vocabulary(ReadModelVocabulary(tokens)); });
  if (const auto node = root.Find("normalizer")) normalizer_ = Normalizer(*node);
  if (const auto node = root.Find("pre_tokenizer")) pre_tokenizer_ = PreTokenizer(*node);
  ReadModel(model, own);
  vocabulary_ = JoinedVocabulary(root, std::move(own), added);
  std::vector<AddedToken> raw, normalized;
  for (const AddedToken& token : added) (token.normalized ? normalized : raw).push_back(token);
  raw_ = AddedTokenFinder(std::move(raw), nullptr);
  AtNode(root, [&] {
    for (const AddedToken& token : normalized)
      normal_forms_.emplace(token.id, normalizer_.Apply(token.content));
    normalized_ = AddedTokenFinder(std::move(normalized), &normalizer_);
  });
  ReadSpecialTokens(added);
  if (const auto node = root.Find("post_processor")) {
    frame_ = ReadPostProcessor(*node, [this](std::string_view token) { return IdOf(token); });
  }
  if (const auto node = root.Find("decoder")) decoder_ = ReadDecoder(*node);
}

void JsonTokenizer::ReadModel(const JsonNode& model, const Vocabulary& own) {
  if (TypeOfModel(model) == "WordPiece") {
    if (pre_tokenizer_.byte_level()) model.Fail("WordPiece after ByteLevel is not covered");
    word_piece_.emplace(own, ReadWordPieceConfig(model, own));
  } else {
    BpeConfig config = ReadBpeConfig(model, own);
    config.byte_level = pre_tokenizer_.byte_level();
    bpe_.emplace(own, ReadMerges(model.At("merges"), own), config);
  }
}

void JsonTokenizer::ReadSpecialTokens(const std::vector<AddedToken>& added) {
  for (const AddedToken& token : added) {
    if (token.special) special_.push_back({token.content, token.id});
  }
  std::sort(special_.begin(), special_.end(),
            [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
  for (const std::string_view name : kEndsOfText) {
    for (const SpecialToken& token : special_) {
      if (token.text == name && !end_of_text_) end_of_text_ = token.id;
    }
  }
}

void JsonTokenizer::Encode(std::string_view text, const EncodeOptions& options, Ids* ids) const {
  const auto scratch = scratch_.Take();
  ModelSink sink(*this, &*scratch, ids);
  if (options.add_special) ids->insert(ids->end(), frame_.before.begin(), frame_.before.end());
  if (pre_tokenizer_.byte_level()) {
    while (!text.empty()) {
      const size_t valid = ValidPrefix(text);
      EncodeValid(text.substr(0, valid), options.parse_special, &sink, ids);
      text.remove_prefix(valid);
      const size_t invalid = InvalidPrefix(text);
      if (invalid > 0) sink.Put(text.substr(0, invalid));
      text.remove_prefix(invalid);
    }
  } else {
    std::string buffer;
    EncodeValid(ValidText(text, &buffer), options.parse_special, &sink, ids);
  }
  if (options.add_special) ids->insert(ids->end(), frame_.after.begin(), frame_.after.end());
}

void JsonTokenizer::EncodeValid(std::string_view text, bool parse_special, PieceSink* sink,
                                Ids* ids) const {
  const auto push = [ids](TokenId id) { ids->push_back(id); };
  const auto split = [&](std::string_view part) { pre_tokenizer_.Split(part, sink); };
  const auto in_normalized = [&](std::string_view part) {
    if (normalized_.Idle(parse_special)) return split(part);
    normalized_.Split(part, parse_special, split, push);
  };
  const auto in_raw = [&](std::string_view part) {
    if (normalizer_.empty()) return in_normalized(part);
    in_normalized(normalizer_.Apply(part));
  };
  if (raw_.Idle(parse_special)) return in_raw(text);
  raw_.Split(text, parse_special, in_raw, push);
}

size_t JsonTokenizer::LastCut(std::string_view text) const {
  const bool cuts = pre_tokenizer_.byte_level() && pre_tokenizer_.EndsPieceAtLine() &&
                    normalizer_.empty() && raw_.Idle(false) && normalized_.Idle(false);
  if (!cuts) return 0;
  for (size_t at = text.rfind('\n'); at != std::string_view::npos && at > 0;
       at = text.rfind('\n', at - 1)) {
    if (text[at - 1] > ' ' && text[at - 1] <= '~') return at;
  }
  return 0;
}

bool JsonTokenizer::IsSpecial(TokenId id) const {
  const auto at =
      std::lower_bound(special_.begin(), special_.end(), id,
                       [](const SpecialToken& token, TokenId wanted) { return token.id < wanted; });
  return at != special_.end() && at->id == id;
}

std::string JsonTokenizer::Decode(std::span<const TokenId> ids, bool skip_special) const {
  std::vector<std::string_view> tokens;
  tokens.reserve(ids.size());
  for (const TokenId id : ids) {
    const std::string_view token = vocabulary_.TokenOf(id);
    if (skip_special && IsSpecial(id)) continue;
    const auto form = normal_forms_.find(id);
    tokens.push_back(form != normal_forms_.end() ? form->second : token);
  }
  return DecodeTokens(decoder_, tokens);
}

std::string JsonTokenizer::Describe() const {
  const char* const kind = word_piece_                   ? "WordPiece"
                           : pre_tokenizer_.byte_level() ? "byte-level BPE"
                                                         : "BPE";
  return format("{} of {}", kind, Counted(vocabulary_.count(), "token"));
}

}  // namespace mxtrain::text
