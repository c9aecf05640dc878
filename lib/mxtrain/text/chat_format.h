// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversations as one text: what stands before and behind the turn of each role. A format is also
// a text (ToText), which checkpoints carry. Immutable: every call may come from any thread.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

enum class ChatRole { kSystem, kUser, kAssistant };
inline constexpr int kChatRoles = 3;
// "system", "user", "assistant", and what other programs call them: "developer"; "human"; "gpt",
// "model", "bot". Nothing for another name.
MXTRAIN_API std::optional<ChatRole> ChatRoleOf(std::string_view name);

struct ChatTurn {
  ChatRole role = ChatRole::kUser;
  std::string content;
};

class MXTRAIN_API ChatFormat {
 public:
  // `begins`: by role, what stands before a turn. `end`, not empty, stands behind it, and is what a
  // model writes at the end of its answer; `between` follows it.
  ChatFormat(std::array<std::string, kChatRoles> begins, std::string end, std::string between);
  // "<|im_start|>ROLE\nCONTENT<|im_end|>\n", as OpenAI's ChatML and many published models.
  static ChatFormat ChatMl();
  // The inverse of ToText. Errors (kData) begin with `file_name` and name the key.
  static ChatFormat FromText(std::string_view text, const std::string& file_name);

  const std::string& end() const { return end_; }

  // The tokens of a turn that a model learns if it is an answer: its content and its end.
  struct Learnt {
    size_t begin = 0, end = 0;  // among *ids
  };
  // Appends the tokens of a turn. No token holds a part of the content and a part of what stands
  // around it. Special tokens of the tokenizer are looked for in the latter alone: in a content
  // they are text like any other. Throws kData for what cannot be encoded.
  Learnt Encode(const Tokenizer& tokenizer, const ChatTurn& turn, Ids* ids) const;
  // Appends the tokens that an answer follows.
  void BeginAnswer(const Tokenizer& tokenizer, Ids* ids) const;

  // For people: 'questions begin with "User: ", answers with "Assistant: " and end with "\n"'.
  std::string Describe() const;
  std::string ToText() const;

 private:
  const std::string& begin_of(ChatRole role) const { return begins_[static_cast<size_t>(role)]; }

  std::array<std::string, kChatRoles> begins_;
  std::string end_, between_;
};

}  // namespace mxtrain::text
