// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators called on arrays immediately, without a graph. A call infers shapes, plans (plans are
// cached per Runtime by name, parameters and specs, and the least recently used ones are dropped),
// converts layouts that no kernel takes, and pushes. It returns before the work is done, but blocks
// while 4096 calls of the runtime are pending, unless all of them wait for callbacks of
// asynchronous functions, which the caller may have to call.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/operator/registry.h"
#include "mxtrain/resource/random_state.h"

namespace mxtrain {

struct CallParam {
  std::string name;
  std::variant<std::string, bool, int64_t, double, TShape> value;  // text: in the syntax of Kwargs
};

// The parameters of a call: {{"axis", 1}, {"kernel", TShape{2, 2}}}, or all as text. Typed values
// are printed only where a call is planned or a CallListener is told. A typed `scalar` that is the
// only parameter is given to the kernel with each call where the plan allows (Plan::takes_scalar):
// calls with other numbers are then not planned anew.
class MXTRAIN_API CallParams {
 public:
  CallParams() = default;
  CallParams(std::initializer_list<CallParam> params) : params_(params) {}
  CallParams(const Kwargs& kwargs);  // NOLINT(google-explicit-constructor): another form

  const std::vector<CallParam>& list() const { return params_; }
  // The only parameter, if that is `scalar` and typed.
  std::optional<double> Scalar() const;
  Kwargs ToKwargs() const;

 private:
  std::vector<CallParam> params_;
};

// Returns new arrays for the visible outputs. `in`: arguments in order; `aux`: auxiliary states,
// which are mutated. Throws kConfig, with the operator's name, for wrong counts, shapes and types.
MXTRAIN_API std::vector<NDArray> Invoke(std::string_view op, std::span<const NDArray> in,
                                        const CallParams& params = {},
                                        std::span<const NDArray> aux = {});
// Writes into given arrays as `req` says. An output may be one of the inputs: the call runs in
// place if the kernel allows it, otherwise through a temporary. Input layouts that no kernel takes
// are converted.
MXTRAIN_API void InvokeInto(std::string_view op, std::span<const NDArray> in,
                            std::span<const NDArray> out, OpReqType req = OpReqType::kWriteTo,
                            const CallParams& params = {}, std::span<const NDArray> aux = {},
                            int priority = 0);

// A call as it is carried out. A composite appears as its parts.
struct InvokedCall {
  std::string_view op;  // canonical name
  const Kwargs& kwargs;
  std::span<const NDArray> in, aux;
  std::span<const NDArray> out;  // the visible outputs; in BeforeCall of an Invoke still empty
  OpReqType req;                 // of `out`: kNullOp, kWriteTo or kAddTo
  bool draws;                    // random numbers
};

// The random numbers of a call: those of a layer of this name in the step that `state` names.
struct CallDraws {
  RandomState state;
  std::string name;
};

// Told of the calls that one thread makes, as a recording of a program is (autograd/autograd.h),
// which are in training mode (OpContext::is_train) then; others are in evaluation mode. Calls made
// inside are told to nobody.
class MXTRAIN_API CallListener {
 public:
  virtual ~CallListener() = default;
  // Before a valid call pushes anything. May throw to refuse it, and may push. Whether the call
  // leaves its auxiliary states as they are: what runs it again will change them.
  virtual bool BeforeCall(const InvokedCall& call) = 0;
  // Of one that draws, after BeforeCall. None: numbers of its own, as without a listener.
  virtual std::optional<CallDraws> DrawsOf(const InvokedCall&) { return std::nullopt; }
  // After everything is pushed.
  virtual void AfterCall(const InvokedCall& call) = 0;
};
// From now on the calls of this thread are told to `listener` (null: to nobody), which is not
// owned. Returns the one before.
MXTRAIN_API CallListener* SetCallListener(CallListener* listener);

// A call repeated on the same arrays. It is planned once and a push allocates nothing, unless an
// array must be converted, random numbers are drawn or a CallListener is told: then each push does
// all the work of a call.
class MXTRAIN_API PreparedCall {
 public:
  // As InvokeInto, but pushes nothing yet.
  PreparedCall(std::string_view op, std::span<const NDArray> in, std::span<const NDArray> out,
               OpReqType req, const CallParams& params, std::span<const NDArray> aux);
  void Push(int priority) const;
  // Whether it was created for these arguments.
  bool Takes(std::span<const NDArray> in) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with pushed work
};

}  // namespace mxtrain
