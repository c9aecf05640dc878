// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/name_that_fits.h"

#include "app/report/plot/visual_text.h"

namespace mxtrain::plot {

std::string NameThatFits(std::string_view name, const std::function<bool(std::string_view)>& fits) {
  if (name.empty() || fits(name)) return std::string(name);
  const std::u32string all = CharactersOf(name);
  const auto shortened = [&all](size_t kept) {
    return Utf8Of(all.substr(0, (kept + 1) / 2) + U"\u2026" + all.substr(all.size() - kept / 2));
  };
  size_t low = 0, high = all.size() - 1;  // the most characters that fit are between
  while (low < high) {
    const size_t middle = (low + high + 1) / 2;
    if (fits(shortened(middle)))
      low = middle;
    else
      high = middle - 1;
  }
  return shortened(low);
}

}  // namespace mxtrain::plot
