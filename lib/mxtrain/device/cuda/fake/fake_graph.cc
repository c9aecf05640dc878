// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/fake/internal/fake_graph.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "mxtrain/base/dtype.h"
#include "mxtrain/base/error.h"

namespace mxtrain::cuda::test {

Convolution::Convolution(const Object& op) {
  const int first = op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
                        ? CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA
                    : op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                        ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
                        : CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA;
  const auto at = [&](int offset) { return op.Reference(static_cast<Name>(first + offset)); };
  window = at(2);
  weight = at(3);
  data = at(4);
  out = at(5);
  const auto factor = [&](int offset) { return op.values.at(static_cast<Name>(first + offset)); };
  alpha = factor(0).reals[0];
  beta = factor(1).reals[0];
  factor_types = {factor(0).type, factor(1).type};
  written = op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 2
            : op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 0
                                                                                      : 1;
}

cudnnPointwiseMode_t PointwiseModeOf(const Object& op) {
  return static_cast<cudnnPointwiseMode_t>(
      op.Reference(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
          ->Number(CUDNN_ATTR_POINTWISE_MODE));
}
bool IsVirtual(const Object& tensor) {
  const auto found = tensor.values.find(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  return found != tensor.values.end() && found->second.numbers[0];
}
int64_t IdOf(const Object& tensor) {
  return tensor.Number(CUDNN_ATTR_TENSOR_UNIQUE_ID);
}
const std::vector<int64_t>& ShapeOf(const Object& tensor) {
  return tensor.Numbers(CUDNN_ATTR_TENSOR_DIMENSIONS);
}

std::vector<Object*> OperationArrays::All() const {
  std::vector<Object*> all = in;
  all.insert(all.end(), out.begin(), out.end());
  return all;
}

OperationArrays ArraysOf(const Object& op) {
  OperationArrays arrays;
  const auto add = [&](std::vector<Object*>* to, std::initializer_list<Name> names) {
    for (const Name name : names) {
      if (Object* array = op.Reference(name)) to->push_back(array);
    }
  };
  switch (op.kind) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      add(&arrays.in, {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                       CUDNN_ATTR_OPERATION_POINTWISE_DYDESC});
      add(&arrays.out,
          {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC});
      return arrays;
    case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
      add(&arrays.in, {CUDNN_ATTR_OPERATION_GENSTATS_XDESC});
      add(&arrays.out,
          {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC});
      return arrays;
    case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR:
      add(&arrays.in,
          {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC,
           CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC,
           CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC,
           CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC});
      add(&arrays.out, {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
                        CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
                        CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
                        CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
                        CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS});
      return arrays;
    default:
      break;
  }
  const Convolution c(op);
  for (Object* array : {c.data, c.weight, c.out})
    (array == c.result() ? arrays.out : arrays.in).push_back(array);
  return arrays;
}

std::map<int64_t, const Object*> RealArraysOf(const std::vector<Object*>& ops) {
  std::map<int64_t, const Object*> arrays;
  for (const Object* op : ops) {
    for (const Object* tensor : ArraysOf(*op).All()) {
      if (!IsVirtual(*tensor)) arrays[IdOf(*tensor)] = tensor;
    }
  }
  return arrays;
}

namespace {

// Elements.
int64_t SizeOf(const Object& tensor) {
  const auto& n = ShapeOf(tensor);
  return n[0] * n[1] * n[2] * n[3];
}

// f(zero of the type of the elements).
template <typename F>
auto WithType(const Object& tensor, const F& f) {
  switch (tensor.Number(CUDNN_ATTR_TENSOR_DATA_TYPE)) {
    case CUDNN_DATA_FLOAT:
      return f(float());
    case CUDNN_DATA_DOUBLE:
      return f(double());
    case CUDNN_DATA_HALF:
      return f(float16());
    case CUDNN_DATA_BFLOAT16:
      return f(bfloat16());
    default:
      Throw(ErrorKind::kBug, "a type that the fake does not have");
  }
}

// An array of a graph: its elements in the order of its shape, and where they lie.
struct Array {
  const Object* tensor;
  void* place;  // null: virtual
  std::vector<double> elements;

  template <typename F>
  void ForElements(const F& f) const {
    const auto &n = ShapeOf(*tensor), &strides = tensor->Numbers(CUDNN_ATTR_TENSOR_STRIDES);
    size_t i = 0;
    for (int64_t a = 0; a < n[0]; ++a) {
      for (int64_t b = 0; b < n[1]; ++b) {
        for (int64_t c = 0; c < n[2]; ++c) {
          for (int64_t d = 0; d < n[3]; ++d)
            f(i++, a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]);
        }
      }
    }
  }
  void Load() {
    elements.assign(static_cast<size_t>(SizeOf(*tensor)), 0);
    if (!place) return;
    WithType(*tensor, [&](auto zero) {
      ForElements([&](size_t i, int64_t at) {
        elements[i] = static_cast<double>(static_cast<decltype(zero)*>(place)[at]);
      });
    });
  }
  // Rounds to the type of the array.
  void Store() {
    WithType(*tensor, [&](auto zero) {
      using T = decltype(zero);
      ForElements([&](size_t i, int64_t at) {
        T value;
        if constexpr (sizeof(T) == 2) {
          value = static_cast<T>(static_cast<float>(elements[i]));
        } else {
          value = static_cast<T>(elements[i]);
        }
        elements[i] = static_cast<double>(value);
        if (place) static_cast<T*>(place)[at] = value;
      });
    });
  }
};

size_t At(const std::vector<int64_t>& n, int64_t a, int64_t b, int64_t c, int64_t d) {
  return static_cast<size_t>(((a * n[1] + b) * n[2] + c) * n[3] + d);
}

void RunConvolution(const Convolution& c, std::map<const Object*, Array>* arrays) {
  const auto &x = ShapeOf(*c.data), &w = ShapeOf(*c.weight), &y = ShapeOf(*c.out);
  const auto number = [&](Name name, size_t axis) { return c.window->Number(name, axis); };
  std::vector<double>* values[3] = {&arrays->at(c.data).elements, &arrays->at(c.weight).elements,
                                    &arrays->at(c.out).elements};
  std::vector<double> sums(values[c.written]->size());
  const int first = c.written == 0 ? 1 : 0, second = c.written == 2 ? 1 : 2;
  const int64_t group_out = w[0] / (x[1] / w[1]);
  for (int64_t n = 0; n < y[0]; ++n) {
    for (int64_t o = 0; o < y[1]; ++o) {
      for (int64_t row = 0; row < y[2]; ++row) {
        for (int64_t column = 0; column < y[3]; ++column) {
          for (int64_t k = 0; k < w[1] * w[2] * w[3]; ++k) {
            const int64_t channel = k / (w[2] * w[3]), i = k / w[3] % w[2], j = k % w[3];
            const auto in = [&](int64_t at, int64_t tap, size_t axis) {
              return at * number(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, axis) +
                     tap * number(CUDNN_ATTR_CONVOLUTION_DILATIONS, axis) -
                     number(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, axis);
            };
            const int64_t from = in(row, i, 0), beside = in(column, j, 1);
            if (from < 0 || from >= x[2] || beside < 0 || beside >= x[3]) continue;
            const size_t places[3] = {At(x, n, o / group_out * w[1] + channel, from, beside),
                                      At(w, o, channel, i, j), At(y, n, o, row, column)};
            sums[places[c.written]] +=
                (*values[first])[places[first]] * (*values[second])[places[second]];
          }
        }
      }
    }
  }
  // As on a device: what is not added is not read.
  for (size_t i = 0; i < sums.size(); ++i) {
    double& to = (*values[c.written])[i];
    to = c.alpha * sums[i] + (c.beta != 0 ? c.beta * to : 0);
  }
}

// f(index of the element, its channel) for every element of a shape.
template <typename F>
void ForImages(const std::vector<int64_t>& n, const F& f) {
  for (int64_t a = 0; a < n[0]; ++a) {
    for (int64_t b = 0; b < n[1]; ++b) {
      for (int64_t i = 0; i < n[2] * n[3]; ++i)
        f(At(n, a, b, i / n[3], i % n[3]), static_cast<size_t>(b));
    }
  }
}

double ValueOf(cudnnPointwiseMode_t mode, double x, double second) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + second;
    case CUDNN_POINTWISE_SUB:
      return x - second;
    case CUDNN_POINTWISE_MUL:
      return x * second;
    case CUDNN_POINTWISE_RELU_FWD:
      return x < 0 ? 0 : x;
    case CUDNN_POINTWISE_RELU_BWD:
      return x > 0 ? second : 0;
    default:
      Throw(ErrorKind::kBug, "a function that the fake does not have");
  }
}

