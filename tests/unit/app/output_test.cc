// SPDX-License-Identifier: Apache-2.0
// Untrusted names in terminal output and spreadsheets.
#include "app/report/output.h"

#include <doctest/doctest.h>

#include "app/config/diagnostic.h"

namespace mxtrain::report {
namespace {

TEST_CASE("names cannot control a terminal") {
  CHECK(Printable("caf\u00e9 \u732b.png") == "caf\u00e9 \u732b.png");
  CHECK(Printable("a\nb\rc\td") == "a\\nb\\rc\\td");
  CHECK(Printable(std::string("x\0y", 3)) == "x\\x00y");
  CHECK(Printable("\x1b[2J\x7f") == "\\x1b[2J\\x7f");
  CHECK(Printable("\u009b31m") == "\\x9b31m");  // a control character of two bytes
  CHECK(Printable("safe\u202egpj.exe") == "safe\\u202egpj.exe");  // turns the direction of writing
  CHECK(Printable("a\u2028b") == "a\\u2028b");                    // ends a line
  CHECK(Printable("\xff\xc3(\xe2\x82") == "\\xff\\xc3(\\xe2\\x82");  // invalid UTF-8, and truncated
  // Longer than it must be, and half a pair.
  CHECK(Printable("\xc0\x8a\xed\xa0\x80") == "\\xc0\\x8a\\xed\\xa0\\x80");
  CHECK(PrintableLines("one\n  two\x1b[0m\tthree\r\n") == "one\n  two\\x1b[0m\tthree\\r\n");
  CHECK(PrintableLines("") == "");
}

TEST_CASE("no line of a message is huge") {
  CHECK(MessageText("one\n\x1b two\n") == "one\n\\x1b two\n");
  const std::string text =
      MessageText("name " + std::string(1 << 20, 'x') + ": cannot open it\nsecond");
  CHECK(text.size() < 2100);
  CHECK(text.starts_with("name xxx"));
  CHECK(text.ends_with("xxx: cannot open it\nsecond"));
}

TEST_CASE(
    "a diagnostic shows control characters of names and values escaped, and keeps its own lines") {
  config::SourceMap sources;
  const int file = sources.AddFile("a\x1b.yaml", "k\u202e: \x1b[31m\u009b\n", ".");
  const config::Diagnostic diagnostic{config::Severity::kError,
                                      {file, 1, 7, 4},
                                      "no '\x1b[31m\nerror: \u009b'",
                                      "try '\a'",
                                      {"in '\r'"}};
  CHECK(config::Render(diagnostic, sources) ==
        "a\\x1b.yaml:1:5: error: no '\\x1b[31m\\nerror: \\x9b'\n"
        "    1 | k\\u202e: \\x1b[31m\\x9b\n"
        "      |          ^~~~~~~\n"
        "      note: in '\\r'\n"
        "      help: try '\\x07'\n");
}

TEST_CASE("a CSV field is text, not a formula, in a spreadsheet") {
  CHECK(QuoteCsv("plain") == "plain");
  CHECK(QuoteCsv("a,b") == "\"a,b\"");
  CHECK(QuoteCsv("say \"x\"\n") == "\"say \"\"x\"\"\n\"");
  CHECK(QuoteCsv("=1+1") == "'=1+1");
  CHECK(QuoteCsv("@SUM(A1),2") == "\"'@SUM(A1),2\"");
  CHECK(QuoteCsv("+cmd") == "'+cmd");
  CHECK(QuoteCsv("-x.png") == "'-x.png");
  CHECK(QuoteCsv("\t=1") == "'\t=1");
  CHECK(QuoteCsv("\r=1") == "\"'\r=1\"");
  CHECK(QuoteCsv("a=b") == "a=b");
  for (const char* number : {"-1", "+1", "-0.5e-3", "+2e5"}) CHECK(QuoteCsv(number) == number);
  CHECK(QuoteCsv("-1-1") == "'-1-1");
  CHECK(QuoteCsv("+-1") == "'+-1");
}

}  // namespace
}  // namespace mxtrain::report
