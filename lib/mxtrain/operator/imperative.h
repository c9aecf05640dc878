// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators called on arrays immediately, without a graph. A call infers shapes, plans (plans are
// cached per Runtime by name, parameters and specs), converts layouts that no kernel takes, and
// pushes. It returns before the work is done, but blocks while 4096 calls of the runtime are
// pending.
#include <string_view>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

// Returns new arrays for the visible outputs. `in`: arguments in order; `aux`: auxiliary states,
// which are mutated. Throws kConfig, with the operator's name, for wrong counts, shapes and types.
MXTRAIN_API std::vector<NDArray> Invoke(std::string_view op, std::span<const NDArray> in,
                                        const Kwargs& kwargs = {},
                                        std::span<const NDArray> aux = {});
// Writes into given arrays as `req` says. An output may be one of the inputs: the call runs in
// place if the kernel allows it, otherwise through a temporary. Input layouts that no kernel takes
// are converted.
MXTRAIN_API void InvokeInto(std::string_view op, std::span<const NDArray> in,
                            std::span<const NDArray> out, OpReqType req = OpReqType::kWriteTo,
                            const Kwargs& kwargs = {}, std::span<const NDArray> aux = {},
                            int priority = 0);

// A call repeated on the same arrays. It is planned once and a push allocates nothing, unless an
// array must be converted or random numbers are drawn: then each push does all the work of a call.
class MXTRAIN_API PreparedCall {
 public:
  // As InvokeInto, but pushes nothing yet.
  PreparedCall(std::string_view op, std::span<const NDArray> in, std::span<const NDArray> out,
               OpReqType req, const Kwargs& kwargs, std::span<const NDArray> aux);
  void Push(int priority) const;
  // Whether it was created for these arguments.
  bool Takes(std::span<const NDArray> in) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with pushed work
};

}  // namespace mxtrain
