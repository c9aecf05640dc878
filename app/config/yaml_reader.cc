// SPDX-License-Identifier: Apache-2.0
// The only user of the YAML library: turns its events into values with places.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <deque>
#include <map>
#include <sstream>
#include <utility>

#include "app/config/bare_expressions.h"
#include "app/config/document.h"

namespace mxtrain::config {
namespace {

// With aliases expanded; a net of a thousand layers has a tenth of this.
constexpr int kMaxNodes = 100'000;
// Bytes of scalars and keys that anchors and aliases may copy.
constexpr size_t kMaxCopiedText = size_t{1} << 24;

struct Extent {
  int nodes = 0;
  size_t text = 0;
};

void Measure(const Value& value, Extent* extent) {
  ++extent->nodes;
  extent->text += value.text.size();
  for (const Value& item : value.list) Measure(item, extent);
  for (const Member& m : value.members) {
    extent->text += m.key.size();
    Measure(m.value, extent);
  }
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(int file, Diagnostics* diagnostics)
      : file_(file), diagnostics_(*diagnostics), text_(diagnostics->sources().Text(file)) {
    line_starts_.push_back(0);
    for (size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '\n') line_starts_.push_back(i + 1);
    }
  }

  Value TakeRoot() { return std::move(root_); }

  [[noreturn]] void Fatal(const Place& place, std::string message, std::string help = "") {
    diagnostics_.Error(place, std::move(message), std::move(help));
    diagnostics_.ThrowIfErrors();
    std::abort();
  }

  // Both count bytes.
  Place PlaceOf(const YAML::Mark& mark, int length = 1) const {
    const size_t line =
        std::min(static_cast<size_t>(std::max(0, mark.line)), line_starts_.size() - 1);
    const size_t end = line + 1 < line_starts_.size() ? line_starts_[line + 1] - 1 : text_.size();
    const size_t column =
        std::min(static_cast<size_t>(std::max(0, mark.column)), end - line_starts_[line]);
    return {file_, static_cast<int>(line) + 1, static_cast<int>(column) + 1, length};
  }

  // Where the innermost open bracket is, for "is never closed".
  std::optional<Place> OpenBracket() const {
    for (auto frame = stack_.rbegin(); frame != stack_.rend(); ++frame) {
      const char c = CharAt(frame->value.place);
      if (c == '[' || c == '{') return frame->value.place;
    }
    return std::nullopt;
  }
  char CharAt(const Place& place) const {
    const size_t at = Offset(place);
    return at < text_.size() ? text_[at] : '\0';
  }

