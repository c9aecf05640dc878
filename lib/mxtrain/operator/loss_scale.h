// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loss scaling: small gradients vanish in float16, so all gradients of a step are those of S times
// the loss, and the update divides them by S (Micikevicius et al. 2018, arXiv 1710.03740). S is
// dynamic: a step whose gradients overflow is skipped and S is halved; after kLossScaleInterval
// steps without overflow it is doubled. S is a power of two, so scaling loses no bits.
//
// State that the operator `_loss_scale_update` changes and the trainer reads, float32
// [kLossScaleNumbers] on the device:
namespace mxtrain {

enum LossScaleNumber {
  kLossScaleValue,     // S
  kLossScaleGood,      // steps since S changed or a step was skipped
  kLossScaleSkipped,   // skipped steps in total
  kLossScaleAtLowest,  // of these, at the lowest S, which cannot be halved
  kLossScaleNumbers
};

inline constexpr float kLowestLossScale = 1, kHighestLossScale = 1 << 24;
inline constexpr int kLossScaleInterval = 2000;

}  // namespace mxtrain
