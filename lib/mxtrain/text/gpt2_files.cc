// SPDX-License-Identifier: Apache-2.0
// GPT-2's own files: encoder.json is an object from tokens to ids; vocab.bpe has the line
// "#version: 0.2", then "a b" a line, the merges by rank.
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/text/internal/byte_level_json.h"
#include "mxtrain/text/internal/json_node.h"

namespace mxtrain::text {
namespace {

constexpr size_t kMostGpt2Bytes = size_t{256} << 20;
constexpr const char* kGpt2EndOfText = "<|endoftext|>";

FileJson ReadMergeLines(const std::string& path) {
  const std::string text = ReadFile(path, kMostGpt2Bytes);
  if (!IsUtf8(text)) Throw(ErrorKind::kData, "{} is not a file of merges: it is not UTF-8", path);
  FileJson merges = FileJson::array();
  std::string_view rest = text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::string_view merge = Trim(line, "\r");
    if (merge.empty() || (number == 1 && merge.starts_with("#version"))) continue;
    const size_t blank = merge.find(' ');
    if (blank == std::string_view::npos || merge.find(' ', blank + 1) != std::string_view::npos) {
      Throw(ErrorKind::kData, "{}:{}: expected two tokens with a blank between, found '{}'", path,
            number, Shortened(merge));
    }
    merges.push_back({std::string(merge.substr(0, blank)), std::string(merge.substr(blank + 1))});
  }
  return merges;
}

}  // namespace

TokenizerPtr LoadGpt2Tokenizer(const std::string& encoder_json, const std::string& vocab_bpe) {
  FileJson vocabulary = ParseTokenizerJson(ReadFile(encoder_json, kMostGpt2Bytes), encoder_json);
  const JsonNode node(vocabulary, encoder_json);
  std::vector<SpecialToken> special;
  if (const auto end = node.Find(kGpt2EndOfText))
    special.push_back({kGpt2EndOfText, static_cast<TokenId>(end->Number(UINT32_MAX))});
  return MakeByteLevelTokenizer(std::move(vocabulary), ReadMergeLines(vocab_bpe), special,
                                encoder_json + ", " + vocab_bpe);
}

}  // namespace mxtrain::text
