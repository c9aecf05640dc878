#pragma once
// Operators called on arrays at once, without a graph. Calls infer shapes, plan (plans are kept per Runtime by name, parameters and specs),
// convert what no kernel takes, and push. They return before the work is done, but wait where 4096 calls of the runtime are under way.
#include <string_view>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

// New arrays for the visible outputs. `in`: arguments in order; `aux`: auxiliary states, mutated. Throws kConfig for wrong counts, shapes and
// types, with the operator's name.
MXTRAIN_API std::vector<NDArray> Invoke(std::string_view op, std::span<const NDArray> in, const Kwargs& kwargs = {}, std::span<const NDArray> aux = {});
// Into given arrays, as `req` says. An output may be one of the inputs (the call is then in place where the kernel grants it, and goes through
// a temporary where it does not). Input layouts that no kernel takes are converted.
MXTRAIN_API void InvokeInto(std::string_view op, std::span<const NDArray> in, std::span<const NDArray> out, OpReqType req = OpReqType::kWriteTo,
                            const Kwargs& kwargs = {}, std::span<const NDArray> aux = {}, int priority = 0);

// One call on the same arrays, made again and again. Everything is settled at once, and a push allocates nothing; but where an array must be
// converted, or random numbers are drawn, each push does all the work of a call.
class MXTRAIN_API PreparedCall {
 public:
  // As InvokeInto; pushes nothing yet.
  PreparedCall(std::string_view op, std::span<const NDArray> in, std::span<const NDArray> out, OpReqType req, const Kwargs& kwargs,
               std::span<const NDArray> aux);
  void Push(int priority) const;
  // Whether it was made for these arguments.
  bool Takes(std::span<const NDArray> in) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with what was pushed
};

MXTRAIN_API NDArray operator+(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator-(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator*(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator/(const NDArray& a, const NDArray& b);
MXTRAIN_API NDArray operator+(const NDArray& a, double b);
MXTRAIN_API NDArray operator-(const NDArray& a, double b);
MXTRAIN_API NDArray operator*(const NDArray& a, double b);
MXTRAIN_API NDArray operator/(const NDArray& a, double b);
MXTRAIN_API NDArray& operator+=(NDArray& a, const NDArray& b);
MXTRAIN_API NDArray& operator-=(NDArray& a, const NDArray& b);
MXTRAIN_API NDArray& operator*=(NDArray& a, double b);

}  // namespace mxtrain
