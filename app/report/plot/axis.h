// SPDX-License-Identifier: Apache-2.0
#pragma once
// One axis of a chart: its ticks and their positions.
#include <optional>
#include <string>
#include <vector>

namespace mxtrain::plot {

struct AxisSpec {
  std::string label = {};  // with its unit: "time (s)"
  bool log = false;        // shows values above 0; others are skipped
  bool whole = false;      // epochs, steps: begins, ends and has its ticks at whole numbers
  bool bytes = false;      // ticks in bytes, KiB, MiB or GiB, one of them for all
  std::optional<double> low = {}, high = {};  // its limits; default: the data and a margin
  std::vector<double> ticks = {};             // where they are, if there is room for them all
};

// An axis fitted to values. Immutable.
class Axis {
 public:
  struct Tick {
    double value;
    std::string text;
  };
  // `values`: the data; non-finite values are ignored. About `count` ticks, at 1, 2 or 5 times a
  // power of ten, for bytes at powers of two.
  Axis(const AxisSpec& spec, const std::vector<double>& values, int count);

  const std::vector<Tick>& ticks() const { return ticks_; }
  // Whether the axis can show a value.
  bool Shows(double value) const;
  // 0 at the low end, 1 at the high end.
  double Place(double value) const;

 private:
  bool AddGivenTicks(const AxisSpec& spec);
  void AddByteTicks(int count);
  void AddLinearTicks(int count, bool whole);
  void AddLogTicks(int count);
  // Between values so large that a step does not change them, ticks would have no end.
  bool HasRoom() const { return ticks_.size() < 100; }
  const bool log_;
  double low_ = 0, high_ = 1;  // of the values; of their decimal logarithms on a log axis
  std::vector<Tick> ticks_;
};

// 1, 2 or 5 times a power of ten: the smallest that divides `range` into at most `count` parts.
double RoundStep(double range, int count);
// A power of two that divides `bytes` into about `count` parts.
double ByteStep(double bytes, int count);
// The unit in which an axis up to `bytes` has its numbers.
struct ByteUnit {
  double bytes;
  const char* name;
};
ByteUnit UnitOfBytes(double bytes);
// "0.001", "2500", "1.5e+07": no more digits than needed for multiples of `step`.
std::string TickText(double value, double step);

}  // namespace mxtrain::plot