void RunPointwise(const Object& op, std::map<const Object*, Array>* arrays) {
  const auto [in, out] = ArraysOf(op);
  const cudnnPointwiseMode_t mode = PointwiseModeOf(op);
  const auto& n = ShapeOf(*out[0]);
  const auto value = [&](const Object* array, int64_t a, int64_t b, int64_t c, int64_t d) {
    const auto& s = ShapeOf(*array);
    return arrays->at(array).elements[At(s, a % s[0], b % s[1], c % s[2], d % s[3])];
  };
  for (int64_t a = 0; a < n[0]; ++a) {
    for (int64_t b = 0; b < n[1]; ++b) {
      for (int64_t c = 0; c < n[2]; ++c) {
        for (int64_t d = 0; d < n[3]; ++d)
          arrays->at(out[0]).elements[At(n, a, b, c, d)] =
              ValueOf(mode, value(in[0], a, b, c, d), in.size() > 1 ? value(in[1], a, b, c, d) : 0);
      }
    }
  }
}

void RunSums(const Object& op, std::map<const Object*, Array>* arrays) {
  const auto [in, out] = ArraysOf(op);
  const std::vector<double>& x = arrays->at(in[0]).elements;
  std::vector<double>&sums = arrays->at(out[0]).elements, &squares = arrays->at(out[1]).elements;
  std::fill(sums.begin(), sums.end(), 0);
  std::fill(squares.begin(), squares.end(), 0);
  ForImages(ShapeOf(*in[0]), [&](size_t i, size_t channel) {
    sums[channel] += x[i];
    squares[channel] += x[i] * x[i];
  });
}

