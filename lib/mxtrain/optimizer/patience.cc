// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/optimizer/patience.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "mxtrain/base/error.h"

namespace mxtrain {

bool Patience::Exhausted(double value, bool higher_is_better) {
  const double gain = !best_ ? 0 : higher_is_better ? value - *best_ : *best_ - value;
  if (std::isfinite(value) && (!best_ || gain > min_delta_)) {
    best_ = value;
    waited_ = 0;
  } else {
    ++waited_;
  }
  return waited_ >= patience_;
}

std::string Patience::SaveState() const {
  return best_ ? format("{} {:a}", waited_, *best_) : std::to_string(waited_);
}

void Patience::RestoreState(const std::string& text) {
  int64_t waited = 0;
  double best = 0;
  const int found = std::sscanf(text.c_str(), "%" SCNd64 " %la", &waited, &best);
  if (found < 1)
    Throw(ErrorKind::kData, "'{}' is not a saved count of epochs without improvement", text);
  waited_ = waited;
  best_ = found == 2 ? std::optional(best) : std::nullopt;
}

}  // namespace mxtrain
