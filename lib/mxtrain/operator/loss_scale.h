#pragma once
// The scale of the loss: in float16 small gradients vanish, so all gradients of a step are made as those of S times the loss, and the update divides
// them by S (Micikevicius et al. 2018, arXiv 1710.03740). S follows the gradients: a step whose gradients overflow is left out and S is halved;
// after kLossScaleInterval steps without that it is doubled. S is a power of two, so that no bit is lost by it.
//
// What the operator `_loss_scale_update` changes and the trainer reads, float32 [kLossScaleNumbers] on the device:
namespace mxtrain {

enum LossScaleNumber {
  kLossScaleValue,     // S
  kLossScaleGood,      // steps since S changed, or since one was left out
  kLossScaleLeftOut,   // steps left out, in all
  kLossScaleAtLowest,  // of these, under the lowest S: nothing can be lowered any more
  kLossScaleNumbers
};

inline constexpr float kLowestLossScale = 1, kHighestLossScale = 1 << 24;
inline constexpr int kLossScaleInterval = 2000;

}  // namespace mxtrain
