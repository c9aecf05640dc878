// SPDX-License-Identifier: Apache-2.0
// Attention and the rotation of its queries and keys.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

// [B, S, heads * D] as [B, heads, S, D]; what has four axes is so already.
std::string Heads(ImportNode& node, int i, const std::string& attribute) {
  const std::string value = node.ref(i);
  if (node.ndim(i) == 4) return value;
  const int64_t heads = node.Int(attribute, 0), width = node.ndim(i) == 3 ? node.shape(i)[2] : 0;
  if (node.ndim(i) != 3 || heads < 1 || width % heads != 0)
    Throw(ErrorKind::kData, "{}: its input {} of shape {} is not {} heads", node.Describe(), i,
          node.shape(i).ToString(), heads);
  Shapes to = node.ShapesOf(value);
  for (TShape& s : to) s = TShape{s[0], s[1], heads, width / heads};
  return Permuted(node, node.Reshape(value, to), {0, 2, 1, 3});
}

// Whether a query at place p = i + offset sees the key j, as [S, T] of 0 and -infinity.
Tensor WindowBias(const ImportNode& node, int64_t queries, int64_t keys, int64_t offset) {
  const int64_t left = node.Int("left_window_size", -1);
  const int64_t right = node.Int("right_window_size", -1);
  const bool causal = node.Int("is_causal", 0) != 0;
  std::vector<float> bias;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t back = i + offset - j;
      const bool seen =
          (!causal || back >= 0) && (left < 0 || back <= left) && (right < 0 || -back <= right);
      bias.push_back(seen ? 0 : -std::numeric_limits<float>::infinity());
    }
  }
  return Tensor::Floats({queries, keys}, bias);
}

// attn_mask as what is added to the scores: of truth values the logarithm. Missing keys at the end
// are not seen.
std::string MaskBias(ImportNode& node, int64_t keys) {
  std::string mask = node.ref(3, 1);
  const bool truth = node.is_truth(3);
  const int last = node.ShapesOf(mask)[0].ndim() - 1;
  const int64_t given = FixedLength(node, mask, last);
  if (truth) mask = node.Add("log", {node.Add("_not_equal_scalar", {mask}, {{"scalar", "0"}})});
  if (given < keys && given > 1) {
    const std::string none =
        node.Add("log", {node.Add("zeros_like", {Sliced(node, mask, last, 0, 1)})});
    const std::string rest =
        node.Add("repeat", {none},
                 {{"repeats", params::Print(keys - given)}, {"axis", params::Print(last)}});
    mask = Joined(node, {mask, rest}, last);
  }
  return mask;
}

// What is added to the scores [B, heads, S, T]; "" for nothing.
std::string BiasOf(ImportNode& node, const std::string& scores, int64_t past) {
  const int64_t queries = FixedLength(node, scores, 2), keys = FixedLength(node, scores, 3);
  if (queries > 0 && keys > kMostOwnElements / queries) node.Refuse("its scores are too many");
  std::string bias = node.has(3) ? MaskBias(node, keys) : "";
  const auto add = [&](const std::string& more) {
    bias = bias.empty() ? more : Pair(node, "add", bias, more);
  };
  const bool windowed = node.Int("is_causal", 0) != 0 || node.Int("left_window_size", -1) >= 0 ||
                        node.Int("right_window_size", -1) >= 0;
  if (windowed && node.has(6))
    node.Refuse("is_causal and windows together with nonpad_kv_seqlen have no equivalent");
  if (windowed) add(node.OwnArray("window", WindowBias(node, queries, keys, past)));
  if (node.has(6)) {
    std::vector<int64_t> numbers(static_cast<size_t>(keys));
    for (int64_t i = 0; i < keys; ++i) numbers[static_cast<size_t>(i)] = i;
    const std::string places = node.OwnArray("places", Tensor::Ints({1, 1, 1, keys}, numbers));
    Shapes to = node.in(6).shape;
    for (TShape& s : to) s = TShape{s[0], 1, 1, 1};
    add(node.Add("log", {Pair(node, "lesser", places, node.Reshape(node.ref(6, 1), to))}));
  }
  return bias;
}

