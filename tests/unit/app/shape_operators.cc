// SPDX-License-Identifier: Apache-2.0
#include "shape_operators.h"

#include <climits>

namespace mxtrain::test {
namespace {

using Shapes = std::vector<TShape>;

struct ConvolutionParam : Parameter<ConvolutionParam> {
  TShape kernel, stride, pad;
  int num_filter, num_group;
  bool no_bias;
  static void Declare(Fields<ConvolutionParam>& f) {
    f.Add("kernel", &ConvolutionParam::kernel).Required().Help("window, (h, w)");
    f.Add("stride", &ConvolutionParam::stride).Default(TShape{}).Help("step of the window");
    f.Add("pad", &ConvolutionParam::pad).Default(TShape{}).Help("zeros on both sides");
    f.Add("num_filter", &ConvolutionParam::num_filter)
        .Required()
        .Range(1, INT_MAX)
        .Help("number of output channels");
    f.Add("num_group", &ConvolutionParam::num_group).Default(1).Range(1).Help("groups of channels");
    f.Add("no_bias", &ConvolutionParam::no_bias).Default(false).Help("without the bias");
    f.Ignored("workspace", "scratch size of MXNet");
  }
};

int64_t At(const TShape& shape, int i, int64_t absent) {
  return i < shape.ndim() ? shape[i] : absent;
}

class Convolution : public PropertyWithParam<ConvolutionParam> {
 public:
  std::string TypeString() const override { return "Convolution"; }
  std::vector<std::string> ListArguments() const override {
    return param_.no_bias ? std::vector<std::string>{"data", "weight"}
                          : std::vector<std::string>{"data", "weight", "bias"};
  }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    const TShape data = (*in)[0];
    if (!data.known()) return false;
    if (data.ndim() != param_.kernel.ndim() + 2) {
      Throw(ErrorKind::kConfig, "Convolution: data has shape {}, but a kernel {} needs {} axes",
            data.ToString(), param_.kernel.ToString(), param_.kernel.ndim() + 2);
    }
    TShape weight = data, result = data;
    weight[0] = result[1] = param_.num_filter;
    weight[1] = data[1] / param_.num_group;
    for (int i = 0; i < param_.kernel.ndim(); ++i) {
      weight[i + 2] = param_.kernel[i];
      result[i + 2] =
          (data[i + 2] + 2 * At(param_.pad, i, 0) - param_.kernel[i]) / At(param_.stride, i, 1) + 1;
    }
    UnifyShape(weight, &(*in)[1], "Convolution", "weight");
    if (!param_.no_bias) UnifyShape(TShape{param_.num_filter}, &(*in)[2], "Convolution", "bias");
    UnifyShape(result, &(*out)[0], "Convolution", "output");
    return true;
  }
};

struct PoolingParam : Parameter<PoolingParam> {
  TShape kernel, stride, pad;
  int pool_type, pooling_convention;
  bool global_pool;
  static void Declare(Fields<PoolingParam>& f) {
    f.Add("kernel", &PoolingParam::kernel).Default(TShape{}).Help("window");
    f.Add("stride", &PoolingParam::stride).Default(TShape{}).Help("step of the window");
    f.Add("pad", &PoolingParam::pad).Default(TShape{}).Help("cells on both sides");
    f.Add("pool_type", &PoolingParam::pool_type)
        .Enum({{"max", 0}, {"avg", 1}, {"sum", 2}})
        .Default(0)
        .Help("what is taken");
    f.Add("pooling_convention", &PoolingParam::pooling_convention)
        .Enum({{"valid", 0}, {"full", 1}})
        .Default(0)
        .Help("rounding");
    f.Add("global_pool", &PoolingParam::global_pool).Default(false).Help("the whole plane");
  }
};
class Pooling : public PropertyWithParam<PoolingParam> {
 public:
  std::string TypeString() const override { return "Pooling"; }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    TShape result = (*in)[0];
    if (!result.known()) return false;
    for (int i = 2; i < result.ndim(); ++i) {
      const int64_t stride = At(param_.stride, i - 2, 1),
                    span = result[i] + 2 * At(param_.pad, i - 2, 0) - At(param_.kernel, i - 2, 1);
      result[i] = param_.global_pool
                      ? 1
                      : (span + (param_.pooling_convention ? stride - 1 : 0)) / stride + 1;
    }
    UnifyShape(result, &(*out)[0], "Pooling", "output");
    return true;
  }
};

