// SPDX-License-Identifier: Apache-2.0
#include "app/commands/sweep_axis.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::commands {
namespace {

// The elements of a flow sequence of YAML: split at commas outside of quotes and inner brackets.
std::vector<std::string> Elements(const std::string& text) {
  std::vector<std::string> elements(1);
  int depth = 0;
  char quote = 0;
  for (char c : text) {
    if (quote) {
      quote = c == quote ? 0 : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{' || c == '(') {
      ++depth;
    } else if (c == ']' || c == '}' || c == ')') {
      --depth;
    } else if (c == ',' && depth == 0) {
      elements.emplace_back();
      continue;
    }
    elements.back() += c;
  }
  for (std::string& element : elements) element = std::string(Trim(element));
  if (elements.back().empty()) elements.pop_back();
  return elements;
}

std::optional<double> FiniteNumber(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool IsWhole(const std::string& text) {
  return text.find_first_not_of("+-0123456789") == std::string::npos;
}

// A number in [0, 1). std::uniform_real_distribution differs between libraries.
double Uniform(std::mt19937_64* random) {
  return std::ldexp(static_cast<double>((*random)() >> 11), -53);
}

}  // namespace

std::string SweepAxis::Draw(std::mt19937_64* random) const {
  const double u = Uniform(random);
  if (!is_range()) return values[static_cast<size_t>(u * static_cast<double>(values.size()))];
  if (whole) return format("{}", std::llround(low + std::floor(u * (high - low + 1))));
  const bool logarithmic = low > 0 && high >= 10 * low;
  return format("{:.4g}", logarithmic ? low * std::pow(high / low, u) : low + u * (high - low));
}

std::optional<SweepAxis> ParseSweepAxis(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) return std::nullopt;
  SweepAxis axis{argument.substr(0, equals), {}};
  const std::string value(Trim(std::string_view(argument).substr(equals + 1)));
  if (value.starts_with('[') && value.ends_with(']')) {
    axis.values = Elements(value.substr(1, value.size() - 2));
    if (axis.values.empty()) Throw(ErrorKind::kUsage, "{}: the list is empty", argument);
    return axis;
  }
  const size_t dots = value.find("..");
  if (dots == std::string::npos) return std::nullopt;
  const std::string from = value.substr(0, dots), to = value.substr(dots + 2);
  const auto low = FiniteNumber(from), high = FiniteNumber(to);
  if (!low || !high) return std::nullopt;  // a path such as ../data
  if (*low >= *high)
    Throw(ErrorKind::kUsage, "{}: the range must go from the lower to the higher number", argument);
  axis.low = *low, axis.high = *high, axis.whole = IsWhole(from) && IsWhole(to);
  return axis;
}

namespace {

void RequireFew(double points) {
  constexpr double kMost = 10'000;
  if (points > kMost)
    Throw(ErrorKind::kUsage, "{} trials are more than a sweep makes, {}", points, kMost);
}

}  // namespace

std::vector<SweepPoint> Grid(const std::vector<SweepAxis>& axes) {
  double all = 1;
  for (const SweepAxis& axis : axes)
    all *= axis.is_range() ? 1.0 : static_cast<double>(axis.values.size());
  RequireFew(all);
  std::vector<SweepPoint> points(1);
  for (const SweepAxis& axis : axes) {
    if (axis.is_range())
      Throw(ErrorKind::kUsage, "{} is a range; give the number of random draws with --random N",
            axis.key);
    std::vector<SweepPoint> longer;
    for (const SweepPoint& point : points) {
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        longer.back().emplace_back(axis.key, value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::vector<SweepPoint> RandomPoints(const std::vector<SweepAxis>& axes, int count, uint64_t seed) {
  RequireFew(count);
  constexpr int kTries = 100;  // per new point
  std::mt19937_64 random(seed);
  std::vector<SweepPoint> points;
  for (int tries = 0; static_cast<int>(points.size()) < count && tries < kTries * count; ++tries) {
    SweepPoint point;
    for (const SweepAxis& axis : axes) point.emplace_back(axis.key, axis.Draw(&random));
    if (std::find(points.begin(), points.end(), point) == points.end())
      points.push_back(std::move(point));
  }
  return points;
}

}  // namespace mxtrain::commands
