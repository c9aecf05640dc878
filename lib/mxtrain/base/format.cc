#include "mxtrain/base/format.h"

#include <cmath>

namespace mxtrain {

std::string FormatBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (std::abs(value) >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.{}f} {}", value, std::abs(value) < 10 ? 2 : 1, kUnits[unit]);
}

}  // namespace mxtrain
