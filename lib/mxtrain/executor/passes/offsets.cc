// AssignOffsets: where each buffer lies. Buffers are placed one after the other into the smallest gap that is free over their whole life and
// holds them; what differs between attempts is the order. Sources: greedy by size (Pisarchyk and Lee, arXiv 2001.03288), then a repair that moves what
// reaches the top to the front of the order and tries again.
#include <algorithm>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::executor {
namespace {

constexpr int64_t kAlign = 64;
constexpr int kRepairs = 300;              // attempts at most,
constexpr int64_t kRepairWork = 30'000'000;  // and pairs of buffers looked at: under a second

int64_t RoundUp(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

struct Item {
  int buffer;
  int64_t bytes;
  int first, last;
};

class Placer {
 public:
  explicit Placer(std::vector<Item> items) : items_(std::move(items)), offset_(items_.size()) {}

  // Places in the given order; gives up, returning a larger number, as soon as `limit` is reached.
  int64_t Place(const std::vector<int>& order, int64_t limit) {
    placed_.clear();
    int64_t top = 0;
    for (int i : order) {
      const int64_t offset = LowestGap(items_[i]);
      offset_[i] = offset;
      top = std::max(top, offset + items_[i].bytes);
      if (top >= limit) return limit;
      placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), i, [this](int a, int b) { return offset_[a] < offset_[b]; }), i);
    }
    return top;
  }
  const std::vector<int64_t>& offsets() const { return offset_; }
  const std::vector<Item>& items() const { return items_; }

 private:
  // `placed_` is sorted by offset, so one sweep over those alive with `item` finds the smallest gap that fits, else the top.
  int64_t LowestGap(const Item& item) const {
    int64_t end = 0, best = -1, best_size = 0;
    for (int other : placed_) {
      const Item& o = items_[other];
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

  std::vector<Item> items_;
  std::vector<int64_t> offset_;
  std::vector<int> placed_;
};

}  // namespace

int64_t AssignOffsets(std::vector<Buffer>* buffers, int64_t lower_bound) {
  std::vector<Item> items;
  for (int b = 0; b < static_cast<int>(buffers->size()); ++b) {
    const Buffer& buffer = (*buffers)[b];
    if (!buffer.outer) items.push_back({b, RoundUp(buffer.bytes), buffer.first, buffer.last});
  }
  if (items.empty()) return 0;
  Placer placer(items);
  std::vector<int> by_birth(items.size());
  std::iota(by_birth.begin(), by_birth.end(), 0);
  std::stable_sort(by_birth.begin(), by_birth.end(), [&](int a, int b) { return items[a].first < items[b].first; });

  int64_t best = INT64_MAX;
  std::vector<int64_t> best_offsets;
  std::vector<int> best_order;
  auto attempt = [&](const std::vector<int>& order) {
    const int64_t top = placer.Place(order, best);
    if (top >= best) return false;
    best = top;
    best_offsets = placer.offsets();
    best_order = order;
    return true;
  };
  auto attempt_sorted = [&](auto&& key) {
    std::vector<int> order = by_birth;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(items[a]) > key(items[b]); });
    attempt(order);
  };
  auto length = [](const Item& i) { return static_cast<int64_t>(i.last - i.first + 1); };
  attempt_sorted([](const Item& i) { return i.bytes; });
  attempt_sorted([&](const Item& i) { return length(i); });
  attempt_sorted([&](const Item& i) { return static_cast<double>(i.bytes) * static_cast<double>(length(i)); });
  attempt(by_birth);
  attempt(std::vector<int>(by_birth.rbegin(), by_birth.rend()));

  // Repair: what reaches the top is placed earlier, to the very front or half way there by turns, so that the search does not cycle.
  const int rounds = static_cast<int>(std::min<int64_t>(kRepairs, kRepairWork / static_cast<int64_t>(items.size() * items.size())));
  std::vector<int> order = best_order;
  std::vector<int64_t> offsets = best_offsets;
  for (int round = 0; round < rounds && best > lower_bound; ++round) {
    int64_t top = 0;
    for (size_t i = 0; i < items.size(); ++i) top = std::max(top, offsets[i] + items[i].bytes);
    const auto highest = std::find_if(order.begin(), order.end(), [&](int i) { return offsets[i] + items[i].bytes == top; });
    MXTRAIN_ASSERT(highest != order.end());
    const auto target = order.begin() + (round % 3 == 2 ? (highest - order.begin()) / 2 : 0);
    std::rotate(target, highest, highest + 1);
    const int64_t found = placer.Place(order, INT64_MAX);
    offsets = placer.offsets();
    if (found < best) {
      best = found;
      best_offsets = offsets;
    }
  }
  for (size_t i = 0; i < items.size(); ++i) (*buffers)[items[i].buffer].offset = best_offsets[i];
  return best;
}

}  // namespace mxtrain::executor
