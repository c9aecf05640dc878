// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "mxtrain/operator/imperative.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

struct Form {
  TShape leading;
  int64_t queries, keys, depth, value_depth;
  TShape mask = {};  // of rank leading + 2; {}: none
  bool additive = false, causal = false;
  double scale = 0;  // 0: the default
};

TShape With(const TShape& leading, int64_t rows, int64_t columns) {
  std::vector<int64_t> dims(leading.begin(), leading.end());
  dims.push_back(rows);
  dims.push_back(columns);
  return TShape(dims);
}

// Place of element (index of the leading axes, query, key) in the mask.
int64_t MaskPlace(const Form& f, int64_t item, int64_t query, int64_t key) {
  std::vector<int64_t> index(static_cast<size_t>(f.leading.ndim()));
  for (int i = f.leading.ndim() - 1; i >= 0; --i) {
    index[static_cast<size_t>(i)] = item % f.leading[i];
    item /= f.leading[i];
  }
  index.push_back(query);
  index.push_back(key);
  int64_t place = 0;
  for (int i = 0; i < f.mask.ndim(); ++i)
    place = place * f.mask[i] + (f.mask[i] == 1 ? 0 : index[static_cast<size_t>(i)]);
  return place;
}

Values Attention(const Form& f, const Arrays& in) {
  const double scale = f.scale != 0 ? f.scale : 1 / std::sqrt(static_cast<double>(f.depth));
  Values y;
  for (int64_t item = 0; item < f.leading.Size(); ++item) {
    for (int64_t i = 0; i < f.queries; ++i) {
      std::vector<double> weight;
      double sum = 0;
      for (int64_t j = 0; j < f.keys; ++j) {
        double score = 0;
        for (int64_t d = 0; d < f.depth; ++d) {
          score += in[0][static_cast<size_t>((item * f.queries + i) * f.depth + d)] *
                   in[1][static_cast<size_t>((item * f.keys + j) * f.depth + d)];
        }
        score *= scale;
        double visible = f.causal && j > i ? 0 : 1;
        if (f.mask.has_rank()) {
          const double m = in[3][static_cast<size_t>(MaskPlace(f, item, i, j))];
          if (f.additive) score += m;
          if (!f.additive && m == 0) visible = 0;
        }
        weight.push_back(visible * std::exp(score));
        sum += weight.back();
      }
      for (int64_t d = 0; d < f.value_depth; ++d) {
        double mean = 0;
        for (int64_t j = 0; j < f.keys; ++j) {
          mean += weight[static_cast<size_t>(j)] *
                  in[2][static_cast<size_t>((item * f.keys + j) * f.value_depth + d)];
        }
        y.push_back(sum > 0 ? mean / sum : 0);
      }
    }
  }
  return y;
}

OperatorCase Case(const Form& f, const Generator& mask = Uniform(-2, 2)) {
  OperatorCase c;
  c.op = "scaled_dot_product_attention";
  c.shapes = {With(f.leading, f.queries, f.depth), With(f.leading, f.keys, f.depth),
              With(f.leading, f.keys, f.value_depth)};
  c.inputs = {Uniform(-1, 1), Uniform(-1, 1), Uniform(-1, 1)};
  c.name = format("attention {} x {} keys", c.shapes[0].ToString(), f.keys);
  if (f.mask.has_rank()) {
    c.shapes.push_back(f.mask);
    c.inputs.push_back(mask);
    c.kwargs = {{"mask", f.additive ? "additive" : "boolean"}};
    c.name += " mask " + f.mask.ToString();
  }
  if (f.causal) c.kwargs.emplace_back("is_causal", "True"), c.name += " causal";
  if (f.scale != 0) c.kwargs.emplace_back("scale", format("{}", f.scale));
  c.forward = [f](const Arrays& in, const Arrays&) { return Arrays{Attention(f, in)}; };
  c.types = kAllFloatingTypes;
  c.tolerance = {64, "sums of up to 300 products in float32, of numbers from other such sums"};
  c.lowered_epsilons = 16;  // scores and probabilities are rounded
  if (c.shapes[0].Size() * c.shapes[2].Size() > 0) c.must_accept = {"ref", "simd"};
  return c;
}

