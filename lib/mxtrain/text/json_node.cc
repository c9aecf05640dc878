// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/json_node.h"

#include <utility>

#include "mxtrain/base/read_json.h"
#include "mxtrain/base/text.h"

namespace mxtrain::text {

FileJson ParseTokenizerJson(std::string_view text, const std::string& file_name) {
  return ReadJsonOf(file_name, text);
}

void JsonNode::Fail(std::string_view what) const {
  Throw(ErrorKind::kData, "{}: {}{}{}", *file_, path_, path_.empty() ? "" : ": ", what);
}

void JsonNode::FailAsType(std::string_view expected) const {
  Fail(format("expected {}, found {}", expected, value_->type_name()));
}

JsonNode JsonNode::At(const std::string& key) const {
  const auto found = Object().find(key);
  if (found == value_->end()) Fail(format("the key '{}' is missing", key));
  return {*found, *file_, path_.empty() ? key : path_ + "." + Shortened(key)};
}

std::optional<JsonNode> JsonNode::Find(const std::string& key) const {
  const auto found = Object().find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return At(key);
}

JsonNode JsonNode::At(size_t index) const {
  if (index >= ArraySize()) Fail(format("expected more than {} items", index));
  return {(*value_)[index], *file_, format("{}[{}]", path_, index)};
}

const FileJson& JsonNode::Object() const {
  if (!value_->is_object()) FailAsType("an object");
  return *value_;
}

size_t JsonNode::ArraySize() const {
  if (!value_->is_array()) FailAsType("an array");
  return value_->size();
}

const std::string& JsonNode::Text() const {
  if (!value_->is_string()) FailAsType("a string");
  return value_->get_ref<const std::string&>();
}

bool JsonNode::Bool() const {
  if (!value_->is_boolean()) FailAsType("true or false");
  return value_->get<bool>();
}

uint64_t JsonNode::Number(uint64_t most) const {
  if (!value_->is_number_unsigned() || value_->get<uint64_t>() > most)
    Fail(format("expected an integer from 0 to {}, found {}", most,
                value_->is_number() ? value_->dump() : value_->type_name()));
  return value_->get<uint64_t>();
}

std::string JsonNode::TextOr(const std::string& key, const std::string& otherwise) const {
  const auto found = Find(key);
  return found ? found->Text() : otherwise;
}

bool JsonNode::BoolOr(const std::string& key, bool otherwise) const {
  const auto found = Find(key);
  return found ? found->Bool() : otherwise;
}

uint64_t JsonNode::NumberOr(const std::string& key, uint64_t most, uint64_t otherwise) const {
  const auto found = Find(key);
  return found ? found->Number(most) : otherwise;
}

}  // namespace mxtrain::text
