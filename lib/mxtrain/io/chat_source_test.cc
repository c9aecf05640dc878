// SPDX-License-Identifier: Apache-2.0
// Conversations as rows of tokens, against rows that are put together by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "mxtrain/io/source_factory.h"
#include "mxtrain/text/tokenizer.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_checks.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::io;

std::unique_ptr<Source> OpenChats(const TempDir& dir, const std::string& lines, Kwargs kwargs) {
  dir.Write("chats.jsonl", lines);
  kwargs.emplace_back("path", dir.path("chats.jsonl"));
  kwargs.emplace_back("tokenizer", "bytes");
  return MakeSource("chat", kwargs);
}

// One conversation of a row: its bytes, and which of them are labels.
struct Learning {
  std::string text, learnt;  // learnt: a byte for each that is predicted, '.' where it is ignored
  auto operator<=>(const Learning&) const = default;
};

std::vector<Learning> ReadRows(const Source& source) {
  std::vector<Learning> all;
  Sample sample;
  for (int64_t i = 0; i < source.size(); ++i) {
    source.Read(i, &sample);
    const auto data = sample.data[0].values, label = sample.labels[0].values,
               position = sample.labels[1].values;
    for (size_t k = 0; k < data.size(); ++k) {
      if (position[k] < 0) {
        CHECK(label[k] == -1);
        continue;
      }
      if (position[k] == 0) all.emplace_back();
      CHECK(position[k] == static_cast<float>(all.back().text.size()));
      all.back().text += static_cast<char>(data[k]);
      all.back().learnt += label[k] < 0 ? '.' : static_cast<char>(label[k]);
    }
  }
  std::ranges::sort(all);
  return all;
}

std::string Dots(const std::string& text) {
  return std::string(text.size(), '.');
}

const std::string kQuestion = "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n";

}  // namespace

TEST_CASE("of a conversation the answers and their ends are learnt") {
  const TempDir dir;
  const std::string one = R"({"messages": [{"role": "user", "content": "q"}, )"
                          R"({"role": "assistant", "content": "one"}]})",
                    pair = R"({"prompt": "q", "completion": "two", "id": 3})",
                    shared =
                        R"([{"from": "human", "value": "q"}, {"from": "gpt", "value": "six"}])";
  const auto source =
      OpenChats(dir, one + "\n\n" + pair + "\r\n" + shared + "\n", {{"length", "150"}});
  std::vector<Learning> wanted;
  for (const char* answer : {"one", "two", "six"}) {
    const std::string learnt = answer + std::string("<|im_end|>");
    wanted.push_back({kQuestion + learnt, Dots(kQuestion).substr(1) + learnt + "."});
  }
  std::ranges::sort(wanted);
  CHECK(ReadRows(*source) == wanted);
  CHECK(source->size() == 2);  // two conversations of 64 in the first row
  CHECK(source->Name(0).ends_with("chats.jsonl:1 and others"));
  CHECK(source->num_tokens() == 256);
}

TEST_CASE("several turns, a system, and answers that are not learnt") {
  const TempDir dir;
  const std::string line =
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, )"
      R"({"role": "assistant", "content": "no", "weight": 0}, {"role": "user", "content": )"
      R"([{"type": "text", "text": "b"}, {"text": "c"}]}, {"role": "assistant", "content": "yes"}]})";
  const Kwargs prefixes = {{"length", "90"},
                           {"format", "prefixes"},
                           {"system", "S:"},
                           {"user", "Q:"},
                           {"assistant", "A:"}};
  // Bytes have no end of a text, so that a line ends a turn.
  const std::string before = "S:s\nQ:a\nA:no\nQ:bc\nA:", text = before + "yes\n";
  const auto source = OpenChats(dir, line, prefixes);
  CHECK(ReadRows(*source) ==
        std::vector<Learning>{{text.substr(0, text.size() - 1), Dots(before).substr(1) + "yes\n"}});
  Kwargs all = prefixes;
  all.emplace_back("learn", "all");
  CHECK(ReadRows(*OpenChats(dir, line, all)) ==
        std::vector<Learning>{{text.substr(0, text.size() - 1), text.substr(1)}});
  Kwargs ended = prefixes;
  ended.emplace_back("turn_end", "#");
  CHECK(ReadRows(*OpenChats(dir, line, ended))[0].text == "S:s#Q:a#A:no#Q:bc#A:yes");
}

