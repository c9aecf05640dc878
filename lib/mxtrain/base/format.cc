// SPDX-License-Identifier: Apache-2.0
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
  if (unit == 0) return fmt::format("{} B", bytes);
  std::string text = fmt::format("{:.{}f}", value, std::abs(value) < 10 ? 2 : 1);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " " + kUnits[unit];
}

std::string FirstOf(std::vector<std::string> all, size_t most, const char* separator) {
  if (all.size() > most) {
    const size_t rest = all.size() - most;
    all.resize(most);
    all.push_back(format("and {} more", rest));
  }
  return format("{}", join(all, separator));
}

std::string EscapedBytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const bool printable = c >= ' ' && c <= '~';
    text += printable ? std::string(1, c) : format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

}  // namespace mxtrain
