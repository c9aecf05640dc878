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
  double scale = 0;            // 0: the default
  int64_t group = 1;           // items that share keys
  int64_t sliding_window = 0;  // 0: none
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

// [items, queries, keys], the exponentials relative to the largest visible score.
Values AttentionProbabilities(const Form& f, const Arrays& in) {
  const double scale = f.scale != 0 ? f.scale : 1 / std::sqrt(static_cast<double>(f.depth));
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  Values all;
  for (int64_t item = 0; item < f.leading.Size(); ++item) {
    for (int64_t i = 0; i < f.queries; ++i) {
      Values score(static_cast<size_t>(f.keys), 0);
      double largest = kNever, sum = 0;
      for (int64_t j = 0; j < f.keys; ++j) {
        double& s = score[static_cast<size_t>(j)];
        for (int64_t d = 0; d < f.depth; ++d) {
          s += in[0][static_cast<size_t>((item * f.queries + i) * f.depth + d)] *
               in[1][static_cast<size_t>((item / f.group * f.keys + j) * f.depth + d)];
        }
        s *= scale;
        const double m =
            f.mask.has_rank() ? in[3][static_cast<size_t>(MaskPlace(f, item, i, j))] : 1;
        if (f.mask.has_rank() && f.additive) s += m;
        if ((f.causal && j > i) || (f.sliding_window > 0 && i - j >= f.sliding_window) ||
            (!f.additive && m == 0) || (f.additive && m == kNever))
          s = kNever;
        largest = std::max(largest, s);
      }
      for (double& s : score) {
        s = s == kNever ? 0 : std::exp(s - largest);
        sum += s;
      }
      for (const double p : score) all.push_back(sum > 0 ? p / sum : 0);
    }
  }
  return all;
}

Values Attention(const Form& f, const Arrays& in) {
  const Values p = AttentionProbabilities(f, in);
  Values y;
  for (int64_t row = 0; row < f.leading.Size() * f.queries; ++row) {
    const int64_t item = row / f.queries;
    for (int64_t d = 0; d < f.value_depth; ++d) {
      double mean = 0;
      for (int64_t j = 0; j < f.keys; ++j) {
        mean += p[static_cast<size_t>(row * f.keys + j)] *
                in[2][static_cast<size_t>((item / f.group * f.keys + j) * f.value_depth + d)];
      }
      y.push_back(mean);
    }
  }
  return y;
}

// For arrays that are too long for central differences, and for scores that have none.
Arrays Gradients(const Form& f, const Arrays& in, const Arrays& head) {
  const double scale = f.scale != 0 ? f.scale : 1 / std::sqrt(static_cast<double>(f.depth));
  const Values p = AttentionProbabilities(f, in);
  Arrays grad;
  for (const Values& x : in) grad.emplace_back(x.size(), 0.0);
  for (int64_t row = 0; row < f.leading.Size() * f.queries; ++row) {
    const int64_t item = row / f.queries;
    Values slope(static_cast<size_t>(f.keys), 0);
    double mean = 0;
    for (int64_t j = 0; j < f.keys; ++j) {
      const double weight = p[static_cast<size_t>(row * f.keys + j)];
      for (int64_t d = 0; d < f.value_depth; ++d) {
        const double g = head[0][static_cast<size_t>(row * f.value_depth + d)];
        const auto value = static_cast<size_t>((item / f.group * f.keys + j) * f.value_depth + d);
        slope[static_cast<size_t>(j)] += g * in[2][value];
        grad[2][value] += weight * g;
      }
      mean += weight * slope[static_cast<size_t>(j)];
    }
    for (int64_t j = 0; j < f.keys; ++j) {
      const double ds =
          p[static_cast<size_t>(row * f.keys + j)] * (slope[static_cast<size_t>(j)] - mean);
      for (int64_t d = 0; d < f.depth; ++d) {
        const auto query = static_cast<size_t>(row * f.depth + d),
                   key = static_cast<size_t>((item / f.group * f.keys + j) * f.depth + d);
        grad[0][query] += scale * ds * in[1][key];
        grad[1][key] += scale * ds * in[0][query];
      }
      if (f.mask.has_rank())
        grad[3][static_cast<size_t>(MaskPlace(f, item, row % f.queries, j))] += ds;
    }
  }
  if (f.mask.has_rank() && !f.additive) grad[3].clear();
  return grad;
}

