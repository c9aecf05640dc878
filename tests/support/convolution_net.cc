// SPDX-License-Identifier: Apache-2.0
#include "tests/support/convolution_net.h"

#include <algorithm>

#include "mxtrain/base/format.h"

namespace mxtrain::test {

TShape OutputShape(const ConvolutionNet& net) {
  TShape out{net.data[0], net.filters, 0, 0};
  for (int i = 0; i < 2; ++i) {
    const int64_t reach = net.dilate[i] * (net.kernel[i] - 1);
    for (int64_t at = -net.pad[i]; at + reach < net.data[2 + i] + net.pad[i]; at += net.stride[i])
      ++out[2 + i];
  }
  return out;
}

// Adds every product to its output.
Values Convolve(const ConvolutionNet& net, const Values& data, const Values& weight,
                const Values* bias) {
  const TShape out = OutputShape(net);
  const int64_t channels = net.data[1], in_group = channels / net.groups,
                out_group = net.filters / net.groups;
  Values result(out.Size());
  for (int64_t n = 0; n < out[0]; ++n) {
    for (int64_t o = 0; o < out[1]; ++o) {
      for (int64_t y = 0; y < out[2]; ++y) {
        for (int64_t x = 0; x < out[3]; ++x) {
          double& cell = result[((n * out[1] + o) * out[2] + y) * out[3] + x];
          if (bias) cell = (*bias)[o];
          for (int64_t c = 0; c < in_group; ++c) {
            for (int64_t i = 0; i < net.kernel[0]; ++i) {
              for (int64_t j = 0; j < net.kernel[1]; ++j) {
                const int64_t iy = y * net.stride[0] + i * net.dilate[0] - net.pad[0],
                              ix = x * net.stride[1] + j * net.dilate[1] - net.pad[1];
                if (iy < 0 || ix < 0 || iy >= net.data[2] || ix >= net.data[3]) continue;
                cell += data[((n * channels + o / out_group * in_group + c) * net.data[2] + iy) *
                                 net.data[3] +
                             ix] *
                        weight[((o * in_group + c) * net.kernel[0] + i) * net.kernel[1] + j];
              }
            }
          }
        }
      }
    }
  }
  return result;
}

// Gradients of data, weight and bias: every product is propagated back along its path.
Arrays ConvolveBack(const ConvolutionNet& net, const Values& data, const Values& weight,
                    const Values& head) {
  const TShape out = OutputShape(net);
  const int64_t channels = net.data[1];
  Values data_gradient(data.size()), weight_gradient(weight.size()),
      bias_gradient(static_cast<size_t>(net.filters));
  for (int64_t at = 0; at < out.Size(); ++at) {
    const int64_t x = at % out[3], y = at / out[3] % out[2], o = at / (out[3] * out[2]) % out[1],
                  n = at / (out[3] * out[2] * out[1]);
    bias_gradient[o] += head[at];
    for (int64_t k = 0; k < channels * net.kernel[0] * net.kernel[1]; ++k) {
      const int64_t j = k % net.kernel[1], i = k / net.kernel[1] % net.kernel[0],
                    c = k / (net.kernel[1] * net.kernel[0]);
      const int64_t iy = y + i - net.pad[0], ix = x + j - net.pad[1];
      if (iy < 0 || ix < 0 || iy >= net.data[2] || ix >= net.data[3]) continue;
      const int64_t from = ((n * channels + c) * net.data[2] + iy) * net.data[3] + ix,
                    w = o * channels * net.kernel[0] * net.kernel[1] + k;
      data_gradient[from] += head[at] * weight[w];
      weight_gradient[w] += head[at] * data[from];
    }
  }
  Arrays gradients{std::move(data_gradient), std::move(weight_gradient)};
  if (net.bias) gradients.push_back(std::move(bias_gradient));
  return gradients;
}

OperatorCase CaseOf(const std::string& name, const ConvolutionNet& net) {
  OperatorCase c;
  c.name = "convolution, " + name;
  c.op = net.act.empty() ? "Convolution" : "_ConvolutionActivation";
  c.kwargs = {{"kernel", net.kernel.ToTuple()},
              {"stride", net.stride.ToTuple()},
              {"pad", net.pad.ToTuple()},
              {"dilate", net.dilate.ToTuple()},
              {"num_filter", std::to_string(net.filters)},
              {"num_group", std::to_string(net.groups)},
              {"no_bias", net.bias ? "False" : "True"},
              {"workspace", "512"}};
  c.shapes = {net.data, {net.filters, net.data[1] / net.groups, net.kernel[0], net.kernel[1]}};
  if (net.bias) c.shapes.push_back({net.filters});
  if (!net.act.empty()) {
    c.kwargs.insert(c.kwargs.end(), {{"act", net.act}, {"with_sum", net.sum ? "True" : "False"}});
    if (net.sum) c.shapes.push_back(OutputShape(net));
    c.is_train = false;
    c.backward = false;
  }
  c.inputs = {Uniform(-1, 1)};
  c.may_allocate = {"onednn"};
  c.forward = [net](const Arrays& in, const Arrays&) {
    Values out = Convolve(net, in[0], in[1], net.bias ? &in[2] : nullptr);
    if (net.sum) out = Apply(out, in.back(), [](double x, double y) { return x + y; });
    if (net.act == "relu" || net.act == "relu6")
      out = Apply(out, [](double x) { return std::max(x, 0.0); });
    if (net.act == "relu6") out = Apply(out, [](double x) { return std::min(x, 6.0); });
    return Arrays{out};
  };
  const double terms =
      static_cast<double>(c.shapes[1].Product(1, 4) + net.data[0] * net.data[2] * net.data[3]);
  c.tolerance = {16 + terms / 4, "sums of as many products, in any order"};
  return c;
}

}  // namespace mxtrain::test
