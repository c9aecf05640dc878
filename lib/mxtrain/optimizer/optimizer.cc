// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/optimizer/optimizer.h"

#include <cmath>
#include <cstring>

#include "mxtrain/base/error.h"
#include "mxtrain/base/glob.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain {
namespace {

// The largest rate: its product with a gradient of 1e8 is still a number of float32.
constexpr double kMostRate = 1e30;

// Parameters of every optimizer.
struct BaseParam {
  static constexpr bool kDividesByRate = false;
  double lr = 0, weight_decay = 0, clip_gradient = 0;
  template <typename P>
  static void DeclareBase(Fields<P>& f, double default_lr) {
    auto lr = f.Add("lr", &P::lr).Default(default_lr).Help("learning rate, before the schedule");
    P::kDividesByRate ? lr.RangeAbove(0, kMostRate) : lr.Range(0, kMostRate);
    f.Add("weight_decay", &P::weight_decay)
        .Default(0)
        .Range(0, kMostRate)
        .Help("for parameters whose names end in _weight or _gamma");
    f.Add("clip_gradient", &P::clip_gradient)
        .Default(-1)
        .Help("limit of each gradient element after scaling by 1 / batch; negative: none");
  }
};

struct SgdParam : BaseParam, Parameter<SgdParam> {
  double momentum = 0;
  static void Declare(Fields<SgdParam>& f) {
    DeclareBase(f, 0.01);
    f.Add("momentum", &SgdParam::momentum)
        .Default(0)
        .RangeBelow(0, 1)
        .Help("fraction of the previous update that is kept");
  }
};

struct MomentsParam : BaseParam {
  double beta1 = 0, beta2 = 0, epsilon = 0;
  template <typename P>
  static void DeclareMoments(Fields<P>& f, double default_epsilon) {
    P::DeclareBase(f, 0.001);
    f.Add("beta1", &P::beta1).Default(0.9).RangeBelow(0, 1).Help("decay of the mean of gradients");
    f.Add("beta2", &P::beta2)
        .Default(0.999)
        .RangeBelow(0, 1)
        .Help("decay of the mean of squared gradients");
    f.Add("epsilon", &P::epsilon)
        .Default(default_epsilon)
        .RangeAbove(0)
        .Help("added to the root of the mean square");
  }
};
struct AdamParam : MomentsParam, Parameter<AdamParam> {
  static void Declare(Fields<AdamParam>& f) { DeclareMoments(f, 1e-8); }
};
struct LambParam : MomentsParam, Parameter<LambParam> {
  static void Declare(Fields<LambParam>& f) { DeclareMoments(f, 1e-6); }
};

struct RmsPropParam : BaseParam, Parameter<RmsPropParam> {
  double rho = 0, momentum = 0, epsilon = 0;
  bool centered = false;
  static void Declare(Fields<RmsPropParam>& f) {
    DeclareBase(f, 0.001);
    f.Add("rho", &RmsPropParam::rho)
        .Default(0.9)
        .RangeBelow(0, 1)
        .Help("decay of the mean of squared gradients");
    f.Add("momentum", &RmsPropParam::momentum)
        .Default(0)
        .RangeBelow(0, 1)
        .Help("fraction of the previous update that is kept");
    f.Add("centered", &RmsPropParam::centered)
        .Default(false)
        .Help("divide by the variance of gradients instead of their mean square");
    f.Add("epsilon", &RmsPropParam::epsilon)
        .Default(1e-8)
        .RangeAbove(0)
        .Help("added to the mean square, under the root");
  }
};

struct AdagradParam : BaseParam, Parameter<AdagradParam> {
  double epsilon = 0;
  static void Declare(Fields<AdagradParam>& f) {
    DeclareBase(f, 0.01);
    f.Add("epsilon", &AdagradParam::epsilon)
        .Default(1e-7)
        .RangeAbove(0)
        .Help("added to the sum of squared gradients, under the root");
  }
};

struct AdadeltaParam : BaseParam, Parameter<AdadeltaParam> {
  double rho = 0, epsilon = 0;
  static void Declare(Fields<AdadeltaParam>& f) {
    DeclareBase(f, 1);
    f.Add("rho", &AdadeltaParam::rho)
        .Default(0.9)
        .RangeBelow(0, 1)
        .Help("decay of the means of squared gradients and updates");
    f.Add("epsilon", &AdadeltaParam::epsilon)
        .Default(1e-5)
        .RangeAbove(0)
        .Help("added to both means, under the roots");
  }
};

struct FtrlParam : BaseParam, Parameter<FtrlParam> {
  static constexpr bool kDividesByRate = true;
  double lambda1 = 0, beta = 0;
  static void Declare(Fields<FtrlParam>& f) {
    DeclareBase(f, 0.1);
    f.Add("lambda1", &FtrlParam::lambda1)
        .Default(0.01)
        .Range(0)
        .Help("weight of the L1 norm; higher gives more zero weights");
    f.Add("beta", &FtrlParam::beta)
        .Default(1)
        .Range(0)
        .Help("added to the root of the sum of squared gradients");
  }
};

struct LarsParam : BaseParam, Parameter<LarsParam> {
  double momentum = 0, eta = 0, epsilon = 0;
  static void Declare(Fields<LarsParam>& f) {
    DeclareBase(f, 0.1);
    f.Add("momentum", &LarsParam::momentum)
        .Default(0)
        .RangeBelow(0, 1)
        .Help("fraction of the previous update that is kept");
    f.Add("eta", &LarsParam::eta)
        .Default(0.001)
        .Range(0)
        .Help("trust coefficient: norm of an update relative to the weights, at a rate of 1");
    f.Add("epsilon", &LarsParam::epsilon).Default(0).Range(0).Help("added to the divisor");
  }
};

struct SignumParam : BaseParam, Parameter<SignumParam> {
  double momentum = 0, wd_lh = 0;
  static void Declare(Fields<SignumParam>& f) {
    DeclareBase(f, 0.01);
    f.Add("momentum", &SignumParam::momentum)
        .Default(0.9)
        .RangeBelow(0, 1)
        .Help("decay of the mean of gradients; 0: the sign of each gradient");
    f.Add("wd_lh", &SignumParam::wd_lh)
        .Default(0)
        .Range(0, kMostRate)
        .Help("weight decay outside of the sign, as that of adamw; needs a momentum above 0");
  }
};

struct SignSgdParam : BaseParam, Parameter<SignSgdParam> {
  static void Declare(Fields<SignSgdParam>& f) { DeclareBase(f, 0.01); }
};

struct SgldParam : BaseParam, Parameter<SgldParam> {
  static void Declare(Fields<SgldParam>& f) { DeclareBase(f, 0.01); }
};

struct FtmlParam : BaseParam, Parameter<FtmlParam> {
  double beta1 = 0, beta2 = 0, epsilon = 0;
  static void Declare(Fields<FtmlParam>& f) {
    DeclareBase(f, 0.01);
    f.Add("beta1", &FtmlParam::beta1)
        .Default(0.6)
        .RangeBelow(0, 1)
        .Help("decay of the mean of gradients");
    f.Add("beta2", &FtmlParam::beta2)
        .Default(0.999)
        .RangeBelow(0, 1)
        .Help("decay of the mean of squared gradients");
    f.Add("epsilon", &FtmlParam::epsilon)
        .Default(1e-8)
        .RangeAbove(0)
        .Help("added to the root of the mean square");
  }
};

struct NadamParam : MomentsParam, Parameter<NadamParam> {
  double schedule_decay = 0;
  static void Declare(Fields<NadamParam>& f) {
    DeclareMoments(f, 1e-8);
    f.Add("schedule_decay", &NadamParam::schedule_decay)
        .Default(0.004)
        .Range(0)
        .Help("how fast the momentum approaches beta1, from about half of it");
  }
};

struct AdamaxParam : BaseParam, Parameter<AdamaxParam> {
  double beta1 = 0, beta2 = 0;
  static void Declare(Fields<AdamaxParam>& f) {
    DeclareBase(f, 0.002);
    f.Add("beta1", &AdamaxParam::beta1)
        .Default(0.9)
        .RangeBelow(0, 1)
        .Help("decay of the mean of gradients");
    f.Add("beta2", &AdamaxParam::beta2)
        .Default(0.999)
        .RangeBelow(0, 1)
        .Help("decay of the largest gradient");
  }
};

struct LionParam : BaseParam, Parameter<LionParam> {
  double beta1 = 0, beta2 = 0;
  static void Declare(Fields<LionParam>& f) {
    DeclareBase(f, 1e-4);
    f.Add("beta1", &LionParam::beta1)
        .Default(0.9)
        .RangeBelow(0, 1)
        .Help("share of the mean of gradients in an update");
    f.Add("beta2", &LionParam::beta2)
        .Default(0.99)
        .RangeBelow(0, 1)
        .Help("decay of the mean of gradients");
  }
};

struct DcasgdParam : BaseParam, Parameter<DcasgdParam> {
  double momentum = 0, lambda = 0;
  static void Declare(Fields<DcasgdParam>& f) {
    DeclareBase(f, 0.01);
    f.Add("momentum", &DcasgdParam::momentum)
        .Default(0)
        .RangeBelow(0, 1)
        .Help("fraction of the previous update that is kept");
    f.Add("lambda", &DcasgdParam::lambda)
        .Default(0.04)
        .Range(0)
        .Help("factor of the compensation for the weight's last movement");
  }
};

struct GroupAdagradParam : BaseParam, Parameter<GroupAdagradParam> {
  double epsilon = 0;
  static void Declare(Fields<GroupAdagradParam>& f) {
    DeclareBase(f, 0.01);
    f.Add("epsilon", &GroupAdagradParam::epsilon)
        .Default(1e-5)
        .RangeAbove(0)
        .Help("added to the sum of mean squared gradients, under the root");
  }
};

template <typename P>
class WithParam : public Optimizer {
 public:
  explicit WithParam(const P& param) : param_(param) {
    lr_ = param.lr;
    weight_decay_ = param.weight_decay;
  }
  int NumScalars() const override { return kNumScalars; }
  // The parameters that the operator also has, under the same names.
  Kwargs UpdateParams() const override {
    Kwargs kwargs = param_.ToKwargs();
    std::erase_if(kwargs, [](const auto& item) {
      return item.first == "lr" || item.first == "weight_decay" || item.first == "centered";
    });
    return kwargs;
  }
  void FillScalars(const UpdateValues& v, float* scalars) const override {
    scalars[kScalarLr] = static_cast<float>(v.lr);
    scalars[kScalarWeightDecay] = static_cast<float>(v.weight_decay);
    scalars[kScalarRescale] = static_cast<float>(v.rescale_grad);
    scalars[kScalarCorrection] = 1;
  }