OperatorCase AttentionCase(const Form& f, const Generator& mask = Uniform(-2, 2)) {
  OperatorCase c;
  c.op = "scaled_dot_product_attention";
  TShape of_keys = f.leading;
  if (f.group > 1) of_keys[of_keys.ndim() - 1] /= f.group;
  c.shapes = {With(f.leading, f.queries, f.depth), With(of_keys, f.keys, f.depth),
              With(of_keys, f.keys, f.value_depth)};
  c.inputs = {Uniform(-1, 1), Uniform(-1, 1), Uniform(-1, 1)};
  c.name = format("attention {} x {} keys", c.shapes[0].ToString(), f.keys);
  if (f.mask.has_rank()) {
    c.shapes.push_back(f.mask);
    c.inputs.push_back(mask);
    c.kwargs = {{"mask", f.additive ? "additive" : "boolean"}};
    c.name += " mask " + f.mask.ToString();
  }
  if (f.causal) c.kwargs.emplace_back("is_causal", "True"), c.name += " causal";
  if (f.group > 1) c.name += format(" groups of {}", f.group);
  if (f.sliding_window > 0) {
    c.kwargs.emplace_back("sliding_window", params::Print(f.sliding_window));
    c.name += format(" window {}", f.sliding_window);
  }
  if (f.scale != 0) c.kwargs.emplace_back("scale", format("{}", f.scale));
  c.forward = [f](const Arrays& in, const Arrays&) { return Arrays{Attention(f, in)}; };
  c.types = kAllFloatingTypes;
  c.tolerance = {64, "sums of up to 300 products in float32, of numbers from other such sums"};
  c.lowered_epsilons = 16;  // scores and probabilities are rounded
  if (c.shapes[0].Size() * c.shapes[2].Size() > 0) c.must_accept = {"ref", "simd"};
  return c;
}

OperatorCase WithGradient(const Form& f, const Generator& mask = Uniform(-2, 2)) {
  OperatorCase c = AttentionCase(f, mask);
  c.gradient = [f](const Arrays& in, const Arrays&, const Arrays& head) {
    return Gradients(f, in, head);
  };
  c.types = {DType::kFloat32, DType::kFloat64};
  return c;
}

TEST_CASE("scaled_dot_product_attention by its definition") {
  RunCase(AttentionCase({{2, 3}, 5, 7, 4, 6}));
  RunCase(AttentionCase({{1}, 1, 1, 1, 1}));
  RunCase(AttentionCase({{2}, 3, 1, 33, 17}));
  RunCase(AttentionCase({{1, 2}, 4, 3, 5, 2, {}, false, false, 0.75}));
  RunCase(AttentionCase({{2, 2, 2}, 3, 5, 4, 3}));
  RunCase(AttentionCase({{0, 3}, 5, 7, 4, 6}));
  RunCase(AttentionCase({{2}, 0, 3, 4, 2}));
  RunCase(AttentionCase({{2}, 3, 0, 4, 2}));  // no key: 0
}

TEST_CASE("scaled_dot_product_attention in several blocks of queries and keys") {
  OperatorCase c = AttentionCase({{1, 2}, 70, 150, 9, 20});
  c.types = {DType::kFloat32, DType::kBfloat16};
  RunCase(c);
  c = AttentionCase({{1}, 131, 260, 3, 2, {}, false, true});
  c.types = {DType::kFloat32};
  RunCase(c);
  RunCase(WithGradient({{1}, 64, 128, 3, 2}));  // whole blocks, and one more of each
  RunCase(WithGradient({{1}, 65, 129, 3, 2}));
}

