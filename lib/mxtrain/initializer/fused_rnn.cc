// SPDX-License-Identifier: Apache-2.0
// The packed parameters of the operator RNN, whose biases are their last elements: b_W and b_R of
// each direction of each layer, gates after gates.
#include <climits>
#include <cmath>

#include "mxtrain/initializer/internal/initializers.h"

namespace mxtrain {
namespace {

struct FusedRnnParam : Parameter<FusedRnnParam> {
  enum Mode { kSimple, kLstm, kGru };
  std::string init;
  int64_t num_hidden, num_layers;
  int mode;
  bool bidirectional;
  double forget_bias;
  static void Declare(Fields<FusedRnnParam>& f) {
    using P = FusedRnnParam;
    f.Add("init", &P::init)
        .Default("None")
        .Help(
            "initializer of the weights, with biases of 0; None: all uniform within "
            "1 / sqrt(num_hidden)");
    f.Add("num_hidden", &P::num_hidden).Required().Range(1, INT_MAX).Help("state_size of the RNN");
    f.Add("num_layers", &P::num_layers).Required().Range(1, INT_MAX).Help("num_layers of the RNN");
    f.Add("mode", &P::mode)
        .Enum({{"rnn_relu", kSimple}, {"rnn_tanh", kSimple}, {"lstm", kLstm}, {"gru", kGru}})
        .Required()
        .Help("mode of the RNN");
    f.Add("bidirectional", &P::bidirectional).Default(false).Help("bidirectional of the RNN");
    f.Add("forget_bias", &P::forget_bias)
        .Default(1)
        .Help("lstm: both biases of a forget gate; their sum counts");
  }
};

class FusedRnn final : public Initializer {
 public:
  explicit FusedRnn(const FusedRnnParam& param) : param_(param) {}

  void Initialize(const std::string& name, uint64_t seed, NDArray* array) const override {
    const int64_t gates = param_.mode == FusedRnnParam::kLstm  ? 4
                          : param_.mode == FusedRnnParam::kGru ? 3
                                                               : 1,
                  directions = param_.bidirectional ? 2 : 1,
                  biases = 2 * gates * param_.num_hidden * param_.num_layers * directions,
                  first = array->shape().Size() - biases;
    if (array->shape().ndim() != 1 || first <= 0) {
      Throw(ErrorKind::kConfig,
            "fused_rnn initializes the parameters of an RNN, more than {} numbers; '{}' has shape "
            "{}",
            biases, name, array->shape().ToString());
    }
    if (param_.init == "None") {
      InitializeUniform(name, seed, 1 / std::sqrt(static_cast<double>(param_.num_hidden)), array);
    } else {
      FromAttribute(param_.init)->Initialize(name, seed, array);
      array->Slice(first, first + biases).Fill(0);
    }
    if (param_.mode != FusedRnnParam::kLstm) return;
    constexpr int64_t kForgetGate = 1;
    for (int64_t at = first + kForgetGate * param_.num_hidden; at < first + biases;
         at += gates * param_.num_hidden)
      array->Slice(at, at + param_.num_hidden).Fill(param_.forget_bias);
  }

 private:
  const FusedRnnParam param_;
};

}  // namespace

std::unique_ptr<Initializer> NewFusedRnn(const Kwargs& kwargs) {
  FusedRnnParam param;
  param.Init(kwargs, "initializer fused_rnn");
  return std::make_unique<FusedRnn>(param);
}
std::vector<FieldInfo> DescribeFusedRnn() {
  return FusedRnnParam::Describe();
}

}  // namespace mxtrain
