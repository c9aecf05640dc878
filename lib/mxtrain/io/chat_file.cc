// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/chat_file.h"

#include <optional>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr size_t kMostChatBytes = size_t{16} << 30;
constexpr const char* kChatForms =
    "expected {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}, ...]} or {\"prompt\": "
    "\"...\", \"completion\": \"...\"}";

// The first of the keys that an object has; null if it has none.
const FileJson* FindKey(const FileJson& json, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (const auto found = json.find(key); found != json.end()) return &*found;
  }
  return nullptr;
}

const FileJson* MessagesOf(const FileJson& json) {
  if (json.is_array()) return &json;
  return json.is_object() ? FindKey(json, {"messages", "conversations"}) : nullptr;
}

class ChatLine {
 public:
  ChatLine(const std::string& path, int64_t line) : path_(path) { chat_.line = line; }

  Chat Read(std::string_view text) {
    const Expected<FileJson, Refusal> read = ReadJson<FileJson>(text);
    if (!read && !IsUtf8(text)) Fail("it is not UTF-8");
    if (!read) Fail(read.error().reason + "; each line is a conversation");
    if (const FileJson* messages = MessagesOf(*read)) {
      ReadMessages(*messages);
    } else {
      ReadPair(*read);
    }
    return std::move(chat_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    Throw(ErrorKind::kData, "{}:{}: {}", path_, chat_.line, what);
  }

  void ReadMessages(const FileJson& messages) {
    if (!messages.is_array() || messages.empty()) Fail("its messages are no list of some");
    for (const FileJson& message : messages) {
      const std::string place = format("message {}", chat_.turns.size() + 1);
      if (!message.is_object()) Fail(place + " is not an object");
      const FileJson *role = FindKey(message, {"role", "from"}),
                     *content = FindKey(message, {"content", "value"}),
                     *weight = FindKey(message, {"weight"});
      if (!role || !role->is_string()) Fail(place + " has no role");
      const auto& name = role->get_ref<const std::string&>();
      const std::optional<text::ChatRole> known = text::ChatRoleOf(name);
      if (!known) {
        Fail(format("{} has the role '{}'; expected system, user or assistant", place,
                    Shortened(name)));
      }
      if (!content || content->is_null()) Fail(place + " has no content");
      if (weight && !weight->is_number()) Fail(place + " has a weight of another type");
      Add({*known, ContentOf(*content, place)}, !weight || weight->get<double>() != 0);
    }
  }

  void ReadPair(const FileJson& json) {
    const FileJson *prompt = nullptr, *answer = nullptr;
    if (json.is_object()) {
      prompt = FindKey(json, {"prompt"});
      answer = FindKey(json, {"completion", "response"});
    }
    if (!prompt || !answer || !prompt->is_string() || !answer->is_string())
      Fail(format("it is no conversation; {}", kChatForms));
    Add({text::ChatRole::kUser, prompt->get<std::string>()}, true);
    Add({text::ChatRole::kAssistant, answer->get<std::string>()}, true);
  }

  std::string ContentOf(const FileJson& content, const std::string& place) const {
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array()) Fail(place + " has a content that is no text");
    std::string joined;
    for (const FileJson& part : content) {
      const FileJson* text = part.is_object() ? FindKey(part, {"text"}) : nullptr;
      if (!text || !text->is_string()) Fail(place + " has a part that is no text");
      joined += text->get_ref<const std::string&>();
    }
    return joined;
  }

  void Add(text::ChatTurn turn, bool wanted) {
    chat_.is_learnt.push_back(wanted && turn.role == text::ChatRole::kAssistant);
    chat_.turns.push_back(std::move(turn));
  }

  const std::string& path_;
  Chat chat_;
};

}  // namespace

std::vector<Chat> ReadChats(const std::string& path) {
  const std::string text =
      PlainText(ReadMaybeGzip(path, kMostChatBytes, Readable::kFileOrPipe), path);
  std::vector<Chat> chats;
  ForEachLine(text, [&](std::string_view line, int64_t number) {
    chats.push_back(ChatLine(path, number).Read(line));
  });
  if (chats.empty()) Throw(ErrorKind::kData, "{} holds no conversation", path);
  return chats;
}

bool BeginsAsChat(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || (text[begin] != '{' && text[begin] != '[')) return false;
  text.remove_prefix(begin);
  const std::string_view line = text.substr(0, text.find('\n'));
  const Expected<FileJson, Refusal> read = ReadJson<FileJson>(line);
  // The line may be longer than what was read of it.
  if (!read) return line.starts_with("{\"messages\"") || line.starts_with("{\"conversations\"");
  if (const FileJson* messages = MessagesOf(*read)) {
    return messages->is_array() && !messages->empty() && (*messages)[0].is_object() &&
           FindKey((*messages)[0], {"role", "from"});
  }
  return read->is_object() && FindKey(*read, {"prompt"}) &&
         FindKey(*read, {"completion", "response"});
}

}  // namespace mxtrain::io
