// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/scaled_dot_product_attention/scaled_dot_product_attention.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/operator/composite.h"
#include "mxtrain/operator/number_reader.h"

namespace mxtrain::attention {

namespace {

// With ones in front.
TShape OfRank(int ndim, const TShape& mask) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max(ndim - mask.ndim(), 0)), 1);
  dims.insert(dims.end(), mask.begin(), mask.end());
  return TShape(dims);
}

}  // namespace

std::vector<std::string> AttentionProperty::ListArguments() const {
  if (param_.mask == kNoMask) return {"query", "key", "value"};
  const char* fourth = param_.mask == kSegments     ? "segments"
                       : param_.mask == kKeyLengths ? "key_lengths"
                                                    : "attn_mask";
  return {"query", "key", "value", fourth};
}

bool AttentionProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                   std::vector<TShape>*) const {
  const TShape &query = (*in)[kQuery], &key = (*in)[kKey], &value = (*in)[kValue];
  if (!query.known() || !key.known() || !value.known()) return false;
  const auto fail = [&](const char* what) {
    Throw(ErrorKind::kConfig, "{}: query {}, key {} and value {} must {}", TypeString(),
          query.ToString(), key.ToString(), value.ToString(), what);
  };
  const int n = query.ndim();
  if (n < 3 || key.ndim() != n || value.ndim() != n)
    fail("have the same number of axes, three or more: [batch, heads, length, depth]");
  for (int i = 0; i < n - 2; ++i) {
    const bool shared = i == n - 3 && n > 3 && key[i] > 0 && query[i] % key[i] == 0;
    if (key[i] != value[i] || (query[i] != key[i] && !shared)) {
      fail(
          "match in all axes except the last two; of four axes or more, the heads (third last "
          "axis) of the query may be a multiple of those of key and value");
    }
  }
  if (query[n - 1] != key[n - 1]) fail("have equal depths (last axes) of query and key");
  if (key[n - 2] != value[n - 2]) fail("have equal lengths (second last axes) of key and value");

  if (param_.sliding_window && !param_.is_causal)
    Throw(ErrorKind::kConfig, "{}: sliding_window needs is_causal = true", TypeString());
  if (param_.sliding_window && query[n - 2] > key[n - 2])
    fail("have as many keys as queries or more, with sliding_window");
  if (has_numbers()) {
    const bool segments = param_.mask == kSegments;
    if (segments && query[n - 2] != key[n - 2])
      fail("have equal lengths (second last axes), with segments");
    UnifyShape(segments ? TShape{query[0], key[n - 2]} : TShape{query[0]}, &(*in)[kMask],
               TypeString(), segments ? "segments" : "key_lengths");
  } else if (param_.mask != kNoMask) {
    const TShape& mask = (*in)[kMask];
    if (!mask.known()) return false;
    TShape scores = query;
    scores[n - 1] = key[n - 2];
    bool fits = mask.ndim() <= n;
    const TShape whole = fits ? OfRank(n, mask) : mask;
    for (int i = 0; fits && i < n; ++i) fits = whole[i] == 1 || whole[i] == scores[i];
    if (!fits) {
      Throw(ErrorKind::kConfig,
            "{}: attn_mask has shape {}, but the scores have shape {}; expected at most as many "
            "axes, "
            "from the last one on, each of that length or 1",
            TypeString(), mask.ToString(), scores.ToString());
    }
  }
  TShape result = query;
  result[n - 1] = value[n - 1];
  UnifyShape(result, &(*out)[0], TypeString(), "output");
  return true;
}

bool AttentionProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                  std::vector<DType>*) const {
  std::vector<DType> arrays(in->begin(), in->begin() + kMask), none;
  const bool known = OperatorProperty::InferType(&arrays, out, &none);
  std::copy(arrays.begin(), arrays.end(), in->begin());
  if (param_.mask == kNoMask || !known) return known;
  DType& mask = (*in)[kMask];
  if (mask == DType::kUnknown) mask = (*out)[0];
  if (param_.mask == kAdditiveMask && !IsFloating(mask)) {
    Throw(ErrorKind::kConfig,
          "{}: attn_mask is {}, but mask = additive takes a floating type; for 0 and 1 use "
          "mask = boolean",
          TypeString(), NameOf(mask));
  }
  return true;
}

