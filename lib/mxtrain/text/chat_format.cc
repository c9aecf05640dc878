// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/chat_format.h"

#include <utility>

#include "mxtrain/base/format.h"
#include "mxtrain/text/internal/json_node.h"

namespace mxtrain::text {
namespace {

constexpr const char* kChatKey = "chat_format";
constexpr int kChatVersion = 1;
constexpr const char* kRoleNames[kChatRoles] = {"system", "user", "assistant"};

void EncodeMarker(const Tokenizer& tokenizer, const std::string& marker, Ids* ids) {
  if (!marker.empty()) tokenizer.Encode(marker, {.parse_special = true}, ids);
}

}  // namespace

std::optional<ChatRole> ChatRoleOf(std::string_view name) {
  constexpr std::pair<std::string_view, ChatRole> kNames[] = {
      {"system", ChatRole::kSystem},       {"developer", ChatRole::kSystem},
      {"user", ChatRole::kUser},           {"human", ChatRole::kUser},
      {"assistant", ChatRole::kAssistant}, {"gpt", ChatRole::kAssistant},
      {"model", ChatRole::kAssistant},     {"bot", ChatRole::kAssistant}};
  for (const auto& [known, role] : kNames) {
    if (known == name) return role;
  }
  return std::nullopt;
}

ChatFormat::ChatFormat(std::array<std::string, kChatRoles> begins, std::string end,
                       std::string between)
    : begins_(std::move(begins)), end_(std::move(end)), between_(std::move(between)) {}

ChatFormat ChatFormat::ChatMl() {
  std::array<std::string, kChatRoles> begins;
  for (size_t role = 0; role < begins.size(); ++role)
    begins[role] = format("<|im_start|>{}\n", kRoleNames[role]);
  return {begins, "<|im_end|>", "\n"};
}

ChatFormat ChatFormat::FromText(std::string_view text, const std::string& file_name) {
  const FileJson json = ParseTokenizerJson(text, file_name);
  const JsonNode root(json, file_name), version = root.At(kChatKey);
  if (version.Number(UINT32_MAX) != kChatVersion) {
    version.Fail(format("the version {} is unknown; this program reads version {}",
                        version.value().dump(), kChatVersion));
  }
  std::array<std::string, kChatRoles> begins;
  for (size_t role = 0; role < begins.size(); ++role)
    begins[role] = root.At(kRoleNames[role]).Text();
  const JsonNode end = root.At("end");
  if (end.Text().empty()) end.Fail("it is empty");
  return {begins, end.Text(), root.At("between").Text()};
}

ChatFormat::Learnt ChatFormat::Encode(const Tokenizer& tokenizer, const ChatTurn& turn,
                                      Ids* ids) const {
  EncodeMarker(tokenizer, begin_of(turn.role), ids);
  Learnt learnt{ids->size(), 0};
  if (!turn.content.empty()) tokenizer.Encode(turn.content, {}, ids);
  EncodeMarker(tokenizer, end_, ids);
  learnt.end = ids->size();
  EncodeMarker(tokenizer, between_, ids);
  return learnt;
}

void ChatFormat::BeginAnswer(const Tokenizer& tokenizer, Ids* ids) const {
  EncodeMarker(tokenizer, begin_of(ChatRole::kAssistant), ids);
}

std::string ChatFormat::Describe() const {
  const auto shown = [](const std::string& text) { return FileJson(text).dump(); };
  return format("questions begin with {}, answers with {} and end with {}",
                shown(begin_of(ChatRole::kUser)), shown(begin_of(ChatRole::kAssistant)),
                shown(end_));
}

std::string ChatFormat::ToText() const {
  FileJson json = {{kChatKey, kChatVersion}, {"end", end_}, {"between", between_}};
  for (size_t role = 0; role < begins_.size(); ++role) json[kRoleNames[role]] = begins_[role];
  return json.dump();
}

}  // namespace mxtrain::text