  // Throws if a ${...} without quotes, or an open bracket before one, is at or before `last`, where
  // reading failed; reports all expressions of the file.
  void ReportBareExpressions(const Place& last) {
    const BareExpressions bare = FindBareExpressions(text_);
    if (!bare.list.empty() && bare.list.front().begin <= Offset(last)) {
      for (const BareExpression& one : bare.list) {
        const std::string quoted = ToFlow(Value::Scalar(one.scalar));
        diagnostics_.Error(
            PlaceAt(one.begin, one.end - one.begin),
            one.in_flow
                ? format("quote {} inside {{...}} or [...]: YAML reads {{ as the beginning of a "
                         "mapping",
                         quoted)
                : format("quote {}: in YAML ': ' ends a key and ' #' begins a comment", quoted));
      }
      diagnostics_.ThrowIfErrors();
    }
    if (bare.open_bracket && *bare.open_bracket <= Offset(last)) {
      const Place bracket = PlaceAt(*bare.open_bracket, 1);
      Fatal(bracket, NeverClosed(bracket));
    }
  }
  std::string NeverClosed(const Place& bracket) const {
    return format("this '{}' is never closed", CharAt(bracket));
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      Fatal(PlaceOf(mark), "this comes after the end of the document above",
            "check its indentation; a file contains one YAML document");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Value value;
    value.place = PlaceOf(mark);
    Finish(std::move(value), anchor, false);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Place place = PlaceOf(mark);
    const bool quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    place.length = LengthOf(place, text);
    Finish(Value::Scalar(text, place, quoted), anchor, quoted);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Fatal(PlaceOf(mark), "this alias is inside its own anchor");
    CountCopy(found->second, PlaceOf(mark));
    Finish(found->second, YAML::NullAnchor, false);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    stack_.push_back({Value::List({}, PlaceOf(mark)), anchor, {}, false, {}});
  }
  void OnSequenceEnd() override { EndContainer(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Frame& frame = stack_.emplace_back(Frame{Value::Map({}, PlaceOf(mark)), anchor, {}, false, {}});
    frame.members.emplace(&frame.value);
  }
  void OnMapEnd() override { EndContainer(); }

 private:
  struct Frame {
    Value value;
    YAML::anchor_t anchor;
    Value key;  // of a map, until its value arrives
    bool has_key;
    std::optional<MemberIndex> members;  // of a map
  };

  size_t Offset(const Place& place) const {
    return line_starts_[static_cast<size_t>(place.line - 1)] +
           static_cast<size_t>(place.column - 1);
  }

  // `length` bytes from `offset`, or as many as are on the line.
  Place PlaceAt(size_t offset, size_t length) const {
    const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
    const size_t start = *std::prev(after);
    const std::string_view rest = std::string_view(text_).substr(offset, length);
    return {file_, static_cast<int>(after - line_starts_.begin()),
            static_cast<int>(offset - start) + 1,
            static_cast<int>(std::min(rest.find_first_of("\r\n"), rest.size()))};
  }

  // Bytes that the scalar takes on its line.
  int LengthOf(const Place& place, const std::string& text) {
    const size_t start = Offset(place);
    size_t end = start + text.size();
    const char quote = start < text_.size() ? text_[start] : '\0';
    if (quote == '"' || quote == '\'') {
      end = start + 1;
      while (end < text_.size() && text_[end] != quote)
        end += text_[end] == '\\' && quote == '"' ? 2 : 1;
      if (end >= text_.size())
        Fatal(place, "this quoted text is never closed", format("add the closing {}", quote));
      ++end;
    }
    const std::string_view found =
        std::string_view(text_).substr(std::min(start, text_.size()), end - start);
    return std::max(1, static_cast<int>(std::min(found.find_first_of("\r\n"), found.size())));
  }

  void Count(int nodes, const Place& place) {
    num_nodes_ += nodes;
    if (num_nodes_ <= kMaxNodes) return;
    if (anchors_.empty()) {
      Fatal(place, format("more than {} values: is this a configuration?", kMaxNodes),
            "repeated layers are shorter with `repeat` and blocks: mxtrain help repeat");
    }
    Fatal(place, format("more than {} values after expanding aliases", kMaxNodes),
          "use fewer aliases");
  }

  // Anchors are kept as copies, and aliases are copies of those.
  void CountCopy(const Value& value, const Place& place) {
    Extent extent;
    Measure(value, &extent);
    Count(extent.nodes, place);
    copied_text_ += extent.text;
    if (copied_text_ > kMaxCopiedText)
      Fatal(place,
            format("anchors and aliases hold more than {} MiB of text", kMaxCopiedText >> 20),
            "use fewer aliases");
  }

  void EndContainer() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    Finish(std::move(frame.value), frame.anchor, false);
  }

  void Finish(Value value, YAML::anchor_t anchor, bool quoted) {
    Count(1, value.place);
    if (anchor != YAML::NullAnchor) {
      CountCopy(value, value.place);
      anchors_[anchor] = value;
    }
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (Frame& top = stack_.back(); top.value.is_list()) {
      top.value.list.push_back(std::move(value));
    } else if (!top.has_key) {
      if (!value.is_scalar())
        Fatal(value.place, format("a key must be a text, not {}", value.Describe()),
              "put it in quotes");
      top.key = std::move(value);
      top.key.quoted = quoted;
      top.has_key = true;
    } else {
      top.has_key = false;
      AddMember(&top, std::move(top.key), std::move(value));
    }
  }

  // "{steps: 10,000}" is two keys to YAML: steps, and 000 without a value.
  bool IsCutNumber(const Value& map, const Value& key, const Value& value) const {
    const auto is_digits = [](const std::string& text) {
      return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    };
    if (!value.is_null() || !is_digits(key.text) || map.members.empty()) return false;
    const Value& before = map.members.back().value;
    const size_t comma = Offset(key.place) - 1;
    return is_digits(before.text) && before.place && text_[comma] == ',' &&
           Offset(before.place) + before.text.size() == comma;
  }

  void AddMember(Frame* frame, Value key, Value value) {
    Value* map = &frame->value;
    if (IsCutNumber(*map, key, value)) {
      Value whole = map->members.back().value;
      whole.text += "," + key.text;
      whole.place.length += key.place.length + 1;
      diagnostics_.Error(whole.place, format("the comma ends the number in '{}'", whole.text),
                         HintFor(whole, "write a list in brackets: [1, 2]"));
      return;
    }
    // "- ${a ? b : c}" is the key '${a ? b' to YAML.
    const size_t open = key.quoted ? std::string::npos : key.text.rfind("${");
    if (open != std::string::npos && key.text.find('}', open) == std::string::npos)
      ReportBareExpressions(key.place);
    if (key.text == "<<" && !key.quoted) return MergeKey(frame, key, value);
    Member* present = frame->members->Find(key.text);
    if (!present) {
      frame->members->Add({std::move(key.text), key.place, std::move(value)});
    } else if (IsMerged(*map, *present)) {
      *present = {std::move(key.text), key.place, std::move(value)};
    } else {
      diagnostics_.Error(
          key.place, format("duplicate key '{}'", key.text), "keep one of the two",
          {format("the first is at {}", diagnostics_.sources().Where(present->place))});
    }
  }

