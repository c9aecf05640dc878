// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiny_operators.h"

namespace mxtrain::test {
namespace {

using Shapes = std::vector<TShape>;
using Names = std::vector<std::string>;

bool AllKnown(const Shapes& shapes) {
  for (const TShape& shape : shapes) {
    if (!shape.known()) return false;
  }
  return true;
}

// One shape for all, in both directions.
bool SameShape(Shapes* in, Shapes* out, const std::string& who, const Names& names) {
  for (size_t i = 0; i < in->size(); ++i) UnifyShape((*in)[i], &(*out)[0], who, names[i]);
  for (TShape& shape : *in) shape = (*out)[0];
  return AllKnown(*out);
}

struct FullyConnectedParam : Parameter<FullyConnectedParam> {
  int num_hidden;
  bool no_bias;
  static void Declare(Fields<FullyConnectedParam>& f) {
    f.Add("num_hidden", &FullyConnectedParam::num_hidden).Required().Range(1);
    f.Add("no_bias", &FullyConnectedParam::no_bias).Default(false);
  }
};
class FullyConnected : public PropertyWithParam<FullyConnectedParam> {
 public:
  std::string TypeString() const override { return "FullyConnected"; }
  Names ListArguments() const override {
    return param_.no_bias ? Names{"data", "weight"} : Names{"data", "weight", "bias"};
  }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    UnifyShape({-1, param_.num_hidden}, &(*out)[0], TypeString(), "output");
    UnifyShape({param_.num_hidden, -1}, &(*in)[1], TypeString(), "weight");
    if (!param_.no_bias) UnifyShape({param_.num_hidden}, &(*in)[2], TypeString(), "bias");
    if ((*in)[0].has_rank()) {
      const bool flat = (*in)[0].known();
      const int64_t width = flat ? (*in)[0].Product(1, (*in)[0].ndim()) : -1;
      if (flat && (*in)[1][1] >= 0 && (*in)[1][1] != width) {
        Throw(ErrorKind::kConfig, "FullyConnected: weight has shape {}, but data {} needs [{}, {}]",
              (*in)[1].ToString(), (*in)[0].ToString(), param_.num_hidden, width);
      }
      if (flat) UnifyShape({param_.num_hidden, width}, &(*in)[1], TypeString(), "weight");
      UnifyShape({(*in)[0][0], -1}, &(*out)[0], TypeString(), "output");
      (*in)[0][0] = (*out)[0][0];
    }
    return AllKnown(*in) && AllKnown(*out);
  }
};

struct ActivationParam : Parameter<ActivationParam> {
  int act_type;
  static void Declare(Fields<ActivationParam>& f) {
    f.Add("act_type", &ActivationParam::act_type)
        .Enum({{"relu", 0}, {"sigmoid", 1}, {"tanh", 2}})
        .Required();
  }
};
class Activation : public PropertyWithParam<ActivationParam> {
 public:
  std::string TypeString() const override { return "Activation"; }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    return SameShape(in, out, TypeString(), ListArguments());
  }
};

struct BatchNormParam : Parameter<BatchNormParam> {
  float eps;
  bool fix_gamma;
  static void Declare(Fields<BatchNormParam>& f) {
    f.Add("eps", &BatchNormParam::eps).Default(1e-3f);
    f.Add("fix_gamma", &BatchNormParam::fix_gamma).Default(true);
  }
};
class BatchNorm : public PropertyWithParam<BatchNormParam> {
 public:
  std::string TypeString() const override { return "BatchNorm"; }
  Names ListArguments() const override { return {"data", "gamma", "beta"}; }
  Names ListOutputs() const override { return {"output", "mean", "var"}; }
  Names ListAuxiliaryStates() const override { return {"moving_mean", "moving_var"}; }
  int NumVisibleOutputs() const override { return 1; }
  bool InferShape(Shapes* in, Shapes* out, Shapes* aux) const override {
    UnifyShape((*in)[0], &(*out)[0], TypeString(), "data");
    (*in)[0] = (*out)[0];
    const TShape channels{(*in)[0].has_rank() ? (*in)[0][1] : -1};
    for (TShape* shape : {&(*in)[1], &(*in)[2], &(*out)[1], &(*out)[2], &(*aux)[0], &(*aux)[1]}) {
      UnifyShape(channels, shape, TypeString(), "gamma, beta or a statistic");
    }
    return AllKnown(*out);
  }
  // Statistics stay float32 for float16 data.
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override {
    DType& type = (*in)[0] != DType::kUnknown ? (*in)[0] : (*out)[0];
    (*in)[0] = (*out)[0] = type;
    const DType rest = type == DType::kFloat16 ? DType::kFloat32 : type;
    (*in)[1] = (*in)[2] = (*out)[1] = (*out)[2] = (*aux)[0] = (*aux)[1] = rest;
    return type != DType::kUnknown;
  }
};

