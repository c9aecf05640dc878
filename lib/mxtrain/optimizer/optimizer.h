#pragma once
// The rules that turn gradients into new weights. A rule is a registered operator (`sgd_mom_update`), so that SIMD, devices and layouts serve it as
// they serve every operator; an Optimizer chooses it, makes its state, and computes what changes from step to step.
//
// What changes (learning rate, weight decay, gradient scale, step corrections) lies in one small array per parameter that the kernel reads.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

// The `scalars` array that every update operator reads: learning rate, weight decay, factor of the gradient, factor of the learning rate that
// corrects the moments of Adam and its relatives (1 elsewhere).
enum ScalarIndex { kScalarLr = 0, kScalarWeightDecay = 1, kScalarRescale = 2, kScalarCorrection = 3, kNumScalars = 4 };

// Of one update of one parameter.
struct UpdateValues {
  double lr = 0;             // with the schedule and the parameter's multiplier
  double weight_decay = 0;   // with the parameter's multiplier
  double rescale_grad = 1;
  int64_t step = 1;          // updates of this parameter so far, this one included
};

class MXTRAIN_API Optimizer {
 public:
  // sgd (momentum), nag, adam, adamw, rmsprop, adagrad, adadelta, ftrl, lamb, lars. Parameters as in the reference system's optimizers; throws kConfig with the nearest name.
  static std::unique_ptr<Optimizer> Create(std::string_view name, const Kwargs& kwargs);
  static std::vector<std::string> Names();
  static std::vector<FieldInfo> Describe(std::string_view name);
  virtual ~Optimizer() = default;

  // Argument order of the operator: weight, grad, scalars; auxiliaries: the states.
  virtual std::string UpdateOperator() const = 0;
  virtual Kwargs UpdateParams() const = 0;
  virtual int NumStates() const = 0;
  // Elements of the `scalars` array, and their values for one update.
  virtual int NumScalars() const = 0;
  virtual void FillScalars(const UpdateValues& values, float* scalars) const = 0;

  // False where the states depend on the learning rate (ftrl), which must then stay as it is.
  virtual bool takes_schedule() const { return true; }

  double base_lr() const { return lr_; }
  double weight_decay() const { return weight_decay_; }

 protected:
  double lr_ = 0.01, weight_decay_ = 0;
};

// Multipliers by the reference system's rule: `lr_mult` and `wd_mult` attributes of the variable, else 1; weight decay is off for names that
// end in neither _weight nor _gamma.
struct Multipliers {
  double lr = 1, weight_decay = 1;
};
MXTRAIN_API Multipliers DefaultMultipliers(const std::string& name, const std::map<std::string, std::string>& attrs);

// Multipliers of the learning rate by patterns on names (base/glob.h); 0 freezes. Of those that match, the last decides.
using LrPatterns = std::vector<std::pair<std::string, double>>;
// The default, but for a learning rate that a pattern decides.
MXTRAIN_API Multipliers FindMultipliers(const std::string& name, const std::map<std::string, std::string>& attrs, const LrPatterns& patterns);

}  // namespace mxtrain