std::vector<ResourceRequest> AttentionProperty::ForwardResource(const std::vector<TShape>&) const {
  if (param_.dropout_p == 0) return {};
  return {{ResourceRequest::kRandom, 0}};
}
std::vector<ResourceRequest> AttentionProperty::BackwardResource(const std::vector<TShape>&) const {
  return ForwardResource({});
}

double AttentionProperty::ForwardFlops(const std::vector<TShape>& in,
                                       const std::vector<TShape>&) const {
  const TShape &query = in[kQuery], &value = in[kValue];
  const int n = query.ndim();
  return static_cast<double>(query.Product(0, n - 1)) * static_cast<double>(value[n - 2]) *
         static_cast<double>(query[n - 1] + value[n - 1]);
}

namespace {

MaskView ViewOf(int kind, const TShape& query, const TShape& mask) {
  MaskView view;
  view.kind = kind;
  const int n = query.ndim();
  view.slices = mask.Product(0, n - 2);
  view.slice_size = mask[n - 2] * mask[n - 1];
  view.query_stride = mask[n - 2] == 1 ? 0 : mask[n - 1];
  view.key_stride = mask[n - 1] == 1 ? 0 : 1;
  view.first.assign(static_cast<size_t>(view.slices) + 1, 0);
  for (int64_t item = 0; item < query.Product(0, n - 2); ++item) {
    int64_t slice = 0, rest = item, step = 1;
    for (int i = n - 3; i >= 0; --i) {
      if (mask[i] != 1) slice += rest % query[i] * step;
      rest /= query[i];
      step *= mask[i];
    }
    view.slice_of.push_back(slice);
    ++view.first[static_cast<size_t>(slice) + 1];
  }
  for (size_t s = 1; s < view.first.size(); ++s) view.first[s] += view.first[s - 1];
  view.by_slice.resize(view.slice_of.size());
  std::vector<int64_t> next = view.first;
  for (size_t item = 0; item < view.slice_of.size(); ++item) {
    int64_t& place = next[static_cast<size_t>(view.slice_of[item])];
    view.by_slice[static_cast<size_t>(place++)] = static_cast<int64_t>(item);
  }
  return view;
}

double ScaleOf(const AttentionParam& param, int64_t depth) {
  return param.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(depth, 1))));
}

}  // namespace

std::shared_ptr<const AttentionSetup> AttentionProperty::Prepare(const PlanRequest& request) const {
  const TShape &query = request.in[kQuery].shape, &value = request.in[kValue].shape;
  const int n = query.ndim();
  auto setup = std::make_shared<AttentionSetup>();
  setup->extents = {query.Product(0, n - 2),
                    query[n - 2],
                    value[n - 2],
                    query[n - 1],
                    value[n - 1],
                    n > 3 && value[n - 3] > 0 ? query[n - 3] / value[n - 3] : 1};
  setup->batch = query[0];
  if (has_numbers()) {
    setup->numbers = param_.mask;
  } else if (param_.mask != kNoMask) {
    setup->mask = ViewOf(param_.mask, query, OfRank(n, request.in[kMask].shape));
  }
  setup->scale = ScaleOf(param_, query[n - 1]);
  setup->is_causal = param_.is_causal;
  setup->sliding_window = param_.sliding_window.value_or(0);
  setup->drops = request.is_train && param_.dropout_p > 0;
  setup->keep = static_cast<float>(1 - param_.dropout_p);
  return setup;
}

namespace {

// Of a row of the batch: its segments, or its length.
void FindRanges(const AttentionSetup& setup, const NumberReader& numbers, int64_t row,
                KeyRange* ranges) {
  const int64_t keys = setup.extents.keys, queries = setup.extents.queries;
  if (setup.numbers == kKeyLengths) {
    const auto length = static_cast<int32_t>(std::clamp<int64_t>(numbers.Index(row), 0, keys));
    std::fill_n(ranges, queries, KeyRange{0, length});
    return;
  }
  for (int64_t first = 0, end = 0; first < keys; first = end) {
    const int64_t number = numbers.Index(row * keys + first);
    while (end < keys && numbers.Index(row * keys + end) == number) ++end;
    const KeyRange seen{static_cast<int32_t>(first),
                        static_cast<int32_t>(number < 0 ? first : end)};
    std::fill(ranges + first, ranges + end, seen);
  }
}

}  // namespace