struct ConcatParam : Parameter<ConcatParam> {
  int num_args, dim;
  static void Declare(Fields<ConcatParam>& f) {
    f.Add("num_args", &ConcatParam::num_args).Required().Range(1);
    f.Add("dim", &ConcatParam::dim).Default(1);
  }
};
class Concat : public PropertyWithParam<ConcatParam> {
 public:
  std::string TypeString() const override { return "Concat"; }
  std::string NumArgsKey() const override { return "num_args"; }
  Names ListArguments() const override {
    Names names;
    for (int i = 0; i < param_.num_args; ++i) names.push_back("arg" + std::to_string(i));
    return names;
  }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    int64_t sum = 0;
    for (const TShape& shape : *in) {
      if (!shape.known()) return false;
      sum += shape[param_.dim];
    }
    TShape joined = (*in)[0];
    joined[param_.dim] = sum;
    UnifyShape(joined, &(*out)[0], TypeString(), "output");
    return true;
  }
};

struct SliceChannelParam : Parameter<SliceChannelParam> {
  int num_outputs;
  static void Declare(Fields<SliceChannelParam>& f) {
    f.Add("num_outputs", &SliceChannelParam::num_outputs).Required().Range(1);
  }
};
class SliceChannel : public PropertyWithParam<SliceChannelParam> {
 public:
  std::string TypeString() const override { return "SliceChannel"; }
  Names ListOutputs() const override {
    Names names;
    for (int i = 0; i < param_.num_outputs; ++i) names.push_back("output" + std::to_string(i));
    return names;
  }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    if (!(*in)[0].known()) return false;
    TShape part = (*in)[0];
    if (part[1] % param_.num_outputs != 0) {
      Throw(ErrorKind::kConfig, "SliceChannel: axis 1 of data of shape {} cannot be split",
            part.ToString());
    }
    part[1] /= param_.num_outputs;
    for (TShape& shape : *out) UnifyShape(part, &shape, TypeString(), "output");
    return true;
  }
};

class SoftmaxOutput : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "SoftmaxOutput"; }
  Names ListArguments() const override { return {"data", "label"}; }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    UnifyShape((*in)[0], &(*out)[0], TypeString(), "data");
    (*in)[0] = (*out)[0];
    if ((*in)[0].has_rank()) UnifyShape({(*in)[0][0]}, &(*in)[1], TypeString(), "label");
    return AllKnown(*in) && AllKnown(*out);
  }
};

struct LeakyReLUParam : Parameter<LeakyReLUParam> {
  int act_type;
  static void Declare(Fields<LeakyReLUParam>& f) {
    f.Add("act_type", &LeakyReLUParam::act_type).Enum({{"leaky", 0}, {"prelu", 1}}).Default(0);
  }
};
class LeakyReLU : public PropertyWithParam<LeakyReLUParam> {
 public:
  std::string TypeString() const override { return "LeakyReLU"; }
  Names ListArguments() const override {
    return param_.act_type ? Names{"data", "gamma"} : Names{"data"};
  }
  std::string DefaultInit(int argument) const override {
    return argument == 1 ? R"(["constant", {"value": 0.25}])" : "";
  }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    UnifyShape((*in)[0], &(*out)[0], TypeString(), "data");
    (*in)[0] = (*out)[0];
    if (param_.act_type && (*in)[0].has_rank())
      UnifyShape({(*in)[0][1]}, &(*in)[1], TypeString(), "gamma");
    return AllKnown(*in) && AllKnown(*out);
  }
};