// The probabilities; a row that sees nothing is zero.
std::string Probabilities(ImportNode& node, const std::string& scores, const std::string& bias) {
  const std::string softmax = node.Add("softmax", {scores}, {{"axis", "-1"}});
  if (bias.empty()) return softmax;
  const int last = node.ShapesOf(bias)[0].ndim() - 1;
  const std::string most = Reduced(node, "max", bias, {last}, true);
  const std::string sees =
      WithNumber(node, "_greater_scalar", most, -std::numeric_limits<float>::max());
  const std::string zeros = node.Add("zeros_like", {scores});
  return Chosen(node, sees, softmax, zeros);
}

struct Projections {
  std::string query, key, value;
  int64_t past = 0;  // keys before the queries' own
};

Projections ProjectionsOf(ImportNode& node) {
  Projections p{Heads(node, 0, "q_num_heads"), Heads(node, 1, "kv_num_heads"),
                Heads(node, 2, "kv_num_heads")};
  if (node.has(4) != node.has(5))
    Throw(ErrorKind::kData, "{}: past_key and past_value belong together", node.Describe());
  if (node.has(4)) {
    p.past = node.shape(4)[2];
    if (p.past > 0) {
      p.key = Joined(node, {node.ref(4), p.key}, 2);
      p.value = Joined(node, {node.ref(5), p.value}, 2);
    }
  }
  if (node.num_outputs() > 1 && !node.output(1).empty()) node.OutIs(p.key, 1);
  if (node.num_outputs() > 2 && !node.output(2).empty()) node.OutIs(p.value, 2);
  // Several heads of queries share one of keys.
  const int64_t queries = FixedLength(node, p.query, 1), keys = FixedLength(node, p.key, 1);
  if (keys < 1 || queries % keys != 0)
    Throw(ErrorKind::kData, "{}: {} heads of queries for {} of keys", node.Describe(), queries,
          keys);
  if (queries == keys) return p;
  const Kwargs shared{{"repeats", params::Print(queries / keys)}, {"axis", "1"}};
  p.key = node.Add("repeat", {p.key}, shared);
  p.value = node.Add("repeat", {p.value}, shared);
  return p;
}

bool WantsScores(const ImportNode& node) {
  return node.num_outputs() > 3 && !node.output(3).empty();
}

// By the operator for it, with its fused kernels; "": it has no equivalent there.
std::string Fused(ImportNode& node, const Projections& p, double scale) {
  const bool plain = !node.has(3) && !node.has(6) && !WantsScores(node) &&
                     node.Float("softcap", 0) == 0 && p.past == 0 &&
                     node.Int("left_window_size", -1) < 0 && node.Int("right_window_size", -1) < 0;
  if (!plain) return "";
  const bool causal = node.Int("is_causal", 0) != 0;
  return node.Add("scaled_dot_product_attention", {p.query, p.key, p.value},
                  {{"is_causal", causal ? "True" : "False"}, {"scale", params::Print(scale)}});
}

