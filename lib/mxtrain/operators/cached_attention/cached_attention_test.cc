// SPDX-License-Identifier: Apache-2.0
// cached_attention on sequences in pieces, against causal attention over the whole of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "mxtrain/operator/imperative.h"
#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kCacheRows = 2, kCacheHeads = 6;

struct Sizes {
  int64_t window, depth, value_depth;
  int64_t key_heads = kCacheHeads;
  const char* sliding_window = "None";
};

// Some tokens of each row: [kCacheRows, heads, tokens, depth] of the whole [.., all, depth], from
// first[row] on; what is behind the end is 0.
std::vector<float> Piece(const std::vector<float>& whole, int64_t heads, int64_t all, int64_t depth,
                         const std::vector<int64_t>& first, int64_t tokens) {
  std::vector<float> piece;
  for (int64_t item = 0; item < kCacheRows * heads; ++item) {
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t at = first[static_cast<size_t>(item / heads)] + t;
      for (int64_t d = 0; d < depth; ++d) {
        const bool inside = at >= 0 && at < all;
        piece.push_back(inside ? whole[static_cast<size_t>((item * all + at) * depth + d)] : 0.0F);
      }
    }
  }
  return piece;
}

// Runs pieces of any number of tokens on the same caches.
class Pieces {
 public:
  Pieces(const Sizes& sizes, bool reference, const std::string& scale)
      : sizes_(sizes), reference_(reference), scale_(scale), runtime_(NewRuntime()) {
    const auto size_of = [&](int64_t heads, int64_t depth) {
      return static_cast<size_t>(kCacheRows * heads * sizes.window * depth);
    };
    for (auto [array, size] : {std::pair(&query_, size_of(kCacheHeads, sizes.depth)),
                               {&key_, size_of(sizes.key_heads, sizes.depth)},
                               {&value_, size_of(sizes.key_heads, sizes.value_depth)}}) {
      const Values drawn = Uniform(-1, 1)(static_cast<int64_t>(size), ++seed_);
      array->assign(drawn.begin(), drawn.end());
    }
  }

  // The output for these tokens.
  std::vector<float> Run(const std::vector<int64_t>& first, int64_t tokens) {
    Executor& executor = Of(tokens);
    const auto feed = [&](const char* name, const std::vector<float>& values, int64_t heads,
                          int64_t depth) {
      NDArray(executor.arg(name))
          .CopyFrom(NDArray::FromVector(*runtime_, {kCacheRows, heads, tokens, depth},
                                        Piece(values, heads, sizes_.window, depth, first, tokens)));
    };
    feed("query", query_, kCacheHeads, sizes_.depth);
    feed("key", key_, sizes_.key_heads, sizes_.depth);
    feed("value", value_, sizes_.key_heads, sizes_.value_depth);
    NDArray(executor.arg("position"))
        .CopyFrom(NDArray::FromVector(*runtime_, {kCacheRows}, {first.begin(), first.end()}));
    executor.Forward({});
    return executor.outputs()[0].ToVector();
  }

  // What causal attention says of these tokens.
  std::vector<float> Wanted(const std::vector<int64_t>& first, int64_t tokens) {
    const auto whole = [&](const std::vector<float>& values, int64_t heads, int64_t depth) {
      return NDArray::FromVector(*runtime_, {kCacheRows, heads, sizes_.window, depth}, values);
    };
    const std::vector<NDArray> in = {whole(query_, kCacheHeads, sizes_.depth),
                                     whole(key_, sizes_.key_heads, sizes_.depth),
                                     whole(value_, sizes_.key_heads, sizes_.value_depth)};
    const NDArray out = Invoke(
        "scaled_dot_product_attention", in,
        {{"is_causal", "True"}, {"scale", scale_}, {"sliding_window", sizes_.sliding_window}})[0];
    return Piece(out.ToVector(), kCacheHeads, sizes_.window, sizes_.value_depth, first, tokens);
  }

 private:
  Executor& Of(int64_t tokens) {
    std::unique_ptr<Executor>& executor = executors_[tokens];
    if (executor) return *executor;
    std::vector<Symbol> inputs;
    for (const char* name : {"query", "key", "value", "position"})
      inputs.push_back(Symbol::Variable(name));
    const Symbol net = Symbol::Create(TestRegistry(), "cached_attention", "net",
                                      {{"window", params::Print(sizes_.window)},
                                       {"scale", scale_},
                                       {"sliding_window", sizes_.sliding_window}},
                                      inputs);
    Executor::BindRequest request;
    request.is_train = false;
    request.reference_kernels = reference_;
    request.shapes = {{"query", {kCacheRows, kCacheHeads, tokens, sizes_.depth}},
                      {"key", {kCacheRows, sizes_.key_heads, tokens, sizes_.depth}},
                      {"value", {kCacheRows, sizes_.key_heads, tokens, sizes_.value_depth}}};
    if (caches_.empty()) {
      executor = Executor::SimpleBind(*runtime_, net, request);
      caches_ = executor->auxs();
      // What was never written is not read.
      for (auto& [name, cache] : caches_) cache.Fill(std::nan(""));
      return *executor;
    }
    std::map<std::string, NDArray> args;
    for (const auto& [name, shape] : request.shapes)
      args[name] = NDArray(*runtime_, shape, DType::kFloat32, Context::cpu());
    args["position"] = NDArray(*runtime_, {kCacheRows}, DType::kFloat32, Context::cpu());
    executor = Executor::Bind(*runtime_, net, request, args, {}, caches_);
    return *executor;
  }

