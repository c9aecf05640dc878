// SPDX-License-Identifier: Apache-2.0
#include "app/report/text_width.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace mxtrain::report {
namespace {

size_t Longest(const std::string& text) {
  std::istringstream lines(text);
  size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

// Without backslashes and the '#' of comments.
std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    if (word != "\\" && word != "#") words.push_back(word);
  }
  return words;
}

TEST_CASE("help: long lines continue below the text of their last column") {
  CHECK(Fitted("  -q,--quiet     no messages but warnings and errors, of which a run\n", 50) ==
        "  -q,--quiet     no messages but warnings and\n"
        "                 errors, of which a run\n");
  // A column that leaves no room is none.
  CHECK(Fitted("  a name that takes all of the room  and its text behind it\n", 50) ==
        "  a name that takes all of the room  and its text\n"
        "      behind it\n");
  CHECK(Fitted("                 the rest of a description that is too long itself\n", 50) ==
        "                 the rest of a description that is\n"
        "                 too long itself\n");
  CHECK(Fitted("                              the rest of a description that is too long\n", 50) ==
        "      the rest of a description that is too long\n");
  CHECK(Fitted("                              the rest of a description that is too long itself\n",
               50) ==
        "      the rest of a description that is too long\n"
        "      itself\n");
  CHECK(Fitted("  train.key (text: with a long explanation of what it is for)\n", 50) ==
        "  train.key (text: with a long explanation of what\n"
        "      it is for)\n");
  CHECK(Fitted("  - an item of a list that is longer than the fifty columns\n", 50) ==
        "  - an item of a list that is longer than the\n"
        "    fifty columns\n");
}

TEST_CASE("help: commands stay commands, code and short lines stay as they are") {
  CHECK(Fitted("  mxtrain infer runs/latest photos --top-k 3 --output predicted.csv\n", 50) ==
        "  mxtrain infer runs/latest photos --top-k 3 \\\n"
        "      --output predicted.csv\n");
  CHECK(Fitted("    mxtrain nets        # the nets, with parameters, work and memory\n", 50) ==
        "    mxtrain nets        # the nets, with\n"
        "                        # parameters, work and\n"
        "                        # memory\n");
  const std::string code = "    - Convolution: {name: stem, num_filter: 16, kernel: 3, pad: 1}\n";
  CHECK(Fitted(code, 50) == code);
  const std::string word = "  https://example.com/" + std::string(60, 'x') + " is long\n";
  CHECK(Fitted(word, 50).starts_with("  https://example.com/" + std::string(60, 'x') + "\n"));
  CHECK(Fitted("short\n\n  lines \n", 50) == "short\n\n  lines \n");
  CHECK(Fitted("no end of line", 50) == "no end of line\n");
  CHECK(Fitted("", 50).empty());
  // Columns are characters, not bytes.
  std::string umlauts;
  for (int i = 0; i < 50; ++i) umlauts += "\xc3\xbc";
  CHECK(Fitted(umlauts + "\n", 50) == umlauts + "\n");
}

TEST_CASE("help: paragraphs are filled, tables and code between them are not") {
  CHECK(Refilled("A paragraph of\nshort lines, which are\njoined first.\n\n  name  value\n  b  "
                 "c\nThe end\nof it.\n",
                 30) ==
        "A paragraph of short lines,\nwhich are joined first.\n\n  name  value\n  b  c\nThe end of "
        "it.\n");
}

TEST_CASE("help: no word is lost at any width") {
  const std::string text =
      "Usage: mxtrain infer [OPTIONS] model inputs... with more words behind than fit\n"
      "  -a,--all               what all of it is good for, in more words than one line has\n"
      "  mxtrain infer a b c --option-of-some-length value --another-option  # what this does "
      "here\n"
      "      deep text that goes on and on, and on, and on, and on, and on, and on and on\n";
  for (size_t columns = 44; columns < 130; ++columns) {
    CAPTURE(columns);
    const std::string fitted = Fitted(text, columns), filled = Refilled(text, columns);
    CHECK(Longest(fitted) <= columns);
    CHECK(WordsOf(fitted) == WordsOf(text));
    CHECK(WordsOf(filled) == WordsOf(text));
  }
  for (size_t columns = 1; columns < 44; ++columns)
    CHECK(WordsOf(Fitted(text, columns)) == WordsOf(text));
}

TEST_CASE("names of tables are shortened in the middle, by what a terminal shows") {
  CHECK(NameInColumns("a_rather_long_class_2026", 24) == "a_rather_long_class_2026");
  CHECK(NameInColumns("a_rather_long_class_2026", 14) == "a_rathe\u2026s_2026");
  CHECK(NameInColumns("шляпа с полями", 14) == "шляпа с полями");
  CHECK(NameInColumns("帽子帽子帽子帽子", 9) == "帽子\u2026帽子");
  CHECK(NameInColumns("帽子帽子帽子帽子", 16) == "帽子帽子帽子帽子");
  CHECK(NameInColumns("", 2).empty());
  CHECK(NameInColumns("abc", 2) == "a\u2026");
}

}  // namespace
}  // namespace mxtrain::report
