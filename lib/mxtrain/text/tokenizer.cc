// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/tokenizer.h"

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/text/internal/json_tokenizer.h"
#include "mxtrain/text/internal/simple_tokenizers.h"

namespace mxtrain::text {
namespace {

constexpr size_t kMostTokenizerBytes = size_t{512} << 20;
constexpr uint64_t kSimpleVersion = 1;

TokenizerPtr ReadSimpleTokenizer(const JsonNode& root) {
  const JsonNode version = root.At(kSimpleKey), kind = root.At("kind");
  if (version.Number(UINT32_MAX) != kSimpleVersion)
    version.Fail(format("the version {} is unknown; this program reads version {}",
                        version.value().dump(), kSimpleVersion));
  if (kind.Text() == kByteKind) return MakeByteTokenizer();
  if (kind.Text() == kCharacterKind) return ReadCharacterTokenizer(root);
  if (kind.Text() == kWordKind) return ReadWordTokenizer(root);
  kind.Fail("the kind '" + kind.Text() + "' is unknown; known are bytes, characters and words");
}

}  // namespace

FileJson SimpleJson(const char* kind) {
  return {{kSimpleKey, kSimpleVersion}, {"kind", kind}};
}

Ids Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  Ids ids;
  Encode(text, options, &ids);
  return ids;
}

TokenizerPtr TokenizerFromText(std::string_view text, const std::string& file_name) {
  const FileJson json = ParseTokenizerJson(text, file_name);
  const JsonNode root(json, file_name);
  if (root.Find(kSimpleKey)) return ReadSimpleTokenizer(root);
  return std::make_shared<JsonTokenizer>(root);
}

TokenizerPtr LoadTokenizer(const std::string& path) {
  return TokenizerFromText(ReadFile(path, kMostTokenizerBytes), path);
}

}  // namespace mxtrain::text
