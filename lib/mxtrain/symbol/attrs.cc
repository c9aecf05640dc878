// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/symbol/internal/attrs.h"

#include <algorithm>
#include <array>

#include "mxtrain/base/params.h"

namespace mxtrain {
namespace {
constexpr std::array<std::string_view, 5> kBareKeys = {"ctx_group", "lr_mult", "wd_mult",
                                                       "force_mirroring", "mirror_stage"};

DType ParseTypeAttr(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789-") != std::string::npos)
    return ParseDType(text);
  int number = 0;
  params::Parse(text, &number);
  if (number == static_cast<int>(DType::kUnknown)) return DType::kUnknown;
  const DType type = static_cast<DType>(number);
  if (number < 0 || number > 127 || NameOf(type) == std::string_view("unknown")) {
    Throw(ErrorKind::kConfig,
          "{} is not the number of a known element type; use a name such as float32", text);
  }
  return type;
}

// Parses an attribute; errors name the variable and the key.
template <typename T>
T Read(const Node& variable, const char* key, T absent, T (*parse)(const std::string&)) {
  const auto found = variable.attrs.find(key);
  if (found == variable.attrs.end()) return absent;
  try {
    return parse(found->second);
  } catch (const Error& error) {
    Throw(ErrorKind::kConfig, "{}: {} = '{}': {}", DescribeNode(variable), key, found->second,
          error.what());
  }
}

TShape ParseShapeAttr(const std::string& text) {
  if (text == "None") return TShape();
  TShape shape = TShape::Parse(text);
  if (shape.ndim() == 0) return TShape();  // MXNet's "no shape"
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] < -1) Throw(ErrorKind::kConfig, "invalid dimension {}", shape[i]);
    if (shape[i] == 0) shape[i] = TShape::kUnknown;
  }
  return shape;
}

}  // namespace

std::span<const std::string_view> BareKeys() {
  return kBareKeys;
}

std::string BareKey(const std::string& key) {
  if (!IsHiddenKey(key)) return key;
  const std::string inner = key.substr(2, key.size() - 4);
  return std::find(kBareKeys.begin(), kBareKeys.end(), inner) != kBareKeys.end() ? inner : key;
}

std::string HiddenKey(const std::string& key) {
  return IsHiddenKey(key) ? key : "__" + key + "__";
}

Attrs WithBareKeys(const Attrs& attrs) {
  Attrs bare;
  for (const auto& [key, value] : attrs) bare[BareKey(key)] = value;
  return bare;
}

std::optional<std::pair<std::string, std::string>> SplitInputKey(const std::string& key) {
  if (IsHiddenKey(key)) return std::nullopt;
  for (std::string_view bare : kBareKeys) {
    if (key.size() > bare.size() + 1 && key.ends_with(bare) &&
        key[key.size() - bare.size() - 1] == '_') {
      return std::pair(key.substr(0, key.size() - bare.size() - 1), std::string(bare));
    }
  }
  return std::nullopt;
}

Attrs AttrsForInput(const Attrs& node_attrs, const std::string& input) {
  static constexpr std::array<std::string_view, 4> kOwn = {"__shape__", "__dtype__", "__init__",
                                                           "__storage_type__"};
  Attrs attrs, special;
  for (const auto& [key, value] : node_attrs) {
    if (const auto split = SplitInputKey(key)) {
      if (split->first == input) special[split->second] = value;
    } else if (std::find(kOwn.begin(), kOwn.end(), key) == kOwn.end()) {
      attrs[key] = value;
    }
  }
  for (const auto& [key, value] : special) attrs[key] = value;
  return attrs;
}

TShape ShapeAttr(const Node& variable) {
  return Read(variable, "__shape__", TShape(), ParseShapeAttr);
}
DType TypeAttr(const Node& variable) {
  return Read(variable, "__dtype__", DType::kUnknown, ParseTypeAttr);
}

std::string AttrForFile(const std::string& key, const std::string& value) {
  const bool named_type =
      key == "__dtype__" && value.find_first_not_of("0123456789-") != std::string::npos;
  if (named_type) return std::to_string(static_cast<int>(ParseDType(value)));
  if (key == "__shape__" && value.find('-') != std::string::npos) {
    TShape shape = ParseShapeAttr(value);
    for (int i = 0; i < shape.ndim(); ++i) shape[i] = std::max<int64_t>(shape[i], 0);
    return shape.ToTuple();
  }
  return value;
}

}  // namespace mxtrain
