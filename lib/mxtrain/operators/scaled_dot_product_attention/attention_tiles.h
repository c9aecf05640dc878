// SPDX-License-Identifier: Apache-2.0
#pragma once
// scaled_dot_product_attention by the matrix units of a GPU, for arrays of 16 bits: FlashAttention
// (Dao, "FlashAttention-2", arXiv 2307.08691). Arrays of scores exist only as tiles in registers.
//
// A team has a tile of kTileRows queries, each of its warps 16 of them, and goes over the keys; for
// the gradients of keys and values it has a tile of keys and goes over the queries. So every
// gradient is summed in one order, without atomic additions, and results repeat bit for bit; the
// price is that backward computes the probabilities twice.
//
// Scores and sums are float32; probabilities and the gradients of scores are rounded to the type of
// the arrays where they are factors of a product: in float16 gradients of scores below 3e-8 vanish,
// which a loss scale prevents. Exponentials are powers of two.
#include <cmath>
#include <limits>
#include <numbers>

#include "mxtrain/operator/rows.h"
#include "mxtrain/operator/tile_team.h"
#include "mxtrain/operator/written_out.h"
#include "mxtrain/operators/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace mxtrain::attention {

inline constexpr int kTileRows = 16 * kTileWarps;
inline constexpr int kMostTileDepth = 128;

// What forward saves of a query: its largest score times log2(e), or 0 if that is
// -infinity, and 1 / the sum of the powers.
struct RowScale {
  float largest, inverse;
};

// What all tiles of a call have in common. kDrops: dropout.
template <bool kDrops>
struct TileCall {
  Extents e;
  float scale;  // of the scores
  float power;  // scale log2(e): of the scores as exponents of 2
  bool is_causal;
  int64_t sliding_window;  // 0: none
  float keep, kept;        // the probability of keeping one, and the factor of those that are kept
  RandomDraws draws;
  const KeyRange* ranges;  // of segments or lengths [rows, queries]; null: none
  int64_t per_row;         // items

  TileCall(const AttentionSetup& setup, const RandomDraws& random, const KeyRange* seen)
      : e(setup.extents),
        scale(static_cast<float>(setup.scale)),
        power(static_cast<float>(setup.scale * std::numbers::log2e)),
        is_causal(setup.is_causal),
        sliding_window(setup.sliding_window),
        keep(setup.keep),
        kept(setup.kept_factor()),
        draws(random),
        ranges(seen),
        per_row(setup.items_per_row()) {}

  // Of a query of the array, or of the last one for those behind it.
  MXTRAIN_HD KeyRange RangeOf(int64_t item, int64_t query) const {
    const int64_t last = e.queries - 1;
    return ranges[item / per_row * e.queries + (query < last ? query : last)];
  }
  MXTRAIN_HD bool Sees(int64_t item, int64_t query, int64_t key) const {
    if (ranges) {
      const KeyRange range = RangeOf(item, query);
      if (key < range.first || key >= range.end) return false;
    }
    return key < e.keys && (!is_causal || key <= query) &&
           (sliding_window == 0 || query - key < sliding_window);
  }
  // Whether `queries` queries from `query` on see `keys` keys from `key` on.
  MXTRAIN_HD bool SeeAll(int64_t query, int64_t queries, int64_t key, int64_t keys) const {
    return !ranges && Sees(0, query, key + keys - 1) &&
           (sliding_window == 0 || query + queries - 1 - key < sliding_window);
  }
  // The first key that a query, and the ones behind it, see, rounded down to a multiple of `step`.
  MXTRAIN_HD int64_t FirstKey(int64_t item, int64_t query, int64_t step) const {
    int64_t first = sliding_window == 0 ? 0 : query + 1 - sliding_window;
    if (ranges && RangeOf(item, query).first > first) first = RangeOf(item, query).first;
    return first < 0 ? 0 : first / step * step;
  }
  // One more than the last key that the `queries` queries from `query` on see.
  MXTRAIN_HD int64_t EndOfKeys(int64_t item, int64_t query, int64_t queries) const {
    int64_t end = e.keys;
    if (is_causal && query + queries < end) end = query + queries;
    if (ranges && RangeOf(item, query + queries - 1).end < end)
      end = RangeOf(item, query + queries - 1).end;
    return end;
  }
  // One more than the last query that sees a key.
  MXTRAIN_HD int64_t EndOfQueries(int64_t key) const {
    return sliding_window == 0 || key + sliding_window > e.queries ? e.queries
                                                                   : key + sliding_window;
  }
  // Whether dropout keeps a probability.
  MXTRAIN_HD bool Keeps(int64_t item, int64_t query, int64_t key) const {
    return draws.Uniform(DrawIndex(e, item, query, key)) < keep;
  }
  // Of sums of probabilities that it has kept.
  MXTRAIN_HD float KeptFactor() const { return kDrops ? kept : 1; }
  // Of a key with this product with the query, without dropout.
  MXTRAIN_HD float Probability(float product, const RowScale& of) const {
    return std::exp2(product * power - of.largest) * of.inverse;
  }
};

