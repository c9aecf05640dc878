// SPDX-License-Identifier: Apache-2.0
#pragma once
// The values that a sweep tries for one key of the configuration.
//
//   key=[a, b, c]      these (a list as a value: key=[[a, b], [c]])
//   key=low..high      a range, for random draws: integers if both ends are, else log-uniform if
//                      both ends are above 0 and high is at least ten times low, else uniform
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace mxtrain::commands {

struct SweepAxis {
  std::string key;
  std::vector<std::string> values;  // as text of YAML; empty: a range
  double low = 0, high = 0;
  bool whole = false;

  bool is_range() const { return values.empty(); }
  // One of the values, or a number of the range; the same on every platform for the same state of
  // `random`.
  std::string Draw(std::mt19937_64* random) const;
};

// One run's values: (key, value).
using SweepPoint = std::vector<std::pair<std::string, std::string>>;

// Nothing if the argument has neither form and is an ordinary override. Throws kUsage for an empty
// list or range.
std::optional<SweepAxis> ParseSweepAxis(const std::string& argument);
// Every combination, the last axis changing fastest. Throws kUsage for a range.
std::vector<SweepPoint> Grid(const std::vector<SweepAxis>& axes);
// `count` different draws (fewer if there are fewer combinations).
std::vector<SweepPoint> RandomPoints(const std::vector<SweepAxis>& axes, int count, uint64_t seed);

}  // namespace mxtrain::commands
