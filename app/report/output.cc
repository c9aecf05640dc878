// SPDX-License-Identifier: Apache-2.0
#include "app/report/output.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"

namespace mxtrain::report {
namespace {

bool LooksLikeFormula(const std::string& text) {
  if (text.find_first_of("=+-@\t\r") != 0) return false;
  const char* begin = text.data() + (text[0] == '+' && !text.starts_with("+-") ? 1 : 0);
  double number = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error != std::errc() || end != text.data() + text.size();
}

}  // namespace

std::string JsonText(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string MessageText(std::string_view text) {
  constexpr size_t kLongestLine = 2000;
  std::string message;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    message += PrintableLines(Shortened(text.substr(begin, end - begin), kLongestLine));
    if (end < text.size()) message += '\n';
    begin = end + 1;
  }
  return message;
}

std::string ListedName(const std::string& name) {
  return isatty(STDOUT_FILENO) != 0 ? Printable(name) : name;
}

std::string ValidUtf8(const std::string& text) {
  return IsUtf8(text) ? text : Json::parse(JsonText(Json(text))).get<std::string>();
}

std::string QuoteCsv(const std::string& text) {
  const std::string harmless = LooksLikeFormula(text) ? "'" + text : text;
  if (harmless.find_first_of(",\"\r\n") == std::string::npos) return harmless;
  std::string quoted = "\"";
  for (char c : harmless) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string NameAndReason(const std::string& name, const std::string& reason) {
  return reason.find(name) == std::string::npos ? name + ": " + reason : reason;
}

void FlushResults() {
  errno = 0;
  const bool written = static_cast<bool>(std::cout.flush()),
             arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written && arrived) return;
  Throw(ErrorKind::kFileSystem, "cannot write the results to stdout{}",
        errno ? ": " + ReasonOf(errno) : "");
}

std::string FormatDuration(double seconds) {
  const int64_t s = std::llround(std::max(seconds, 0.0));
  return s >= 3600 ? format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : format("{}:{:02}", s / 60, s % 60);
}

std::string FormatNumber(double value) {
  const double magnitude = std::abs(value);
  if (value == 0 || !std::isfinite(value)) return format("{}", value);
  if (magnitude >= 1e7 || magnitude < 1e-4) return format("{:.3e}", value);
  const int digits = magnitude >= 1000   ? 0
                     : magnitude >= 100  ? 1
                     : magnitude >= 10   ? 2
                     : magnitude >= 0.01 ? 4
                                         : 6;
  return format("{:.{}f}", value, digits);
}

}  // namespace mxtrain::report