// Row `half` * 8 + lane / 4 and columns lane % 4 * 2, + 1 are a lane's part of a C (tile_team.h).
template <typename Team>
MXTRAIN_HD int RowOf(const Team& team, int half) {
  return team.lane() / 4 + half * 8;
}
template <typename Team>
MXTRAIN_HD int ColumnOf(const Team& team, int n, int k) {
  return n * 8 + team.lane() % 4 * 2 + k;
}

// C [16, 8 kCount] of a warp.
template <int kCount>
struct WarpTile {
  float c[kCount][4] = {};

  // f(row, column, element), with numbers within the tile.
  template <typename Team, typename F>
  MXTRAIN_HD void ForEach(const Team& team, const F& f) {
    ForPack<4 * kCount>(
        [&](int i) { f(RowOf(team, i % 4 / 2), ColumnOf(team, i / 4, i % 2), &c[i / 4][i % 4]); });
  }
  // Columns 16 k to + 15 as A.
  template <typename T>
  MXTRAIN_HD Fragment<4> AsLeft(int k) const {
    const float(&a)[4] = c[2 * k], (&b)[4] = c[2 * k + 1];
    return {{PairOf<T>(a[0], a[1]), PairOf<T>(a[2], a[3]), PairOf<T>(b[0], b[1]),
             PairOf<T>(b[2], b[3])}};
  }
};

// The rows [16 warp, + 16) of a tile as A of products over its columns.
template <typename T, int kDepth>
struct WarpRows {
  Fragment<4> part[kDepth / 16];

  template <typename Team>
  MXTRAIN_HD void Load(const Team& team, const SharedTile<T, kDepth>& tile) {
    ForPack<kDepth / 16>([&](int k) { tile.LoadLeft(team, team.warp() * 16, k * 16, &part[k]); });
  }
};

// to += left right^T, for the first 8 kCount rows of `right`.
template <typename T, int kDepth, int kCount, typename Team>
MXTRAIN_HD void AddScores(const Team& team, const WarpRows<T, kDepth>& left,
                          const SharedTile<T, kDepth>& right, WarpTile<kCount>* to) {
  ForPack<kDepth / 16>([&](int k) {
    ForPack<kCount / 2>([&](int n) {
      Fragment<4> b;
      right.LoadRightTransposed(team, n * 16, k * 16, &b);
      team.template Multiply<T>(left.part[k], b.r[0], b.r[1], to->c[2 * n]);
      team.template Multiply<T>(left.part[k], b.r[2], b.r[3], to->c[2 * n + 1]);
    });
  });
}
// to += left right, where `left`'s columns are the first 8 kCount rows of `right`.
template <typename T, int kDepth, int kCount, typename Team>
MXTRAIN_HD void AddProducts(const Team& team, const WarpTile<kCount>& left,
                            const SharedTile<T, kDepth>& right, WarpTile<kDepth / 8>* to) {
  ForPack<kCount / 2>([&](int k) {
    const Fragment<4> a = left.template AsLeft<T>(k);
    ForPack<kDepth / 16>([&](int n) {
      Fragment<4> b;
      right.LoadRight(team, k * 16, n * 16, &b);
      team.template Multiply<T>(a, b.r[0], b.r[1], to->c[2 * n]);
      team.template Multiply<T>(a, b.r[2], b.r[3], to->c[2 * n + 1]);
    });
  });
}

