// SPDX-License-Identifier: Apache-2.0
#pragma once
// Initial values of parameters. A random value is a pure function of (seed, parameter name, element
// index). It does not depend on threads, device, layout or the other parameters of a net.
//
// Initializers have no state: every call is safe from every thread. The engine computes the values;
// calls return before that.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

class MXTRAIN_API Initializer {
 public:
  // zero, one, constant(value), uniform(scale), normal(sigma), xavier(rnd_type, factor_type,
  // magnitude), msra_prelu(factor_type, slope), orthogonal(scale), bilinear, fused_rnn(init,
  // num_hidden, num_layers, mode, bidirectional, forget_bias); also under MXNet's names (zeros,
  // ones, MSRAPrelu). Throws kConfig with the nearest name or parameter.
  static std::unique_ptr<Initializer> Create(std::string_view name, const Kwargs& kwargs = {});
  // From the text of a variable's `__init__` attribute: a name (xavier) or a JSON list
  // (["xavier", {"magnitude": "2"}]).
  static std::unique_ptr<Initializer> FromAttribute(std::string_view text);
  static std::vector<std::string> Names();
  static std::vector<FieldInfo> Describe(std::string_view name);

  virtual ~Initializer() = default;
  // Writes every element of `array` (any layout and device; padding stays zero). `name` is the
  // parameter's name and selects the random numbers. Throws kConfig, naming the parameter, for an
  // unsuitable shape or type.
  virtual void Initialize(const std::string& name, uint64_t seed, NDArray* array) const = 0;
};

// Initializes a parameter by MXNet's rules: `init_attribute` ("" if there is none) wins; else by
// name:
//   *_weight                                  `weights`
//   *_bias, *_beta, *moving_mean, *running_mean, *moving_inv_var, *moving_avg, *_min      0
//   *_gamma, *moving_var, *running_var, *_max                                             1
//   upsampling*                               bilinear interpolation
//   stn_loc*_weight, stn_loc*_bias            0, the identity transform
// Any other name throws kConfig, which says how to declare `init`.
MXTRAIN_API void InitializeByName(const std::string& name, std::string_view init_attribute,
                                  const Initializer& weights, uint64_t seed, NDArray* array);

}  // namespace mxtrain