TEST_CASE("scaled_dot_product_attention by its definition") {
  RunCase(Case({{2, 3}, 5, 7, 4, 6}));
  RunCase(Case({{1}, 1, 1, 1, 1}));
  RunCase(Case({{2}, 3, 1, 33, 17}));
  RunCase(Case({{1, 2}, 4, 3, 5, 2, {}, false, false, 0.75}));
  RunCase(Case({{2, 2, 2}, 3, 5, 4, 3}));
  RunCase(Case({{0, 3}, 5, 7, 4, 6}));
  RunCase(Case({{2}, 0, 3, 4, 2}));
}

TEST_CASE("scaled_dot_product_attention in several blocks of queries and keys") {
  OperatorCase c = Case({{1, 2}, 70, 150, 9, 20});
  c.types = {DType::kFloat32, DType::kBfloat16};
  RunCase(c);
  c = Case({{1}, 131, 260, 3, 2, {}, false, true});
  c.types = {DType::kFloat32};
  RunCase(c);
}

TEST_CASE("scaled_dot_product_attention with masks") {
  const Generator some = Cycle({1, 0, 1, 1, 0});
  RunCase(Case({{2, 3}, 4, 6, 3, 2, {2, 3, 4, 6}, true}));
  RunCase(Case({{2, 3}, 4, 6, 3, 2, {1, 3, 4, 6}, true}));
  RunCase(Case({{3, 2}, 4, 6, 3, 2, {3, 1, 4, 6}, true}));
  RunCase(Case({{2, 3}, 4, 6, 3, 2, {1, 1, 4, 1}, true}));
  RunCase(Case({{2, 3}, 4, 6, 3, 2, {2, 1, 1, 6}, true, true}));
  RunCase(Case({{2, 3}, 4, 6, 3, 2, {2, 1, 1, 6}}, some));
  RunCase(Case({{2, 3}, 4, 6, 3, 2, {1, 3, 4, 6}}, some));
  RunCase(Case({{2, 2}, 5, 5, 3, 2, {1, 2, 5, 5}, false, true}, Cycle({1, 1, 0})));
  OperatorCase bytes = Case({{2, 3}, 4, 6, 3, 2, {2, 1, 4, 6}}, some);
  bytes.input_types = {DType::kUnknown, DType::kUnknown, DType::kUnknown, DType::kUint8};
  RunCase(bytes);
  OperatorCase blocks = Case({{2, 2}, 67, 140, 5, 3, {1, 2, 67, 140}, true});
  blocks.types = {DType::kFloat32};
  RunCase(blocks);
}

TEST_CASE("scaled_dot_product_attention: a query sees the keys up to its own index") {
  RunCase(Case({{2}, 6, 6, 3, 2, {}, false, true}));
  RunCase(Case({{1, 2}, 3, 7, 3, 2, {}, false, true}));
  RunCase(Case({{1, 2}, 7, 3, 3, 2, {}, false, true}));
}

TEST_CASE("scaled_dot_product_attention: a query that sees no key gives 0") {
  RunCase(Case({{2}, 4, 3, 3, 2, {2, 4, 1}}, Cycle({1, 0, 0, 1})));
  // An additive mask of -infinity does the same; a device without a kernel gives NaN.
  const std::unique_ptr<Runtime> runtime = NewRuntime();
  const float never = -std::numeric_limits<float>::infinity();
  const NDArray x = NDArray::FromVector(*runtime, {1, 2, 1}, {1, 2}),
                mask = NDArray::FromVector(*runtime, {1, 2, 2}, {never, never, 0, never});
  const std::vector<NDArray> in = {x, x, x, mask};
  const NDArray y = Invoke("scaled_dot_product_attention", in, {{"mask", "additive"}})[0];
  CHECK(y.ToVector() == std::vector<float>{0, 1});
}

