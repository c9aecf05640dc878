// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversations for language models, of which the answers are learnt. Private to io.
#include <memory>
#include <string>

#include "mxtrain/base/params.h"
#include "mxtrain/io/internal/text_params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct ChatParam : Parameter<ChatParam> {
  enum Kind { kCharacters, kBytes };
  enum Format { kChatMl, kPrefixes };
  enum Learnt { kAnswers, kAll };
  std::string path, system, user, assistant, turn_end, tokenizer_file, tokenizer_text, chat_text;
  int format, learn, tokenizer;
  int64_t length;
  bool pack;
  static void Declare(Fields<ChatParam>& f) {
    using P = ChatParam;
    f.Add("path", &P::path)
        .IsPath()
        .Required()
        .Help(
            "JSON lines with a conversation each: messages of role and content, or prompt and "
            "completion");
    f.Add("format", &P::format)
        .Enum({{"chatml", kChatMl}, {"prefixes", kPrefixes}})
        .Default(kChatMl)
        .Help("what stands around the turns of a conversation: ChatML, or the texts that follow");
    f.Add("system", &P::system)
        .Default("")
        .Help("with format: prefixes, what stands before what the system says");
    f.Add("user", &P::user)
        .Default("User: ")
        .Help("with format: prefixes, what stands before a question");
    f.Add("assistant", &P::assistant)
        .Default("Assistant: ")
        .Help("with format: prefixes, what stands before an answer");
    f.Add("turn_end", &P::turn_end)
        .Default("")
        .Help(
            "with format: prefixes, what ends a turn; default: the tokenizer's end of a text "
            "before a new line, or a new line if it has none");
    f.Add("learn", &P::learn)
        .Enum({{"answers", kAnswers}, {"all", kAll}})
        .Default(kAnswers)
        .Help("which tokens count in the loss: those of answers and their ends, or all");
    f.Add("tokenizer", &P::tokenizer)
        .Enum({{"characters", kCharacters}, {"bytes", kBytes}})
        .Default(kCharacters)
        .Help("what a token is; characters are those of the training data");
    AddTokenizerFile(f, &P::tokenizer_file);
    f.Add("length", &P::length)
        .Default(0)
        .Range(0)
        .Help("tokens of an example; default: those of the net's input");
    f.Add("pack", &P::pack)
        .Default(true)
        .Help(
            "an example is several whole conversations, which do not see each other, and padding; "
            "False: one and padding");
    AddTokenizerText(f, &P::tokenizer_text);
    f.Add("chat_text", &P::chat_text)
        .Internal()
        .Default("")
        .Help("the format of the training data, which other data is read with");
  }
};

// Fields: data and label, [length] token ids each; the label is the data one token on, where that
// is to be learnt, and else -1, as at padding. With pack a second label is token_position [length]
// (token_position.h): an example is several whole conversations, packed as texts are. One that is
// longer than an example is cut at its end; one of which nothing is learnt then is skipped. Class
// names are the tokens.
//
// Throws what ReadChats throws, kData for a conversation that the tokenizer cannot encode or where
// nothing is learnt from any, kConfig for parameters that make no sense.
MXTRAIN_API std::unique_ptr<Source> NewChatSource(const ChatParam& param);

}  // namespace mxtrain::io