  const Sizes sizes_;
  const bool reference_;
  const std::string scale_;
  const std::unique_ptr<Runtime> runtime_;
  uint64_t seed_ = 0;
  std::vector<float> query_, key_, value_;
  std::map<int64_t, std::unique_ptr<Executor>> executors_;
  std::map<std::string, NDArray> caches_;
};

void CheckNear(const std::vector<float>& given, const std::vector<float>& wanted) {
  REQUIRE(given.size() == wanted.size());
  for (size_t i = 0; i < given.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(given[i] - wanted[i]) < 2e-6);
  }
}

TEST_CASE("cached_attention in pieces is causal attention over the whole sequence") {
  for (const bool reference : {false, true}) {
    for (const Sizes& sizes : {Sizes{21, 5, 7}, Sizes{150, 16, 16}, Sizes{16, 1, 33},
                               Sizes{21, 5, 7, 2}, Sizes{150, 4, 4, 1}, Sizes{21, 5, 7, 3, "4"},
                               Sizes{300, 4, 4, 2, "150"}, Sizes{150, 4, 4, 6, "1"}}) {
      for (const char* scale : {"None", "0.75"}) {
        CAPTURE(sizes.window);
        CAPTURE(reference);
        Pieces pieces(sizes, reference, scale);
        int64_t at = 0;
        for (int64_t tokens : {1, 7, 1, 3, 1000}) {
          tokens = std::min(tokens, sizes.window - at);
          const std::vector<int64_t> first = {at, at};
          CheckNear(pieces.Run(first, tokens), pieces.Wanted(first, tokens));
          at += tokens;
        }
      }
    }
  }
}

TEST_CASE("cached_attention: rows are at places of their own, rest, and begin again") {
  for (const auto& [reference, key_heads] :
       {std::pair(false, 6), {true, 6}, {false, 2}, {true, 2}}) {
    Pieces pieces({40, 4, 6, key_heads}, reference, "None");
    const auto check = [&](const std::vector<int64_t>& first, int64_t tokens) {
      std::vector<float> wanted = pieces.Wanted(first, tokens);
      CheckNear(pieces.Run(first, tokens), wanted);
    };
    check({0, -100}, 9);  // the second row rests: its output is 0
    check({-100, 0}, 3);
    check({9, 3}, 2);
    check({11, 5}, 1);
    check({4, 6}, 4);  // what came after is forgotten
    check({8, 10}, 1);
  }
}

TEST_CASE("cached_attention: tokens beyond the window are not written, and have no output") {
  for (const bool reference : {false, true}) {
    Pieces pieces({8, 3, 2}, reference, "None");
    pieces.Run({0, 0}, 6);
    const std::vector<float> out = pieces.Run({6, 3}, 4), wanted = pieces.Wanted({6, 3}, 4);
    for (size_t i = 0; i < out.size(); ++i) {
      const bool beyond = i / 2 % 4 >= 2 && i < out.size() / kCacheRows;
      CAPTURE(i);
      if (beyond) {
        CHECK(std::isnan(out[i]));
      } else {
        CHECK(std::abs(out[i] - wanted[i]) < 2e-6);
      }
    }
    CheckNear(pieces.Run({7, 7}, 1), pieces.Wanted({7, 7}, 1));
  }
}

TEST_CASE("cached_attention: errors name the shapes") {
  const auto infer = [](const Kwargs& kwargs, std::vector<TShape> in) {
    std::vector<TShape> out(1), aux(2);
    in.resize(4);
    TestRegistry().Create("cached_attention", kwargs)->InferShape(&in, &out, &aux);
  };
  CHECK(MessageOf([&] {
          infer({{"window", "8"}}, {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 4}});
        }) ==
        "cached_attention: query [1, 2, 3, 4] and key [1, 2, 5, 4] must have one shape, [batch, "
        "heads, tokens, depth], or the query a multiple of the heads, and value [1, 2, 5, 4] the "
        "axes of the key but the last");
  CHECK_THROWS_WITH(infer({{"window", "8"}}, {{1, 5, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}),
                    doctest::Contains("or the query a multiple of the heads"));
  CHECK(MessageOf([&] {
          infer({{"window", "8"}}, {{1, 9, 4}, {1, 9, 4}, {1, 9, 4}});
        }) == "cached_attention: 9 tokens do not fit into a window of 8");
  CHECK_THROWS_AS(TestRegistry().Create("cached_attention", {}), Error);
}

}  // namespace
}  // namespace mxtrain::test
