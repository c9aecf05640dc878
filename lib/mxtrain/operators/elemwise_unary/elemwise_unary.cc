// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elemwise_unary/elemwise_unary.h"

#include <map>
#include <string_view>

#include "mxtrain/operator/elementwise.h"

namespace mxtrain::elemwise_unary {
namespace {

// The formula of each function of an element x, for the operator reference.
const std::map<std::string_view, const char*> kFormulas = {
    {"_copy", "x"},
    {"abs", "|x|"},
    {"sign", "1 if x > 0, -1 if x < 0, else 0"},
    {"round", "the integer nearest to x; halves round away from zero"},
    {"rint", "the integer nearest to x; halves round down"},
    {"ceil", "the least integer >= x"},
    {"floor", "the greatest integer <= x"},
    {"trunc", "x truncated to an integer"},
    {"fix", "x truncated to an integer"},
    {"square", "x^2"},
    {"sqrt", "the square root of x"},
    {"rsqrt", "1 / sqrt(x)"},
    {"cbrt", "the cube root of x"},
    {"rcbrt", "1 / cbrt(x)"},
    {"reciprocal", "1 / x"},
    {"exp", "e^x"},
    {"expm1", "e^x - 1, accurate for small x"},
    {"log", "the natural logarithm of x"},
    {"log10", "the logarithm of x to base 10"},
    {"log2", "the logarithm of x to base 2"},
    {"log1p", "log(1 + x), accurate for small x"},
    {"sin", "the sine of x in radians"},
    {"cos", "the cosine of x in radians"},
    {"tan", "the tangent of x in radians"},
    {"arcsin", "the angle in [-pi/2, pi/2] whose sine is x"},
    {"arccos", "the angle in [0, pi] whose cosine is x"},
    {"arctan", "the angle in (-pi/2, pi/2) whose tangent is x"},
    {"sinh", "(e^x - e^-x) / 2"},
    {"cosh", "(e^x + e^-x) / 2"},
    {"tanh", "(e^x - e^-x) / (e^x + e^-x)"},
    {"arcsinh", "log(x + sqrt(x^2 + 1))"},
    {"arccosh", "log(x + sqrt(x^2 - 1)), for x >= 1"},
    {"arctanh", "log((1 + x) / (1 - x)) / 2, for |x| < 1"},
    {"degrees", "x * 180 / pi"},
    {"radians", "x * pi / 180"},
    {"gamma", "the gamma function of x: (x - 1)! for integers"},
    {"gammaln", "log |gamma(x)|"},
    {"digamma", "the derivative of log(gamma(x))"},
    {"erf", "2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x"},
    {"erfinv", "the number whose erf is x, for |x| < 1"},
    {"relu", "max(x, 0)"},
    {"sigmoid", "1 / (1 + e^-x)"},
    {"softsign", "x / (1 + |x|)"},
    {"negative", "-x"},
    {"logical_not", "1 if x is 0, else 0"},
    {"zeros_like", "0"},
    {"ones_like", "1"},
};

}  // namespace

MXTRAIN_OPERATOR(elemwise_unary, registry) {
  ForEachUnary([&registry](auto f) {
    using F = decltype(f);
    SimpleOp op(registry, F::kName);
    op.set_elementwise(F::kElementwise)
        .describe(format("{}, for every element x", kFormulas.at(F::kName)));
    if (!F::kIntegers) op.set_types(kFloatingTypes);
  });
  SimpleOp(registry, "_copy")
      .add_alias("identity")
      .set_identity({{0, 0}}, {{0, 0}})
      .describe("the input itself");
}

}  // namespace mxtrain::elemwise_unary
