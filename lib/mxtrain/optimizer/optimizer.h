// SPDX-License-Identifier: Apache-2.0
#pragma once
// Optimizers turn gradients into new weights. The rule is a registered operator (`sgd_mom_update`),
// so it has SIMD, devices and layouts like every operator. An Optimizer selects the operator,
// creates its state, and computes the values that change from step to step.
//
// These values (learning rate, weight decay, gradient scale, step corrections) are in one small
// array per parameter that the kernel reads.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

// The `scalars` array that every update operator reads: learning rate, weight decay, factor of the
// gradient, and a number that some rules need besides: the factor of the learning rate that
// corrects the moments of Adam, the number of the step, a key of random numbers (1 elsewhere).
enum ScalarIndex {
  kScalarLr = 0,
  kScalarWeightDecay = 1,
  kScalarRescale = 2,
  kScalarCorrection = 3,
  kNumScalars = 4
};

// Of one update of one parameter.
struct UpdateValues {
  double lr = 0;            // includes the schedule and the parameter's multiplier
  double weight_decay = 0;  // includes the parameter's multiplier
  double rescale_grad = 1;
  int64_t step = 1;  // updates of this parameter so far, including this one
  // What random numbers of this update depend on: a hash of seed, parameter and step.
  uint64_t draw = 0;
};

class MXTRAIN_API Optimizer {
 public:
  // sgd (momentum), nag, adam, adamw, rmsprop, adagrad, adadelta, ftrl, lamb, lars, signsgd,
  // signum, ftml, nadam, adamax, lion, dcasgd, sgld, group_adagrad. Parameters as in MXNet's
  // optimizers; throws kConfig with the nearest name.
  static std::unique_ptr<Optimizer> Create(std::string_view name, const Kwargs& kwargs);
  static std::vector<std::string> Names();
  static std::vector<FieldInfo> Describe(std::string_view name);
  virtual ~Optimizer() = default;

  // Argument order of the operator: weight, grad, scalars; auxiliary: the states.
  virtual std::string UpdateOperator() const = 0;
  virtual Kwargs UpdateParams() const = 0;
  virtual int NumStates() const = 0;
  // Number of elements of the `scalars` array, and their values for one update.
  virtual int NumScalars() const = 0;
  virtual void FillScalars(const UpdateValues& values, float* scalars) const = 0;

  // False if the states depend on the learning rate (ftrl), which must then stay constant.
  virtual bool takes_schedule() const { return true; }

  double base_lr() const { return lr_; }
  double weight_decay() const { return weight_decay_; }

 protected:
  double lr_ = 0.01, weight_decay_ = 0;
};

// Largest multiplier of a learning rate or weight decay.
inline constexpr double kMostMultiplier = 1e6;

// Multipliers by MXNet's rule: the `lr_mult` and `wd_mult` attributes of the variable, else 1.
// Weight decay is off for names that end in neither _weight nor _gamma.
struct Multipliers {
  double lr = 1, weight_decay = 1;
};
MXTRAIN_API Multipliers DefaultMultipliers(const std::string& name,
                                           const std::map<std::string, std::string>& attrs);

// Multipliers of the learning rate by name patterns (base/glob.h); 0 freezes. The last match wins.
using LrPatterns = std::vector<std::pair<std::string, double>>;
// The default, except for a learning rate set by a pattern.
MXTRAIN_API Multipliers FindMultipliers(const std::string& name,
                                        const std::map<std::string, std::string>& attrs,
                                        const LrPatterns& patterns);

}  // namespace mxtrain