// As matrix units take them: depths of up to 32, 64 and 128, rows of whole words and others.
TEST_CASE("scaled_dot_product_attention in 16 bits") {
  for (const Form& form :
       {Form{{2}, 70, 150, 16, 8}, Form{{1, 2}, 130, 65, 32, 32, {}, false, true},
        Form{{1}, 66, 197, 40, 64}, Form{{1}, 129, 70, 64, 64, {}, false, true},
        Form{{1}, 65, 130, 72, 128}, Form{{1}, 7, 9, 100, 90},
        Form{{1, 4}, 70, 70, 16, 16, {}, false, true, 0, 2},
        Form{{1, 6}, 200, 210, 32, 64, {}, false, true, 0, 3, 70},
        Form{{2}, 300, 300, 8, 8, {}, false, true, 0, 1, 130}}) {
    OperatorCase c = WithGradient(form);
    c.types = {DType::kFloat16, DType::kBfloat16};
    c.tolerance = {8, "probabilities and gradients of scores are rounded to the type"};
    for (const KernelOutcome& kernel : RunCase(c).kernels) {
      if (kernel.kernel == "tiles") CHECK(kernel.refusal == "");
    }
  }
}

TEST_CASE("scaled_dot_product_attention with masks") {
  const Generator some = Cycle({1, 0, 1, 1, 0});
  RunCase(AttentionCase({{2, 3}, 4, 6, 3, 2, {2, 3, 4, 6}, true}));
  RunCase(AttentionCase({{2, 3}, 4, 6, 3, 2, {1, 3, 4, 6}, true}));
  RunCase(AttentionCase({{3, 2}, 4, 6, 3, 2, {3, 1, 4, 6}, true}));
  RunCase(AttentionCase({{2, 3}, 4, 6, 3, 2, {1, 1, 4, 1}, true}));
  RunCase(AttentionCase({{2, 3}, 4, 6, 3, 2, {2, 1, 1, 6}, true, true}));
  RunCase(AttentionCase({{2, 3}, 4, 6, 3, 2, {2, 1, 1, 6}}, some));
  RunCase(AttentionCase({{2, 3}, 4, 6, 3, 2, {1, 3, 4, 6}}, some));
  RunCase(AttentionCase({{2, 2}, 5, 5, 3, 2, {1, 2, 5, 5}, false, true}, Cycle({1, 1, 0})));
  OperatorCase bytes = AttentionCase({{2, 3}, 4, 6, 3, 2, {2, 1, 4, 6}}, some);
  bytes.input_types = {DType::kUnknown, DType::kUnknown, DType::kUnknown, DType::kUint8};
  RunCase(bytes);
  OperatorCase fewer = AttentionCase({{2, 3}, 4, 6, 3, 2, {1, 3, 4, 6}, true});
  fewer.shapes[3] = {3, 4, 6};
  RunCase(fewer);
  fewer = AttentionCase({{2, 3}, 4, 6, 3, 2, {1, 1, 1, 6}}, some);
  fewer.shapes[3] = {6};
  RunCase(fewer);
  OperatorCase blocks = AttentionCase({{2, 2}, 67, 140, 5, 3, {1, 2, 67, 140}, true});
  blocks.types = {DType::kFloat32};
  RunCase(blocks);
}

TEST_CASE("scaled_dot_product_attention: a query sees the keys up to its own index") {
  RunCase(AttentionCase({{2}, 6, 6, 3, 2, {}, false, true}));
  RunCase(AttentionCase({{1, 2}, 3, 7, 3, 2, {}, false, true}));
  RunCase(AttentionCase({{1, 2}, 7, 3, 3, 2, {}, false, true}));
}

TEST_CASE("scaled_dot_product_attention: heads share keys") {
  const auto shared = [](Form form, int64_t group) {
    form.group = group;
    return form;
  };
  RunCase(AttentionCase(shared({{2, 6}, 4, 5, 3, 2}, 3)));
  RunCase(AttentionCase(shared({{2, 4}, 6, 6, 3, 2, {}, false, true}, 4)));
  RunCase(AttentionCase(shared({{2, 2, 4}, 3, 3, 2, 5}, 2)));
  RunCase(AttentionCase(shared({{2, 4}, 4, 6, 3, 2, {2, 1, 1, 6}}, 2), Cycle({1, 0, 1, 1, 0})));
  RunCase(AttentionCase(shared({{2, 4}, 4, 6, 3, 2, {1, 4, 4, 6}, true}, 2)));
  RunCase(AttentionCase(shared({{0, 4}, 4, 6, 3, 2}, 2)));
  RunCase(WithGradient(shared({{2, 6}, 70, 150, 9, 20}, 3)));
  RunCase(WithGradient(shared({{1, 4}, 131, 131, 3, 2, {}, false, true}, 2)));
}

