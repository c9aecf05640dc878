// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/optimizer/patience.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "mxtrain/base/error.h"

namespace mxtrain {

bool Patience::Exhausted(double value, bool higher_is_better, std::optional<double> loss) {
  if (loss && !std::isfinite(*loss)) loss.reset();
  const double gain = !best_ ? 0 : higher_is_better ? value - *best_ : *best_ - value;
  const bool breaks_tie = best_ && value == *best_ && loss && loss_ && *loss < *loss_;
  if (std::isfinite(value) && (!best_ || gain > min_delta_ || breaks_tie)) {
    best_ = value;
    loss_ = loss;
    waited_ = 0;
  } else {
    ++waited_;
  }
  return waited_ >= patience_;
}

std::string Patience::SaveState() const {
  std::string text = std::to_string(waited_);
  if (best_) text += format(" {:a}", *best_);
  if (best_ && loss_) text += format(" {:a}", *loss_);
  return text;
}

void Patience::RestoreState(const std::string& text) {
  int64_t waited = 0;
  double best = 0, loss = 0;
  const int found = std::sscanf(text.c_str(), "%" SCNd64 " %la %la", &waited, &best, &loss);
  if (found < 1)
    Throw(ErrorKind::kData, "'{}' is not a saved count of epochs without improvement", text);
  waited_ = waited;
  best_ = found >= 2 ? std::optional(best) : std::nullopt;
  loss_ = found == 3 ? std::optional(loss) : std::nullopt;
}

}  // namespace mxtrain
