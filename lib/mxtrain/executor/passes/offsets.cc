// SPDX-License-Identifier: Apache-2.0
// AssignOffsets: the offset of each buffer. Buffers are placed one by one into the smallest
// sufficient gap that is free over their whole lifetime; attempts differ in the order. Sources:
// greedy by size (Pisarchyk and Lee, arXiv 2001.03288), then repairs that move the buffers at the
// top to the front of the order and retry. Results above the lower bound go to the exact search.
#include <algorithm>
#include <array>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/executor/internal/offset_search.h"
#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::executor {
namespace {

constexpr int64_t kAlign = kBufferAlignment;
constexpr int kRepairs = 300;                       // attempts at most,
constexpr int64_t kRepairWork = 30'000'000;         // and pairs of buffers compared: under a second
constexpr int64_t kSearchWork = 300'000'000;        // per plan: about half a second
constexpr int64_t kCapacityWork = kSearchWork / 4;  // per arena size,
constexpr int64_t kFirstSlice = 1'000'000;          // in doubling slices, one order each

class OffsetPlacer {
 public:
  explicit OffsetPlacer(const std::vector<SearchItem>& items)
      : items_(items), offset_(items.size()) {}

  // Places in the given order; gives up and returns a larger number once `limit` is reached.
  int64_t Place(const std::vector<int>& order, int64_t limit) {
    placed_.clear();
    int64_t top = 0;
    for (int i : order) {
      const int64_t offset = LowestGap(items_[i]);
      offset_[i] = offset;
      top = std::max(top, offset + items_[i].bytes);
      if (top >= limit) return limit;
      placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), i,
                                      [this](int a, int b) { return offset_[a] < offset_[b]; }),
                     i);
    }
    return top;
  }
  const std::vector<int64_t>& offsets() const { return offset_; }

 private:
  // `placed_` is sorted by offset, so one sweep over those live with `item` finds the smallest
  // sufficient gap, else the top.
  int64_t LowestGap(const SearchItem& item) const {
    int64_t end = 0, best = -1, best_size = 0;
    for (int other : placed_) {
      const SearchItem& o = items_[other];
      if (o.last < item.first || item.last < o.first) continue;
      const int64_t gap = offset_[other] - end;
      if (gap >= item.bytes && (best < 0 || gap < best_size)) {
        best = end;
        best_size = gap;
      }
      end = std::max(end, offset_[other] + o.bytes);
    }
    return best >= 0 ? best : end;
  }

  const std::vector<SearchItem>& items_;
  std::vector<int64_t> offset_;
  std::vector<int> placed_;
};

// A set of items and its best placement so far.
class Assigner {
 public:
  Assigner(std::vector<SearchItem> items, int64_t lower_bound)
      : items_(std::move(items)), lower_bound_(lower_bound), placer_(items_) {}

  Placement Run() {
    TryOrders();
    Repair();
    if (best_ == lower_bound_) return {best_, Optimality::kMeetsBound};
    const bool proven = Search();
    return {best_, best_ == lower_bound_ ? Optimality::kMeetsBound
                   : proven              ? Optimality::kProvenSmallest
                                         : Optimality::kNotProven};
  }
  const std::vector<int64_t>& offsets() const { return best_offsets_; }

 private:
  static int64_t Length(const SearchItem& i) { return i.last - i.first + 1; }
  static double Area(const SearchItem& i) {
    return static_cast<double>(i.bytes) * static_cast<double>(Length(i));
  }