TEST_CASE("scaled_dot_product_attention: a sliding window of keys") {
  const auto windowed = [](Form form, int64_t window, int64_t group = 1) {
    form.causal = true;
    form.sliding_window = window;
    form.group = group;
    return form;
  };
  RunCase(AttentionCase(windowed({{2}, 6, 6, 3, 2}, 3)));
  RunCase(AttentionCase(windowed({{2}, 6, 9, 3, 2}, 1)));
  RunCase(AttentionCase(windowed({{2}, 6, 6, 3, 2}, 100)));
  RunCase(AttentionCase(windowed({{2, 4}, 5, 5, 3, 2, {2, 1, 5, 5}, true}, 2, 2)));
  RunCase(WithGradient(windowed({{1, 2}, 300, 300, 3, 2}, 70)));
  RunCase(WithGradient(windowed({{1, 4}, 200, 260, 5, 4}, 129, 2)));
  RunCase(WithGradient(windowed({{1}, 130, 150, 3, 2, {1, 130, 150}}, 7),
                       Cycle({1, 0, 1, 1, 0, 1, 1})));
}

// What the numbers of the fourth input show, as a boolean mask [batch, 1, queries, keys].
Values MaskOfSegments(const Form& f, const Values& segments) {
  Values mask;
  for (int64_t row = 0; row < f.leading[0]; ++row) {
    const auto number = [&](int64_t i) { return segments[static_cast<size_t>(row * f.keys + i)]; };
    for (int64_t i = 0; i < f.queries; ++i) {
      for (int64_t j = 0; j < f.keys; ++j) {
        bool same = number(i) >= 0;
        for (int64_t k = std::min(i, j); k <= std::max(i, j); ++k)
          same = same && number(k) == number(i);
        mask.push_back(same);
      }
    }
  }
  return mask;
}
Values MaskOfLengths(const Form& f, const Values& lengths) {
  Values mask;
  for (int64_t row = 0; row < f.leading[0]; ++row) {
    for (int64_t i = 0; i < f.queries; ++i) {
      for (int64_t j = 0; j < f.keys; ++j)
        mask.push_back(static_cast<double>(j) < lengths[static_cast<size_t>(row)]);
    }
  }
  return mask;
}

OperatorCase NumberedCase(Form f, bool segments, const Values& numbers) {
  OperatorCase c = AttentionCase(f);
  c.shapes.push_back(segments ? TShape{f.leading[0], f.keys} : TShape{f.leading[0]});
  c.inputs.push_back(Cycle(numbers));
  c.kwargs.emplace_back("mask", segments ? "segments" : "key_lengths");
  c.name += segments ? " segments" : " lengths";
  f.mask = TShape::OfRank(f.leading.ndim() + 2);
  for (int i = 0; i < f.mask.ndim(); ++i) f.mask[i] = 1;
  f.mask[0] = f.leading[0];
  f.mask[f.mask.ndim() - 2] = f.queries;
  f.mask[f.mask.ndim() - 1] = f.keys;
  const auto with_mask = [f, segments](Arrays in) {
    in[3] = segments ? MaskOfSegments(f, in[3]) : MaskOfLengths(f, in[3]);
    return in;
  };
  c.forward = [=](const Arrays& in, const Arrays&) { return Arrays{Attention(f, with_mask(in))}; };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    return Gradients(f, with_mask(in), head);
  };
  return c;
}