SeenKeys::SeenKeys(const AttentionSetup& setup, std::span<const TBlob> in, void* ranges)
    : setup_(&setup) {
  if (setup.numbers == kNoMask) return;
  auto* const all = static_cast<KeyRange*>(ranges);
  const NumberReader numbers(in[AttentionProperty::kMask]);
  for (int64_t row = 0; row < setup.batch; ++row)
    FindRanges(setup, numbers, row, all + row * setup.extents.queries);
  ranges_ = all;
  per_row_ = setup.items_per_row();
}

namespace {

// What is 1 where a query sees a key, to be broadcast over the scores: by key_lengths [batch].
Lowering::Value WithinLengths(Lowering& g, const TShape& scores) {
  const int n = scores.ndim();
  TShape along = TShape::OfRank(n), rows = along;
  for (int i = 0; i < n; ++i) along[i] = rows[i] = 1;
  along[n - 1] = scores[n - 1];
  rows[0] = scores[0];
  const auto numbers = g("_arange", {}, {{"start", "0"}, {"stop", params::Print(scores[n - 1])}});
  const auto lengths = g("Cast", {g.argument(AttentionProperty::kMask)}, {{"dtype", "float32"}});
  return g("broadcast_lesser", {g.Reshape(numbers, along), g.Reshape(lengths, rows)});
}

// The same by segments [batch, length]: tokens are of the same run if as many numbers have changed
// before them.
Lowering::Value WithinSegments(Lowering& g, const TShape& scores) {
  const int n = scores.ndim();
  const int64_t batch = scores[0], length = scores[n - 1];
  TShape keys = TShape::OfRank(n), queries = keys;
  for (int i = 0; i < n; ++i) keys[i] = queries[i] = 1;
  keys[0] = queries[0] = batch;
  keys[n - 1] = queries[n - 2] = length;
  const auto ids = g("Cast", {g.argument(AttentionProperty::kMask)}, {{"dtype", "float32"}});
  const auto part = [&](int64_t begin, int64_t end) {
    return g("slice_axis", {ids},
             {{"axis", "1"}, {"begin", params::Print(begin)}, {"end", params::Print(end)}});
  };
  auto changes = g("zeros_like", {part(0, 1)});
  if (length > 1) {
    const auto changed = g("elemwise_sub", {part(1, length), part(0, length - 1)});
    changes = g("Concat", {changes, g.WithScalar("_not_equal_scalar", changed, 0)},
                {{"num_args", "2"}, {"dim", "1"}});
  }
  const auto runs = g("cumsum", {changes}, {{"axis", "1"}});
  const auto same = g("broadcast_equal", {g.Reshape(runs, queries), g.Reshape(runs, keys)});
  const auto counts = g.WithScalar("_greater_equal_scalar", ids, 0);
  return g("broadcast_mul", {same, g.Reshape(counts, keys)});
}

}  // namespace