struct BatchNormParam : Parameter<BatchNormParam> {
  float eps, momentum;
  bool fix_gamma;
  static void Declare(Fields<BatchNormParam>& f) {
    f.Add("eps", &BatchNormParam::eps).Default(1e-3f).Help("added to the variance");
    f.Add("momentum", &BatchNormParam::momentum).Default(0.9f).Help("of the moving averages");
    f.Add("fix_gamma", &BatchNormParam::fix_gamma).Default(true).Help("gamma is 1");
  }
};
class BatchNorm : public PropertyWithParam<BatchNormParam> {
 public:
  std::string TypeString() const override { return "BatchNorm"; }
  std::vector<std::string> ListArguments() const override { return {"data", "gamma", "beta"}; }
  std::vector<std::string> ListAuxiliaryStates() const override {
    return {"moving_mean", "moving_var"};
  }
  bool InferShape(Shapes* in, Shapes* out, Shapes* aux) const override {
    if (!(*in)[0].known()) return false;
    const TShape channels{(*in)[0][1]};
    for (TShape* shape : {&(*in)[1], &(*in)[2], &(*aux)[0], &(*aux)[1]})
      UnifyShape(channels, shape, "BatchNorm", "channels");
    UnifyShape((*in)[0], &(*out)[0], "BatchNorm", "output");
    return true;
  }
};

struct HiddenParam : Parameter<HiddenParam> {
  int num_hidden;
  bool no_bias;
  static void Declare(Fields<HiddenParam>& f) {
    f.Add("num_hidden", &HiddenParam::num_hidden).Required().Range(1, INT_MAX).Help("output width");
    f.Add("no_bias", &HiddenParam::no_bias).Default(false).Help("without the bias");
  }
};
class FullyConnected : public PropertyWithParam<HiddenParam> {
 public:
  std::string TypeString() const override { return "FullyConnected"; }
  std::vector<std::string> ListArguments() const override {
    return param_.no_bias ? std::vector<std::string>{"data", "weight"}
                          : std::vector<std::string>{"data", "weight", "bias"};
  }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    const TShape data = (*in)[0];
    if (!data.known()) return false;
    UnifyShape(TShape{param_.num_hidden, data.Product(1, data.ndim())}, &(*in)[1], "FullyConnected",
               "weight");
    if (!param_.no_bias) UnifyShape(TShape{param_.num_hidden}, &(*in)[2], "FullyConnected", "bias");
    UnifyShape(TShape{data[0], param_.num_hidden}, &(*out)[0], "FullyConnected", "output");
    return true;
  }
};

class Flatten : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "Flatten"; }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    const TShape data = (*in)[0];
    if (!data.known()) return false;
    UnifyShape(TShape{data[0], data.Product(1, data.ndim())}, &(*out)[0], "Flatten", "output");
    return true;
  }
};

struct ConcatParam : Parameter<ConcatParam> {
  int num_args, dim;
  static void Declare(Fields<ConcatParam>& f) {
    f.Add("num_args", &ConcatParam::num_args).Required().Range(1).Help("number of inputs");
    f.Add("dim", &ConcatParam::dim).Default(1).Help("axis");
  }
};
class Concat : public PropertyWithParam<ConcatParam> {
 public:
  std::string TypeString() const override { return "Concat"; }
  std::string NumArgsKey() const override { return "num_args"; }
  std::vector<std::string> ListArguments() const override {
    std::vector<std::string> names;
    for (int i = 0; i < param_.num_args; ++i) names.push_back("arg" + std::to_string(i));
    return names;
  }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    int64_t sum = 0;
    for (const TShape& shape : *in) {
      if (!shape.known()) return false;
      sum += shape[param_.dim];
    }
    TShape result = (*in)[0];
    result[param_.dim] = sum;
    for (const TShape& shape : *in) {
      TShape other = shape;
      other[param_.dim] = sum;
      UnifyShape(other, &result, "Concat", "inputs");
    }
    UnifyShape(result, &(*out)[0], "Concat", "output");
    return true;
  }
};

struct SliceParam : Parameter<SliceParam> {
  int num_outputs;
  static void Declare(Fields<SliceParam>& f) {
    f.Add("num_outputs", &SliceParam::num_outputs).Required().Range(1).Help("number of parts");
  }
};
class SliceChannel : public PropertyWithParam<SliceParam> {
 public:
  std::string TypeString() const override { return "SliceChannel"; }
  std::vector<std::string> ListOutputs() const override {
    std::vector<std::string> names;
    for (int i = 0; i < param_.num_outputs; ++i) names.push_back("output" + std::to_string(i));
    return names;
  }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    TShape part = (*in)[0];
    if (!part.known()) return false;
    part[1] /= param_.num_outputs;
    for (TShape& shape : *out) UnifyShape(part, &shape, "SliceChannel", "output");
    return true;
  }
};