TEST_CASE("conversations in rows of their own") {
  const TempDir dir;
  const std::string lines = R"({"prompt": "q", "completion": "a"}
{"prompt": "qq", "completion": "b"})";
  const auto source = OpenChats(dir, lines,
                                {{"length", "9"},
                                 {"format", "prefixes"},
                                 {"user", "Q"},
                                 {"assistant", "A"},
                                 {"pack", "False"}});
  REQUIRE(source->size() == 2);
  CHECK(source->label_fields().size() == 1);
  CHECK(source->ignores_labels());
  Sample sample;
  source->Read(1, &sample);
  const std::string data("Qqq\nAb\0\0\0", 9);
  CHECK(std::ranges::equal(sample.data[0].values, data));
  CHECK(std::ranges::equal(sample.labels[0].values,
                           std::vector<float>{-1, -1, -1, -1, 'b', '\n', -1, -1, -1}));
}

TEST_CASE("other data is read as the training data was") {
  const TempDir dir;
  const auto train =
      OpenChats(dir, R"({"prompt": "q", "completion": "a"})",
                {{"length", "9"}, {"format", "prefixes"}, {"user", "Q"}, {"assistant", "A"}});
  Kwargs carried = train->found();
  carried.emplace_back("length", "9");
  carried.emplace_back("path", dir.path("chats.jsonl"));
  CHECK(ReadRows(*MakeSource("chat", carried)) == ReadRows(*train));
}

TEST_CASE("a conversation longer than a row is cut at its end, or skipped") {
  const TempDir dir;
  const std::string lines = R"({"prompt": "q", "completion": "a long answer"}
{"prompt": "a long question", "completion": "a"})";
  const Kwargs prefixes = {
      {"length", "5"}, {"format", "prefixes"}, {"user", "Q"}, {"assistant", "A"}};
  const auto source = OpenChats(dir, lines, prefixes);
  CHECK(ReadRows(*source) == std::vector<Learning>{{"Qq\nAa", "...a "}});
  REQUIRE(source->warnings().size() == 2);
  CheckHas(source->warnings()[0], "2 conversations are longer than 5 tokens and cut");
  CheckHas(source->warnings()[1],
           "a conversation is skipped, of which nothing is learnt (first: line 2)");
}

TEST_CASE("text of an answer is no special token") {
  const TempDir dir;
  const auto source =
      OpenChats(dir, R"({"prompt": "q", "completion": "a<|im_end|>b"})", {{"length", "90"}});
  CheckHas(source->warnings().at(0), "an answer holds what ends a turn");
  CHECK(ReadRows(*source)[0].text.ends_with("a<|im_end|>b<|im_end|>"));
}

TEST_CASE("what is no conversation is named with its line") {
  const TempDir dir;
  const auto why = [&dir](const std::string& line) {
    return MessageOf([&] {
      OpenChats(dir,
                R"({"prompt": "q", "completion": "a"})"
                "\n" +
                    line,
                {{"length", "9"}});
    });
  };
  const std::map<std::string, std::string> kWrong = {
      {"{", "chats.jsonl:2: it is not JSON"},
      {"7", "chats.jsonl:2: it is no conversation; expected"},
      {"[]", "its messages are no list of some"},
      {"[7]", "message 1 is not an object"},
      {R"([{"content": "x"}])", "message 1 has no role"},
      {R"([{"role": "tool", "content": "x"}])", "message 1 has the role 'tool'; expected system"},
      {R"([{"role": "user", "content": null}])", "message 1 has no content"},
      {R"([{"role": "user", "content": 7}])", "message 1 has a content that is no text"},
      {R"([{"role": "user", "content": [{"image": 7}]}])", "message 1 has a part that is no text"},
      {R"([{"role": "user", "content": "x", "weight": "y"}])",
       "message 1 has a weight of another type"},
      {R"({"prompt": "x", "completion": 7})", "it is no conversation"}};
  for (const auto& [line, message] : kWrong) {
    CAPTURE(line);
    CheckHas(why(line), message);
  }
}

TEST_CASE("JSON lines of conversations are told from those of texts with classes") {
  const TempDir dir;
  const auto kind_of = [&dir](const std::string& text) {
    dir.Write("some.jsonl", text);
    const RecognizedSource found = RecognizeSource(dir.path("some.jsonl"), "");
    return found.kind ? found.kind->name : "";
  };
  CHECK(kind_of(R"({"messages": [{"role": "user", "content": "x"}]})") == "chat");
  CHECK(kind_of(R"({"messages": [{"role": ")" + std::string(100'000, 'x')) == "chat");
  CHECK(kind_of(R"([{"from": "human", "value": "x"}])") == "chat");
  CHECK(kind_of(R"({"prompt": "x", "response": "y"})") == "chat");
  CHECK(kind_of(R"({"text": "x", "label": "y"})") == "labelled_text");
  CHECK(kind_of(R"({"prompt": "x", "label": "y"})") == "labelled_text");
  CHECK(kind_of("[1, 2]") == "labelled_text");
}

}  // namespace mxtrain::test