TEST_CASE("scaled_dot_product_attention: large scores do not overflow") {
  OperatorCase c = Case({{2}, 5, 40, 3, 2, {}, false, false, 200});
  c.inputs = {Uniform(-1, 1), Uniform(-1, 1), Uniform(-1, 1)};
  c.forward = [](const Arrays& in, const Arrays&) {
    Values y;
    for (int64_t row = 0; row < 10; ++row) {
      std::vector<double> score(40);
      for (int64_t j = 0; j < 40; ++j) {
        for (int64_t d = 0; d < 3; ++d) {
          score[static_cast<size_t>(j)] += 200 * in[0][static_cast<size_t>(row * 3 + d)] *
                                           in[1][static_cast<size_t>((row / 5 * 40 + j) * 3 + d)];
        }
      }
      const double largest = *std::max_element(score.begin(), score.end());
      for (int64_t d = 0; d < 2; ++d) {
        double sum = 0, mean = 0;
        for (int64_t j = 0; j < 40; ++j) {
          const double p = std::exp(score[static_cast<size_t>(j)] - largest);
          sum += p;
          mean += p * in[2][static_cast<size_t>((row / 5 * 40 + j) * 2 + d)];
        }
        y.push_back(mean / sum);
      }
    }
    return Arrays{y};
  };
  c.types = {DType::kFloat32, DType::kFloat64};
  c.backward = false;
  c.tolerance = {2000, "scores of up to 600 are rounded to floats"};
  RunCase(c);
}

// One-hot values show the probabilities after dropout.
TEST_CASE("scaled_dot_product_attention: dropout in training") {
  constexpr int64_t kItems = 3, kQueries = 70, kKeys = 133;
  constexpr double kP = 0.25;
  OperatorCase c = Case({{kItems}, kQueries, kKeys, 2, kKeys});
  c.kwargs = {{"dropout_p", "0.25"}, {"scale", "0"}};  // equal probabilities
  c.inputs[2] = [](int64_t size, uint64_t) {
    Values one_hot(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i)
      one_hot[static_cast<size_t>(i)] = i % (kKeys * kKeys) / kKeys == i % kKeys ? 1 : 0;
    return one_hot;
  };
  c.forward = nullptr;
  c.types = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};
  c.check = [](const CaseResult& r) {
    std::vector<std::string> problems;
    const double kept = 1 / (kKeys * (1 - kP)), slack = r.type == DType::kBfloat16 ? 0.01 : 1e-5;
    double dropped = 0;
    for (size_t i = 0; i < r.out[0].size(); ++i) {
      const double y = r.out[0][i];
      dropped += y == 0;
      if (y != 0 && std::abs(y - kept) > slack * kept)
        problems.push_back(format("element {} is {}", i, y));
    }
    const double n = static_cast<double>(r.out[0].size());
    if (std::abs(dropped - n * kP) > 5 * std::sqrt(n * kP * (1 - kP)))
      problems.push_back(format("{} of {} probabilities dropped", dropped, n));
    // dvalue = probabilities^T head, with the same factors.
    for (int64_t item = 0; item < kItems; ++item) {
      for (int64_t j = 0; j < kKeys; j += 7) {
        for (int64_t d = 0; d < kKeys; d += 11) {
          double want = 0;
          for (int64_t q = 0; q < kQueries; ++q) {
            const int64_t row = (item * kQueries + q) * kKeys;
            want +=
                r.out[0][static_cast<size_t>(row + j)] * r.head[0][static_cast<size_t>(row + d)];
          }
          const double got = r.in_grad[2][static_cast<size_t>((item * kKeys + j) * kKeys + d)];
          if (std::abs(got - want) > slack)
            problems.push_back(format("value gradient {} {} is {}, not {}", j, d, got, want));
        }
      }
    }
    return problems;
  };
  RunCase(c);
  // With equal draws the kernels agree in every gradient.
  OperatorCase agree = Case({{1, 2}, 70, 133, 4, 3});  // several blocks
  agree.kwargs = {{"dropout_p", "0.4"}};
  agree.forward = nullptr;
  agree.types = {DType::kFloat32};
  std::vector<CaseResult> results;
  agree.check = [&results](const CaseResult& r) {
    results.push_back(r);
    return std::vector<std::string>();
  };
  RunCase(agree);
  if (results.size() == 2) {  // on the CPU
    const auto compare = [](const Values& a, const Values& b) {
      REQUIRE(a.size() == b.size());
      for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-5));
    };
    compare(results[0].out[0], results[1].out[0]);
    for (size_t i = 0; i < 3; ++i) compare(results[0].in_grad[i], results[1].in_grad[i]);
  }
  OperatorCase evaluation = Case({{2}, 5, 7, 4, 3});
  evaluation.kwargs = {{"dropout_p", "0.4"}};
  evaluation.is_train = false;
  RunCase(evaluation);
}

