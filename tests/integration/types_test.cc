// SPDX-License-Identifier: Apache-2.0
// Two types never share a name in one namespace. If two such definitions met in one program, each
// file would use the one it sees, and the linker would keep the functions of either (an ODR
// violation). The compiler cannot detect this, so the sources are scanned: every type defined at
// the level of a named namespace counts; those of anonymous namespaces are local to their file.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/build_paths.h"

namespace mxtrain::test {
namespace {

namespace fs = std::filesystem;

// Words and single signs of C++ without comments, directives and literals.
std::vector<std::string> Tokens(const std::string& text) {
  std::vector<std::string> tokens;
  const auto word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  bool line_begins = true;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const auto starts = [&](const char* with) {
      return text.compare(i, std::string(with).size(), with) == 0;
    };
    const auto past = [&](const std::string& end, size_t from) {
      return std::min(text.find(end, from), text.size() - end.size()) + end.size();
    };
    if (c == '\n') {
      line_begins = true;
      ++i;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (starts("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (starts("/*")) {
      i = past("*/", i);
    } else if (c == '#' && line_begins) {
      for (i = std::min(text.find('\n', i), text.size()); i < text.size() && text[i - 1] == '\\';)
        i = std::min(text.find('\n', i + 1), text.size());
    } else if (starts("R\"")) {
      const size_t open = text.find('(', i);
      i = past(")" + text.substr(i + 2, open - i - 2) + "\"", open);
    } else if (c == '"' || (c == '\'' && (i == 0 || !word(text[i - 1])))) {
      // A quote within a number separates digits.
      for (++i; i < text.size() && text[i] != c; ++i) i += text[i] == '\\' ? 1 : 0;
      ++i;
    } else if (word(c)) {
      const size_t begin = i;
      while (i < text.size() && word(text[i])) ++i;
      tokens.push_back(text.substr(begin, i - begin));
    } else {
      tokens.emplace_back(1, c);
      ++i;
    }
    if (c != '\n' && !std::isspace(static_cast<unsigned char>(c))) line_begins = false;
  }
  return tokens;
}

// "mxtrain::io::Image" of `namespace mxtrain::io { struct Image {`.
class TypeReader {
 public:
  explicit TypeReader(const std::string& text) : tokens_(Tokens(text)) {}

  std::vector<std::string> Read() {
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      const std::string& token = tokens_[at_];
      if (token == "namespace") {
        EnterNamespace();
      } else if (token == "template") {
        SkipAngles();
      } else if ((token == "struct" || token == "class" || token == "union" || token == "enum") &&
                 AtNamespace()) {
        TakeType();
      } else if (token == "{") {
        scopes_.push_back(std::nullopt);
      } else if (token == "}" && !scopes_.empty()) {
        scopes_.pop_back();
      }
    }
    return std::move(types_);
  }

 private:
  bool Is(size_t at, const char* token) const {
    return at < tokens_.size() && tokens_[at] == token;
  }
  bool AtNamespace() const {
    return std::all_of(scopes_.begin(), scopes_.end(),
                       [](const auto& scope) { return scope && !scope->empty(); });
  }

  // A namespace alias has no brace.
  void EnterNamespace() {
    std::string name;
    while (++at_ < tokens_.size() && tokens_[at_] != "{" && tokens_[at_] != ";")
      name += tokens_[at_];
    if (Is(at_, "{")) scopes_.emplace_back(name);
  }
  void SkipAngles() {
    int depth = 0;
    for (++at_; at_ < tokens_.size(); ++at_) {
      depth += tokens_[at_] == "<" ? 1 : tokens_[at_] == ">" ? -1 : 0;
      if (depth == 0) return;
    }
  }
  // The last word before a brace or a base is the name: an attribute or a visibility macro may
  // precede it, `final` may follow it. Anything else defines no type (a declaration, a
  // specialization, a function's result).
  void TakeType() {
    std::string name;
    size_t at = at_ + 1;
    for (; at < tokens_.size(); ++at) {
      const std::string& token = tokens_[at];
      const bool word = std::isalpha(static_cast<unsigned char>(token[0])) || token[0] == '_';
      if (!word) break;
      if (token != "final" && token != "class" && token != "struct") name = token;
    }
    if (name.empty() || (!Is(at, "{") && !(Is(at, ":") && !Is(at + 1, ":")))) return;
    // An enum may be declared with its type.
    while (at < tokens_.size() && tokens_[at] != "{" && tokens_[at] != ";") ++at;
    if (!Is(at, "{")) return;
    std::string whole;
    for (const auto& scope : scopes_) whole += *scope + "::";
    types_.push_back(whole + name);
    at_ = at - 1;
  }

  const std::vector<std::string> tokens_;
  size_t at_ = 0;
  // That are open: a namespace's name, "" of an anonymous one; none for other braces.
  std::vector<std::optional<std::string>> scopes_;
  std::vector<std::string> types_;
};

// Files of which a build takes one, by a part of their paths.
bool Alternatives(const std::string& a, const std::string& b) {
  const auto of = [](const std::string& path, const char* part) {
    return path.find(part) != std::string::npos;
  };
  return (of(a, "/onednn/v2/") && of(b, "/onednn/v3/")) ||
         (of(a, "/onednn/v3/") && of(b, "/onednn/v2/"));
}

TEST_CASE("no two types share a name in one namespace") {
  const fs::path root = SourceDir();
  std::map<std::string, std::string> places;
  for (const char* top : {"lib/mxtrain", "app", "tests/support"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string(),
                        path = entry.path().lexically_relative(root).generic_string();
      if (extension != ".h" && extension != ".cc" && extension != ".cu" && extension != ".cuh")
        continue;
      std::ifstream in(entry.path());
      for (const std::string& type :
           TypeReader(std::string(std::istreambuf_iterator<char>(in), {})).Read()) {
        const auto [known, fresh] = places.emplace(type, path);
        if (!fresh && !Alternatives(known->second, path))
          FAIL_CHECK(type << " is defined in " << known->second << " and in " << path);
      }
    }
  }
  CHECK(places.size() > 500);
  CHECK(places.contains("mxtrain::NDArray"));
}

TEST_CASE("the reader of types detects duplicates") {
  const auto read = [](const char* text) { return TypeReader(text).Read(); };
  using Types = std::vector<std::string>;
  CHECK(read("namespace a::b { struct X { struct Inner {}; int y; }; class Y; enum class Z : int { "
             "kOne }; }") == Types{"a::b::X", "a::b::Z"});
  CHECK(
      read("namespace a { class MACRO Y final : public B<int> { void F() { struct L {}; } }; }") ==
      Types{"a::Y"});
  CHECK(read("namespace a { template <class T, typename U = X<int>> struct P {}; template <> "
             "struct P<int> {}; }") == Types{"a::P"});
  CHECK(
      read(
          "namespace a { struct X* f(); struct X g() { return {}; } void h() { struct L {}; } }") ==
      Types{});
  CHECK(read("// namespace a {\n#define B {\\\n {\nnamespace c { const char* s = \"{ struct N {\"; "
             "char q = '{'; int n = 1'000; struct T {}; }") == Types{"c::T"});
  CHECK(read("namespace c { auto r = R\"x({ struct N {)x\"; union U {}; }") == Types{"c::U"});
}

}  // namespace
}  // namespace mxtrain::test
