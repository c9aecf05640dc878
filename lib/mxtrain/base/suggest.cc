#include "mxtrain/base/suggest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace mxtrain {
namespace {

// Longer typos do not happen, and time and memory grow with the product of both lengths.
constexpr size_t kLongestWord = 100;

// Optimal string alignment distance in half units: a change of case costs 1, every other edit 2.
int Distance(std::string_view a, std::string_view b) {
  const size_t n = a.size(), m = b.size();
  std::vector<std::vector<int>> d(n + 1, std::vector<int>(m + 1));
  auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  for (size_t i = 0; i <= n; ++i) d[i][0] = 2 * static_cast<int>(i);
  for (size_t j = 0; j <= m; ++j) d[0][j] = 2 * static_cast<int>(j);
  for (size_t i = 1; i <= n; ++i) {
    for (size_t j = 1; j <= m; ++j) {
      const int replace = a[i - 1] == b[j - 1] ? 0 : lower(a[i - 1]) == lower(b[j - 1]) ? 1 : 2;
      d[i][j] = std::min({d[i - 1][j] + 2, d[i][j - 1] + 2, d[i - 1][j - 1] + replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 2);
    }
  }
  return d[n][m];
}
}  // namespace

std::string Nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > kLongestWord) return "";
  const std::string* best = nullptr;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const int distance = Distance(word, candidate);
    if (!best || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (!best) return "";
  const int limit = 2 * std::max<int>(2, static_cast<int>(best->size()) / 3);
  if (best_distance <= limit) return *best;
  const auto begun = std::find_if(candidates.begin(), candidates.end(), [&](const std::string& c) { return c.starts_with(word); });
  return word.size() >= 3 && begun != candidates.end() ? *begun : "";
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

}  // namespace mxtrain
