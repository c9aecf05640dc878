// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/rnn/rnn.h"

#include <climits>
#include <cmath>

#include "mxtrain/base/format.h"
#include "mxtrain/operator/gather_property.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::rnn {

void RnnParam::Declare(Fields<RnnParam>& f) {
  using P = RnnParam;
  f.Add("state_size", &P::state_size).Required().Range(1, INT_MAX).Help("hidden units of a layer");
  f.Add("num_layers", &P::num_layers).Required().Range(1, INT_MAX).Help("layers, one on another");
  f.Add("bidirectional", &P::bidirectional)
      .Default(false)
      .Help("a second direction in every layer, from the last step to the first");
  f.Add("mode", &P::mode)
      .Enum({{"rnn_relu", kRelu}, {"rnn_tanh", kTanh}, {"lstm", kLstm}, {"gru", kGru}})
      .Required()
      .Help("the cell");
  f.Add("p", &P::p)
      .RangeBelow(0, 1)
      .Default(0.0f)
      .Help("fraction of the outputs of each layer but the last that is dropped in training");
  f.Add("state_outputs", &P::state_outputs).Default(false).Help("show the last states as outputs");
  f.Add("projection_size", &P::projection_size)
      .Default(std::nullopt)
      .Range(1, INT_MAX)
      .Help("lstm: outputs of a direction, linear functions of its hidden units; None: the units");
  f.Add("lstm_state_clip_min", &P::lstm_state_clip_min)
      .Default(std::nullopt)
      .Help("not available: cell states are not clipped");
  f.Add("lstm_state_clip_max", &P::lstm_state_clip_max)
      .Default(std::nullopt)
      .Help("not available: cell states are not clipped");
  f.Add("lstm_state_clip_nan", &P::lstm_state_clip_nan)
      .Default(false)
      .Help("not available: cell states are not clipped");
  f.Add("use_sequence_length", &P::use_sequence_length)
      .Default(false)
      .Help("sequences have the lengths given by sequence_length; else all steps count");
}

void RnnProperty::Check() {
  if (param_.projection_size && param_.mode != kLstm) {
    Throw(ErrorKind::kConfig, "RNN: projection_size = {} is for mode = lstm only",
          *param_.projection_size);
  }
  if (param_.lstm_state_clip_min || param_.lstm_state_clip_max || param_.lstm_state_clip_nan) {
    Throw(ErrorKind::kConfig,
          "RNN: lstm_state_clip_min, _max and _nan: cell states are not clipped here; leave the "
          "parameters out");
  }
}

std::vector<std::string> RnnProperty::ListArguments() const {
  std::vector<std::string> names = {"data", "parameters", "state"};
  if (param_.mode == kLstm) names.push_back("state_cell");
  if (param_.use_sequence_length) names.push_back("sequence_length");
  return names;
}

std::vector<std::string> RnnProperty::ListOutputs() const {
  std::vector<std::string> names = {"output"};
  if (!param_.state_outputs) return names;
  names.push_back("state_output");
  if (param_.mode == kLstm) names.push_back("statecell_output");
  return names;
}

// That of PyTorch.
std::string RnnProperty::DefaultInit(int argument) const {
  if (argument != kParameters) return "";
  const double scale = 1 / std::sqrt(static_cast<double>(param_.state_size));
  return format(R"(["uniform", {{"scale": "{}"}}])", params::Print(scale));
}

Geometry RnnProperty::GeometryOf(const TShape& data) const {
  Geometry g;
  g.mode = param_.mode;
  g.steps = data[0], g.batch = data[1], g.inputs = data[2];
  g.hidden = param_.state_size;
  g.projects = param_.projection_size.has_value();
  g.output = param_.projection_size.value_or(param_.state_size);
  g.layers = param_.num_layers;
  g.directions = param_.bidirectional ? 2 : 1;
  return g;
}

bool RnnProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                             std::vector<TShape>*) const {
  TShape& data = (*in)[kData];
  if (data.has_rank() && data.ndim() != 3) {
    Throw(ErrorKind::kConfig, "RNN: data has shape {}; expected [steps, batch, inputs]",
          data.ToString());
  }
  UnifyShape(TShape::OfRank(3), &data, TypeString(), "data");
  Geometry g = GeometryOf(data);
  TShape output{data[0], data[1], g.width()};
  ExpectShape(output, &(*out)[kOutput], TypeString(), "output");
  output = (*out)[kOutput];
  TShape batch{output[1]};
  const auto states = [&](int64_t columns) {
    return TShape{g.layers * g.directions, batch[0], columns};
  };
  const auto unify_state = [&](TShape* at, int64_t columns, const char* what) {
    ExpectShape(states(columns), at, TypeString(), what);
    batch[0] = (*at)[1];
  };
  // Twice, so that each learns of the batch from all others.
  for (int pass = 0; pass < 2; ++pass) {
    unify_state(&(*in)[kState], g.output, "state");
    if (param_.mode == kLstm) unify_state(&(*in)[kStateCell], g.hidden, "state_cell");
    if (param_.state_outputs) unify_state(&(*out)[kStateOutput], g.output, "state_output");
    if (param_.state_outputs && param_.mode == kLstm)
      unify_state(&(*out)[kStateCellOutput], g.hidden, "statecell_output");
    if (const int lengths = LengthsAt(); lengths >= 0) {
      TShape& at = (*in)[static_cast<size_t>(lengths)];
      ExpectShape(batch, &at, TypeString(), "sequence_length");
      batch = at;
    }
  }
  UnifyShape(TShape{output[0], batch[0], TShape::kUnknown}, &data, TypeString(), "data");
  ExpectShape(TShape{data[0], data[1], g.width()}, &(*out)[kOutput], TypeString(), "output");
  if (data[2] >= 0)
    ExpectShape(TShape{GeometryOf(data).ParameterCount()}, &(*in)[kParameters], TypeString(),
                "parameters");
  return data.known() && (*in)[kParameters].known();
}

bool RnnProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                            std::vector<DType>*) const {
  const int lengths = LengthsAt();
  std::vector<DType> arrays(in->begin(), lengths < 0 ? in->end() : in->begin() + lengths), none;
  const bool known = OperatorProperty::InferType(&arrays, out, &none);
  std::copy(arrays.begin(), arrays.end(), in->begin());
  if (lengths < 0) return known;
  return known && (*in)[static_cast<size_t>(lengths)] != DType::kUnknown;
}

std::vector<int> RnnProperty::DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                        const std::vector<int>& in_data,
                                                        const std::vector<int>&) const {
  std::vector<int> reads = out_grad;
  reads.push_back(in_data[kData]);
  reads.push_back(in_data[kParameters]);
  if (const int lengths = LengthsAt(); lengths >= 0)
    reads.push_back(in_data[static_cast<size_t>(lengths)]);
  return reads;
}

std::vector<ResourceRequest> RnnProperty::ForwardResource(const std::vector<TShape>&) const {
  if (param_.p == 0 || param_.num_layers == 1) return {};
  return {{ResourceRequest::kRandom, 0}};
}
std::vector<ResourceRequest> RnnProperty::BackwardResource(const std::vector<TShape>&) const {
  return ForwardResource({});
}

double RnnProperty::ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>&) const {
  const Geometry g = GeometryOf(in[kData]);
  return static_cast<double>(g.rows()) * static_cast<double>(g.InputBias(0, 0));
}

}  // namespace mxtrain::rnn

MXTRAIN_OPERATOR(rnn, registry) {
  registry.AddProperty("RNN", {}, [] { return std::make_unique<mxtrain::rnn::RnnProperty>(); });
}
