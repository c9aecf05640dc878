// SPDX-License-Identifier: Apache-2.0
#include "app/config/unread_vars.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "app/config/expression.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

bool IsPartOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Adds the words of the expressions in a text, among which are the names that they read.
void AddWords(const std::string& text, std::set<std::string>* words) {
  for (size_t open = text.find("${"); open != std::string::npos; open = text.find("${", open + 2)) {
    const size_t close = std::min(text.find('}', open), text.size());
    std::string word;
    for (size_t i = open + 2; i <= close; ++i) {
      if (i < close && IsPartOfName(text[i])) {
        word += text[i];
      } else if (!word.empty()) {
        words->insert(std::exchange(word, ""));
      }
    }
  }
}

void AddWordsBelow(const Value& value, std::set<std::string>* words) {
  if (HasExpression(value)) AddWords(value.text, words);
  for (const Value& item : value.list) AddWordsBelow(item, words);
  for (const Member& member : value.members) AddWordsBelow(member.value, words);
}

}  // namespace

void ReportUnreadVars(const Value& root, const std::set<std::string>& declared,
                      const std::function<bool(const Place&)>& is_own, Diagnostics* diagnostics) {
  constexpr size_t kMostNamed = 12;
  const Value* const vars = root.Get("vars");
  if (!vars || !vars->is_map()) return;
  std::set<std::string> read;
  AddWordsBelow(root, &read);
  for (const Member& member : vars->members) {
    if (read.contains(member.key) || declared.contains(member.key)) continue;
    const std::vector<std::string> known(declared.begin(), declared.end());
    const std::string nearest = Nearest(member.key, known);
    if (diagnostics->sources().IsCommandLine(member.place)) {
      std::vector<std::string> others;
      for (const Member& other : vars->members) {
        if (other.key != member.key) others.push_back(other.key);
      }
      const std::string guess = Nearest(member.key, others);
      diagnostics->Error(member.place, format("nothing reads the variable '{}'", member.key),
                         !guess.empty()   ? format("did you mean 'vars.{}'?", guess)
                         : others.empty() ? "the configuration has no variables"
                                          : format("the configuration has the variables {}",
                                                   FirstOf(others, kMostNamed)));
    } else if (!nearest.empty() && is_own(member.place)) {
      diagnostics->Warning(member.place, format("nothing reads the variable '{}'", member.key),
                           format("did you mean '{}'?", nearest));
    }
  }
}

}  // namespace mxtrain::config
