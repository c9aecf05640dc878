// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/text_files.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/encode_texts.h"
#include "mxtrain/text/token_file.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

std::string EndingOf(const std::string& path) {
  fs::path name(Lower(path));
  if (name.extension() == ".gz") name.replace_extension();
  return name.extension().string();
}

bool IsJsonLines(const std::string& ending) {
  return ending == ".jsonl" || ending == ".ndjson";
}

}  // namespace

bool IsTokenFileName(const std::string& path) {
  return Lower(fs::path(path).extension().string()) == ".tokens";
}

bool HoldsRows(const std::string& path) {
  const std::string ending = EndingOf(path);
  return IsJsonLines(ending) || ending == ".tsv" || ending == ".csv" || ending == ".tab";
}

std::vector<std::string> TextFiles(const std::string& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return {path};
  std::vector<std::string> texts, lines;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(
           path, fs::directory_options::skip_permission_denied, none)) {
    if (!entry.is_regular_file(none)) continue;
    const std::string ending = EndingOf(entry.path().string());
    if (ending == ".txt") texts.push_back(entry.path().string());
    if (IsJsonLines(ending)) lines.push_back(entry.path().string());
  }
  std::vector<std::string>& files = texts.empty() ? lines : texts;
  if (files.empty()) Throw(ErrorKind::kData, "{} has no .txt file, nor one of JSON lines", path);
  std::ranges::sort(files);
  return files;
}

text::TokenizerPtr OpenTokenizer(const std::string& name, const TextPaths& texts) {
  if (name == "characters") return text::MakeCharacterTokenizer(Texts(texts).corpus());
  if (name == "words") return text::MakeWordTokenizer(Texts(texts).corpus(), {});
  if (name == "bytes") return text::MakeByteTokenizer();
  std::error_code none;
  if (fs::is_directory(name, none))
    return text::LoadGpt2Tokenizer(name + "/encoder.json", name + "/vocab.bpe");
  if (!fs::exists(name, none)) {
    Throw(ErrorKind::kConfig,
          "tokenizer '{}': there is no such file or folder; expected characters, words, bytes, a "
          "tokenizer.json, or a folder with GPT-2's encoder.json and vocab.bpe",
          name);
  }
  if (IsTokenFileName(name)) return text::TokenFile(name).NewTokenizer();
  return text::LoadTokenizer(name);
}

std::optional<text::TokenId> SeparatorOf(const text::Tokenizer& tokenizer) {
  const std::optional<text::TokenId> end = tokenizer.end_of_text();
  if (end && tokenizer.Decode({&*end, 1}) == "\n") return std::nullopt;
  return end;
}

text::Ids EncodeBeginning(const text::Tokenizer& tokenizer, std::string_view text) {
  text::Ids ids = tokenizer.Encode(text);
  const bool of_lines = tokenizer.end_of_text() && !SeparatorOf(tokenizer);
  if (of_lines && !ids.empty() && ids.back() == tokenizer.end_of_text() && !text.ends_with('\n'))
    ids.pop_back();
  return ids;
}

void EncodeFile(const text::Tokenizer& tokenizer, std::string_view text, const std::string& file,
                text::Ids* ids) {
  try {
    tokenizer.Encode(text, {}, ids);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    Throw(ErrorKind::kData, "{}: {}", file, error.what());
  }
}

}  // namespace mxtrain::io