TEST_CASE("scaled_dot_product_attention: tokens see their own segment") {
  const Values ids = {3, 3, 0, 0, 0, 3, 7};
  RunCase(NumberedCase({{2, 3}, 7, 7, 4, 6}, true, ids));
  RunCase(NumberedCase({{2, 3}, 7, 7, 4, 6, {}, false, true}, true, ids));
  RunCase(NumberedCase({{3}, 6, 6, 3, 2, {}, false, true}, true, {0, 0, 1, 1, -1, -1}));
  RunCase(NumberedCase({{3}, 6, 6, 3, 2}, true, {-1, 0, 0, 1, -1, 2}));
  RunCase(NumberedCase({{2, 4}, 5, 5, 3, 2, {}, false, true, 0, 2}, true, {1, 1, 2, 2, 2}));
  RunCase(NumberedCase({{2, 2}, 6, 6, 3, 2, {}, false, true, 0, 1, 2}, true, {1, 1, 1, 1, 2, 2}));
  RunCase(NumberedCase({{2}, 1, 1, 3, 2}, true, {0, -1}));
  OperatorCase whole = NumberedCase({{2, 2}, 4, 4, 3, 2}, true, {5, 5, 6, 6});
  whole.input_types = {DType::kUnknown, DType::kUnknown, DType::kUnknown, DType::kInt32};
  RunCase(whole);
}

TEST_CASE("scaled_dot_product_attention: segments in several blocks") {
  Values ids;
  for (int i = 0; i < 300; ++i)
    ids.push_back(i < 40 ? 0 : i < 180 ? 1 : i < 181 ? 2 : i < 270 ? 3 : -1);
  for (const bool causal : {false, true}) {
    OperatorCase c = NumberedCase({{1, 2}, 300, 300, 3, 2, {}, false, causal}, true, ids);
    c.types = {DType::kFloat32, DType::kFloat64};
    RunCase(c);
  }
}

TEST_CASE("scaled_dot_product_attention: segments and lengths in 16 bits") {
  Values ids;
  for (int i = 0; i < 200; ++i)
    ids.push_back(i < 70 ? 4 : i < 71 ? 1 : i < 150 ? 2 : i < 160 ? -1 : 5);
  for (OperatorCase c : {NumberedCase({{2, 4}, 200, 200, 16, 16, {}, false, true, 0, 2}, true, ids),
                         NumberedCase({{2, 2}, 130, 130, 40, 32}, true, ids),
                         NumberedCase({{2, 2}, 70, 150, 16, 8}, false, {140, 33})}) {
    c.types = {DType::kFloat16, DType::kBfloat16};
    c.tolerance = {8, "probabilities and gradients of scores are rounded to the type"};
    for (const KernelOutcome& kernel : RunCase(c).kernels) {
      if (kernel.kernel == "tiles") CHECK(kernel.refusal == "");
    }
  }
}

TEST_CASE("scaled_dot_product_attention: so many keys count") {
  RunCase(NumberedCase({{3, 2}, 4, 6, 3, 2}, false, {6, 2, 0}));
  RunCase(NumberedCase({{3}, 5, 5, 3, 2, {}, false, true}, false, {1, 4, 9}));
  OperatorCase c = NumberedCase({{2, 2}, 70, 300, 3, 2}, false, {140, 129});
  c.types = {DType::kFloat32};
  RunCase(c);
}

TEST_CASE("scaled_dot_product_attention: shapes of segments and lengths") {
  const auto infer = [](const char* mask, int64_t keys, TShape* fourth) {
    const auto op = TestRegistry().Create("scaled_dot_product_attention", {{"mask", mask}});
    std::vector<TShape> in = {TShape{2, 3, 5, 4}, TShape{2, 3, keys, 4}, TShape{2, 3, keys, 4},
                              *fourth},
                        out(1), aux;
    op->InferShape(&in, &out, &aux);
    *fourth = in[3];
  };
  TShape segments, lengths, wrong{3};
  infer("segments", 5, &segments);
  CHECK(segments == TShape{2, 5});
  infer("key_lengths", 7, &lengths);
  CHECK(lengths == TShape{2});
  CHECK_THROWS_WITH(infer("key_lengths", 7, &wrong), doctest::Contains("key_lengths has shape"));
  CHECK_THROWS_WITH(infer("segments", 7, &segments),
                    doctest::Contains("have equal lengths (second last axes), with segments"));
}

