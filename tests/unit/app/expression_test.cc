// SPDX-License-Identifier: Apache-2.0
#include "app/config/expression.h"

#include <doctest/doctest.h>

#include "mxtrain/base/format.h"

namespace mxtrain::config {
namespace {

Names SomeNames() {
  Names names;
  names.lookup = [](std::string_view name) -> std::optional<Constant> {
    if (name == "width") return int64_t{64};
    if (name == "deep") return true;
    if (name == "mode") return std::string("max");
    return std::nullopt;
  };
  names.known = [] { return std::vector<std::string>{"width", "deep", "mode"}; };
  return names;
}
std::string Value_(const char* text) {
  return ToText(Evaluate(text, SomeNames()));
}

TEST_CASE("expressions: precedence, types and functions") {
  CHECK(Value_("1 + 2 * 3") == "7");
  CHECK(Value_("(1 + 2) * 3") == "9");
  CHECK(Value_("2 - 3 - 4") == "-5");
  CHECK(Value_("-2 * -3") == "6");
  CHECK(Value_("7 / 2") == "3.5");
  CHECK(Value_("8 / 2") == "4");
  CHECK(Value_("7 // 2") == "3");
  CHECK(Value_("-7 // 2") == "-4");
  CHECK(Value_("-7 % 3") == "2");
  CHECK(Value_("7.5 % 2") == "1.5");
  CHECK(Value_("4 * width") == "256");
  CHECK(Value_("width == 64 and deep") == "true");
  CHECK(Value_("not deep or width > 100") == "false");
  CHECK(Value_("1 < 2 && !(2 <= 1)") == "true");
  CHECK(Value_("deep ? 'a' : 'b'") == "a");
  CHECK(Value_("width > 64 ? 1 : width == 64 ? 2 : 3") == "2");
  CHECK(Value_("mode == 'max'") == "true");
  CHECK(Value_("min(3, 1, 2) + max(1, 2.5)") == "3.5");
  CHECK(Value_("int(2.9) + floor(-0.5) + ceil(0.1) + round(0.5) + abs(-3)") == "6");
  CHECK(Value_("sqrt(0.0625) + sqrt(9)") == "3.25");
  CHECK(Value_("'a' + 'b'") == "ab");
  CHECK(Value_("1e-3") == "0.001");
}

std::string Failure(const char* text) {
  try {
    Evaluate(text, SomeNames());
  } catch (const ExpressionError& error) {
    return std::to_string(error.offset) + ": " + error.message +
           (error.help.empty() ? "" : "; " + error.help);
  }
  return "";
}

TEST_CASE("expressions: what is wrong and where") {
  CHECK(Failure("4 * widht") == "4: there is no 'widht' here; did you mean 'width'?");
  CHECK(Failure("1 / 0") == "2: division by zero");
  CHECK(Failure("1 % 0") == "2: division by zero");
  CHECK(Failure("1 +") == "3: the expression ends too early");
  CHECK(Failure("(1 + 2") == "6: expected ')'");
  CHECK(Failure("1 2") == "2: unexpected '2'");
  CHECK(Failure("mode * 2") == "5: '*' needs numbers, got a text");
  CHECK(Failure("mode == 1") == "5: cannot compare a text with an integer");
  CHECK(Failure("9223372036854775807 + 1") == "20: the integer is too large");
  CHECK(Failure("pow(2, 3)").starts_with("0: there is no function 'pow'"));
  CHECK(Failure(std::string(1000, '(').c_str()).ends_with("the expression is nested too deeply"));
  CHECK(Failure((std::string(100000, '-') + "1").c_str())
            .ends_with("the expression is nested too deeply"));
}

TEST_CASE("expressions do not expand short texts into long ones") {
  const std::string half(kMaxAddedText / 2, 'a');
  CHECK(Value_(format("'{}' + '{}'", half, half).c_str()).size() == kMaxAddedText);
  CHECK(Failure(format("'{}' + '{}b'", half, half).c_str())
            .ends_with("the text grows to 1025 bytes; expressions may add 1024"));
  const auto expand = [](const std::string& text, const std::string& mode) {
    Names names;
    names.lookup = [&mode](std::string_view) { return std::optional<Constant>(mode); };
    try {
      return Expand(Value::Scalar(text), names).text;
    } catch (const ExpressionError& error) {
      return format("{} to {}: {}", error.offset, error.offset + error.length, error.message);
    }
  };
  CHECK(expand("long ${mode} ${mode}", half).size() == 2 * half.size() + 6);
  CHECK(expand("${mode} ${mode} ${mode}", half) ==
        "16 to 23: the text grows to 1538 bytes; expressions may add 1024");
  CHECK(expand("${mode}", half + half + half) ==
        "0 to 7: the text grows to 1536 bytes; expressions may add 1024");
  // What was written may be long.
  CHECK(expand(half + half + half + "${mode}", half).size() == 4 * half.size());
}

TEST_CASE("expressions inside scalars") {
  const Names names = SomeNames();
  CHECK(Expand(Value::Scalar("${width * 2}"), names).AsInteger() == 128);
  CHECK(Expand(Value::Scalar("conv${width}_${deep}"), names).text == "conv64_true");
  CHECK_FALSE(Expand(Value::Scalar("1${width}"), names).AsInteger());  // joined parts are a text
  CHECK(Expand(Value::Scalar("plain"), names).text == "plain");
  CHECK_THROWS_AS(Expand(Value::Scalar("${width"), names), ExpressionError);
  CHECK(IsEnvironmentReference("HOME"));
  CHECK(IsEnvironmentReference("data_dir:-/tmp"));
  CHECK_FALSE(IsEnvironmentReference("width"));
  CHECK_FALSE(IsEnvironmentReference("WIDTH * 2"));
  CHECK_FALSE(IsEnvironmentReference("a ? b :-1"));
}

}  // namespace
}  // namespace mxtrain::config
