// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/optimizer_update/update_rules.h"

namespace mxtrain::optimizer_update {
namespace {

template <typename P>
class UpdateProperty final : public PropertyWithParam<P> {
 public:
  explicit UpdateProperty(const updates::Update& update)
      : name_(update.op),
        states_(update.states.begin(), update.states.begin() + update.num_states()) {}

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

  std::string name_;
  std::vector<std::string> states_;
};

template <typename P>
void Add(OperatorRegistry& registry, const char* name) {
  registry.AddProperty(name, {}, [update = updates::UpdateOf(name)] {
    return std::make_unique<UpdateProperty<P>>(update);
  });
}

}  // namespace

MXTRAIN_OPERATOR(optimizer_update, registry) {
  ForEachRule([&registry](auto tag) {
    using Rule = typename decltype(tag)::template Rule<float>;
    Add<typename Rule::Param>(registry, Rule::kName);
  });
  Add<GroupAdagradParam>(registry, "group_adagrad_update");
}

}  // namespace mxtrain::optimizer_update