 protected:
  P param_;
};

class Sgd : public WithParam<SgdParam> {
 public:
  using WithParam::WithParam;
  std::string UpdateOperator() const override {
    return param_.momentum > 0 ? "sgd_mom_update" : "sgd_update";
  }
  Kwargs UpdateParams() const override {
    Kwargs kwargs{{"clip_gradient", params::Print(param_.clip_gradient)}};
    if (param_.momentum > 0) kwargs.emplace_back("momentum", params::Print(param_.momentum));
    return kwargs;
  }
  int NumStates() const override { return param_.momentum > 0 ? 1 : 0; }
};

class Nag final : public Sgd {
 public:
  using Sgd::Sgd;
  std::string UpdateOperator() const override {
    return param_.momentum > 0 ? "nag_mom_update" : "sgd_update";
  }
};

// Kingma and Ba, arXiv 1412.6980; the bias correction of both moments is one factor of the learning
// rate.
template <typename P>
class Moments : public WithParam<P> {
 public:
  using WithParam<P>::WithParam;
  int NumStates() const override { return 2; }
  void FillScalars(const UpdateValues& v, float* scalars) const override {
    WithParam<P>::FillScalars(v, scalars);
    const double t = static_cast<double>(v.step);
    scalars[kScalarCorrection] = static_cast<float>(std::sqrt(1 - std::pow(this->param_.beta2, t)) /
                                                    (1 - std::pow(this->param_.beta1, t)));
  }
};

class Adam final : public Moments<AdamParam> {
 public:
  using Moments::Moments;
  std::string UpdateOperator() const override { return "adam_update"; }
};

// Loshchilov and Hutter, arXiv 1711.05101: decoupled weight decay.
class AdamW final : public Moments<AdamParam> {
 public:
  using Moments::Moments;
  std::string UpdateOperator() const override { return "adamw_update"; }
};

// operators/optimizer_update/optimizer_update.h lists the papers and formulas of these.
class Lamb final : public Moments<LambParam> {
 public:
  using Moments::Moments;
  std::string UpdateOperator() const override { return "lamb_update"; }
};

class RmsProp final : public WithParam<RmsPropParam> {
 public:
  using WithParam::WithParam;
  std::string UpdateOperator() const override {
    return param_.centered       ? "rmspropalex_update"
           : param_.momentum > 0 ? "rmsprop_mom_update"
                                 : "rmsprop_update";
  }
  int NumStates() const override { return param_.centered ? 3 : param_.momentum > 0 ? 2 : 1; }
};

class Adagrad final : public WithParam<AdagradParam> {
 public:
  using WithParam::WithParam;
  std::string UpdateOperator() const override { return "adagrad_update"; }
  int NumStates() const override { return 1; }
};

class Adadelta final : public WithParam<AdadeltaParam> {
 public:
  using WithParam::WithParam;
  std::string UpdateOperator() const override { return "adadelta_update"; }
  int NumStates() const override { return 2; }
};

class Ftrl final : public WithParam<FtrlParam> {
 public:
  using WithParam::WithParam;
  std::string UpdateOperator() const override { return "ftrl_update"; }
  int NumStates() const override { return 2; }
  bool takes_schedule() const override { return false; }
};

class Lars final : public WithParam<LarsParam> {
 public:
  using WithParam::WithParam;
  std::string UpdateOperator() const override { return "lars_update"; }
  int NumStates() const override { return 1; }
};

// A rule with a fixed operator and number of states.
template <typename P>
class Fixed : public WithParam<P> {
 public:
  Fixed(const P& param, const char* op, int states)
      : WithParam<P>(param), op_(op), states_(states) {}
  std::string UpdateOperator() const override { return op_; }
  int NumStates() const override { return states_; }

