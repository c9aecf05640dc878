// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/optimizer_update/optimizer_update.h"

#include <algorithm>

#include "mxtrain/operator/registry.h"

namespace mxtrain::optimizer_update {
namespace {

template <typename P>
class UpdateProperty final : public PropertyWithParam<P> {
 public:
  UpdateProperty(const char* name, std::vector<std::string> states)
      : name_(name), states_(std::move(states)) {}

  std::string TypeString() const override { return name_; }
  std::string Description() const override {
    return "an optimizer step: the new weight, or several";
  }
  std::vector<std::string> ListArguments() const override {
    std::vector<std::string> names = OfEachWeight({"weight"});
    for (const std::string& grad : OfEachWeight({"grad"})) names.push_back(grad);
    names.push_back("scalars");
    return names;
  }
  std::vector<std::string> ListOutputs() const override { return OfEachWeight({"output"}); }
  std::vector<std::string> ListAuxiliaryStates() const override { return OfEachWeight(states_); }
  bool HasGradient(int) const override { return false; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&, const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override {
    std::vector<InplacePair> pairs;
    for (int n = 0; n < this->param_.num_weights; ++n) pairs.push_back({n, n});
    return pairs;
  }

  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override {
    const std::vector<std::string> in_names = ListArguments(), out_names = ListOutputs(),
                                   aux_names = ListAuxiliaryStates();
    const size_t num_weights = out->size(), num_states = states_.size();
    bool known = true;
    for (size_t n = 0; n < num_weights; ++n) {
      TShape weight = (*in)[n];
      UnifyShape((*in)[num_weights + n], &weight, name_, in_names[num_weights + n]);
      UnifyShape((*out)[n], &weight, name_, out_names[n]);
      for (size_t i = n * num_states; i < (n + 1) * num_states; ++i) {
        UnifyShape((*aux)[i], &weight, name_, aux_names[i]);
      }
      (*in)[n] = (*in)[num_weights + n] = (*out)[n] = weight;
      std::fill_n(aux->begin() + static_cast<std::ptrdiff_t>(n * num_states), num_states, weight);
      known = known && weight.known();
    }
    TShape scalars = num_weights == 1 ? TShape{kNumScalars}
                                      : TShape{static_cast<int64_t>(num_weights), kNumScalars};
    UnifyShape(in->back(), &scalars, name_, "scalars");
    in->back() = scalars;
    return known;
  }

  // `scalars` is float32 for any type of the weights, which have one type.
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override {
    UnifyType(DType::kFloat32, &in->back(), name_, "scalars");
    std::vector<DType> arrays(in->begin(), in->end() - 1);
    const bool known = OperatorProperty::InferType(&arrays, out, aux);
    *in = std::move(arrays);
    in->push_back(DType::kFloat32);
    return known;
  }

 private:
  // Names as for one weight; with several weights each gets its number.
  std::vector<std::string> OfEachWeight(const std::vector<std::string>& names) const {
    if (this->param_.num_weights == 1) return names;
    std::vector<std::string> numbered;
    for (int n = 0; n < this->param_.num_weights; ++n) {
      for (const std::string& name : names) numbered.push_back(format("{}{}", name, n));
    }
    return numbered;
  }

  const char* name_;
  std::vector<std::string> states_;
};

template <typename P>
void Add(OperatorRegistry& registry, const char* name, const std::vector<std::string>& states) {
  registry.AddProperty(
      name, {}, [name, states] { return std::make_unique<UpdateProperty<P>>(name, states); });
}

}  // namespace

MXTRAIN_OPERATOR(optimizer_update, registry) {
  Add<SgdParam>(registry, "sgd_update", {});
  Add<MomentumParam>(registry, "sgd_mom_update", {"mom"});
  Add<MomentumParam>(registry, "nag_mom_update", {"mom"});
  Add<AdamParam>(registry, "adam_update", {"mean", "var"});
  Add<AdamParam>(registry, "adamw_update", {"mean", "var"});
  Add<RmsPropParam>(registry, "rmsprop_update", {"mean_square"});
  Add<RmsPropParam>(registry, "rmsprop_mom_update", {"mean_square", "delta"});
  Add<RmsPropParam>(registry, "rmspropalex_update", {"mean_square", "mean", "delta"});
  Add<AdagradParam>(registry, "adagrad_update", {"sum"});
  Add<AdadeltaParam>(registry, "adadelta_update", {"mean_square", "mean_delta"});
  Add<FtrlParam>(registry, "ftrl_update", {"z", "n"});
  Add<AdamParam>(registry, "lamb_update", {"mean", "var"});
  Add<LarsParam>(registry, "lars_update", {"mom"});
  Add<SgdParam>(registry, "signsgd_update", {});
  Add<SignumParam>(registry, "signum_update", {"mom"});
  Add<FtmlParam>(registry, "ftml_update", {"d", "v", "z"});
  Add<NadamParam>(registry, "nadam_update", {"mean", "var"});
  Add<AdamaxParam>(registry, "adamax_update", {"mean", "norm"});
  Add<LionParam>(registry, "lion_update", {"mom"});
  Add<DcasgdParam>(registry, "dcasgd_update", {"mom"});
  Add<SgdParam>(registry, "sgld_update", {});
  Add<GroupAdagradParam>(registry, "group_adagrad_update", {"history"});
}

}  // namespace mxtrain::optimizer_update