  // "<<: *base": merges the keys of another map; keys given here take precedence.
  void MergeKey(Frame* frame, const Value& key, const Value& value) {
    const std::vector<Value> sources = value.is_list() ? value.list : std::vector<Value>{value};
    for (const Value& source : sources) {
      if (!source.is_map())
        Fatal(key.place, format("'<<' takes a map or a list of maps, got {}", source.Describe()));
      for (const Member& m : source.members) {
        if (!frame->members->Find(m.key)) frame->members->Add(m);
      }
    }
  }
  // A key that came from '<<' is located before the map in the text.
  static bool IsMerged(const Value& map, const Member& member) { return member.place < map.place; }

  const int file_;
  Diagnostics& diagnostics_;
  const std::string& text_;
  std::vector<size_t> line_starts_;
  std::deque<Frame> stack_;  // references to elements stay valid
  std::map<YAML::anchor_t, Value> anchors_;
  Value root_;
  int documents_ = 0, num_nodes_ = 0;
  size_t copied_text_ = 0;
};

// Errors in YAML that the reader ignores or reports at another place.
void CheckText(const std::string& text, int file, Diagnostics* diagnostics) {
  int line = 1;
  size_t line_start = 0;
  bool indent = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const Place place{file, line, static_cast<int>(i - line_start) + 1, 1};
    const int continuations = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    bool valid = c < 0x80 || (c >= 0xc2 && c < 0xf5);
    for (int k = 1; k <= continuations; ++k) {
      valid = valid && i + static_cast<size_t>(k) < text.size() &&
              (static_cast<unsigned char>(text[i + static_cast<size_t>(k)]) & 0xc0) == 0x80;
    }
    if (!valid) {
      const bool typed = diagnostics->sources().IsCommandLine(place);
      diagnostics->Error(place, "this is not UTF-8 text",
                         typed ? "a configuration cannot hold such a name; rename the file or "
                                 "folder, or give a link to it: ln -s NAME LINK"
                               : "save the file as UTF-8");
    } else if (indent && text.compare(i, 2, "\u00a0") == 0) {
      diagnostics->Error(place, "a no-break space cannot indent YAML",
                         "use spaces; it was probably pasted");
      diagnostics->ThrowIfErrors();
    } else if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
      diagnostics->Error(place, format("control character 0x{:02x}", c), "remove it");
    } else if (c == '\t' && indent) {
      const size_t first = text.find_first_not_of(" \t\r", i);
      if (first != std::string::npos && text[first] != '\n' && text[first] != '#') {
        diagnostics->Error(place, "a tab cannot indent YAML", "use spaces");
      }
    }
    if (diagnostics->num_errors() > 0 && (!valid || c < 0x20)) diagnostics->ThrowIfErrors();
    i += static_cast<size_t>(continuations);
    indent = (indent && c == ' ') || c == '\n';
    if (c == '\n') {
      ++line;
      line_start = i + 1;
    }
  }
}

// One line of the text, and the place of its first character.
struct TextLine {
  std::string_view text;  // without indentation, comment and line end
  Place place;
};

// Line `number` (from 1).
TextLine LineAt(const SourceMap& sources, int file, int number) {
  std::string_view line = sources.Line(file, number);
  const size_t first = std::min(line.find_first_not_of(' '), line.size());
  line.remove_prefix(first);
  if (line.starts_with('#')) line = {};
  line = line.substr(0, line.find(" #"));
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  return {line,
          {file, number, static_cast<int>(first) + 1, std::max(1, static_cast<int>(line.size()))}};
}