// Of y = (x - mean) inverse scale + shift: the gradients of scale and shift, and the numbers of
// each channel with which that of x is a dy + b x + c.
void RunNormalisationGradient(const Object& op, std::map<const Object*, Array>* arrays) {
  const auto [in, out] = ArraysOf(op);
  const auto elements = [&](const Object* array) -> std::vector<double>& {
    return arrays->at(array).elements;
  };
  const std::vector<double>&x = elements(in[0]), &dy = elements(in[1]), &mean = elements(in[2]),
        &inverse = elements(in[3]), &scale = elements(in[4]);
  std::vector<double>&scale_gradient = elements(out[0]), &shift_gradient = elements(out[1]);
  std::fill(scale_gradient.begin(), scale_gradient.end(), 0);
  std::fill(shift_gradient.begin(), shift_gradient.end(), 0);
  ForImages(ShapeOf(*in[0]), [&](size_t i, size_t channel) {
    scale_gradient[channel] += dy[i] * (x[i] - mean[channel]) * inverse[channel];
    shift_gradient[channel] += dy[i];
  });
  const double count = static_cast<double>(x.size() / mean.size());
  for (size_t c = 0; c < mean.size(); ++c) {
    const double a = scale[c] * inverse[c], b = -a * inverse[c] * scale_gradient[c] / count;
    elements(out[2])[c] = a;
    elements(out[3])[c] = b;
    elements(out[4])[c] = -a * shift_gradient[c] / count - b * mean[c];
  }
}

}  // namespace

int64_t BytesOf(const Object& tensor) {
  return SizeOf(tensor) *
         WithType(tensor, [](auto zero) { return static_cast<int64_t>(sizeof(zero)); });
}

void RunOperations(const std::vector<Object*>& ops, const std::map<int64_t, void*>& places) {
  std::map<const Object*, Array> arrays;
  for (const Object* op : ops) {
    const OperationArrays of_op = ArraysOf(*op);
    for (const Object* tensor : of_op.All()) {
      if (arrays.contains(tensor)) continue;
      Array array{tensor, IsVirtual(*tensor) ? nullptr : places.at(IdOf(*tensor)), {}};
      array.Load();
      arrays.emplace(tensor, std::move(array));
    }
    switch (op->kind) {
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        RunPointwise(*op, &arrays);
        break;
      case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
        RunSums(*op, &arrays);
        break;
      case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR:
        RunNormalisationGradient(*op, &arrays);
        break;
      default:
        RunConvolution(Convolution(*op), &arrays);
    }
    for (const Object* tensor : of_op.out) arrays.at(tensor).Store();
  }
}

}  // namespace mxtrain::cuda::test
