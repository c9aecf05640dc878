// SPDX-License-Identifier: Apache-2.0
#include "app/commands/tokenize_request.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/text.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

// The files of a tokenizer that is named by its path; none of one that is made.
std::vector<std::string> FilesOfTokenizer(const std::string& name) {
  std::error_code none;
  if (fs::is_directory(name, none)) {
    std::vector<std::string> files;
    for (const char* file : {"encoder.json", "vocab.bpe"}) {
      if (fs::exists(fs::path(name) / file, none))
        files.push_back((fs::path(name) / file).string());
    }
    return files;
  }
  return fs::exists(name, none) ? std::vector<std::string>{name} : std::vector<std::string>{};
}

Json ChecksumsOf(const std::vector<std::string>& files) {
  Json list = Json::array();
  for (const std::string& path : files) {
    const io::TextFile file(path);
    list.push_back({{"path", path},
                    {"bytes", file.text().size()},
                    {"checksum", format("{:016x}", Checksum(file.text()))}});
  }
  return list;
}

std::string TokenizerOf(const Json& request) {
  const auto& train = request["train"];
  return train.is_null() ? format("--tokenizer {}", request["tokenizer"].get<std::string>())
                         : format("--train {}", train.get<int64_t>());
}

std::string ColumnsOf(const Json& request) {
  return format("{}", join(request["columns"].get<std::vector<std::string>>(), ", "));
}

void CompareFiles(const Json& before, const Json& now, std::vector<std::string>* differences) {
  for (size_t i = 0; i < std::max(before.size(), now.size()); ++i) {
    const bool missing = i >= now.size(), added = i >= before.size();
    const std::string path = (missing ? before : now)[i]["path"].get<std::string>();
    if (missing || added || before[i]["path"] != now[i]["path"]) {
      differences->push_back(
          missing ? format("{} was read then", path)
          : added ? format("{} was not read then", path)
                  : format("{} was {} then", path, before[i]["path"].get<std::string>()));
      return;  // the others are other files too
    }
    if (before[i] != now[i]) differences->push_back(format("{}{}", path, kChangedSince));
  }
}

}  // namespace

std::string ToText(const TokenizePlace& place) {
  const io::TextPlace& texts = place.texts;
  return Json{{"file", texts.file}, {"byte", texts.byte},   {"line", texts.line},
              {"row", texts.row},   {"ended", texts.ended}, {"bytes", place.bytes}}
      .dump();
}

TokenizePlace TokenizePlaceFrom(const std::string& text) {
  try {
    const FileJson json = FileJson::parse(text);
    return {{.file = json.at("file"),
             .byte = json.at("byte"),
             .line = json.at("line"),
             .row = json.at("row"),
             .ended = json.at("ended")},
            json.at("bytes")};
  } catch (const FileJson::exception& error) {
    Throw(ErrorKind::kData, "a journal of tokens holds no place in texts: {}", error.what());
  }
}

std::string TokenizeRequest(const io::TextPaths& paths, const std::string& tokenizer,
                            std::optional<int64_t> train) {
  return Json{{"columns", paths.columns},
              {"tokenizer", tokenizer.empty() ? "bytes" : tokenizer},
              {"train", train ? Json(*train) : Json()},
              {"tokenizer_files", ChecksumsOf(FilesOfTokenizer(tokenizer))},
              {"texts", ChecksumsOf(paths.files)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> DifferencesOfRequests(const std::string& before, const std::string& now) {
  if (before == now) return {};
  const Json then = Json::parse(before, nullptr, /*allow_exceptions=*/false),
             asked = Json::parse(now);
  if (!then.is_object() || then.size() != asked.size())
    return {"another version of mxtrain began it"};
  std::vector<std::string> differences;
  if (TokenizerOf(then) != TokenizerOf(asked))
    differences.push_back(format("it was {} then", TokenizerOf(then)));
  if (ColumnsOf(then) != ColumnsOf(asked))
    differences.push_back(format("it was --column {} then", ColumnsOf(then)));
  if (differences.empty())
    CompareFiles(then["tokenizer_files"], asked["tokenizer_files"], &differences);
  CompareFiles(then["texts"], asked["texts"], &differences);
  return differences;
}

}  // namespace mxtrain::commands
