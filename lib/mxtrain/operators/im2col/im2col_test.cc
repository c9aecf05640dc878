// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/indices.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct Im2colNet {
  TShape images, kernel, stride, pad, dilate;

  TShape windows() const {
    TShape result = kernel;
    for (int i = 0; i < kernel.ndim(); ++i) {
      result[i] = (images[2 + i] + 2 * pad[i] - dilate[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
    }
    return result;
  }
  TShape columns() const { return {images[0], images[1] * kernel.Size(), windows().Size()}; }
  // f(element of the images or -1, element of the columns)
  template <typename F>
  void ForPairs(F f) const {
    int64_t column = 0;
    for (int64_t n = 0; n < images[0]; ++n) {
      for (int64_t c = 0; c < images[1]; ++c) {
        ForIndices(kernel, [&](const Index& tap) {
          ForIndices(windows(), [&](const Index& window) {
            Index cell{n, c};
            for (int i = 0; i < kernel.ndim(); ++i) {
              const auto axis = static_cast<size_t>(i);
              cell.push_back(window[axis] * stride[i] + tap[axis] * dilate[i] - pad[i]);
            }
            f(OffsetOf(images, cell), column++);
          });
        });
      }
    }
  }
};

const Im2colNet kNets[] = {{{2, 3, 5, 4}, {3, 2}, {2, 1}, {1, 0}, {1, 2}},
                           {{1, 2, 4, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}},
                           {{2, 3, 9}, {4}, {2}, {2}, {2}},
                           {{1, 2, 3, 4, 3}, {2, 3, 2}, {1, 2, 1}, {0, 1, 1}, {1, 1, 2}},
                           {{1, 1, 1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
                           {{0, 3, 4, 4}, {3, 3}, {1, 1}, {0, 0}, {1, 1}}};

OperatorCase Im2colCase(const Im2colNet& net, bool to_columns) {
  OperatorCase c;
  c.op = to_columns ? "im2col" : "col2im";
  c.name = c.op + " " + net.images.ToString();
  c.kwargs = {{"kernel", net.kernel.ToTuple()},
              {"stride", net.stride.ToTuple()},
              {"pad", net.pad.ToTuple()},
              {"dilate", net.dilate.ToTuple()}};
  if (!to_columns) {
    TShape size = net.kernel;
    for (int i = 0; i < size.ndim(); ++i) size[i] = net.images[2 + i];
    c.kwargs.emplace_back("output_size", size.ToTuple());
  }
  const TShape result = to_columns ? net.columns() : net.images;
  c.shapes = {to_columns ? net.images : net.columns()};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out(static_cast<size_t>(result.Size()));
    net.ForPairs([&](int64_t image, int64_t column) {
      if (image < 0) return;
      const auto from = static_cast<size_t>(to_columns ? image : column),
                 to = static_cast<size_t>(to_columns ? column : image);
      out[to] += in[0][from];
    });
    return Arrays{out};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "copies, and sums over a window"};
  return c;
}

TEST_CASE("im2col: windows as columns, and back") {
  for (const Im2colNet& net : kNets) {
    RunCase(Im2colCase(net, true));
    RunCase(Im2colCase(net, false));
  }
}

TEST_CASE("im2col: shapes and refusals") {
  const auto to = TestRegistry().Create("im2col", {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}});
  std::vector<TShape> in{{-1, 4, 5, 6}}, out(1), aux;
  CHECK_FALSE(to->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{-1, 36, 30});
  const auto back = TestRegistry().Create(
      "col2im", {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"output_size", "(5, 6)"}});
  in = {{2, 36, 30}};
  out = {TShape()};
  CHECK(back->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{2, 4, 5, 6});
  in = {{2, 36, 29}};
  out = {TShape()};
  CHECK_THROWS_WITH_AS(back->InferShape(&in, &out, &aux),
                       doctest::Contains("data has shape [?, ?, 30], but [2, 36, 29]"), Error);
  in = {{2, 35, 30}};
  CHECK_THROWS_WITH_AS(back->InferShape(&in, &out, &aux),
                       doctest::Contains("35 rows, not a multiple of the kernel's 9 cells"), Error);
  in = {{1, 1, 2, 2}};
  out = {TShape()};
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create("im2col", {{"kernel", "(3, 3)"}})->InferShape(&in, &out, &aux),
      doctest::Contains("exceeds the padded 2 cells"), Error);
}

}  // namespace
}  // namespace mxtrain::test
