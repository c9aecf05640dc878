#include "mxtrain/optimizer/optimizer.h"

#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain {
namespace {

// What every optimizer takes.
struct BaseParam {
  double lr = 0, weight_decay = 0, clip_gradient = 0;
  template <typename P>
  static void DeclareBase(Fields<P>& f, double default_lr) {
    f.Add("lr", &P::lr).Default(default_lr).Range(0).Help("learning rate, before the schedule");
    f.Add("weight_decay", &P::weight_decay).Default(0).Range(0).Help("for parameters whose names end in _weight or _gamma");
    f.Add("clip_gradient", &P::clip_gradient).Default(-1).Help("bound of each gradient element after scaling by 1 / batch; negative: none");
  }
};

struct SgdParam : BaseParam, Parameter<SgdParam> {
  double momentum = 0;
  static void Declare(Fields<SgdParam>& f) {
    DeclareBase(f, 0.01);
    f.Add("momentum", &SgdParam::momentum).Default(0).Range(0, 1).Help("share of the last update that is kept");
  }
};

struct AdamParam : BaseParam, Parameter<AdamParam> {
  double beta1 = 0, beta2 = 0, epsilon = 0;
  static void Declare(Fields<AdamParam>& f) {
    DeclareBase(f, 0.001);
    f.Add("beta1", &AdamParam::beta1).Default(0.9).Range(0, 1).Help("decay of the mean of gradients");
    f.Add("beta2", &AdamParam::beta2).Default(0.999).Range(0, 1).Help("decay of the mean of squared gradients");
    f.Add("epsilon", &AdamParam::epsilon).Default(1e-8).Range(0).Help("added to the root of the mean square");
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

 protected:
  void FillCommon(const UpdateValues& v, float* scalars) const {
    scalars[kScalarLr] = static_cast<float>(v.lr);
    scalars[kScalarWeightDecay] = static_cast<float>(v.weight_decay);
    scalars[kScalarRescale] = static_cast<float>(v.rescale_grad);
    scalars[kScalarCorrection] = 1;
  }
  P param_;
};

class Sgd : public WithParam<SgdParam> {
 public:
  using WithParam::WithParam;
  std::string UpdateOperator() const override { return param_.momentum > 0 ? "sgd_mom_update" : "sgd_update"; }
  Kwargs UpdateParams() const override {
    Kwargs kwargs{{"clip_gradient", params::Print(param_.clip_gradient)}};
    if (param_.momentum > 0) kwargs.emplace_back("momentum", params::Print(param_.momentum));
    return kwargs;
  }
  int NumStates() const override { return param_.momentum > 0 ? 1 : 0; }
  void FillScalars(const UpdateValues& v, float* scalars) const override { FillCommon(v, scalars); }
};

class Nag final : public Sgd {
 public:
  using Sgd::Sgd;
  std::string UpdateOperator() const override { return param_.momentum > 0 ? "nag_mom_update" : "sgd_update"; }
};

// Kingma and Ba, arXiv 1412.6980; the correction of both moments goes into one factor of the learning rate.
class Adam : public WithParam<AdamParam> {
 public:
  using WithParam::WithParam;
  std::string UpdateOperator() const override { return "adam_update"; }
  Kwargs UpdateParams() const override {
    return {{"beta1", params::Print(param_.beta1)},
            {"beta2", params::Print(param_.beta2)},
            {"epsilon", params::Print(param_.epsilon)},
            {"clip_gradient", params::Print(param_.clip_gradient)}};
  }
  int NumStates() const override { return 2; }
  void FillScalars(const UpdateValues& v, float* scalars) const override {
    FillCommon(v, scalars);
    const double t = static_cast<double>(v.step);
    scalars[kScalarCorrection] = static_cast<float>(std::sqrt(1 - std::pow(param_.beta2, t)) / (1 - std::pow(param_.beta1, t)));
  }
};

// Loshchilov and Hutter, arXiv 1711.05101: decay apart from the gradient.
class AdamW final : public Adam {
 public:
  using Adam::Adam;
  std::string UpdateOperator() const override { return "adamw_update"; }
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

constexpr Row kRows[] = {{"sgd", Make<Sgd, SgdParam>, SgdParam::Describe},
                         {"nag", Make<Nag, SgdParam>, SgdParam::Describe},
                         {"adam", Make<Adam, AdamParam>, AdamParam::Describe},
                         {"adamw", Make<AdamW, AdamParam>, AdamParam::Describe}};

const Row& Find(std::string_view name) {
  for (const Row& row : kRows) {
    if (name == row.name) return row;
  }
  Throw(ErrorKind::kConfig, "there is no optimizer '{}'{}; use one of {}", name, DidYouMean(name, Optimizer::Names()),
        join(Optimizer::Names(), ", "));
}

double ReadMultiplier(const std::string& variable, const std::map<std::string, std::string>& attrs, const std::string& key, double otherwise) {
  for (const std::string& form : {key, "__" + key + "__"}) {
    const auto found = attrs.find(form);
    if (found == attrs.end()) continue;
    double value = 0;
    try {
      params::Parse(found->second, &value);
    } catch (const Error& e) {
      Throw(ErrorKind::kConfig, "parameter '{}': {} = '{}': {}", variable, key, found->second, e.what());
    }
    return value;
  }
  return otherwise;
}

}  // namespace

std::unique_ptr<Optimizer> Optimizer::Create(std::string_view name, const Kwargs& kwargs) { return Find(name).make(kwargs, name); }
std::vector<FieldInfo> Optimizer::Describe(std::string_view name) { return Find(name).describe(); }
std::vector<std::string> Optimizer::Names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

Multipliers DefaultMultipliers(const std::string& name, const std::map<std::string, std::string>& attrs) {
  const bool decays = name.ends_with("_weight") || name.ends_with("_gamma");
  return {ReadMultiplier(name, attrs, "lr_mult", 1), ReadMultiplier(name, attrs, "wd_mult", decays ? 1 : 0)};
}

}  // namespace mxtrain