std::string ByParts(ImportNode& node, const Projections& p, double scale) {
  const std::string keys = Permuted(node, p.key, {0, 1, 3, 2});
  const std::string query = WithNumber(node, "_mul_scalar", p.query, scale);
  const std::string raw = MatrixProduct(node, query, keys);
  std::string scores = raw;
  if (const float cap = node.Float("softcap", 0); cap > 0) {
    const std::string bent = node.Add("tanh", {WithNumber(node, "_div_scalar", raw, cap)});
    scores = WithNumber(node, "_mul_scalar", bent, cap);
  }
  const std::string capped = scores, bias = BiasOf(node, scores, p.past);
  if (!bias.empty()) scores = Pair(node, "add", scores, bias);
  const std::string probabilities = Probabilities(node, scores, bias);
  if (WantsScores(node)) {
    const std::string* modes[] = {&raw, &capped, &scores, &probabilities};
    const int64_t mode = node.Int("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
      Throw(ErrorKind::kData, "{}: there is no qk_matmul_output_mode {}", node.Describe(), mode);
    node.OutIs(*modes[mode], 3);
  }
  return MatrixProduct(node, probabilities, p.value);
}

void Attention(ImportNode& node) {
  const Projections p = ProjectionsOf(node);
  const double depth = static_cast<double>(FixedLength(node, p.query, 3));
  const double scale = node.has("scale") ? node.Float("scale", 1) : 1 / std::sqrt(depth);
  std::string result = Fused(node, p, scale);
  if (result.empty()) result = ByParts(node, p, scale);
  if (node.ndim(0) == 3) {
    result = Permuted(node, result, {0, 2, 1, 3});
    Shapes to = node.ShapesOf(result);
    for (TShape& s : to) s = TShape{s[0], s[1], s[2] * s[3]};
    result = node.Reshape(result, to);
  }
  node.OutIs(result);
}

// --- rotation ---

// The table's rows for every place, [B or 1, S, 1, half].
std::string Angles(ImportNode& node, int table, int64_t half) {
  std::string rows = node.ref(table);
  if (node.has(3)) {
    rows = node.Add("take", {rows, node.ref(3)}, {{"axis", "0"}, {"mode", "clip"}});
  }
  Shapes to = node.ShapesOf(rows);
  if (to[0].ndim() != 3 || to[0][2] != half)
    Throw(ErrorKind::kData, "{}: its table {} is not [batch, sequence, {}]", node.Describe(),
          to[0].ToString(), half);
  for (TShape& s : to) s = TShape{s[0], s[1], 1, s[2]};
  return node.Reshape(rows, to);
}

void RotaryEmbedding(ImportNode& node) {
  const bool four = node.ndim() == 4;
  std::string x = node.ref(0);  // then [B, S, heads, D]
  if (four) {
    x = Permuted(node, x, {0, 2, 1, 3});
  } else {
    const int64_t heads = node.Int("num_heads", 0), width = node.ndim() == 3 ? node.shape(0)[2] : 0;
    if (heads < 1 || width == 0 || width % heads != 0)
      Throw(ErrorKind::kData, "{}: its data {} are not {} heads", node.Describe(),
            node.shape(0).ToString(), heads);
    Shapes to = node.ShapesOf(x);
    for (TShape& s : to) s = TShape{s[0], s[1], heads, width / heads};
    x = node.Reshape(x, to);
  }
  const int64_t depth = FixedLength(node, x, 3);
  const int64_t given = node.Int("rotary_embedding_dim", 0), rotated = given == 0 ? depth : given;
  if (rotated < 2 || rotated > depth || rotated % 2 != 0)
    Throw(ErrorKind::kData, "{}: rotary_embedding_dim is {} of {}", node.Describe(), rotated,
          depth);
  const int64_t half = rotated / 2;
  const std::string turned = Sliced(node, x, 3, 0, rotated);
  const bool interleaved = node.Int("interleaved", 0) != 0;
  const auto part = [&](int64_t which) {
    if (!interleaved) return Sliced(node, turned, 3, which * half, (which + 1) * half);
    const std::string begin = format("(None, None, None, {})", which);
    return node.Add(
        "slice", {turned},
        {{"begin", begin}, {"end", "(None, None, None, None)"}, {"step", "(1, 1, 1, 2)"}});
  };
  const std::string cosine = Angles(node, 1, half), sine = Angles(node, 2, half);
  const std::string first = part(0), second = part(1);
  const auto mixed = [&](const std::string& a, const std::string& b, const char* op) {
    return Pair(node, op, Pair(node, "mul", first, a), Pair(node, "mul", second, b));
  };
  const std::string real = mixed(cosine, sine, "sub"), imaginary = mixed(sine, cosine, "add");
  std::string result;
  if (interleaved) {
    const std::string pairs =
        node.Add("stack", {real, imaginary}, {{"num_args", "2"}, {"axis", "4"}});
    result = node.Reshape(pairs, node.ShapesOf(turned));
  } else {
    result = Joined(node, {real, imaginary}, 3);
  }
  if (rotated < depth) result = Joined(node, {result, Sliced(node, x, 3, rotated, depth)}, 3);
  if (four) return node.OutIs(Permuted(node, result, {0, 2, 1, 3}));
  node.OutIs(node.Reshape(result, node.in(0).shape));
}

}  // namespace

std::vector<ImportEntry> AttentionImports() {
  return {{"Attention", Attention}, {"RotaryEmbedding", RotaryEmbedding}};
}

}  // namespace mxtrain::onnx