// An array [items, rows, columns].
template <typename T>
struct Items {
  T* data;
  int64_t rows, columns;
  MXTRAIN_HD T* Of(int64_t item) const { return data + item * rows * columns; }
};

// factor times a warp's tile, whose first row is `first` of an item, honouring the request.
template <int kCount, typename T, typename Team>
MXTRAIN_HD void Put(const Team& team, WarpTile<kCount>* tile, float factor, const Items<T>& array,
                    int64_t item, int64_t first, OpReqType req) {
  if (req == OpReqType::kNullOp) return;
  T* const to = array.Of(item);
  tile->ForEach(team, [&](int row, int column, const float* value) {
    if (first + row < array.rows && column < array.columns)
      Assign(req, to, (first + row) * array.columns + column, *value * factor);
  });
}

// Sets to `hidden` the elements of keys that their queries do not see: the rows are those of
// queries from `query` on, the columns those of keys from `key` on.
template <int kCount, bool kDrops, typename Team>
MXTRAIN_HD void Hide(const Team& team, const TileCall<kDrops>& call, int64_t item, int64_t query,
                     int64_t key, float hidden, WarpTile<kCount>* tile) {
  if (call.SeeAll(query, 16, key, 8 * kCount)) return;
  tile->ForEach(team, [&](int row, int column, float* x) {
    if (!call.Sees(item, query + row, key + column)) *x = hidden;
  });
}
// What dropout drops becomes 0, and what it keeps is multiplied by `kept`.
template <int kCount, bool kDrops, typename Team>
MXTRAIN_HD void Drop(const Team& team, const TileCall<kDrops>& call, int64_t item, int64_t query,
                     int64_t key, float kept, WarpTile<kCount>* tile) {
  if constexpr (!kDrops) return;
  tile->ForEach(team, [&](int row, int column, float* x) {
    *x = call.Keeps(item, query + row, key + column) ? *x * kept : 0;
  });
}
// Both where the rows are those of keys; what is hidden, or behind the last query, is 0.
template <int kCount, bool kDrops, typename Team>
MXTRAIN_HD void HideTransposed(const Team& team, const TileCall<kDrops>& call, int64_t item,
                               int64_t key, int64_t query, WarpTile<kCount>* tile) {
  if (call.SeeAll(query, 8 * kCount, key, 16) && query + 8 * kCount <= call.e.queries) return;
  tile->ForEach(team, [&](int row, int column, float* x) {
    if (query + column >= call.e.queries || !call.Sees(item, query + column, key + row)) *x = 0;
  });
}
template <int kCount, bool kDrops, typename Team>
MXTRAIN_HD void DropTransposed(const Team& team, const TileCall<kDrops>& call, int64_t item,
                               int64_t key, int64_t query, float kept, WarpTile<kCount>* tile) {
  if constexpr (!kDrops) return;
  tile->ForEach(team, [&](int row, int column, float* x) {
    *x = call.Keeps(item, query + column, key + row) ? *x * kept : 0;
  });
}

// One value of every row of C, for both rows of a lane.
struct PerRow {
  float of[2];
};
// The values of each row's four lanes together.
template <typename Team, typename Op>
MXTRAIN_HD void FoldRows(const Team& team, PerRow* value, const Op& op) {
  for (float& v : value->of) {
    v = op(v, team.ShuffleXor(v, 1));
    v = op(v, team.ShuffleXor(v, 2));
  }
}