 private:
  const char* op_;
  int states_;
};

class SignSgd final : public Fixed<SignSgdParam> {
 public:
  explicit SignSgd(const SignSgdParam& param) : Fixed(param, "signsgd_update", 0) {}
};

// Without momentum this is signsgd, as in MXNet: the weight decays outside of the sign, and wd_lh
// is not used.
class Signum final : public WithParam<SignumParam> {
 public:
  explicit Signum(const SignumParam& param) : WithParam(param) {
    if (has_mean() || param.wd_lh == 0) return;
    Throw(ErrorKind::kConfig,
          "optimizer signum: wd_lh = {} has no effect where momentum is 0; use weight_decay, or a "
          "momentum above 0",
          param.wd_lh);
  }
  std::string UpdateOperator() const override {
    return has_mean() ? "signum_update" : "signsgd_update";
  }
  Kwargs UpdateParams() const override {
    if (has_mean()) return WithParam::UpdateParams();
    return {{"clip_gradient", params::Print(param_.clip_gradient)}};
  }
  int NumStates() const override { return has_mean() ? 1 : 0; }

 private:
  bool has_mean() const { return param_.momentum > 0; }
};

// The rule itself computes its factors from the number of the step.
template <typename P>
class ByStep : public Fixed<P> {
 public:
  using Fixed<P>::Fixed;
  void FillScalars(const UpdateValues& v, float* scalars) const override {
    Fixed<P>::FillScalars(v, scalars);
    scalars[kScalarCorrection] = static_cast<float>(v.step);
  }
};

class Ftml final : public ByStep<FtmlParam> {
 public:
  explicit Ftml(const FtmlParam& param) : ByStep(param, "ftml_update", 3) {}
};

class Nadam final : public ByStep<NadamParam> {
 public:
  explicit Nadam(const NadamParam& param) : ByStep(param, "nadam_update", 2) {}
};

class Adamax final : public Fixed<AdamaxParam> {
 public:
  explicit Adamax(const AdamaxParam& param) : Fixed(param, "adamax_update", 2) {}
  void FillScalars(const UpdateValues& v, float* scalars) const override {
    Fixed::FillScalars(v, scalars);
    scalars[kScalarCorrection] =
        static_cast<float>(1 / (1 - std::pow(param_.beta1, static_cast<double>(v.step))));
  }
};

class Lion final : public Fixed<LionParam> {
 public:
  explicit Lion(const LionParam& param) : Fixed(param, "lion_update", 1) {}
};

class Dcasgd final : public Fixed<DcasgdParam> {
 public:
  explicit Dcasgd(const DcasgdParam& param) : Fixed(param, "dcasgd_update", 1) {}
};

// The key of the random numbers is 30 bits of the draw, as the bytes of a finite float that is
// neither zero nor subnormal.
class Sgld final : public Fixed<SgldParam> {
 public:
  explicit Sgld(const SgldParam& param) : Fixed(param, "sgld_update", 0) {}
  void FillScalars(const UpdateValues& v, float* scalars) const override {
    Fixed::FillScalars(v, scalars);
    constexpr uint32_t kSmallestNormal = 0x00800000, kBits = (uint32_t{1} << 30) - 1;
    const uint32_t key = kSmallestNormal + (static_cast<uint32_t>(v.draw) & kBits);
    std::memcpy(&scalars[kScalarCorrection], &key, sizeof(key));
  }
};

class GroupAdagrad final : public Fixed<GroupAdagradParam> {
 public:
  explicit GroupAdagrad(const GroupAdagradParam& param) : Fixed(param, "group_adagrad_update", 1) {}
};

struct Row {
  const char* name;
  std::unique_ptr<Optimizer> (*make)(const Kwargs&, std::string_view name);
  std::vector<FieldInfo> (*describe)();
};

template <typename O, typename P>
std::unique_ptr<Optimizer> Make(const Kwargs& kwargs, std::string_view name) {
  P param;
  param.Init(kwargs, format("optimizer {}", name));
  return std::make_unique<O>(param);
}

constexpr Row kRows[] = {
    {"sgd", Make<Sgd, SgdParam>, SgdParam::Describe},
    {"nag", Make<Nag, SgdParam>, SgdParam::Describe},
    {"adam", Make<Adam, AdamParam>, AdamParam::Describe},
    {"adamw", Make<AdamW, AdamParam>, AdamParam::Describe},
    {"rmsprop", Make<RmsProp, RmsPropParam>, RmsPropParam::Describe},
    {"adagrad", Make<Adagrad, AdagradParam>, AdagradParam::Describe},
    {"adadelta", Make<Adadelta, AdadeltaParam>, AdadeltaParam::Describe},
    {"ftrl", Make<Ftrl, FtrlParam>, FtrlParam::Describe},
    {"lamb", Make<Lamb, LambParam>, LambParam::Describe},
    {"lars", Make<Lars, LarsParam>, LarsParam::Describe},
    {"signsgd", Make<SignSgd, SignSgdParam>, SignSgdParam::Describe},
    {"signum", Make<Signum, SignumParam>, SignumParam::Describe},
    {"ftml", Make<Ftml, FtmlParam>, FtmlParam::Describe},
    {"nadam", Make<Nadam, NadamParam>, NadamParam::Describe},
    {"adamax", Make<Adamax, AdamaxParam>, AdamaxParam::Describe},
    {"lion", Make<Lion, LionParam>, LionParam::Describe},
    {"dcasgd", Make<Dcasgd, DcasgdParam>, DcasgdParam::Describe},
    {"sgld", Make<Sgld, SgldParam>, SgldParam::Describe},
    {"group_adagrad", Make<GroupAdagrad, GroupAdagradParam>, GroupAdagradParam::Describe}};

const Row& Find(std::string_view name) {
  for (const Row& row : kRows) {
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
  return Find(name).make(kwargs, name);
}
std::vector<FieldInfo> Optimizer::Describe(std::string_view name) {
  return Find(name).describe();
}
std::vector<std::string> Optimizer::Names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
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
