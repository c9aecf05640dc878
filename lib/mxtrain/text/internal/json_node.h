// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading JSON from outside: every error names the file and the key, "a.json: model.merges[3]:
// ...".
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"

namespace mxtrain::text {

// Throws kData for text that is not JSON, for an object that has a key twice, and for nesting so
// deep that no tokenizer has it.
FileJson ParseTokenizerJson(std::string_view text, const std::string& file_name);

// A value and where it stands. The document and the name of the file must outlive it.
class JsonNode {
 public:
  JsonNode(const FileJson& value, const std::string& file) : value_(&value), file_(&file) {}

  const FileJson& value() const { return *value_; }
  const std::string& file() const { return *file_; }
  [[noreturn]] void Fail(std::string_view what) const;
  // Whether a message begins with the file already.
  bool IsNamedIn(std::string_view message) const { return message.starts_with(*file_ + ": "); }

  JsonNode At(const std::string& key) const;                   // must be there
  std::optional<JsonNode> Find(const std::string& key) const;  // nothing if absent or null
  JsonNode At(size_t index) const;

  const FileJson& Object() const;
  size_t ArraySize() const;
  const std::string& Text() const;
  bool Bool() const;
  uint64_t Number(uint64_t most) const;
  // The same of a key; `otherwise` if it is absent or null.
  std::string TextOr(const std::string& key, const std::string& otherwise) const;
  bool BoolOr(const std::string& key, bool otherwise) const;
  uint64_t NumberOr(const std::string& key, uint64_t most, uint64_t otherwise) const;
  const std::string& Type() const { return At("type").Text(); }

 private:
  JsonNode(const FileJson& value, const std::string& file, std::string path)
      : value_(&value), file_(&file), path_(std::move(path)) {}
  [[noreturn]] void FailAsType(std::string_view expected) const;

  const FileJson* value_;
  const std::string* file_;
  std::string path_;
};

// Runs what may throw an Error without a place, and puts that of `node` before it.
template <typename Call>
auto AtNode(const JsonNode& node, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData || node.IsNamedIn(error.what())) throw;
    node.Fail(error.what());
  }
}

}  // namespace mxtrain::text