// The team's own rows, by way of shared memory.
template <typename T, int kDepth, typename Team>
MXTRAIN_HD void LoadOwn(const Team& team, const Items<const T>& array, int64_t item, int64_t first,
                        const SharedTile<T, kDepth>& room, WarpRows<T, kDepth>* to) {
  room.Load(team, array.Of(item), array.rows, array.columns, first, kTileRows);
  team.AwaitCopies();
  team.Sync();
  to->Load(team, room);
  team.Sync();
}

// The output of a tile of queries. kDepth, a multiple of 16, is at least that of keys and values.
template <typename T, int kDepth, bool kDrops>
struct ForwardTiles {
  static constexpr int kKeys = 64;  // of a step
  using Tile = SharedTile<T, kDepth>;
  TileCall<kDrops> call;
  Items<const T> query, key, value;
  Items<T> out;
  OpReqType req;
  RowScale* saved;  // null: not wanted

  int64_t tasks() const { return call.e.items * CeilDivide(call.e.queries, int64_t{kTileRows}); }

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    const Extents& e = call.e;
    const int64_t tiles = CeilDivide(e.queries, int64_t{kTileRows}), item = task / tiles,
                  key_item = e.KeyItem(item), first = task % tiles * kTileRows;
    T* const room = team.template Shared<T, 2 * kKeys * Tile::kPitch>();
    const Tile keys{room}, values{room + kKeys * Tile::kPitch};
    static_assert(kTileRows <= 2 * kKeys);
    WarpRows<T, kDepth> queries;
    LoadOwn(team, query, item, first, keys, &queries);

    const int64_t own = first + team.warp() * 16;  // the first query of the warp
    const int64_t end = call.EndOfKeys(item, first, kTileRows);
    WarpTile<kDepth / 8> mean;
    PerRow largest{
        {-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}},
        sum{};
    const int64_t begin = call.FirstKey(item, first, kKeys);
    if (begin < end) keys.Load(team, key.Of(key_item), e.keys, e.depth, begin, kKeys);
    for (int64_t at = begin; at < end; at += kKeys) {
      team.AwaitCopies();
      team.Sync();  // the keys are there, and nobody reads values any more
      values.Load(team, value.Of(key_item), e.keys, e.value_depth, at, kKeys);
      WarpTile<kKeys / 8> p;
      AddScores(team, queries, keys, &p);
      Exponentials(team, item, own, at, &p, &largest, &sum, &mean);
      Drop(team, call, item, own, at, 1, &p);
      team.AwaitCopies();
      team.Sync();  // the values are there, and nobody reads keys any more
      if (at + kKeys < end) keys.Load(team, key.Of(key_item), e.keys, e.depth, at + kKeys, kKeys);
      AddProducts<T, kDepth>(team, p, values, &mean);
    }
    team.Sync();  // before the next task

    FoldRows(team, &sum, AddBoth());
    ForPack<2>([&](int half) {
      const RowScale of = ScaleOf(largest.of[half], sum.of[half]);
      Scale(half, of.inverse, &mean);
      const int64_t row = own + RowOf(team, half);
      if (saved && team.lane() % 4 == 0 && row < e.queries) saved[item * e.queries + row] = of;
    });
    Put(team, &mean, call.KeptFactor(), out, item, own, req);
  }

 private:
  // One of the two rows of a lane.
  static MXTRAIN_HD void Scale(int half, float factor, WarpTile<kDepth / 8>* tile) {
    ForPack<kDepth / 4>([&](int i) { tile->c[i / 2][2 * half + i % 2] *= factor; });
  }
  static MXTRAIN_HD float Base(float largest) {
    return largest == -std::numeric_limits<float>::infinity() ? 0 : largest;
  }
  // A sum that is NaN stays so.
  static MXTRAIN_HD RowScale ScaleOf(float largest, float sum) {
    return {Base(largest), sum > 0 ? 1 / sum : sum};
  }

  // Scores to powers, relative to the largest score until now, to which sum and mean are changed. A
  // lane's sum is that of its own columns.
  template <typename Team>
  MXTRAIN_HD void Exponentials(const Team& team, int64_t item, int64_t own, int64_t at,
                               WarpTile<kKeys / 8>* p, PerRow* largest, PerRow* sum,
                               WarpTile<kDepth / 8>* mean) const {
    p->ForEach(team, [&](int, int, float* x) { *x *= call.power; });
    Hide(team, call, item, own, at, -std::numeric_limits<float>::infinity(), p);
    PerRow now = *largest;
    ForPack<kKeys / 2>([&](int i) {
      float& of = now.of[i % 4 / 2];
      of = LargerOf()(of, p->c[i / 4][i % 4]);
    });
    FoldRows(team, &now, LargerOf());
    ForPack<2>([&](int half) {
      const float base = Base(now.of[half]), before = std::exp2(largest->of[half] - base);
      Scale(half, before, mean);
      float added = 0;
      ForPack<kKeys / 4>([&](int i) {
        float& x = p->c[i / 2][2 * half + i % 2];
        x = std::exp2(x - base);
        added += x;
      });
      sum->of[half] = sum->of[half] * before + added;
    });
    *largest = now;
  }
};

