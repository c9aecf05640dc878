#include "mxtrain/operators/optimizer_update/optimizer_update.h"

#include <algorithm>

#include "mxtrain/operator/registry.h"

namespace mxtrain::optimizer_update {
namespace {

template <typename P>
class UpdateProperty final : public PropertyWithParam<P> {
 public:
  UpdateProperty(const char* name, std::vector<std::string> states) : name_(name), states_(std::move(states)) {}

  std::string TypeString() const override { return name_; }
  std::string Description() const override { return "a step of an optimizer: the new weight"; }
  std::vector<std::string> ListArguments() const override { return {"weight", "grad", "scalars"}; }
  std::vector<std::string> ListAuxiliaryStates() const override { return states_; }
  bool HasGradient(int) const override { return false; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&, const std::vector<int>&, const std::vector<int>&) const override {
    return {};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }

  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out, std::vector<TShape>* aux) const override {
    TShape weight = (*in)[0];
    UnifyShape((*in)[1], &weight, name_, "grad");
    UnifyShape((*out)[0], &weight, name_, "output");
    for (size_t i = 0; i < aux->size(); ++i) UnifyShape((*aux)[i], &weight, name_, states_[i]);
    TShape scalars{kNumScalars};
    UnifyShape((*in)[2], &scalars, name_, "scalars");
    (*in)[2] = scalars;
    (*in)[0] = (*in)[1] = (*out)[0] = weight;
    std::fill(aux->begin(), aux->end(), weight);
    return weight.known();
  }

  // Whatever the type of the weight, `scalars` is float32.
  bool InferType(std::vector<DType>* in, std::vector<DType>* out, std::vector<DType>* aux) const override {
    std::vector<DType> arrays = {(*in)[0], (*in)[1]};
    const bool known = OperatorProperty::InferType(&arrays, out, aux);
    if ((*in)[2] != DType::kUnknown && (*in)[2] != DType::kFloat32) {
      Throw(ErrorKind::kConfig, "{}: scalars is {}, but float32 was expected", name_, NameOf((*in)[2]));
    }
    *in = {arrays[0], arrays[1], DType::kFloat32};
    return known;
  }

 private:
  const char* name_;
  std::vector<std::string> states_;
};

template <typename P>
void Add(OperatorRegistry& registry, const char* name, const std::vector<std::string>& states) {
  registry.AddProperty(name, {}, [name, states] { return std::make_unique<UpdateProperty<P>>(name, states); });
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
}

}  // namespace mxtrain::optimizer_update