// Elementwise operators: one shape for all.
struct LooseParam : Parameter<LooseParam> {
  int act_type;
  float p, a_min, a_max, scalar, grad_scale;
  static void Declare(Fields<LooseParam>& f) {
    f.Add("act_type", &LooseParam::act_type)
        .Enum({{"relu", 0}, {"sigmoid", 1}, {"tanh", 2}})
        .Default(0)
        .Help("function");
    f.Add("p", &LooseParam::p).Default(0.5f).Range(0, 1).Help("share that is dropped");
    f.Add("a_min", &LooseParam::a_min).Default(0).Help("lower bound");
    f.Add("a_max", &LooseParam::a_max).Default(6).Help("upper bound");
    f.Add("scalar", &LooseParam::scalar).Default(1).Help("the scalar");
    f.Add("grad_scale", &LooseParam::grad_scale).Default(1).Help("scales the gradient");
  }
};
class Elementwise : public PropertyWithParam<LooseParam> {
 public:
  Elementwise(std::string type, std::vector<std::string> arguments, bool loss)
      : type_(std::move(type)), arguments_(std::move(arguments)), loss_(loss) {}
  std::string TypeString() const override { return type_; }
  std::vector<std::string> ListArguments() const override { return arguments_; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in,
                                             const std::vector<int>& out) const override {
    if (loss_) return out;
    return OperatorProperty::DeclareBackwardDependency(out_grad, in, out);
  }
  bool HasGradient(int argument) const override {
    return arguments_[static_cast<size_t>(argument)] != "label";
  }
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    for (const TShape& shape : *in) UnifyShape(shape, &(*out)[0], type_, "input");
    for (TShape& shape : *in) UnifyShape((*out)[0], &shape, type_, "output");
    return (*out)[0].known();
  }

 private:
  std::string type_;
  std::vector<std::string> arguments_;
  bool loss_;
};

class SoftmaxOutput : public Elementwise {
 public:
  SoftmaxOutput() : Elementwise("SoftmaxOutput", {"data", "label"}, true) {}
  bool InferShape(Shapes* in, Shapes* out, Shapes*) const override {
    const TShape data = (*in)[0];
    if (!data.known()) return false;
    UnifyShape(data, &(*out)[0], "SoftmaxOutput", "output");
    UnifyShape(TShape{data[0]}, &(*in)[1], "SoftmaxOutput", "label");
    return true;
  }
};

template <typename Property>
void Add(OperatorRegistry& registry, const std::string& name) {
  if (!registry.Has(name))
    registry.AddProperty(name, {}, [] { return std::make_unique<Property>(); });
}

}  // namespace

void AddShapeOperators(OperatorRegistry& registry) {
  Add<Convolution>(registry, "Convolution");
  Add<Pooling>(registry, "Pooling");
  Add<BatchNorm>(registry, "BatchNorm");
  Add<FullyConnected>(registry, "FullyConnected");
  Add<Flatten>(registry, "Flatten");
  Add<Concat>(registry, "Concat");
  Add<SliceChannel>(registry, "SliceChannel");
  Add<SoftmaxOutput>(registry, "SoftmaxOutput");
  struct Row {
    const char* name;
    std::vector<std::string> arguments;
    bool loss;
  };
  const std::vector<std::string> one = {"data"}, two = {"lhs", "rhs"};
  for (const Row& row :
       {Row{"Activation", one, false}, Row{"Dropout", one, false}, Row{"clip", one, false},
        Row{"square", one, false}, Row{"smooth_l1", one, false}, Row{"elemwise_add", two, false},
        Row{"elemwise_sub", two, false}, Row{"MakeLoss", one, true}, Row{"BlockGrad", one, true},
        Row{"LinearRegressionOutput", {"data", "label"}, true}}) {
    if (registry.Has(row.name)) continue;
    registry.AddProperty(row.name, {}, [row] {
      return std::make_unique<Elementwise>(row.name, row.arguments, row.loss);
    });
  }
}

std::shared_ptr<OperatorRegistry> ShapeOperators() {
  auto registry = std::make_shared<OperatorRegistry>();
  AddShapeOperators(*registry);
  return registry;
}

}  // namespace mxtrain::test
