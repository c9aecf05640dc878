// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversations in JSON lines. Private to io.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/text/chat_format.h"

namespace mxtrain::io {

struct Chat {
  std::vector<text::ChatTurn> turns;
  std::vector<bool> is_learnt;  // of each turn: an answer whose weight is not 0
  int64_t line = 0;             // from 1
};

// A conversation in each line that is not empty:
//   {"messages": [{"role": "user", "content": "..."}, ...]}, or "conversations" of "from" and
//   "value", or such a list by itself; a content may be a list of {"type": "text", "text": ...}
//   {"prompt": "...", "completion": "..."}, or "response": a question and its answer
// Of a message with "weight": 0 nothing is learnt. Other keys are ignored. Throws kFileSystem for a
// file that is not there, kData with file and line for anything else, and for other roles by name.
std::vector<Chat> ReadChats(const std::string& path);

// Whether the beginning of a file is a conversation of these forms.
bool BeginsAsChat(std::string_view text);

}  // namespace mxtrain::io