TEST_CASE("scaled_dot_product_attention: a query that sees no key gives 0") {
  RunCase(AttentionCase({{2}, 4, 3, 3, 2, {2, 4, 1}}, Cycle({1, 0, 0, 1})));
  // An additive mask of -infinity does the same; a device without a kernel gives NaN.
  const std::unique_ptr<Runtime> runtime = NewRuntime();
  const float never = -std::numeric_limits<float>::infinity();
  const NDArray x = NDArray::FromVector(*runtime, {1, 2, 1}, {1, 2}),
                mask = NDArray::FromVector(*runtime, {1, 2, 2}, {never, never, 0, never});
  const std::vector<NDArray> in = {x, x, x, mask};
  const NDArray y = Invoke("scaled_dot_product_attention", in, {{"mask", "additive"}})[0];
  CHECK(y.ToVector() == std::vector<float>{0, 1});
}

TEST_CASE("scaled_dot_product_attention: keys are hidden in whole blocks and in parts of them") {
  const double never = -std::numeric_limits<double>::infinity();
  // Of [.., 150] keys: none, the first block, all but a key in the second block, every other one.
  const auto hidden = [](int64_t i) {
    const int64_t query = i / 150, key = i % 150;
    return query % 4 == 0 || (query % 4 == 1 && key < 128) || (query % 4 == 2 && key != 140) ||
           (query % 4 == 3 && key % 2 == 1);
  };
  const Generator boolean = [=](int64_t size, uint64_t) {
    Values mask;
    for (int64_t i = 0; i < size; ++i) mask.push_back(hidden(i) ? 0 : 1);
    return mask;
  };
  const Generator additive = [=](int64_t size, uint64_t seed) {
    Values mask = Uniform(-2, 2)(size, seed);
    for (int64_t i = 0; i < size; ++i) {
      // A graph of operators in place of a kernel gives NaN where a whole row is -infinity.
      if (hidden(i) && i % 150 != 149) mask[static_cast<size_t>(i)] = never;
    }
    return mask;
  };
  RunCase(WithGradient({{1, 2}, 70, 150, 3, 2, {1, 2, 70, 150}}, boolean));
  RunCase(WithGradient({{1}, 130, 150, 3, 2, {1, 130, 150}, false, true}, boolean));
  RunCase(WithGradient({{2, 1}, 70, 150, 3, 2, {1, 1, 70, 150}, true}, additive));
}

// A mask of -1e9 absorbs the scores, and the logarithm of their sum.
TEST_CASE("scaled_dot_product_attention: additive masks of -1e9") {
  const auto examine = [](const Form& f) {
    const int64_t keys = f.keys;
    OperatorCase c = WithGradient(f, [keys](int64_t size, uint64_t) {
      Values mask;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t query = i / keys, key = i % keys;
        mask.push_back(query % 3 == 0 || (query % 3 == 1 && key % 2 == 1) ? -1e9 : 0);
      }
      return mask;
    });
    c.inputs[1] = Constant(0.5);  // equal scores, which rounding leaves equal
    c.types = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};
    RunCase(c);
  };
  examine({{2}, 5, 8, 3, 2, {2, 5, 8}, true});
  examine({{1}, 70, 150, 3, 2, {1, 70, 150}, true});
  examine({{2}, 5, 8, 3, 2, {2, 5, 8}, true, true});  // the first query sees one key, at -1e9
}

TEST_CASE("scaled_dot_product_attention: hidden keys may be non-finite") {
  const auto examine = [](const Form& f, const Generator& mask) {
    OperatorCase c = AttentionCase(f, mask);
    const auto size = static_cast<size_t>(f.keys * f.depth), first = size / 2;
    c.inputs[1] = [=](int64_t n, uint64_t seed) {
      Values key = Uniform(-1, 1)(n, seed);
      for (size_t i = 0; i < key.size(); ++i) {
        if (i % size >= first)
          key[i] = i % 2 == 0 ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
      }
      return key;
    };
    c.backward = false;
    RunCase(c);
  };
  examine({{1, 2}, 3, 8, 3, 2, {1, 1, 1, 8}}, Cycle({1, 0, 1, 1, 0, 0, 0, 0}));
  examine({{1, 2}, 3, 8, 3, 2, {}, false, true}, Constant(0));
}

TEST_CASE("scaled_dot_product_attention: large scores do not overflow") {
  OperatorCase c = WithGradient({{2}, 5, 40, 3, 2, {}, false, false, 200});
  c.tolerance = {20000, "scores of up to 600 are rounded to floats"};
  RunCase(c);
  // In float16 the products before the scale are infinite.
  c = AttentionCase({{2}, 3, 4, 64, 2});
  c.inputs = {Constant(40), Constant(40), Uniform(-1, 1)};
  c.types = {DType::kFloat16};
  c.backward = false;
  RunCase(c);
}

