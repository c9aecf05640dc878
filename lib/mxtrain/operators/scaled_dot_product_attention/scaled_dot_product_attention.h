// SPDX-License-Identifier: Apache-2.0
#pragma once
// scaled_dot_product_attention(query, key, value), as PyTorch's function of that name:
//
//   scores   = scale query key^T + mask       [..., queries, keys]
//   output   = dropout(softmax(scores)) value [..., queries, value_depth]
//
// query [..., queries, depth], key [..., keys, depth], value [..., keys, value_depth]; the leading
// axes are equal, usually [batch, heads]. One attention of the leading axes is called an item. With
// four axes or more, the heads of the query (third last axis) may be a multiple of those of key and
// value: a group of that many of them, one after the other, shares keys and values (Ainslie et al.,
// "GQA", arXiv 2305.13245), which are not repeated in memory.
//
// attn_mask has at most as many axes, from the last one on, each of the scores' length or 1, along
// which it is repeated. A boolean mask may have any type: only keys where it is not 0 count, and it
// has no gradient. An additive one has a floating type and a gradient, and hides a key where it is
// -infinity. With is_causal a query sees the keys up to its own index, with sliding_window the last
// so many of them. A query that sees no key has the output 0 and passes no gradient. A hidden key
// that is NaN or infinite leaves the output alone; its gradients may be NaN, and so may the output
// if the value is.
//
// Instead of a mask, a fourth input may hold numbers that say which keys the queries of a row of
// the batch (first axis) see; kernels on the CPU skip the others. segments [batch, keys], with as
// many queries as keys: a number for each token, negative for padding; tokens see each other if all
// tokens from one to the other have the same number (documents that are packed one behind the
// other), and padding neither sees nor is seen. key_lengths [batch]: the first so many keys count.
//
// Other than in PyTorch, is_causal may stand beside a mask, query, key and value have three axes
// or more, and dropout is for training alone.
//
// In training each probability is 0 with probability dropout_p, else multiplied by
// 1 / (1 - dropout_p). A kernel's draw depends on the places of query and key alone (DrawIndex),
// and backward draws again.
//
// Kernels keep no array of scores: they take the keys block by block with the running maximum and
// sum of the softmax (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., "FlashAttention", arXiv
// 2205.14135), so that memory is linear in the number of keys. Backward computes the probabilities
// again from each query's largest score and sum of exponentials, which forward saves: two numbers,
// since a large score and the logarithm of a sum do not fit into one. With p the probabilities, f
// the factors of dropout, g the head gradient and d = sum over a query of g output:
//   dvalue = (p f)^T g, dscores = p (f g value^T - d),
//   dquery = scale dscores key, dkey = scale dscores^T query.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/property.h"

namespace mxtrain::attention {

enum MaskKind : int { kNoMask, kBooleanMask, kAdditiveMask, kSegments, kKeyLengths };

struct AttentionParam : Parameter<AttentionParam> {
  int mask;
  double dropout_p;
  bool is_causal;
  std::optional<int64_t> sliding_window;
  std::optional<double> scale;
  static void Declare(Fields<AttentionParam>& f) {
    f.Add("mask", &AttentionParam::mask)
        .Enum({{"none", kNoMask},
               {"boolean", kBooleanMask},
               {"additive", kAdditiveMask},
               {"segments", kSegments},
               {"key_lengths", kKeyLengths}})
        .Default(kNoMask)
        .Help(
            "a fourth input. attn_mask: nonzero where a key counts, or added to the scores. "
            "segments [batch, length]: tokens see neighbours of the same number. key_lengths "
            "[batch]: how many keys count");
    f.Add("dropout_p", &AttentionParam::dropout_p)
        .RangeBelow(0, 1)
        .Default(0)
        .Help("fraction of the probabilities that are dropped in training");
    f.Add("is_causal", &AttentionParam::is_causal)
        .Default(false)
        .Help("a query sees the keys up to its own index");
    f.Add("sliding_window", &AttentionParam::sliding_window)
        .Range(1, int64_t{1} << 40)
        .Default(std::nullopt)
        .Help("with is_causal, of these keys the last so many; None: all");
    f.Add("scale", &AttentionParam::scale)
        .Default(std::nullopt)
        .Help("factor of the scores; None: 1 / sqrt(depth)");
  }
};

// The extents of an operator's arrays.
struct Extents {
  int64_t items = 0, queries = 0, keys = 0, depth = 0, value_depth = 0;
  int64_t group = 1;  // items that share keys and values

