// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/optimizer_update/update_rules.h"

namespace mxtrain::optimizer_update {
namespace {

bool TakesRows(std::string_view name) {
  bool takes = false;
  ForEachRule([&](auto tag) {
    using Rule = typename decltype(tag)::template Rule<float>;
    takes = takes || (name == Rule::kName && !kHasRatio<Rule>);
  });
  return takes;
}

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
    if (this->param_.rows) names.push_back("rows");
    names.push_back("scalars");
    return names;
  }
  std::vector<std::string> ListOutputs() const override {
    if (this->param_.rows) return {"output", "cleared"};
    return OfEachWeight({"output"});
  }
  std::vector<std::string> ListAuxiliaryStates() const override { return OfEachWeight(states_); }
  bool HasGradient(int) const override { return false; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&, const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override {
    std::vector<InplacePair> pairs;
    const int outputs = this->param_.rows ? 2 : this->param_.num_weights;
    for (int n = 0; n < outputs; ++n) pairs.push_back({n, n});
    return pairs;
  }

  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override {
    const std::vector<std::string> in_names = ListArguments(), out_names = ListOutputs(),
                                   aux_names = ListAuxiliaryStates();
    const auto num_weights = static_cast<size_t>(this->param_.num_weights);
    const size_t num_states = states_.size();
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
    if (!this->param_.rows) return known;
    if ((*in)[0].ndim() == 0)
      Throw(ErrorKind::kConfig, "{}: rows = True: the weight has no rows", name_);
    UnifyShape((*in)[0], &(*out)[1], name_, "cleared");
    (*out)[1] = (*in)[0];
    return known && (*in)[kRows].known();
  }

  // `scalars` is float32 for any type of the weights, which have one type; rows have their own.
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override {
    UnifyType(DType::kFloat32, &in->back(), name_, "scalars");
    const auto count = 2 * this->param_.num_weights;
    std::vector<DType> arrays(in->begin(), in->begin() + count);
    const bool known = OperatorProperty::InferType(&arrays, out, aux);
    std::copy(arrays.begin(), arrays.end(), in->begin());
    return known && std::find(in->begin(), in->end(), DType::kUnknown) == in->end();
  }

 protected:
  void Check() override {
    if (!this->param_.rows) return;
    if (this->param_.num_weights > 1) {
      Throw(ErrorKind::kConfig, "{}: rows = True: num_weights = {}: only one weight is updated so",
            name_, this->param_.num_weights);
    }
    if (!TakesRows(name_)) {
      Throw(ErrorKind::kConfig, "{}: rows = True: this update measures more than a row at a time",
            name_);
    }
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