// One-hot values show the probabilities after dropout.
TEST_CASE("scaled_dot_product_attention: dropout in training") {
  constexpr int64_t kItems = 3, kQueries = 70, kKeys = 125;
  constexpr double kP = 0.25;
  OperatorCase c = AttentionCase({{kItems}, kQueries, kKeys, 2, kKeys});
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
  // With equal draws the kernels agree in every gradient, over several blocks.
  for (const auto& [form, causal] :
       {std::pair(Form{{2}, 70, 150, 4, 3}, false), std::pair(Form{{2}, 70, 150, 4, 3}, true),
        std::pair(Form{{2}, 70, 150, 4, 3, {1, 70, 150}}, true)}) {
    OperatorCase agree = AttentionCase(form, Cycle({1, 0, 1, 1, 0, 1, 1}));
    agree.name += causal ? " with equal draws, causal" : " with equal draws";
    agree.kwargs.emplace_back("dropout_p", "0.4");
    agree.kwargs.emplace_back("is_causal", causal ? "True" : "False");
    agree.forward = nullptr;
    agree.types = {DType::kFloat32};
    std::vector<CaseResult> results;
    agree.check = [&results](const CaseResult& r) {
      if (r.type == DType::kFloat32 && r.kernel != "graph") results.push_back(r);
      return std::vector<std::string>();
    };
    if (RunCase(agree).trials == 0) continue;  // a device without a kernel for float32
    REQUIRE(results.size() == 2);
    CHECK(results[0].kernel != results[1].kernel);
    const auto compare = [](const Values& a, const Values& b) {
      REQUIRE(a.size() == b.size());
      for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-5));
    };
    compare(results[0].out[0], results[1].out[0]);
    for (size_t i = 0; i < 3; ++i) compare(results[0].in_grad[i], results[1].in_grad[i]);
  }
  OperatorCase evaluation = AttentionCase({{2}, 5, 7, 4, 3});
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
    return plan.forward_workspace + plan.backward_workspace + plan.saved.at(0) + plan.saved.at(1);
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
      infer({}, {{1, 3, 2, 3}, {1, 2, 2, 3}, {1, 2, 2, 3}}),
      doctest::Contains("the heads (third last axis) of the query may be a multiple"));
  CHECK_THROWS_WITH(
      infer({}, {{1, 4, 2, 3}, {1, 2, 2, 3}, {1, 4, 2, 3}}),
      doctest::Contains("the heads (third last axis) of the query may be a multiple"));
  CHECK_THROWS_WITH(infer({{"sliding_window", "2"}}, {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}),
                    "scaled_dot_product_attention: sliding_window needs is_causal = true");
  CHECK_THROWS_WITH(
      infer({{"sliding_window", "2"}, {"is_causal", "True"}}, {{1, 4, 3}, {1, 2, 3}, {1, 2, 3}}),
      doctest::Contains("have as many keys as queries or more, with sliding_window"));
  CHECK_THROWS_WITH(
      infer({{"mask", "boolean"}}, {{1, 2, 3}, {1, 5, 3}, {1, 5, 3}, {1, 5, 2}}),
      "scaled_dot_product_attention: attn_mask has shape [1, 5, 2], but the scores have shape "
      "[1, 2, 5]; expected at most as many axes, from the last one on, each of that length or 1");
  CHECK_THROWS_WITH_AS(TestRegistry().Create("scaled_dot_product_attention", {{"dropout_p", "1"}}),
                       doctest::Contains("dropout_p"), Error);
  std::vector<DType> in = {DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kUint8},
                     out = {DType::kUnknown}, aux;
  CHECK_THROWS_WITH(TestRegistry()
                        .Create("scaled_dot_product_attention", {{"mask", "additive"}})
                        ->InferType(&in, &out, &aux),
                    doctest::Contains("for 0 and 1 use mask = boolean"));
}

}  // namespace
}  // namespace mxtrain::test
