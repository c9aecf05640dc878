// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/optimizer/optimizer.h"

#include <bit>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/glob.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/operator/update_params.h"

namespace mxtrain {
namespace {

// What the last scalar of an update holds.
enum class Correction {
  kNone,         // 1
  kMoments,      // of both moments of Adam, as one factor of the learning rate
  kFirstMoment,  // of the first one
  kStep,         // the number of the step: the rule computes its factors
  kKey           // of random numbers
};

struct OptimizerRow {
  const char* name;
  // Its update, and the one that takes its place where the momentum is 0, if any.
  const char *update, *without_momentum;
  Correction correction;
  std::unique_ptr<Optimizer> (*make)(const Kwargs&, const OptimizerRow&);
  std::vector<FieldInfo> (*describe)();
};

// Parameters of an optimizer whose rule has the constants C; its default learning rate in
// millionths (clang 16 takes no floating template parameters).
template <typename C, int kLrMillionths>
struct OptimizerParam : C, Parameter<OptimizerParam<C, kLrMillionths>> {
  static constexpr bool kDividesByRate = requires { C::kDividesByRate; };
  double lr = 0, weight_decay = 0, clip_gradient = 0;
  static void Declare(Fields<OptimizerParam>& f) {
    using P = OptimizerParam;
    auto rate =
        f.Add("lr", &P::lr).Default(kLrMillionths / 1e6).Help("learning rate, before the schedule");
    kDividesByRate ? rate.RangeAbove(0, updates::kMostRate) : rate.Range(0, updates::kMostRate);
    f.Add("weight_decay", &P::weight_decay)
        .Default(0)
        .Range(0, updates::kMostRate)
        .Help("for parameters whose names end in _weight or _gamma");
    f.Add("clip_gradient", &P::clip_gradient)
        .Default(-1)
        .Help("limit of each gradient element after scaling by 1 / batch; negative: none");
    C::DeclareConstants(f);
  }
};

struct RmsProp : updates::RmsProp {
  bool centered = false;
  template <typename P>
  static void DeclareConstants(Fields<P>& f) {
    updates::RmsProp::DeclareDecays(f);
    f.Add("centered", &RmsProp::centered)
        .Default(false)
        .Help("divide by the variance of gradients instead of their mean square");
    updates::RmsProp::DeclareEpsilon(f);
  }
};

// A key of random numbers: 30 bits of the draw, as the bytes of a finite float that is neither zero
// nor subnormal.
float KeyOf(uint64_t draw) {
  constexpr uint32_t kSmallestNormal = 0x00800000, kBits = (uint32_t{1} << 30) - 1;
  return std::bit_cast<float>(kSmallestNormal + (static_cast<uint32_t>(draw) & kBits));
}

template <typename P>
class OptimizerOf final : public Optimizer {
 public:
  OptimizerOf(const P& param, const OptimizerRow& row) : param_(param), row_(row) {
    lr_ = param.lr;
    weight_decay_ = param.weight_decay;
    if constexpr (requires { param.wd_lh; }) {
      if (param.wd_lh != 0 && param.momentum == 0) {
        Throw(ErrorKind::kConfig,
              "optimizer {}: wd_lh = {} has no effect where momentum is 0; use weight_decay, or a "
              "momentum above 0",
              row.name, param.wd_lh);
      }
    }
  }
  std::string UpdateOperator() const override {
    if constexpr (requires { param_.centered; }) {
      if (param_.centered) return "rmspropalex_update";
    }
    if constexpr (requires { param_.momentum; }) {
      if (row_.without_momentum && param_.momentum == 0) return row_.without_momentum;
    }
    return row_.update;
  }
  int NumStates() const override { return updates::UpdateOf(UpdateOperator()).num_states(); }
  // The parameters that the operator also has, under the same names. A rule without states has no
  // constants.
  Kwargs UpdateParams() const override {
    if (NumStates() == 0) return {{"clip_gradient", params::Print(param_.clip_gradient)}};
    Kwargs kwargs = param_.ToKwargs();
    std::erase_if(kwargs, [](const auto& item) {
      return item.first == "lr" || item.first == "weight_decay" || item.first == "centered";
    });
    return kwargs;
  }
  int NumScalars() const override { return kNumScalars; }
  void FillScalars(const UpdateValues& v, float* scalars) const override {
    scalars[kScalarLr] = static_cast<float>(v.lr);
    scalars[kScalarWeightDecay] = static_cast<float>(v.weight_decay);
    scalars[kScalarRescale] = static_cast<float>(v.rescale_grad);
    scalars[kScalarCorrection] = CorrectionOf(v);
  }
  bool takes_schedule() const override { return !P::kDividesByRate; }

 private:
  float CorrectionOf(const UpdateValues& v) const {
    if (row_.correction == Correction::kStep) return static_cast<float>(v.step);
    if (row_.correction == Correction::kKey) return KeyOf(v.draw);
    if constexpr (requires { param_.beta1, param_.beta2; }) {
      const double t = static_cast<double>(v.step), first = 1 - std::pow(param_.beta1, t);
      if (row_.correction == Correction::kMoments)
        return static_cast<float>(std::sqrt(1 - std::pow(param_.beta2, t)) / first);
      if (row_.correction == Correction::kFirstMoment) return static_cast<float>(1 / first);
    }
    return 1;
  }

