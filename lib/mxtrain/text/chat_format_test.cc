// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/chat_format.h"

#include <doctest/doctest.h>

#include "tests/support/error_message.h"
#include "tests/support/text_checks.h"

namespace mxtrain::text {
namespace {

std::string TextOf(const Tokenizer& tokenizer, const Ids& ids, size_t begin, size_t end) {
  return tokenizer.Decode(std::span(ids).subspan(begin, end - begin));
}

}  // namespace

TEST_CASE("ChatML") {
  const TokenizerPtr bytes = MakeByteTokenizer();
  const ChatFormat chat = ChatFormat::ChatMl();
  Ids ids;
  chat.Encode(*bytes, {ChatRole::kSystem, "be brief"}, &ids);
  chat.Encode(*bytes, {ChatRole::kUser, "what?"}, &ids);
  const auto learnt = chat.Encode(*bytes, {ChatRole::kAssistant, "that"}, &ids);
  CHECK(bytes->Decode(ids) ==
        "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nwhat?<|im_end|>\n"
        "<|im_start|>assistant\nthat<|im_end|>\n");
  CHECK(TextOf(*bytes, ids, learnt.begin, learnt.end) == "that<|im_end|>");
  // What an answer follows is what stands before one that is learnt.
  Ids asked;
  chat.Encode(*bytes, {ChatRole::kSystem, "be brief"}, &asked);
  chat.Encode(*bytes, {ChatRole::kUser, "what?"}, &asked);
  chat.BeginAnswer(*bytes, &asked);
  CHECK(asked == Ids(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(learnt.begin)));
}

TEST_CASE("special tokens are markers, and in contents text") {
  const TokenizerPtr tokenizer = TokenizerFromText(
      R"({"version": "1.0", "added_tokens": [
            {"id": 4, "content": "<end>", "special": true, "single_word": false, "lstrip": false,
             "rstrip": false, "normalized": false}],
          "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
          "trim_offsets": false, "use_regex": true}, "post_processor": null,
          "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false,
          "use_regex": true},
          "model": {"type": "BPE", "dropout": null, "unk_token": null,
          "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false,
          "byte_fallback": false, "vocab": {"<": 0, ">": 1, "e": 2, "n": 3, "d": 5, "A": 6},
          "merges": []}})",
      "small.json");
  const ChatFormat chat({"", "", "A"}, "<end>", "");
  Ids ids;
  const auto learnt = chat.Encode(*tokenizer, {ChatRole::kAssistant, "n<end>"}, &ids);
  CHECK(ids == Ids{6, 3, 0, 2, 3, 5, 1, 4});
  CHECK(learnt.begin == 1);
  CHECK(learnt.end == 8);
}

TEST_CASE("a format is a text") {
  const ChatFormat chat({"S", "Q\n", "\"A\" "}, "\xe2\x80\xa6", "\n");
  const ChatFormat other = ChatFormat::FromText(chat.ToText(), "x");
  CHECK(other.ToText() == chat.ToText());
  CHECK(other.end() == "\xe2\x80\xa6");
  const auto why = [](const std::string& text) {
    return test::MessageOf([&] { ChatFormat::FromText(text, "run"); });
  };
  test::CheckHas(why("{}"), "run: the key 'chat_format' is missing");
  test::CheckHas(why(R"({"chat_format": 2})"), "the version 2 is unknown");
  test::CheckHas(why(R"({"chat_format": 1, "system": "", "user": "", "assistant": "", "end": ""})"),
                 "run: end: it is empty");
}

TEST_CASE("names of roles") {
  CHECK(ChatRoleOf("developer") == ChatRole::kSystem);
  CHECK(ChatRoleOf("human") == ChatRole::kUser);
  CHECK(ChatRoleOf("gpt") == ChatRole::kAssistant);
  CHECK(!ChatRoleOf("tool"));
  CHECK(!ChatRoleOf(""));
}

}  // namespace mxtrain::text
