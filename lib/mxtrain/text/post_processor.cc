// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/post_processor.h"

#include <utility>

#include "mxtrain/base/text.h"
#include "mxtrain/text/internal/byte_alphabet.h"
#include "mxtrain/text/internal/vocabulary.h"

namespace mxtrain::text {
namespace {

constexpr size_t kMostFrameIds = 10'000;

using IdOfToken = std::function<std::optional<TokenId>(std::string_view)>;

TokenId RequireToken(const JsonNode& node, const std::string& token, uint64_t id,
                     const IdOfToken& id_of) {
  const auto known = id_of(token);
  if (!known || *known != id)
    node.Fail(
        format("the vocabulary does not have the token '{}' with the id {}", Shortened(token), id));
  return *known;
}

// ["[CLS]", 101]
TokenId ReadTokenPair(const JsonNode& node, const IdOfToken& id_of) {
  const std::string& token = node.At(size_t{0}).Text();
  return RequireToken(node, token, node.At(size_t{1}).Number(kMostIds - 1), id_of);
}

// {"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {"id": "A"}}: before and after the one sequence.
TextFrame ReadTemplate(const JsonNode& node, const IdOfToken& id_of) {
  TextFrame frame;
  int sequences = 0;
  const JsonNode items = node.At("single");
  for (size_t i = 0; i < items.ArraySize(); ++i) {
    const JsonNode item = items.At(i);
    if (const auto sequence = item.Find("Sequence")) {
      if (sequence->At("id").Text() != "A")
        sequence->Fail("a sequence other than 'A' in a template for one text is not covered");
      ++sequences;
      continue;
    }
    const JsonNode name = item.At("SpecialToken").At("id");
    const JsonNode special = node.At("special_tokens").At(name.Text());
    const JsonNode ids = special.At("ids"), tokens = special.At("tokens");
    Ids& side = sequences == 0 ? frame.before : frame.after;
    for (size_t k = 0; k < ids.ArraySize(); ++k)
      side.push_back(
          RequireToken(special, tokens.At(k).Text(), ids.At(k).Number(kMostIds - 1), id_of));
    if (side.size() > kMostFrameIds) items.Fail("the template has too many tokens");
  }
  if (sequences != 1) items.Fail("a template needs the sequence 'A' once");
  return frame;
}

void ReplaceAll(std::string_view from, std::string_view to, std::string* text) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size())
    text->replace(at, from.size(), to);
}

std::string CleanedUp(std::string token) {
  static constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) ReplaceAll(from, to, &token);
  return token;
}

std::string DecodeWordPieces(const DecoderConfig& decoder,
                             const std::vector<std::string_view>& tokens) {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string token(tokens[i]);
    if (i > 0) {
      if (!decoder.prefix.empty() && token.starts_with(decoder.prefix))
        token.erase(0, decoder.prefix.size());
      else
        token.insert(0, " ");
    }
    text += decoder.cleanup ? CleanedUp(std::move(token)) : token;
  }
  return text;
}

}  // namespace

TextFrame ReadPostProcessor(const JsonNode& node, const IdOfToken& id_of) {
  const std::string& type = node.Type();
  if (type == "ByteLevel") return {};  // moves offsets only
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return {{ReadTokenPair(node.At("cls"), id_of)}, {ReadTokenPair(node.At("sep"), id_of)}};
  if (type == "TemplateProcessing") return ReadTemplate(node, id_of);
  if (type != "Sequence") node.Fail("the post-processor '" + type + "' is not covered");
  TextFrame frame;
  const JsonNode all = node.At("processors");
  for (size_t i = 0; i < all.ArraySize(); ++i) {
    const TextFrame outer = ReadPostProcessor(all.At(i), id_of);
    frame.before.insert(frame.before.begin(), outer.before.begin(), outer.before.end());
    frame.after.insert(frame.after.end(), outer.after.begin(), outer.after.end());
    if (frame.before.size() + frame.after.size() > 2 * kMostFrameIds)
      node.Fail("the post-processors add too many tokens");
  }
  return frame;
}

DecoderConfig ReadDecoder(const JsonNode& node) {
  const std::string& type = node.Type();
  if (type == "ByteLevel") return {DecoderConfig::Kind::kByteLevel, "", false};
  if (type == "WordPiece")
    return {DecoderConfig::Kind::kWordPiece, node.TextOr("prefix", "##"),
            node.BoolOr("cleanup", true)};
  node.Fail("the decoder '" + type + "' is not covered");
}

std::string DecodeTokens(const DecoderConfig& decoder,
                         const std::vector<std::string_view>& tokens) {
  if (decoder.kind == DecoderConfig::Kind::kWordPiece) return DecodeWordPieces(decoder, tokens);
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (decoder.kind == DecoderConfig::Kind::kByteLevel) {
      // Added tokens may have characters that are not in the alphabet: they are text.
      const auto bytes = BytesOfVisible(tokens[i]);
      text += bytes ? std::string_view(*bytes) : tokens[i];
    } else {
      if (i > 0) text += ' ';
      text += tokens[i];
    }
  }
  return text;
}

}  // namespace mxtrain::text
