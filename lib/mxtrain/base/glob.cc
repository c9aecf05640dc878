// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/glob.h"

#include <algorithm>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain {
namespace {

// "layer1", "layer1_conv" and "layer1_conv_weight" of "layer1_conv_weight": candidates for
// suggestions.
std::vector<std::string> Beginnings(std::span<const std::string> names) {
  std::vector<std::string> beginnings;
  for (const std::string& name : names) {
    for (size_t at = name.find('_'); at != std::string::npos; at = name.find('_', at + 1))
      beginnings.push_back(name.substr(0, at));
    beginnings.push_back(name);
  }
  return beginnings;
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  // The last `*`, and the end of the text that it matches.
  size_t star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(),
                     [](char c) { return c == '*'; });
}

void RequireMatch(std::string_view pattern, std::span<const std::string> names,
                  std::string_view what) {
  if (std::any_of(names.begin(), names.end(),
                  [&](const std::string& name) { return GlobMatches(pattern, name); }))
    return;
  std::string stem(pattern);
  std::erase_if(stem, [](char c) { return c == '*' || c == '?'; });
  std::string nearest = Nearest(stem, Beginnings(names));
  const bool whole = std::find(names.begin(), names.end(), nearest) != names.end();
  if (!nearest.empty() && (pattern.ends_with('*') || !whole)) nearest += '*';
  Throw(ErrorKind::kConfig, "'{}' matches no {}{}", pattern, what,
        nearest.empty() ? names.empty() ? "" : format("; the names are {}, ...", names.front())
                        : format("; did you mean '{}'?", nearest));
}

}  // namespace mxtrain
