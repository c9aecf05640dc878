// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/byte_level_json.h"

#include <utility>

#include "mxtrain/text/internal/json_tokenizer.h"

namespace mxtrain::text {

TokenizerPtr MakeByteLevelTokenizer(FileJson vocabulary, FileJson merges,
                                    const std::vector<SpecialToken>& special_tokens,
                                    const std::string& file_name) {
  const FileJson byte_level = {{"type", "ByteLevel"},
                               {"add_prefix_space", false},
                               {"trim_offsets", true},
                               {"use_regex", true}};
  FileJson added = FileJson::array();
  for (const SpecialToken& token : special_tokens) {
    added.push_back({{"id", token.id},
                     {"content", token.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  FileJson root = {{"version", "1.0"},
                   {"truncation", nullptr},
                   {"padding", nullptr},
                   {"added_tokens", std::move(added)},
                   {"normalizer", nullptr},
                   {"pre_tokenizer", byte_level},
                   {"post_processor", byte_level},
                   {"decoder", byte_level}};
  root["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", false}};
  root["model"]["vocab"] = std::move(vocabulary);
  root["model"]["merges"] = std::move(merges);
  return std::make_shared<JsonTokenizer>(JsonNode(root, file_name));
}

}  // namespace mxtrain::text