// What both gradients read.
template <typename T, bool kDrops>
struct BackwardTiles {
  TileCall<kDrops> call;
  Items<const T> query, key, value, head;
  const RowScale* saved;
  const float* along;  // by AlongHead

  // Without the query the probability is 0.
  MXTRAIN_HD RowScale ScaleOf(int64_t item, int64_t row) const {
    return row < call.e.queries ? saved[item * call.e.queries + row] : RowScale{};
  }
  MXTRAIN_HD float AlongOf(int64_t item, int64_t row) const {
    return row < call.e.queries ? along[item * call.e.queries + row] : 0;
  }
};

// Of every query, the sum of head gradient times output.
template <typename T>
struct AlongHead {
  Items<const T> head, out;
  float* along;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const T *g = head.data + row * head.columns, *y = out.data + row * head.columns;
    float sum = 0;
    for (int64_t k = team.rank(); k < head.columns; k += team.size())
      sum += static_cast<float>(g[k]) * static_cast<float>(y[k]);
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) along[row] = sum;
  }
};

// The gradient of a tile of queries.
template <typename T, int kDepth, bool kDrops>
struct QueryGradient {
  using Tile = SharedTile<T, kDepth>;
  static constexpr int kKeys = kDepth <= 64 ? 64 : 32;  // of a step
  BackwardTiles<T, kDrops> in;
  Items<T> query_grad;
  OpReqType req;

  int64_t tasks() const {
    return in.call.e.items * CeilDivide(in.call.e.queries, int64_t{kTileRows});
  }

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    const TileCall<kDrops>& call = in.call;
    const Extents& e = call.e;
    const int64_t tiles = CeilDivide(e.queries, int64_t{kTileRows}), item = task / tiles,
                  key_item = e.KeyItem(item), first = task % tiles * kTileRows;
    T* const room = team.template Shared<T, 2 * kKeys * Tile::kPitch>();
    const Tile keys{room}, values{room + kKeys * Tile::kPitch};
    static_assert(kTileRows <= 2 * kKeys);
    WarpRows<T, kDepth> queries, heads;
    LoadOwn(team, in.query, item, first, keys, &queries);
    LoadOwn(team, in.head, item, first, keys, &heads);

    const int64_t own = first + team.warp() * 16;
    RowScale of[2];
    float along[2];
    ForPack<2>([&](int half) {
      const int64_t row = own + RowOf(team, half);
      of[half] = in.ScaleOf(item, row);
      along[half] = in.AlongOf(item, row);
    });
    const int64_t end = call.EndOfKeys(item, first, kTileRows);
    WarpTile<kDepth / 8> gradient;
    for (int64_t at = call.FirstKey(item, first, kKeys); at < end; at += kKeys) {
      keys.Load(team, in.key.Of(key_item), e.keys, e.depth, at, kKeys);
      values.Load(team, in.value.Of(key_item), e.keys, e.value_depth, at, kKeys);
      team.AwaitCopies();
      team.Sync();
      WarpTile<kKeys / 8> scores, slopes;
      AddScores(team, queries, keys, &scores);
      AddScores(team, heads, values, &slopes);
      Drop(team, call, item, own, at, call.kept, &slopes);
      ForPack<kKeys / 2>([&](int i) {
        const int half = i % 4 / 2;
        float& slope = slopes.c[i / 4][i % 4];
        slope = call.Probability(scores.c[i / 4][i % 4], of[half]) * (slope - along[half]);
      });
      Hide(team, call, item, own, at, 0, &slopes);
      AddProducts<T, kDepth>(team, slopes, keys, &gradient);
      team.Sync();  // before the next rows are written there
    }
    Put(team, &gradient, call.scale, query_grad, item, own, req);
  }
};

