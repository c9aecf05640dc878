// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/json_node.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "mxtrain/base/text.h"

namespace mxtrain::text {
namespace {

constexpr size_t kDeepest = 24;

// Looks for what the parser accepts silently: a key that an object has twice, deep nesting. Keeps
// the reason why the text is not JSON.
class JsonRules final : public nlohmann::json_sax<FileJson> {
 public:
  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(FileJson::binary_t&) override { return true; }
  bool start_object(size_t) override { return Open(); }
  bool start_array(size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    if (levels_.back().insert(name).second) return true;
    problem_ = format("the key '{}' is there twice in one object", Shortened(name));
    return false;
  }
  bool parse_error(size_t place, const std::string&, const nlohmann::detail::exception&) override {
    problem_ = format("it is not JSON at its byte {}", place);
    return false;
  }

 private:
  bool Open() {
    levels_.emplace_back();
    if (levels_.size() <= kDeepest) return true;
    problem_ = format("it is nested more than {} deep", kDeepest);
    return false;
  }
  bool Close() {
    levels_.pop_back();
    return true;
  }

  std::vector<std::unordered_set<std::string>> levels_;
  std::string problem_;
};

}  // namespace

FileJson ParseTokenizerJson(std::string_view text, const std::string& file_name) {
  JsonRules rules;
  if (!FileJson::sax_parse(text, &rules))
    Throw(ErrorKind::kData, "{}: {}", file_name, rules.problem());
  return FileJson::parse(text);
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
