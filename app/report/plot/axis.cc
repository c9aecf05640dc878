// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/axis.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "mxtrain/base/format.h"

namespace mxtrain::plot {
namespace {

// Of values that are shown: beyond them, ranges and margins are not finite.
constexpr double kMost = 1e300;

// 10 with a superscript exponent, in Unicode.
std::string PowerOfTen(int exponent) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (char digit : std::to_string(std::abs(exponent))) text += kDigits[digit - '0'];
  return text;
}

}  // namespace

double RoundStep(double range, int count) {
  const double rough = range / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string TickText(double value, double step) {
  if (std::abs(value) < step * 1e-6) return "0";
  if (std::abs(value) >= 1e6 || step < 1e-5) return format("{:.6g}", value);
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-6)));
  return format("{:.{}f}", value, decimals);
}

double ByteStep(double bytes, int count) {
  return std::exp2(std::ceil(std::log2(std::max(bytes / count, 1.0))));
}

ByteUnit UnitOfBytes(double bytes) {
  for (const ByteUnit& unit :
       {ByteUnit{1073741824, "GiB"}, ByteUnit{1048576, "MiB"}, ByteUnit{1024, "KiB"}}) {
    if (bytes >= 2 * unit.bytes) return unit;
  }
  return {1, "bytes"};
}

Axis::Axis(const AxisSpec& spec, const std::vector<double>& values, int count) : log_(spec.log) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  const auto take = [&](double value) {
    if (!Shows(value)) return;
    const double at = log_ ? std::log10(value) : value;
    low = std::min(low, at), high = std::max(high, at);
  };
  for (double value : values) take(value);
  for (const auto& bound : {spec.low, spec.high}) {
    if (bound) take(*bound);
  }
  if (low > high) low = 0, high = 1;
  if (high - low < 1e-9 * std::max(std::abs(low), 1e-3)) {
    const double around = log_ ? 0.5 : spec.whole ? 1 : std::max(std::abs(low) * 0.1, 1e-3);
    low -= around, high += around;
  }
  if (spec.whole && !log_) low = std::floor(low + 1e-6), high = std::ceil(high - 1e-6);
  const double margin = spec.whole ? 0 : 0.04 * (high - low);
  low_ = spec.low ? low : low - margin;
  high_ = spec.high ? high : high + margin;
  if (AddGivenTicks(spec)) return;
  if (spec.bytes)
    AddByteTicks(count);
  else if (log_)
    AddLogTicks(count);
  else
    AddLinearTicks(count, spec.whole);
}

bool Axis::Shows(double value) const {
  return std::abs(value) <= kMost && (!log_ || value >= 1 / kMost);
}

double Axis::Place(double value) const {
  return ((log_ ? std::log10(value) : value) - low_) / (high_ - low_);
}

// False if there are none, or two of them are so near that their texts would touch.
bool Axis::AddGivenTicks(const AxisSpec& spec) {
  constexpr double kLeastApart = 0.05;
  const std::set<double> values(spec.ticks.begin(), spec.ticks.end());
  const ByteUnit unit = UnitOfBytes(values.empty() ? 0 : *values.rbegin());
  for (const double value : values) {
    if (!Shows(value)) continue;
    if (!ticks_.empty() && Place(value) - Place(ticks_.back().value) < kLeastApart) {
      ticks_.clear();
      return false;
    }
    ticks_.push_back({value, spec.bytes ? format("{:.6g} {}", value / unit.bytes, unit.name)
                                        : format("{:.6g}", value)});
  }
  return !ticks_.empty();
}

void Axis::AddByteTicks(int count) {
  const double most = std::max(std::abs(low_), std::abs(high_));
  const ByteUnit unit = UnitOfBytes(most);
  const double step = ByteStep(high_ - low_, count);
  for (double k = std::ceil(low_ / step - 1e-6); k * step <= high_ + 1e-6 * step && HasRoom(); ++k)
    ticks_.push_back({k * step, format("{:g} {}", k * step / unit.bytes + 0.0, unit.name)});
}

void Axis::AddLinearTicks(int count, bool whole) {
  double step = RoundStep(high_ - low_, count);
  if (whole) step = std::max(step, 1.0);
  const double slack = 1e-6 * step;
  for (double k = std::ceil((low_ - slack) / step); k * step <= high_ + slack && HasRoom(); ++k)
    ticks_.push_back({k * step, TickText(k * step, step)});
}

// Powers of ten; also 2 and 5 times those if there are few; like a linear axis if none is in range.
void Axis::AddLogTicks(int count) {
  const double decades = high_ - low_;
  const int step = std::max(1, static_cast<int>(std::ceil(decades / count)));
  const std::vector<double> factors =
      decades < 2.5 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  for (int e = static_cast<int>(std::floor(low_)); e <= std::ceil(high_); ++e) {
    for (double factor : factors) {
      const double at = e + std::log10(factor);
      if (at < low_ - 1e-9 || at > high_ + 1e-9 || (e % step != 0 && factors.size() == 1)) continue;
      const bool plain = e >= -3 && e <= 3;
      const std::string power = PowerOfTen(e);
      const std::string text = plain         ? format("{:g}", factor * std::pow(10, e))
                               : factor == 1 ? power
                                             : format("{:g}·{}", factor, power);
      ticks_.push_back({factor * std::pow(10, e), text});
    }
  }
  if (ticks_.size() >= 2) return;
  ticks_.clear();
  const double low = std::pow(10, low_), high = std::pow(10, high_),
               linear = RoundStep(high - low, count);
  for (double k = std::ceil(low / linear); k * linear <= high && HasRoom(); ++k)
    ticks_.push_back({k * linear, TickText(k * linear, linear)});
}

}  // namespace mxtrain::plot
