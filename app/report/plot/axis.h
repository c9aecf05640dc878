#pragma once
// One axis of a chart: which numbers stand on it, and where.
#include <optional>
#include <string>
#include <vector>

namespace mxtrain::plot {

struct AxisSpec {
  std::string label = {};                     // with its unit: "time (s)"
  bool log = false;                           // of what lies above 0; the rest is left out
  bool whole = false;                         // epochs, steps: ticks on whole numbers only
  std::optional<double> low = {}, high = {};  // where it must reach; else the data and a little more
};

// An axis laid over some values. Immutable.
class Axis {
 public:
  struct Tick {
    double value;
    std::string text;
  };
  // `values`: what is drawn along it; what is not finite does not count. Some `count` ticks, at 1, 2 or 5 times a power of ten.
  Axis(const AxisSpec& spec, const std::vector<double>& values, int count);

  const std::vector<Tick>& ticks() const { return ticks_; }
  // Whether a value lies on the axis at all.
  bool Shows(double value) const;
  // 0 at the low end, 1 at the high end.
  double Place(double value) const;

 private:
  void AddLinearTicks(int count, bool whole);
  void AddLogTicks(int count);
  const bool log_;
  double low_ = 0, high_ = 1;  // of the values; of their decimal logarithms on a log axis
  std::vector<Tick> ticks_;
};

// 1, 2 or 5 times a power of ten, the least that divides `range` into at most `count` parts.
double RoundStep(double range, int count);
// "0.001", "2500", "1.5e+07": no more digits than multiples of `step` need.
std::string TickText(double value, double step);

}  // namespace mxtrain::plot
