// SPDX-License-Identifier: Apache-2.0
#include "app/config/bare_expressions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/config/value.h"

namespace mxtrain::config {
namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

bool IsFlowIndicator(char c) {
  return std::string_view(",[]{}").find(c) != std::string_view::npos;
}

// The first character of an anchor, a tag or an alias.
bool IsPrefix(char c) {
  return c == '&' || c == '!' || c == '*';
}

// Follows the text as a YAML reader does, as far as is needed to know what is an unquoted scalar
// and whether it is inside brackets.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  BareExpressions Run() {
    while (at_ < text_.size()) ReadLine();
    return std::move(found_);
  }

 private:
  // --- positions ---
  bool AtEnd() const { return at_ >= text_.size(); }
  bool AtLineEnd() const { return AtEnd() || text_[at_] == '\n'; }
  int Column() const { return static_cast<int>(at_ - line_start_); }
  bool BlankBefore(size_t at) const {
    return at == 0 || IsBlank(text_[at - 1]) || text_[at - 1] == '\n';
  }
  bool BlankAfter(size_t at) const {
    return at + 1 >= text_.size() || IsBlank(text_[at + 1]) || text_[at + 1] == '\n';
  }
  bool IsComment(size_t at) const { return text_[at] == '#' && BlankBefore(at); }
  bool IsColon(size_t at) const { return text_[at] == ':' && BlankAfter(at); }
  bool AtDocumentMarker() const {
    const std::string_view marker = text_.substr(at_, 3);
    return Column() == 0 && (marker == "---" || marker == "...") && BlankAfter(at_ + 2);
  }

  void Advance() {
    if (text_[at_++] == '\n') line_start_ = at_;
  }
  void SkipBlanks() {
    while (!AtEnd() && IsBlank(text_[at_])) ++at_;
  }
  void SkipWord() {
    do ++at_;
    while (!AtLineEnd() && !IsBlank(text_[at_]) && !IsFlowIndicator(text_[at_]));
  }
  void SkipLine() {
    while (!AtLineEnd()) ++at_;
    if (!AtEnd()) Advance();
  }
  // 'it''s' or "a \" b", to its end or that of the text.
  void SkipQuoted() {
    const char quote = text_[at_++];
    for (; !AtEnd(); Advance()) {
      const bool doubled =
          quote == '\'' && text_[at_] == quote && at_ + 1 < text_.size() && text_[at_ + 1] == quote;
      const bool escape = quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size();
      if (doubled || escape) {
        ++at_;
      } else if (text_[at_] == quote) {
        ++at_;
        return;
      }
    }
  }

  // One past the '}' of the expression that begins here; 0 if none does. In block style it must end
  // on its line.
  size_t ExpressionEnd(bool in_flow) {
    if (text_.substr(at_, 2) != "${") return 0;
    if (brace_ <= at_) brace_ = std::min(text_.find('}', at_), text_.size());
    if (line_end_ <= at_) line_end_ = std::min(text_.find('\n', at_), text_.size());
    return brace_ == text_.size() || (!in_flow && brace_ > line_end_) ? 0 : brace_ + 1;
  }

  void Add(size_t begin, bool in_flow, std::vector<BareExpression>* list) const {
    size_t end = at_;
    while (IsBlank(text_[end - 1])) --end;
    std::string scalar;
    for (const char c : text_.substr(begin, end - begin)) {
      const bool indentation = !scalar.empty() && scalar.back() == '\n' && IsBlank(c);
      if (!indentation && c != '\r') scalar += c;
    }
    std::replace(scalar.begin(), scalar.end(), '\n', ' ');
    list->push_back({begin, end, in_flow, std::move(scalar)});
  }

  // --- block style ---
  void ReadLine() {
    SkipBlanks();
    if (AtLineEnd()) return SkipLine();
    const bool marker = AtDocumentMarker();
    continues_ = continues_ && Column() > parent_ && !marker;
    if (marker) {
      parent_ = -1;
      at_ += 3;
    }
    if (continues_) {
      ReadPlain();
    } else if (text_[at_] == '%' && Column() == 0) {
      return SkipLine();  // a directive
    }
    if (!ReadNodes()) SkipLine();
  }

  // What is left of a line. True if it ends in a block scalar, which is skipped.
  bool ReadNodes() {
    for (;;) {
      SkipBlanks();
      if (AtLineEnd()) return false;
      if (IsComment(at_)) {
        continues_ = false;
        return false;
      }
      const char c = text_[at_];
      const int column = Column();
      const bool indicator = (c == '-' || c == '?' || c == ':') && BlankAfter(at_);
      continues_ = false;
      if (indicator) {
        if (c != ':') parent_ = column;
        ++at_;
        continue;
      }
      if (IsPrefix(c)) {
        SkipWord();
        continue;
      }
      if (c == '|' || c == '>') {
        SkipBlockScalar();
        return true;
      }
      if (c == '"' || c == '\'') {
        SkipQuoted();
      } else if (c == '{' || c == '[') {
        ReadFlow();
      } else {
        ReadPlain();
        continues_ = true;
      }
      SkipBlanks();
      if (!AtEnd() && IsColon(at_)) parent_ = column;
    }
  }

  // An unquoted scalar, or one line of it.
  void ReadPlain() {
    const size_t begin = at_;
    bool cut = false;
    while (!AtLineEnd() && !IsComment(at_) && !IsColon(at_)) {
      const size_t close = ExpressionEnd(/*in_flow=*/false);
      for (size_t i = at_; i < close; ++i) cut = cut || IsColon(i) || IsComment(i);
      at_ = std::max(close, at_ + 1);
    }
    if (cut) Add(begin, /*in_flow=*/false, &found_.list);
  }

  // Its lines are blank or indented deeper than what it belongs to.
  void SkipBlockScalar() {
    SkipLine();
    while (!AtEnd()) {
      while (!AtEnd() && text_[at_] == ' ') ++at_;
      if (!AtLineEnd() && Column() <= parent_) {
        at_ = line_start_;
        return;
      }
      SkipLine();
    }
  }

  // --- flow style: {...} and [...], over any number of lines ---
  void ReadFlow() {
    std::vector<size_t> open;
    std::vector<BareExpression> inside;
    do {
      const char c = text_[at_];
      if (c == '{' || c == '[') {
        open.push_back(at_++);
      } else if (c == '}' || c == ']') {
        if (text_[open.back()] == (c == '}' ? '{' : '[')) open.pop_back();
        ++at_;
      } else if (c == '"' || c == '\'') {
        SkipQuoted();
      } else if (IsPrefix(c)) {
        SkipWord();
      } else if (IsComment(at_)) {
        SkipLine();
      } else if (c == ',' || c == ':' || c == '?' || c == '\n' || IsBlank(c)) {
        Advance();
      } else {
        ReadFlowPlain(&inside);
      }
    } while (!open.empty() && !AtEnd());
    if (open.empty()) {
      std::move(inside.begin(), inside.end(), std::back_inserter(found_.list));
    } else if (!inside.empty()) {
      found_.open_bracket = open.back();
    }
  }

  void ReadFlowPlain(std::vector<BareExpression>* inside) {
    const size_t begin = at_;
    bool bare = false;
    while (!AtLineEnd() && !IsComment(at_) && !IsFlowIndicator(text_[at_]) && !AtFlowColon()) {
      const size_t close = ExpressionEnd(/*in_flow=*/true);
      bare = bare || close > 0;
      if (close == 0) ++at_;
      while (at_ < close) Advance();
    }
    if (bare) Add(begin, /*in_flow=*/true, inside);
  }
  bool AtFlowColon() const {
    return text_[at_] == ':' && (BlankAfter(at_) || IsFlowIndicator(text_[at_ + 1]));
  }

  const std::string_view text_;
  size_t at_ = 0, line_start_ = 0;
  int parent_ = -1;         // column of the key or indicator that the next value belongs to
  bool continues_ = false;  // an unquoted scalar may continue on the next line
  size_t brace_ = 0, line_end_ = 0;  // the next '}' and '\n', unless they are before at_
  BareExpressions found_;
};

}  // namespace

BareExpressions FindBareExpressions(std::string_view text) {
  if (text.find("${") == std::string_view::npos) return {};
  return Scanner(text).Run();
}

std::string QuoteBareExpressions(std::string text) {
  const std::vector<BareExpression> list = FindBareExpressions(text).list;
  for (auto bare = list.rbegin(); bare != list.rend(); ++bare)
    text.replace(bare->begin, bare->end - bare->begin, ToFlow(Value::Scalar(bare->scalar)));
  return text;
}

}  // namespace mxtrain::config
