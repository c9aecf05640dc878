// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/mxnet_tensor.h"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "mxtrain/operator/mxnet_names.h"
#include "tests/support/blobs.h"

namespace mxtrain::mxnet {
namespace {

using test::BlobOf;

struct square {
  template <typename V>
  MSHADOW_XINLINE static V Map(V a) {
    return a * a;
  }
};
struct larger {
  template <typename V>
  MSHADOW_XINLINE static V Map(V a, V b) {
    return a > b ? a : b;
  }
};

TEST_CASE("a TBlob has MXNet's names, and tensors of its elements") {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0F);
  const TBlob blob = BlobOf(values, {2, 3, 4});
  CHECK(blob.dptr_ == values.data());
  CHECK(blob.shape_ == TShape{2, 3, 4});
  CHECK(blob.type_flag_ == DType::kFloat32);
  const auto t = blob.get<cpu, 3, float>();
  CHECK(t.shape_ == mshadow::Shape3(2, 3, 4));
  CHECK(t[1][2][3] == 23);
  CHECK(t[1].shape_ == mshadow::Shape2(3, 4));
  CHECK(TShape(t.shape_) == blob.shape_);
  CHECK(t.FlatTo2D().shape_ == mshadow::Shape2(6, 4));
  CHECK(blob.FlatTo2D<cpu, float>().shape_ == mshadow::Shape2(2, 12));
  CHECK_THROWS_WITH_AS((blob.get<cpu, 2, float>()),
                       "get of 2 axes from an array of shape [2, 3, 4]; use as many axes as it "
                       "has, or FlatTo2D",
                       Error);
  CHECK_THROWS_WITH_AS((blob.get<cpu, 3, double>()), "an array of float32 was asked for as float64",
                       Error);
}

TEST_CASE_TEMPLATE("expressions are computed element by element", DType, float, double, float16,
                   int32_t) {
  using namespace mshadow::expr;
  std::vector<DType> a(6), b(6), y(6);
  for (int i = 0; i < 6; ++i) {
    a[static_cast<size_t>(i)] = ElementOf<DType>(float(i + 1));
    b[static_cast<size_t>(i)] = ElementOf<DType>(float(4 - i));
  }
  const mshadow::Tensor<cpu, 2, DType> ta(a.data(), mshadow::Shape2(2, 3)),
      tb(b.data(), mshadow::Shape2(2, 3)), ty(y.data(), mshadow::Shape2(2, 3));
  const auto check = [&](auto expected) {
    for (int i = 0; i < 6; ++i)
      CHECK(static_cast<double>(y[static_cast<size_t>(i)]) == double(expected(i + 1, 4 - i)));
  };
  ty = ta + tb;
  check([](int p, int q) { return p + q; });
  ty = F<square>(ta) * DType(2) - tb;
  check([](int p, int q) { return 2 * p * p - q; });
  ty = 3 - F<larger>(ta, ScalarExp<DType>(2));
  check([](int p, int) { return 3 - std::max(p, 2); });
  ty += ta * 10;
  check([](int p, int) { return 3 - std::max(p, 2) + 10 * p; });
  ty = 12;
  ty /= ta * 2 - ta;
  check([](int p, int) {
    return static_cast<double>(std::is_integral_v<DType> ? DType(12 / p)
                               : sizeof(DType) == 8      ? DType(12.0 / p)
                                                         : DType(12.0F / float(p)));
  });
  ty = ta;
  ty *= tb;
  ty -= tb;
  check([](int p, int q) { return p * q - q; });
}

TEST_CASE("ASSIGN_DISPATCH does what the request says") {
  std::vector<float> x = {1, 2, 3}, y = {10, 20, 30};
  const mshadow::Tensor<cpu, 1> in(x.data(), mshadow::Shape1(3)), out(y.data(), mshadow::Shape1(3));
  ASSIGN_DISPATCH(out, kNullOp, in * 2);
  CHECK(y == std::vector<float>{10, 20, 30});
  ASSIGN_DISPATCH(out, kAddTo, in * 2);
  CHECK(y == std::vector<float>{12, 24, 36});
  ASSIGN_DISPATCH(out, kWriteInplace, in * 2);
  CHECK(y == std::vector<float>{2, 4, 6});
  ASSIGN_DISPATCH(out, kWriteTo, in);  // of the same type: its elements, not the handle
  CHECK(y == x);
  ASSIGN_DISPATCH(out, kWriteTo, 5);
  CHECK(y == std::vector<float>{5, 5, 5});
}

TEST_CASE("arrays of different sizes in an expression are refused") {
  std::vector<float> x(3), y(4);
  const mshadow::Tensor<cpu, 1> in(x.data(), mshadow::Shape1(3)), out(y.data(), mshadow::Shape1(4));
  CHECK_THROWS_WITH_AS(out = in * 2,
                       "an expression of arrays with 4 and 3 elements; the arrays of an "
                       "expression have one shape",
                       Error);
}

}  // namespace
}  // namespace mxtrain::mxnet