// The gradients of a tile of keys and values.
template <typename T, int kDepth, bool kDrops>
struct KeyGradient {
  using Tile = SharedTile<T, kDepth>;
  static constexpr int kQueries = 32;  // of a step
  BackwardTiles<T, kDrops> in;
  Items<T> key_grad, value_grad;
  OpReqType key_req, value_req;

  int64_t tasks() const {
    return in.call.e.key_items() * CeilDivide(in.call.e.keys, int64_t{kTileRows});
  }

  // Scores and their gradients are transposed: a row is that of a key.
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    const TileCall<kDrops>& call = in.call;
    const Extents& e = call.e;
    const int64_t tiles = CeilDivide(e.keys, int64_t{kTileRows}), key_item = task / tiles,
                  first = task % tiles * kTileRows;
    T* const room = team.template Shared<T, 2 * kQueries * Tile::kPitch>();
    const Tile queries{room}, heads{room + kQueries * Tile::kPitch};
    static_assert(kTileRows <= 2 * kQueries);
    WarpRows<T, kDepth> keys, values;
    LoadOwn(team, in.key, key_item, first, queries, &keys);
    LoadOwn(team, in.value, key_item, first, queries, &values);

    const int64_t own = first + team.warp() * 16;
    WarpTile<kDepth / 8> key_sum, value_sum;
    const int64_t begin = call.is_causal ? first / kQueries * kQueries : 0,
                  end = call.EndOfQueries(first + kTileRows - 1),
                  steps = begin < end ? CeilDivide(end - begin, int64_t{kQueries}) : 0;
    for (int64_t step = 0; step < steps * e.group; ++step) {
      const int64_t item = key_item * e.group + step / steps, at = begin + step % steps * kQueries;
      queries.Load(team, in.query.Of(item), e.queries, e.depth, at, kQueries);
      heads.Load(team, in.head.Of(item), e.queries, e.value_depth, at, kQueries);
      team.AwaitCopies();
      team.Sync();
      WarpTile<kQueries / 8> p, slopes;
      AddScores(team, keys, queries, &p);
      AddScores(team, values, heads, &slopes);
      DropTransposed(team, call, item, own, at, call.kept, &slopes);
      ForPack<kQueries / 4>([&](int i) {
        const int64_t q = at + ColumnOf(team, i / 2, i % 2);
        const RowScale of = in.ScaleOf(item, q);
        const float along = in.AlongOf(item, q);
        ForPack<2>([&](int half) {
          float &x = p.c[i / 2][2 * half + i % 2], &slope = slopes.c[i / 2][2 * half + i % 2];
          x = call.Probability(x, of);
          slope = x * (slope - along);
        });
      });
      HideTransposed(team, call, item, own, at, &p);
      HideTransposed(team, call, item, own, at, &slopes);
      DropTransposed(team, call, item, own, at, 1, &p);
      AddProducts<T, kDepth>(team, p, heads, &value_sum);
      AddProducts<T, kDepth>(team, slopes, queries, &key_sum);
      team.Sync();  // before the next rows are written there
    }
    Put(team, &key_sum, call.scale, key_grad, key_item, own, key_req);
    Put(team, &value_sum, call.KeptFactor(), value_grad, key_item, own, value_req);
  }
};

}  // namespace mxtrain::attention