// The graph of operators that computes the same with an array of all scores, where no kernel does.
// A query whose additive mask is -infinity everywhere becomes NaN there, and dropout draws other
// numbers than a kernel.
bool AttentionProperty::Lower(Lowering* graph) const {
  Lowering& g = *graph;
  const TShape &query = g.shape(kQuery), &key = g.shape(kKey), &value = g.shape(kValue);
  const int n = query.ndim();
  // Heads that share keys stand one below the other, as more queries of one head.
  const bool shares = n > 3 && query[n - 3] != key[n - 3];
  const auto of_heads = [&](Lowering::Value x, const TShape& heads, int64_t rows, int64_t columns) {
    if (!shares) return x;
    TShape shape = query;
    shape[n - 3] = heads[n - 3];
    shape[n - 2] = rows;
    shape[n - 1] = columns;
    return g.Reshape(x, shape);
  };
  const int64_t rows = shares ? query[n - 2] * (query[n - 3] / key[n - 3]) : query[n - 2];
  // The queries are scaled first: in float16 their products with keys may be infinite.
  const auto scaled =
      g.WithScalar("_mul_scalar", g.argument(kQuery), ScaleOf(param_, query[n - 1]));
  auto scores = g("batch_dot", {of_heads(scaled, key, rows, query[n - 1]), g.argument(kKey)},
                  {{"transpose_b", "True"}});
  scores = of_heads(scores, query, query[n - 2], key[n - 2]);
  TShape all = query;
  all[n - 1] = key[n - 2];
  const std::string all_axes = params::Print(all);
  std::vector<Lowering::Value> visible;  // conditions
  const auto mask = [&] {
    const TShape& shape = g.shape(kMask);
    return shape.ndim() == n ? g.argument(kMask) : g.Reshape(g.argument(kMask), OfRank(n, shape));
  };
  if (param_.mask == kAdditiveMask) scores = g("broadcast_add", {scores, mask()});
  if (param_.mask == kBooleanMask) {
    const auto condition =
        g("Cast", {g.WithScalar("_not_equal_scalar", mask(), 0)}, {{"dtype", "float32"}});
    visible.push_back(g("broadcast_to", {condition}, {{"shape", all_axes}}));
  }
  if (has_numbers()) {
    const auto seen = param_.mask == kSegments ? WithinSegments(g, all) : WithinLengths(g, all);
    visible.push_back(g("broadcast_to", {seen}, {{"shape", all_axes}}));
  }
  if (param_.is_causal) {
    TShape down = TShape::OfRank(n), along = down;
    for (int i = 0; i < n; ++i) down[i] = along[i] = 1;
    down[n - 2] = all[n - 2];
    along[n - 1] = all[n - 1];
    const auto numbers = [&](int64_t begin, int64_t count, const TShape& shape) {
      const Kwargs range = {{"start", params::Print(begin)},
                            {"stop", params::Print(begin + count)}};
      return g.Reshape(g("_arange", {}, range), shape);
    };
    const auto keys = numbers(0, all[n - 1], along);
    const auto see = [&](Lowering::Value condition) {
      visible.push_back(g("broadcast_to", {condition}, {{"shape", all_axes}}));
    };
    see(g("broadcast_lesser_equal", {keys, numbers(0, all[n - 2], down)}));
    if (param_.sliding_window) {
      const auto before = numbers(-*param_.sliding_window, all[n - 2], down);
      see(g("broadcast_greater", {keys, before}));
    }
  }
  const auto zeros = [&](Lowering::Value like) { return g("zeros_like", {like}); };
  const bool any_score = param_.mask == kAdditiveMask && param_.is_causal;
  const Kwargs along_keys = {{"axis", "-1"}, {"keepdims", "True"}};
  for (const auto condition : visible) {
    // Hidden scores become one that no net has, and that every floating type holds. A mask may add
    // -1e9 to the visible ones: then the least of them.
    constexpr double kLow = -6e4;
    auto low = g.WithScalar("_plus_scalar", zeros(scores), kLow);
    if (any_score) {
      const auto still = g("BlockGrad", {g("where", {condition, scores, zeros(scores)})});
      low = g("broadcast_to", {g("min", {still}, along_keys)}, {{"shape", all_axes}});
    }
    scores = g("where", {condition, scores, low});
  }
  auto p = g("softmax", {scores});
  for (const auto condition : visible) p = g("where", {condition, p, zeros(p)});
  // Hidden keys may have had a part. A causal mask leaves each query one key, so the sum is not 0.
  if (any_score) p = g("broadcast_div", {p, g("sum", {p}, along_keys)});
  if (param_.dropout_p > 0)
    p = g("Dropout", {p}, {{"p", params::Print(static_cast<float>(param_.dropout_p))}});
  const auto mean = g("batch_dot", {of_heads(p, key, rows, key[n - 2]), g.argument(kValue)});
  g.SetOutput(0, of_heads(mean, query, query[n - 2], value[n - 1]));
  return true;
}

}  // namespace mxtrain::attention

MXTRAIN_OPERATOR(scaled_dot_product_attention, registry) {
  registry.AddProperty("scaled_dot_product_attention", {},
                       [] { return std::make_unique<mxtrain::attention::AttentionProperty>(); });
}
