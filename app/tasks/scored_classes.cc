// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/scored_classes.h"

#include <algorithm>
#include <numeric>

#include "mxtrain/base/format.h"

namespace mxtrain::tasks {

std::string ClassNames::operator[](int64_t k) const {
  return static_cast<size_t>(k) < names_.size() ? names_[static_cast<size_t>(k)]
                                                : std::to_string(k);
}

bool ClassNames::Contains(const std::string& name) const {
  return std::ranges::find(names_, name) != names_.end();
}

std::optional<OutputMeaning> MeaningOfClasses(const std::vector<std::string>& names) {
  if (names.empty()) return std::nullopt;
  return OutputMeaning{"classes",
                       format("one score for each class, in this order: {}", FirstOf(names, 12))};
}

std::vector<ScoredClass> BestOf(std::span<const float> scores, int64_t count) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    const float of_a = scores[static_cast<size_t>(a)], of_b = scores[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
  std::vector<ScoredClass> best;
  for (int64_t j = 0; j < count; ++j)
    best.emplace_back(order[static_cast<size_t>(j)],
                      scores[static_cast<size_t>(order[static_cast<size_t>(j)])]);
  return best;
}

ClassPrediction::ClassPrediction(std::span<const float> scores, std::vector<ScoredClass> best,
                                 const ClassNames& names)
    : scores_(scores), finite_(IsFinite(scores)), best_(std::move(best)), names_(names) {}

std::string ClassPrediction::TextOf(const ScoredClass& scored) const {
  return format("{} {:.4f}", names_[scored.first], scored.second);
}

std::string ClassPrediction::Text() const {
  if (best_.empty()) return finite_ ? "-" : "nan";
  std::string text;
  for (const ScoredClass& scored : best_) text += (text.empty() ? "" : "  ") + TextOf(scored);
  return text;
}

Json ClassPrediction::ToJson() const {
  if (!finite_) return {{"predictions", nullptr}};
  Json list = Json::array();
  for (const auto& [k, score] : best_)
    list.push_back({{"class", names_[k]}, {"index", k}, {"score", score}});
  return {{"predictions", list}};
}

}  // namespace mxtrain::tasks