TEST_CASE("scaled_dot_product_attention: memory is linear in the length") {
  const auto bytes = [](int64_t length) {
    const auto property = TestRegistry().Create("scaled_dot_product_attention", {});
    const std::vector<TensorSpec> in(3, {{1, 1, length, 16}, DType::kFloat32, Layout()}),
        out(1, in[0]);
    const std::vector<std::optional<Layout>> layouts(3);
    const std::vector<OpReqType> write(3, OpReqType::kWriteTo);
    PlanRequest request;
    request.is_train = request.needs_backward = true;
    request.in = in;
    request.out = out;
    request.in_layout = layouts;
    request.out_req = {write.data(), 1};
    request.grad_req = write;
    const Plan plan = property->CreatePlan(TestRegistry(), request, TestBackend());
    CHECK(std::string(plan.kernel) == "simd");
    return plan.forward_workspace + plan.backward_workspace + plan.saved.at(0);
  };
  CHECK(bytes(16384) < 2.1 * static_cast<double>(bytes(8192)));
}

TEST_CASE("scaled_dot_product_attention: errors name the shapes") {
  const auto infer = [](const Kwargs& kwargs, std::vector<TShape> in) {
    std::vector<TShape> out(1), aux;
    TestRegistry().Create("scaled_dot_product_attention", kwargs)->InferShape(&in, &out, &aux);
  };
  CHECK_THROWS_WITH(infer({}, {{2, 3}, {2, 3}, {2, 3}}),
                    "scaled_dot_product_attention: query [2, 3], key [2, 3] and value [2, 3] must "
                    "have the same number of axes, three or more: [batch, heads, length, depth]");
  CHECK_THROWS_WITH(infer({}, {{1, 2, 3}, {1, 2, 4}, {1, 2, 3}}),
                    doctest::Contains("equal depths (last axes) of query and key"));
  CHECK_THROWS_WITH(infer({}, {{1, 2, 3}, {1, 2, 3}, {1, 4, 3}}),
                    doctest::Contains("equal lengths (second last axes) of key and value"));
  CHECK_THROWS_WITH(infer({}, {{1, 2, 3}, {2, 2, 3}, {1, 2, 3}}),
                    doctest::Contains("match in all axes except the last two"));
  CHECK_THROWS_WITH(
      infer({{"mask", "boolean"}}, {{1, 2, 3}, {1, 5, 3}, {1, 5, 3}, {1, 5, 2}}),
      "scaled_dot_product_attention: attn_mask has shape [1, 5, 2], but the scores have shape "
      "[1, 2, 5]; expected as many axes, each of that length or 1");
  CHECK_THROWS_WITH_AS(TestRegistry().Create("scaled_dot_product_attention", {{"dropout_p", "1"}}),
                       doctest::Contains("drops every probability"), Error);
  std::vector<DType> in = {DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kUint8},
                     out = {DType::kUnknown}, aux;
  CHECK_THROWS_WITH(TestRegistry()
                        .Create("scaled_dot_product_attention", {{"mask", "additive"}})
                        ->InferType(&in, &out, &aux),
                    doctest::Contains("for 0 and 1 use mask = boolean"));
}

}  // namespace
}  // namespace mxtrain::test
