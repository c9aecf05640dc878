// SPDX-License-Identifier: Apache-2.0
#include "app/config/diagnostic.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "app/config/printable.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/text.h"

namespace mxtrain::config {
namespace {

const char* NameOf(Severity severity) {
  return severity == Severity::kError ? "error" : "warning";
}

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// Characters of UTF-8 text.
int CountCharacters(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

// Blanks as wide as `text` on a terminal; tabs stay tabs.
std::string BlanksLike(std::string_view text) {
  std::string blanks;
  for (char c : text) {
    if (!IsContinuation(c)) blanks += c == '\t' ? '\t' : ' ';
  }
  return blanks;
}

int ColumnInCharacters(const Place& place, const SourceMap& sources) {
  const size_t before = static_cast<size_t>(std::max(0, place.column - 1));
  const std::string_view line = sources.Line(place.file, place.line);
  return 1 + CountCharacters(line.substr(0, before)) +
         static_cast<int>(before - std::min(before, line.size()));
}

// Longest text of a diagnostic, and longest line of a source that is shown whole.
constexpr size_t kLongestText = 1000, kLongestLine = 200;

// The part of a line that is shown.
struct Excerpt {
  std::string_view before, marked, after;  // the place is `marked`
  bool begins = true, ends = true;         // with the line

  std::string Text() const {
    return (begins ? "" : "...") + PrintableLines(before) + PrintableLines(marked) +
           PrintableLines(after) + (ends ? "" : "...");
  }
  std::string Underline() const {
    return (begins ? "" : "   ") + BlanksLike(PrintableLines(before)) + "^" +
           std::string(
               static_cast<size_t>(std::max(0, CountCharacters(PrintableLines(marked)) - 1)), '~');
  }
};

// A long line is shown from a little before the place.
Excerpt ExcerptOf(std::string_view line, const Place& place) {
  constexpr size_t kBefore = 60;
  const auto boundary = [line](size_t at) {  // of characters, at or before
    while (at > 0 && at < line.size() && IsContinuation(line[at])) --at;
    return std::min(at, line.size());
  };
  const size_t at = std::min(line.size(), static_cast<size_t>(std::max(0, place.column - 1)));
  size_t end = std::min(line.size(), at + static_cast<size_t>(std::max(0, place.length)));
  while (end > at && end < line.size() && IsContinuation(line[end])) ++end;
  const bool whole = line.size() <= kLongestLine;
  const size_t first = whole ? 0 : boundary(at - std::min(at, kBefore)),
               last = whole ? line.size() : boundary(first + kLongestLine),
               marked = std::min(end, last);
  return {line.substr(first, at - first), line.substr(at, marked - at),
          line.substr(marked, last - marked), first == 0, last == line.size()};
}

// `before`: what precedes the message. The line breaks between the parts are the only ones.
std::string RenderAfter(const std::string& before, const Diagnostic& d, const SourceMap& sources) {
  const std::string message = before + Printable(d.message) + "\n";
  std::string text;
  if (d.place) {
    const Excerpt line = ExcerptOf(sources.Line(d.place.file, d.place.line), d.place);
    text = format("{}:{}:{}: {}", Printable(sources.Name(d.place.file)), d.place.line,
                  ColumnInCharacters(d.place, sources), message);
    text += format("{:>5} | {}\n      | {}\n", d.place.line, line.Text(), line.Underline());
  } else {
    text = message;
  }
  for (const std::string& note : d.notes) text += format("      note: {}\n", Printable(note));
  if (!d.help.empty()) text += format("      help: {}\n", Printable(d.help));
  return text;
}

}  // namespace

std::string Render(const Diagnostic& d, const SourceMap& sources) {
  return RenderAfter(format("{}: ", NameOf(d.severity)), d, sources);
}

std::string RenderForLog(const Diagnostic& d, const SourceMap& sources) {
  std::string text = RenderAfter("", d, sources);
  text.pop_back();
  return text;
}

std::string Render(std::span<const Diagnostic> diagnostics, const SourceMap& sources) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += Render(diagnostic, sources);
  return text;
}

std::string RenderJson(std::span<const Diagnostic> diagnostics, const SourceMap& sources) {
  Json list = Json::array();
  for (const Diagnostic& d : diagnostics) {
    Json entry;
    entry["severity"] = NameOf(d.severity);
    entry["file"] = d.place ? Json(sources.Name(d.place.file)) : Json();
    entry["line"] = d.place.line;
    entry["column"] = d.place ? ColumnInCharacters(d.place, sources) : 0;
    entry["length"] = d.place.length;
    entry["message"] = d.message;
    entry["help"] = d.help;
    entry["notes"] = d.notes;
    list.push_back(std::move(entry));
  }
  return list.dump(2, ' ', false, Json::error_handler_t::replace);
}

DiagnosticError::DiagnosticError(std::vector<Diagnostic> diagnostics,
                                 std::shared_ptr<const SourceMap> sources)
    : Error(ErrorKind::kConfig, Render(diagnostics, *sources)),
      diagnostics_(std::move(diagnostics)),
      sources_(std::move(sources)) {}

void Diagnostics::Error(const Place& place, std::string message, std::string help,
                        std::vector<std::string> notes) {
  Add({Severity::kError, place, std::move(message), std::move(help), std::move(notes)});
}

void Diagnostics::Warning(const Place& place, std::string message, std::string help,
                          std::vector<std::string> notes) {
  Add({Severity::kWarning, place, std::move(message), std::move(help), std::move(notes)});
}

void Diagnostics::Add(Diagnostic diagnostic) {
  int& count = diagnostic.severity == Severity::kError ? num_errors_ : num_warnings_;
  if (count == kMost) return;
  diagnostic.message = Shortened(diagnostic.message, kLongestText);
  diagnostic.help = Shortened(diagnostic.help, kLongestText);
  found_.push_back(std::move(diagnostic));
  if (++count < kMost || &count == &num_warnings_) return;
  found_.push_back(
      {Severity::kError, {}, format("stopped after {} errors", kMost), "fix these first", {}});
  ThrowIfErrors();
}

std::vector<Diagnostic> Diagnostics::Sorted() const {
  std::vector<Diagnostic> sorted;
  for (const Diagnostic& d : found_) {
    const bool known = std::any_of(sorted.begin(), sorted.end(), [&](const Diagnostic& other) {
      return other.place == d.place && other.message == d.message;
    });
    if (!known) sorted.push_back(d);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return a.place < b.place; });
  return sorted;
}

std::vector<Diagnostic> Diagnostics::TakeWarnings() {
  std::vector<Diagnostic> warnings = Sorted();
  const auto is_error = [](const Diagnostic& d) { return d.severity == Severity::kError; };
  std::erase_if(warnings, is_error);
  std::erase_if(found_, std::not_fn(is_error));
  num_warnings_ = 0;
  return warnings;
}

void Diagnostics::ThrowIfErrors() const {
  if (num_errors_ > 0) throw DiagnosticError(Sorted(), sources_);
}

}  // namespace mxtrain::config