  P param_;
  const OptimizerRow& row_;
};

// Constants and default learning rate, name and update.
template <typename C, int kLrMillionths>
constexpr OptimizerRow RowOf(const char* name, const char* update,
                             Correction correction = Correction::kNone,
                             const char* without_momentum = nullptr) {
  using P = OptimizerParam<C, kLrMillionths>;
  return {name,
          update,
          without_momentum,
          correction,
          [](const Kwargs& kwargs, const OptimizerRow& row) -> std::unique_ptr<Optimizer> {
            P param;
            param.Init(kwargs, format("optimizer {}", row.name));
            return std::make_unique<OptimizerOf<P>>(param, row);
          },
          P::Describe};
}

// operators/optimizer_update/optimizer_update.h lists the papers and formulas. Without momentum
// signum is signsgd, as in MXNet: the weight decays outside of the sign.
constexpr OptimizerRow kOptimizers[] = {
    RowOf<updates::Momentum, 10'000>("sgd", "sgd_mom_update", Correction::kNone, "sgd_update"),
    RowOf<updates::Momentum, 10'000>("nag", "nag_mom_update", Correction::kNone, "sgd_update"),
    RowOf<updates::Adam, 1'000>("adam", "adam_update", Correction::kMoments),
    RowOf<updates::Adam, 1'000>("adamw", "adamw_update", Correction::kMoments),
    RowOf<RmsProp, 1'000>("rmsprop", "rmsprop_mom_update", Correction::kNone, "rmsprop_update"),
    RowOf<updates::Adagrad, 10'000>("adagrad", "adagrad_update"),
    RowOf<updates::Adadelta, 1'000'000>("adadelta", "adadelta_update"),
    RowOf<updates::Ftrl, 100'000>("ftrl", "ftrl_update"),
    RowOf<updates::Lamb, 1'000>("lamb", "lamb_update", Correction::kMoments),
    RowOf<updates::Lars, 100'000>("lars", "lars_update"),
    RowOf<updates::NoConstants, 10'000>("signsgd", "signsgd_update"),
    RowOf<updates::Signum, 10'000>("signum", "signum_update", Correction::kNone, "signsgd_update"),
    RowOf<updates::Ftml, 10'000>("ftml", "ftml_update", Correction::kStep),
    RowOf<updates::Nadam, 1'000>("nadam", "nadam_update", Correction::kStep),
    RowOf<updates::Adamax, 2'000>("adamax", "adamax_update", Correction::kFirstMoment),
    RowOf<updates::Lion, 100>("lion", "lion_update"),
    RowOf<updates::Dcasgd, 10'000>("dcasgd", "dcasgd_update"),
    RowOf<updates::NoConstants, 10'000>("sgld", "sgld_update", Correction::kKey),
    RowOf<updates::GroupAdagrad, 10'000>("group_adagrad", "group_adagrad_update")};

const OptimizerRow& FindOptimizer(std::string_view name) {
  for (const OptimizerRow& row : kOptimizers) {
    if (name == row.name) return row;
  }
  Throw(ErrorKind::kConfig, "there is no optimizer '{}'{}; use one of {}", name,
        DidYouMean(name, Optimizer::Names()), join(Optimizer::Names(), ", "));
}

double ReadMultiplier(const std::string& variable, const std::map<std::string, std::string>& attrs,
                      const std::string& key, double otherwise) {
  for (const std::string& spelling : {key, "__" + key + "__"}) {
    const auto found = attrs.find(spelling);
    if (found == attrs.end()) continue;
    double value = 0;
    try {
      params::Parse(found->second, &value);
    } catch (const Error& e) {
      Throw(ErrorKind::kConfig, "parameter '{}': {} = '{}': {}", variable, key, found->second,
            e.what());
    }
    if (std::abs(value) <= kMostMultiplier) return value;
    Throw(ErrorKind::kConfig, "parameter '{}': {} = '{}': expected a number up to {}", variable,
          key, found->second, kMostMultiplier);
  }
  return otherwise;
}

}  // namespace

std::unique_ptr<Optimizer> Optimizer::Create(std::string_view name, const Kwargs& kwargs) {
  const OptimizerRow& row = FindOptimizer(name);
  return row.make(kwargs, row);
}
std::vector<FieldInfo> Optimizer::Describe(std::string_view name) {
  return FindOptimizer(name).describe();
}
std::vector<std::string> Optimizer::Names() {
  std::vector<std::string> names;
  for (const OptimizerRow& row : kOptimizers) names.emplace_back(row.name);
  return names;
}

Multipliers DefaultMultipliers(const std::string& name,
                               const std::map<std::string, std::string>& attrs) {
  const bool decays = name.ends_with("_weight") || name.ends_with("_gamma");
  return {ReadMultiplier(name, attrs, "lr_mult", 1),
          ReadMultiplier(name, attrs, "wd_mult", decays ? 1 : 0)};
}

Multipliers FindMultipliers(const std::string& name,
                            const std::map<std::string, std::string>& attrs,
                            const LrPatterns& patterns) {
  Multipliers multipliers = DefaultMultipliers(name, attrs);
  for (const auto& [pattern, factor] : patterns) {
    if (GlobMatches(pattern, name)) multipliers.lr = factor;
  }
  return multipliers;
}

}  // namespace mxtrain