// Why a key cannot begin on a line in block style: an error in the line above, or its own
// indentation. Nothing if neither applies.
std::optional<Diagnostic> ExplainKey(const SourceMap& sources, int file, int number) {
  const TextLine here = LineAt(sources, file, number);
  int before = number - 1;
  while (before > 0 && LineAt(sources, file, before).text.empty()) --before;
  if (before == 0) return std::nullopt;
  const TextLine above = LineAt(sources, file, before);
  const std::string text(above.text);
  const size_t colon = text.find(':'), blank = text.find(' ');
  if (text.starts_with("//"))
    return Diagnostic{Severity::kError,
                      above.place,
                      "this is not a YAML comment",
                      "a comment begins with '#'",
                      {}};
  if (text.starts_with('-') && text.size() > 1 && text[1] != ' ' && text[1] != '-') {
    return Diagnostic{Severity::kError,
                      above.place,
                      "missing space after '-'",
                      format("did you mean '- {}'?", text.substr(1)),
                      {}};
  }
  if (colon == std::string::npos && text.find_first_of("[]{}\"'") == std::string::npos) {
    const std::string meant =
        blank == std::string::npos ? text + ":" : text.substr(0, blank) + ":" + text.substr(blank);
    return Diagnostic{Severity::kError,
                      above.place,
                      "missing ':' in this line",
                      format("did you mean '{}'?", meant),
                      {}};
  }
  if (colon != std::string::npos && colon + 1 < text.size() && text[colon + 1] != ' ' &&
      blank == std::string::npos) {
    return Diagnostic{
        Severity::kError,
        above.place,
        "missing space after ':'",
        format("did you mean '{}: {}'?", text.substr(0, colon), text.substr(colon + 1)),
        {}};
  }
  if (here.place.column > above.place.column && colon != std::string::npos &&
      colon + 1 < text.size()) {
    return Diagnostic{Severity::kError,
                      here.place,
                      "this line is indented deeper than the line above, which already has a value",
                      "keys of a mapping must be aligned",
                      {}};
  }
  return std::nullopt;
}

bool IsEscapeError(const std::string& phrase) {
  return phrase.find("escape character") != std::string::npos ||
         phrase.find("scanning hex number") != std::string::npos;
}

// The start of the escape at which the reader gave up; `place` is after it.
Place EscapeBefore(const SourceMap& sources, Place place, const std::string& phrase) {
  const std::string_view line = sources.Line(place.file, place.line);
  const bool hexadecimal = phrase.find("hex number") != std::string::npos;
  for (size_t at = std::min(line.size(), static_cast<size_t>(place.column)); at-- > 0;) {
    const bool digits_follow = at + 1 < line.size() &&
                               std::string_view("xuU").find(line[at + 1]) != std::string_view::npos;
    if (line[at] != '\\' || (hexadecimal && !digits_follow)) continue;
    place.column = static_cast<int>(at) + 1;
    break;
  }
  return place;
}

// Translates the reader's error messages.
std::pair<std::string, std::string> Explain(const std::string& phrase) {
  if (phrase.find("illegal map value") != std::string::npos) {
    return {"a value cannot begin here",
            "check the indentation of the line above; 'a: b: c' needs quotes or separate lines"};
  }
  if (phrase.find("end of map not found") != std::string::npos)
    return {"this does not fit the surrounding map", "check its indentation"};
  if (phrase.find("end of sequence not found") != std::string::npos)
    return {"this does not fit the surrounding list", "check its indentation"};
  if (IsEscapeError(phrase)) {
    return {"invalid escape: in double quotes '\\' starts an escape sequence",
            "write paths with '/', or in single quotes"};
  }
  if (phrase.find("unknown token") != std::string::npos)
    return {"a text cannot begin with this character", "put it in quotes"};
  if (phrase.find("referenced anchor") != std::string::npos)
    return {"there is no anchor of this name",
            "an anchor (&name) must come before its aliases (*name)"};
  return {"this is not YAML: " + phrase, ""};
}

}  // namespace

Value ParseYaml(int file, Diagnostics* diagnostics) {
  const std::string& text = diagnostics->sources().Text(file);
  CheckText(text, file, diagnostics);
  std::istringstream stream(text);
  TreeBuilder builder(file, diagnostics);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const std::optional<Place> bracket = builder.OpenBracket();
    Place place = builder.PlaceOf(error.mark);
    builder.ReportBareExpressions(place);
    if (error.msg.find("flow not found") != std::string::npos && bracket)
      builder.Fatal(*bracket, builder.NeverClosed(*bracket));
    if (IsEscapeError(error.msg)) place = EscapeBefore(diagnostics->sources(), place, error.msg);
    if (error.msg.find("illegal map value") != std::string::npos) {
      if (const auto found = ExplainKey(diagnostics->sources(), file, place.line))
        builder.Fatal(found->place, found->message, found->help);
    }
    const auto [message, help] = Explain(error.msg);
    builder.Fatal(place, message, help);
  }
  Value root = builder.TakeRoot();
  if (root.is_null()) return Value::Map({}, root.place);
  return root;
}

}  // namespace mxtrain::config
