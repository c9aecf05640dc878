// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/suggest.h"

#include <algorithm>
#include <vector>

#include "mxtrain/base/text.h"

namespace mxtrain {
namespace {

// Longer typos do not happen, and time and memory grow with the product of both lengths.
constexpr size_t kLongestWord = 100;

// Optimal string alignment distance.
size_t Distance(std::string_view a, std::string_view b) {
  const size_t n = a.size(), m = b.size();
  std::vector<std::vector<size_t>> d(n + 1, std::vector<size_t>(m + 1));
  for (size_t i = 0; i <= n; ++i) d[i][0] = i;
  for (size_t j = 0; j <= m; ++j) d[0][j] = j;
  for (size_t i = 1; i <= n; ++i) {
    for (size_t j = 1; j <= m; ++j) {
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[n][m];
}

// Whether `distance` edits are a typo: fewer than a third of the longer word, or one. In words of
// two letters the first must be the same; single letters do not resemble each other.
bool IsTypo(std::string_view a, std::string_view b, size_t distance) {
  const size_t length = std::max(a.size(), b.size());
  if (length < 3)
    return distance == 0 || (length == 2 && distance == 1 && a.substr(0, 1) == b.substr(0, 1));
  return distance <= std::max<size_t>(1, (length - 1) / 3);
}

}  // namespace

std::string Nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > kLongestWord) return "";
  const std::string wanted = Lower(word);
  const std::string* best = nullptr;
  const std::string* begun = nullptr;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const std::string lower = Lower(candidate);
    if (!begun && wanted.size() >= 3 && lower.starts_with(wanted)) begun = &candidate;
    const size_t distance = Distance(wanted, lower);
    if (!IsTypo(wanted, lower, distance)) continue;
    if (best && distance >= best_distance) continue;
    best = &candidate;
    best_distance = distance;
  }
  if (!best) best = begun;
  return best ? *best : "";
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

}  // namespace mxtrain
