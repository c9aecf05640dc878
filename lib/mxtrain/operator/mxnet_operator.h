// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators written against MXNet's OperatorProperty and Operator (docs/mxnet_forms.md). The code
// stands in namespace mxtrain::mxnet, where these names mean MXNet's classes:
//
//   namespace mxtrain::mxnet::op {
//   class ScaleOp : public Operator { ... };
//   class ScaleProp : public OperatorProperty {
//     ...
//     Operator* CreateOperator(Context ctx) const override { return new ScaleOp(param_); }
//   };
//   }
//   MXTRAIN_OPERATOR(scale, registry) {
//     MXTRAIN_REGISTER_OP_PROPERTY(scale, mxtrain::mxnet::op::ScaleProp)
//         .describe("scale times the data")
//         .add_arguments(mxtrain::mxnet::op::ScaleParam::Describe());
//   }
//
// Such an operator has one kernel, `ref` on the CPU, with plain arrays of one floating type. A .cu
// beside the source may register the property once more for GPUs (mxnet_names.cuh); there
// CreateOperator makes an operator whose arrays are in the memory of the GPU:
//
//   MXTRAIN_OPERATOR(scale_cuda, registry) {
//     MXNET_REGISTER_OP_PROPERTY(scale, mxtrain::mxnet::op::ScaleProp<mxtrain::mxnet::XPU>);
//   }
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/operator/mxnet_kernel.h"
#include "mxtrain/operator/mxnet_resource.h"
#include "mxtrain/operator/mxnet_simple_op.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::mxnet {

struct OpContext {
  int is_train = 0;
  RunContext run_ctx;
  std::vector<Resource> requested;  // answers ForwardResource or BackwardResource
};

// As mxtrain::Operator. `out_grad` has the visible outputs only. Arrays that the gradient does not
// declare to read have dptr null.
class MXTRAIN_API Operator {
 public:
  virtual ~Operator() = default;
  virtual void Forward(const OpContext& ctx, const std::vector<TBlob>& in_data,
                       const std::vector<OpReqType>& req, const std::vector<TBlob>& out_data,
                       const std::vector<TBlob>& aux_states) = 0;
  // Throws kConfig: the operator has no gradient.
  virtual void Backward(const OpContext& ctx, const std::vector<TBlob>& out_grad,
                        const std::vector<TBlob>& in_data, const std::vector<TBlob>& out_data,
                        const std::vector<OpReqType>& req, const std::vector<TBlob>& in_grad,
                        const std::vector<TBlob>& aux_states);
};

// Immutable after Init, and shared by all threads. What is not said here is as in
// mxtrain::OperatorProperty.
class MXTRAIN_API OperatorProperty {
 public:
  virtual ~OperatorProperty() = default;

  virtual std::string TypeString() const = 0;  // the registered name
  virtual void Init(const std::vector<std::pair<std::string, std::string>>& kwargs) = 0;
  virtual std::map<std::string, std::string> GetParams() const = 0;

  virtual std::vector<std::string> ListArguments() const { return {"data"}; }
  virtual std::vector<std::string> ListOutputs() const { return {"output"}; }
  virtual std::vector<std::string> ListAuxiliaryStates() const { return {}; }
  virtual int NumOutputs() const { return static_cast<int>(ListOutputs().size()); }
  virtual int NumVisibleOutputs() const { return NumOutputs(); }

  // The lists have an entry per array; out_shape and aux_shape may be cleared and filled again.
  // What is not known is a shape without known(): MXNet's test ndim() == 0 means a scalar here.
  virtual bool InferShape(std::vector<TShape>* in_shape, std::vector<TShape>* out_shape,
                          std::vector<TShape>* aux_shape) const = 0;

  virtual std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                     const std::vector<int>& in_data,
                                                     const std::vector<int>& out_data) const;
  // Pairs of an id and an element of the list of pointers, whose arrays may share memory.
  virtual std::vector<std::pair<int, void*>> ForwardInplaceOption(
      const std::vector<int>& in_data, const std::vector<void*>& out_data) const;
  virtual std::vector<std::pair<int, void*>> BackwardInplaceOption(
      const std::vector<int>& out_grad, const std::vector<int>& in_data,
      const std::vector<int>& out_data, const std::vector<void*>& in_grad) const;

  virtual std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>& in_shape) const;
  virtual std::vector<ResourceRequest> BackwardResource(const std::vector<TShape>& in_shape) const;

  // The caller owns both. Copy is never called, since properties are shared.
  virtual OperatorProperty* Copy() const { return nullptr; }
  virtual Operator* CreateOperator(Context ctx) const = 0;
};

// What a registration can add, as in MXNet.
class MXTRAIN_API OpPropertyEntry {
 public:
  OpPropertyEntry& describe(const std::string& text);
  // The parameters, as Parameter<P>::Describe() gives them. Configurations accept only these.
  OpPropertyEntry& add_arguments(std::vector<FieldInfo> fields);

  struct State;
  explicit OpPropertyEntry(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

// Adds the operator and its kernel on a kind of device, whose operators `make`'s property creates.
// A second registration, of another kind of device, adds a kernel to the same operator: shapes,
// requests and in-place pairs are those of the first one's property, which takes its parameters by
// name and text, as GetParams of the first gives them. Throws kConfig if the name is taken, or is
// not the TypeString.
MXTRAIN_API OpPropertyEntry RegisterOpProperty(
    OperatorRegistry& registry, const std::string& name,
    std::function<std::unique_ptr<OperatorProperty>()> make, DeviceType device = DeviceType::kCPU);

}  // namespace mxtrain::mxnet

// In a function MXTRAIN_OPERATOR(id, registry), whose second argument has this name. The second
// form: on a kind of device.
#define MXTRAIN_REGISTER_OP_PROPERTY(name, Property) \
  MXTRAIN_REGISTER_OP_PROPERTY_ON(name, Property, ::mxtrain::DeviceType::kCPU)
#define MXTRAIN_REGISTER_OP_PROPERTY_ON(name, Property, device)     \
  ::mxtrain::mxnet::RegisterOpProperty(                             \
      registry, #name,                                              \
      []() -> std::unique_ptr<::mxtrain::mxnet::OperatorProperty> { \
        return std::make_unique<Property>();                        \
      },                                                            \
      device)

// The same for a SimpleOp; `XPU`, the device of the source, is named by set_function.
#define MXTRAIN_REGISTER_SIMPLE_OP(name, XPU) ::mxtrain::mxnet::SimpleOp(registry, #name)
