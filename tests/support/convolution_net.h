// SPDX-License-Identifier: Apache-2.0
#pragma once
// A layer of Convolution or _ConvolutionActivation, its results by the definition in double, and
// the case that compares kernels with them.
#include "tests/support/operator_case.h"

namespace mxtrain::test {

struct ConvolutionNet {
  TShape data, kernel, stride = {1, 1}, pad = {0, 0}, dilate = {1, 1};
  int64_t filters = 1, groups = 1;
  bool bias = true;
  std::string act = {};  // of _ConvolutionActivation; empty: Convolution
  bool sum = false;
};

TShape OutputShape(const ConvolutionNet& net);
// The output without epilogue. `bias`: null without one.
Values Convolve(const ConvolutionNet& net, const Values& data, const Values& weight,
                const Values* bias);
// The gradients of data, weight and, if the net has one, bias.
Arrays ConvolveBack(const ConvolutionNet& net, const Values& data, const Values& weight,
                    const Values& head);
OperatorCase CaseOf(const std::string& name, const ConvolutionNet& net);

}  // namespace mxtrain::test