struct PoolingParam : Parameter<PoolingParam> {
  TShape kernel;
  int pooling_convention;
  static void Declare(Fields<PoolingParam>& f) {
    f.Add("kernel", &PoolingParam::kernel).Required();
    f.Add("pooling_convention", &PoolingParam::pooling_convention)
        .Enum({{"valid", 0}, {"full", 1}})
        .Default(0);
    f.Ignored("workspace", "scratch size");
  }
};
class Pooling : public PropertyWithParam<PoolingParam> {
 public:
  std::string TypeString() const override { return "Pooling"; }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    return SameShape(in, out, TypeString(), ListArguments());
  }
};

class ElemwiseAdd : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "elemwise_add"; }
  Names ListArguments() const override { return {"lhs", "rhs"}; }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    return SameShape(in, out, TypeString(), ListArguments());
  }
};

struct CastParam : Parameter<CastParam> {
  DType dtype;
  static void Declare(Fields<CastParam>& f) { f.Add("dtype", &CastParam::dtype).Required(); }
};
class Cast : public PropertyWithParam<CastParam> {
 public:
  std::string TypeString() const override { return "Cast"; }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    return SameShape(in, out, TypeString(), ListArguments());
  }
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>*) const override {
    (*out)[0] = param_.dtype;
    return (*in)[0] != DType::kUnknown;
  }
};

// Unary operators that differ in one parameter.
struct ScalarParam : Parameter<ScalarParam> {
  float scalar;
  static void Declare(Fields<ScalarParam>& f) { f.Add("scalar", &ScalarParam::scalar).Default(1); }
};
struct AxisParam : Parameter<AxisParam> {
  std::optional<int> axis;
  static void Declare(Fields<AxisParam>& f) {
    f.Add("axis", &AxisParam::axis).Default(std::nullopt);
  }
};
template <typename P>
class Unary : public PropertyWithParam<P> {
 public:
  explicit Unary(std::string name) : name_(std::move(name)) {}
  std::string TypeString() const override { return name_; }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    return SameShape(in, out, name_, this->ListArguments());
  }

 private:
  std::string name_;
};

struct RandomParam : Parameter<RandomParam> {
  float low, high;
  TShape shape;
  static void Declare(Fields<RandomParam>& f) {
    f.Add("low", &RandomParam::low).Default(0);
    f.Add("high", &RandomParam::high).Default(1);
    f.Add("shape", &RandomParam::shape).Default(TShape{});
  }
};
class RandomUniform : public PropertyWithParam<RandomParam> {
 public:
  std::string TypeString() const override { return "_random_uniform"; }
  Names ListArguments() const override { return {}; }
  bool InferShape(Shapes*, Shapes* out, Shapes*) const override {
    if (param_.shape.ndim() > 0) UnifyShape(param_.shape, &(*out)[0], TypeString(), "output");
    return AllKnown(*out);
  }
};

template <typename T>
void Add(OperatorRegistry& registry, const std::vector<std::string>& aliases = {}) {
  registry.AddProperty(T().TypeString(), aliases, [] { return std::make_unique<T>(); });
}
template <typename P>
void AddUnary(OperatorRegistry& registry, const std::string& name,
              const std::vector<std::string>& aliases = {}) {
  registry.AddProperty(name, aliases, [name] { return std::make_unique<Unary<P>>(name); });
}

}  // namespace

void AddTinyOperators(OperatorRegistry& registry) {
  Add<FullyConnected>(registry);
  Add<Activation>(registry);
  Add<BatchNorm>(registry);
  Add<Concat>(registry, {"concat"});
  Add<SliceChannel>(registry, {"split"});
  Add<SoftmaxOutput>(registry, {"Softmax"});
  Add<LeakyReLU>(registry);
  Add<Pooling>(registry);
  Add<ElemwiseAdd>(registry, {"_plus", "_Plus"});
  Add<Cast>(registry);
  Add<RandomUniform>(registry);
  AddUnary<AxisParam>(registry, "argmax");
  AddUnary<ScalarParam>(registry, "_minus_scalar", {"_MinusScalar"});
  AddUnary<ScalarParam>(registry, "_rminus_scalar", {"_RMinusScalar"});
}

}  // namespace mxtrain::test