  template <typename Key>
  std::vector<int> Sorted(Key&& key) const {
    std::vector<int> order(items_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return items_[a].first < items_[b].first; });
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return key(items_[a]) > key(items_[b]); });
    return order;
  }

  void TryOrders() {
    const std::vector<int> by_birth = Sorted([](const SearchItem& i) { return -i.first; });
    for (const std::vector<int>& order :
         {Sorted([](const SearchItem& i) { return i.bytes; }), Sorted(Length), Sorted(Area),
          by_birth, std::vector<int>(by_birth.rbegin(), by_birth.rend())}) {
      const int64_t top = placer_.Place(order, best_);
      if (top >= best_) continue;
      best_ = top;
      best_offsets_ = placer_.offsets();
      best_order_ = order;
    }
  }

  // Items at the top move forward in the order, alternately to the front and half way, to avoid
  // cycles.
  void Repair() {
    const int rounds = static_cast<int>(std::min<int64_t>(
        kRepairs, kRepairWork / static_cast<int64_t>(items_.size() * items_.size())));
    std::vector<int> order = best_order_;
    std::vector<int64_t> offsets = best_offsets_;
    for (int round = 0; round < rounds && best_ > lower_bound_; ++round) {
      int64_t top = 0;
      for (size_t i = 0; i < items_.size(); ++i) top = std::max(top, offsets[i] + items_[i].bytes);
      const auto highest = std::find_if(order.begin(), order.end(),
                                        [&](int i) { return offsets[i] + items_[i].bytes == top; });
      MXTRAIN_ASSERT(highest != order.end());
      const auto target = order.begin() + (round % 3 == 2 ? (highest - order.begin()) / 2 : 0);
      std::rotate(target, highest, highest + 1);
      const int64_t found = placer_.Place(order, INT64_MAX);
      offsets = placer_.offsets();
      if (found < best_) {
        best_ = found;
        best_offsets_ = offsets;
      }
    }
  }

  // Tries the bound, then bisects between it and the best. Returns whether all rejected sizes were
  // proven impossible.
  bool Search() {
    OffsetSearch search(items_);
    const std::array orders = {Sorted(Area), Sorted(Length),
                               Sorted([](const SearchItem& i) { return i.bytes; }),
                               Sorted([](const SearchItem& i) { return -i.first; })};
    int64_t work = kSearchWork;
    bool proven = true;
    for (int64_t smallest = lower_bound_; smallest < best_;) {
      const int64_t half =
          smallest == lower_bound_ ? 0 : (best_ - kAlign - smallest) / 2 / kAlign * kAlign;
      const auto outcome = SearchAt(&search, orders, smallest + half, &work);
      if (outcome == OffsetSearch::Outcome::kFound) continue;
      proven &= outcome == OffsetSearch::Outcome::kImpossible;
      smallest += half + kAlign;
    }
    return proven;
  }

  template <typename Orders>
  OffsetSearch::Outcome SearchAt(OffsetSearch* search, const Orders& orders, int64_t capacity,
                                 int64_t* work) {
    int64_t left = std::min(*work, kCapacityWork);
    for (int64_t slice = kFirstSlice; left > 0; slice *= 2) {
      for (const std::vector<int>& order : orders) {
        const int64_t given = std::min(slice, left);
        if (given <= 0) break;
        int64_t rest = given;
        const auto outcome = search->Run(order, capacity, &rest);
        left -= given - rest;
        *work -= given - rest;
        if (outcome == OffsetSearch::Outcome::kOutOfWork) continue;
        if (outcome == OffsetSearch::Outcome::kFound) Take(search->offsets());
        return outcome;
      }
    }
    return OffsetSearch::Outcome::kOutOfWork;
  }

  void Take(const std::vector<int64_t>& offsets) {
    best_offsets_ = offsets;
    best_ = 0;
    for (size_t i = 0; i < items_.size(); ++i)
      best_ = std::max(best_, offsets[i] + items_[i].bytes);
  }

  const std::vector<SearchItem> items_;
  const int64_t lower_bound_;
  OffsetPlacer placer_;
  int64_t best_ = INT64_MAX;
  std::vector<int64_t> best_offsets_;
  std::vector<int> best_order_;
};

}  // namespace

Placement AssignOffsets(std::vector<Buffer>* buffers, int64_t lower_bound) {
  std::vector<SearchItem> items;
  std::vector<int> buffer_of;
  for (int b = 0; b < static_cast<int>(buffers->size()); ++b) {
    Buffer& buffer = (*buffers)[b];
    if (buffer.external) continue;
    buffer.offset = 0;  // final for empty buffers
    if (buffer.bytes == 0) continue;
    items.push_back({RoundUp(buffer.bytes, kAlign), buffer.first, buffer.last});
    buffer_of.push_back(b);
  }
  if (items.empty()) return {};
  Assigner assigner(std::move(items), lower_bound);
  const Placement placement = assigner.Run();
  for (size_t i = 0; i < buffer_of.size(); ++i)
    (*buffers)[buffer_of[i]].offset = assigner.offsets()[i];
  return placement;
}

}  // namespace mxtrain::executor
