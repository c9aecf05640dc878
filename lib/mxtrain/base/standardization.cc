// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/standardization.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/params.h"

namespace mxtrain {
namespace {

constexpr std::string_view kQuantileText = "quantile ";

// Through the points (from, to), constant beyond them.
double Interpolate(const std::vector<double>& from, const std::vector<double>& to, double value) {
  if (value <= from.front()) return to.front();
  if (value >= from.back()) return to.back();
  const auto above =
      static_cast<size_t>(std::upper_bound(from.begin(), from.end(), value) - from.begin());
  const double part = (value - from[above - 1]) / (from[above] - from[above - 1]);
  return to[above - 1] + part * (to[above] - to[above - 1]);
}

bool Rises(const std::vector<double>& numbers) {
  return std::ranges::adjacent_find(numbers, std::greater_equal<>()) == numbers.end();
}

}  // namespace

double ColumnTransform::Apply(double value) const {
  if (kind == kLog) return std::log(value);
  return kind == kQuantile ? Interpolate(from, to, value) : value;
}

double ColumnTransform::Invert(double value) const {
  if (kind == kLog) return std::exp(value);
  return kind == kQuantile ? Interpolate(to, from, value) : value;
}

std::string ColumnTransform::ToText() const {
  if (kind == kNone) return "";
  if (kind == kLog) return "log";
  std::string text = "quantile";
  for (size_t i = 0; i < from.size(); ++i)
    text += format(" {} {}", params::Print(from[i]), params::Print(to[i]));
  return text;
}

ColumnTransform ColumnTransform::FromText(std::string_view text) {
  ColumnTransform transform;
  if (text.empty()) return transform;
  if (text == "log") {
    transform.kind = kLog;
    return transform;
  }
  bool good = text.starts_with(kQuantileText);
  std::string_view rest = text.substr(good ? kQuantileText.size() : text.size());
  for (bool first = true; !rest.empty(); first = !first) {
    const size_t end = std::min(rest.find(' '), rest.size());
    double number = 0;
    const auto [stop, status] = std::from_chars(rest.data(), rest.data() + end, number);
    good = good && status == std::errc() && stop == rest.data() + end && std::isfinite(number);
    (first ? transform.from : transform.to).push_back(number);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  good = good && transform.from.size() >= 2 && transform.from.size() == transform.to.size() &&
         Rises(transform.from) && Rises(transform.to);
  if (!good) {
    constexpr size_t kShown = 40;
    Throw(ErrorKind::kConfig,
          "'{}' is no transform of a column: expected log, or quantile with rising knots",
          text.substr(0, kShown));
  }
  transform.kind = kQuantile;
  return transform;
}

void Standardization::Restore(std::vector<float>* values) const {
  for (size_t i = 0; i < values->size(); ++i) {
    const size_t k = i % mean.size();
    const double value = mean[k] + std[k] * static_cast<double>((*values)[i]);
    (*values)[i] = static_cast<float>(transforms.empty() ? value : transforms[k].Invert(value));
  }
}

}  // namespace mxtrain
