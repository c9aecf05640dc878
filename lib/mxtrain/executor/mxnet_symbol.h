// SPDX-License-Identifier: Apache-2.0
#pragma once
// Symbol and Executor with MXNet's names (docs/mxnet_forms.md), for nets that are written as in its
// guide:
//
//   mxnet::Symbol net = mxnet::Symbol(Symbol::Create(...)) * 0.5;
//   net.list_arguments();
//   auto executor = net.simple_bind(runtime, Context::cpu(), {{"data", {32, 784}}});
//   executor.arg_dict().at("data") = 1;
//   executor.forward(/*is_train=*/true);
//   executor.backward();
//   executor.grad_dict().at("fc1_weight");
//
// Everything is passed on to mxtrain::Symbol and mxtrain::Executor; their headers are the contract.
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "mxtrain/executor/executor.h"
#include "mxtrain/symbol/arithmetic.h"

namespace mxtrain::mxnet {

// A symbol bound to arrays of its own: every argument has one, data and labels too, all plain. The
// Runtime must outlive it. One thread at a time.
class MXTRAIN_API Executor {
 public:
  Executor(Runtime& runtime, const mxtrain::Symbol& symbol, Context ctx,
           const std::map<std::string, TShape>& shapes, executor::GradReq grad_req);

  // With `is_train` a backward may follow.
  void forward(bool is_train = false);
  // `out_grads`: one for each output whose operator reads a head gradient; none for losses. Throws
  // kUsage unless a forward(true) came before.
  void backward(const std::vector<NDArray>& out_grads = {});

  // Of the last forward; overwritten by the next of its kind.
  const std::vector<NDArray>& outputs() const;
  // Zero until they are written. An argument that can have no gradient (a label) is not in
  // grad_dict, and with GradReq::kNull none is.
  std::map<std::string, NDArray>& arg_dict() { return args_; }
  std::map<std::string, NDArray>& grad_dict() { return grads_; }
  std::map<std::string, NDArray>& aux_dict() { return aux_; }

 private:
  mxtrain::Executor& Of(bool is_train);

  Runtime* runtime_;
  mxtrain::Symbol symbol_;
  executor::BindRequest request_;
  std::map<std::string, NDArray> args_, grads_, aux_;
  std::unique_ptr<mxtrain::Executor> training_, evaluation_;  // bound at first use
  bool trained_last_ = false;
};

class MXTRAIN_API Symbol : public mxtrain::Symbol {
 public:
  Symbol() = default;
  Symbol(const mxtrain::Symbol& symbol) : mxtrain::Symbol(symbol) {}

  std::vector<std::string> list_arguments() const { return ListArguments(); }
  std::vector<std::string> list_outputs() const { return ListOutputs(); }
  std::vector<std::string> list_auxiliary_states() const { return ListAuxiliaryStates(); }
  std::string name() const { return Name(); }
  std::string attr(const std::string& key) const { return Attr(key); }
  std::string tojson() const { return ToJson(); }
  Symbol get_internals() const { return GetInternals(); }

  // The shapes of arguments, outputs and auxiliary states; what does not follow from `known` is a
  // shape without known().
  std::tuple<std::vector<TShape>, std::vector<TShape>, std::vector<TShape>> infer_shape(
      const std::map<std::string, TShape>& known) const {
    Shapes shapes = InferShape(known);
    return {std::move(shapes.arguments), std::move(shapes.outputs), std::move(shapes.auxiliaries)};
  }
  // Arrays for all arguments, gradients and auxiliary states. Throws kConfig if `shapes` do not say
  // all shapes.
  Executor simple_bind(Runtime& runtime, Context ctx, const std::map<std::string, TShape>& shapes,
                       executor::GradReq grad_req = executor::GradReq::kWrite) const {
    return Executor(runtime, *this, ctx, shapes, grad_req);
  }
};

}  // namespace mxtrain::mxnet