  MXTRAIN_HD int64_t KeyItem(int64_t item) const { return item / group; }
  MXTRAIN_HD int64_t key_items() const { return items / group; }
};

// The row-major index of a probability, with rows of a multiple of four: draws come in fours.
MXTRAIN_HD inline uint64_t DrawIndex(const Extents& e, int64_t item, int64_t query, int64_t key) {
  return static_cast<uint64_t>((item * e.queries + query) * RoundUp(e.keys, 4) + key);
}

// Where an item's mask is, and which elements of it: slice * slice_size + query * query_stride +
// key * key_stride. Slices are numbered by the mask's own leading axes.
struct MaskView {
  int kind = kNoMask;
  int64_t slices = 1, slice_size = 0, query_stride = 0, key_stride = 0;
  std::vector<int64_t> slice_of;  // by item
  // The items of slice s are by_slice[first[s]], ..., in ascending order.
  std::vector<int64_t> by_slice, first;
};

// The keys [first, end) that a query sees.
struct KeyRange {
  int32_t first = 0, end = 0;
};

// What kernels need to know of a call.
struct AttentionSetup {
  Extents extents;
  MaskView mask;      // not of segments and lengths
  int numbers = 0;    // kSegments, kKeyLengths, or kNoMask
  int64_t batch = 1;  // rows, each of several items
  double scale = 1;
  bool is_causal = false, drops = false;
  int64_t sliding_window = 0;  // 0: none
  float keep = 1;              // probability of keeping a probability, if it drops

  float kept_factor() const { return 1 / keep; }
  int64_t KeysSeen(int64_t query) const {
    return is_causal ? std::min(query + 1, extents.keys) : extents.keys;
  }
  int64_t FirstKey(int64_t query) const {
    return sliding_window > 0 ? std::max<int64_t>(query + 1 - sliding_window, 0) : 0;
  }
  int64_t items_per_row() const {
    return batch > 0 && extents.items > 0 ? extents.items / batch : 1;
  }
  // Whether keys of a block may be hidden from some of its queries.
  bool hides() const { return mask.kind != kNoMask || is_causal || numbers != kNoMask; }
  int64_t range_bytes() const {
    return numbers == kNoMask ? 0
                              : batch * extents.queries * static_cast<int64_t>(sizeof(KeyRange));
  }
  // Tasks of backward, which add to nothing that another one adds to: items that share keys are in
  // one, and with the gradient of a mask those that add to one slice of it; if it is both, all.
  int64_t BackwardTasks(bool wants_mask) const {
    if (!wants_mask) return extents.key_items();
    return extents.group > 1 ? 1 : mask.slices;
  }
  // f(item of the keys) for those of a task.
  template <typename F>
  void ForKeyItems(bool wants_mask, int64_t task, const F& f) const {
    if (!wants_mask) {
      f(task);
    } else if (extents.group > 1) {
      for (int64_t k = 0; k < extents.key_items(); ++k) f(k);
    } else {
      const auto first = static_cast<size_t>(mask.first[static_cast<size_t>(task)]),
                 last = static_cast<size_t>(mask.first[static_cast<size_t>(task) + 1]);
      for (size_t k = first; k < last; ++k) f(mask.by_slice[k]);
    }
  }
};

// The keys that queries see by causality, window, and the numbers of a batch. Ends and beginnings
// do not decrease from query to query, but for queries that see no key.
class SeenKeys {
 public:
  SeenKeys() = default;
  // Those of a batch; `ranges` has range_bytes() and must outlive this.
  SeenKeys(const AttentionSetup& setup, std::span<const TBlob> in, void* ranges);
  int64_t First(int64_t item, int64_t query) const {
    const int64_t first = setup_->FirstKey(query);
    return ranges_ ? std::max<int64_t>(first, At(item, query).first) : first;
  }
  int64_t End(int64_t item, int64_t query) const {
    const int64_t end = setup_->KeysSeen(query);
    return ranges_ ? std::min<int64_t>(end, At(item, query).end) : end;
  }

 private:
  const KeyRange& At(int64_t item, int64_t query) const {
    return ranges_[item / per_row_ * setup_->extents.queries + query];
  }
  const AttentionSetup* setup_ = nullptr;
  const KeyRange* ranges_ = nullptr;
  int64_t per_row_ = 1;  // items
};

class AttentionProperty final : public PropertyWithParam<AttentionParam> {
 public:
  enum Argument { kQuery, kKey, kValue, kMask };

  std::string TypeString() const override { return "scaled_dot_product_attention"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kGains, 3}; }
  std::string Description() const override {
    return "means of values, weighted by the softmax of the products of queries and keys";
  }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  bool HasGradient(int argument) const override {
    return argument != kMask || param_.mask == kAdditiveMask;
  }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override;
  std::vector<ResourceRequest> BackwardResource(const std::vector<TShape>&) const override;
  bool Lower(Lowering* graph) const override;
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

  bool has_numbers() const { return param_.mask == kSegments || param_.mask == kKeyLengths; }
  // For arrays of known shapes.
  MXTRAIN_API std::shared_ptr<const AttentionSetup> Prepare(const PlanRequest& request) const;
};

}  // namespace mxtrain::attention
