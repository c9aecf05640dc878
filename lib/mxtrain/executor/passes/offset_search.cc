// SPDX-License-Identifier: Apache-2.0
// The search places items bottom-up: each rests on those below it, no lower than the previous one,
// and of two at the same offset the one of lower rank comes first. Every minimal placement (with
// the least sum of offsets) arises in exactly one such order, so no placement is visited twice. A
// branch is pruned when
//   - an item would fit entirely below everything still unplaced (dominance: another placement is
//     as good), or
//   - in some section the unplaced bytes no longer fit above the lowest offset that any of them can
//     have.
// If the unplaced items fall into groups with disjoint lifetimes, each group is solved separately.
#include "mxtrain/executor/internal/offset_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mxtrain::executor {
namespace {

// Positions -> sections: a section ends where a birth follows a death, so all items live in it are
// live at its last birth.
std::vector<int> SectionOfPosition(std::span<const SearchItem> items) {
  int last = 0;
  for (const SearchItem& i : items) last = std::max(last, i.last);
  std::vector<bool> born(static_cast<size_t>(last) + 2), died(static_cast<size_t>(last) + 2);
  for (const SearchItem& i : items) {
    born[i.first] = true;
    died[i.last + 1] = true;
  }
  std::vector<int> section(static_cast<size_t>(last) + 1);
  int now = 0;
  bool death = false;
  for (int p = 0; p <= last; ++p) {
    death |= died[p];
    if (born[p] && death) {
      ++now;
      death = false;
    }
    section[p] = now;
  }
  return section;
}

}  // namespace

OffsetSearch::OffsetSearch(std::span<const SearchItem> items)
    : given_(items.begin(), items.end()), offset_(items.size()) {
  if (items.empty()) return;
  const std::vector<int> section = SectionOfPosition(items);
  for (SearchItem& i : given_) {
    i.first = section[i.first];
    i.last = section[i.last];
  }
  left_.resize(static_cast<size_t>(section.back()) + 1);
  lowest_.resize(left_.size());
}

OffsetSearch::Outcome OffsetSearch::Run(std::span<const int> order, int64_t capacity,
                                        int64_t* work) {
  items_.clear();
  undo_.clear();
  std::fill(left_.begin(), left_.end(), 0);
  for (int i : order) {
    items_.push_back({given_[i].bytes, given_[i].first, given_[i].last});
    for (int s = given_[i].first; s <= given_[i].last; ++s) left_[s] += given_[i].bytes;
  }
  capacity_ = capacity;
  work_ = work;
  std::vector<int> waiting(order.size());
  std::iota(waiting.begin(), waiting.end(), 0);
  std::stable_sort(waiting.begin(), waiting.end(),
                   [this](int a, int b) { return items_[a].first < items_[b].first; });
  const Outcome outcome = Solve(waiting, 0, -1);
  if (outcome == Outcome::kFound) {
    // A placed item's offset is its floor; nothing has raised it since.
    for (size_t r = 0; r < order.size(); ++r) offset_[order[r]] = items_[r].floor;
  }
  return outcome;
}

// `waiting` is in order of birth, so groups with disjoint lifetimes are contiguous.
OffsetSearch::Outcome OffsetSearch::Solve(std::span<const int> waiting, int64_t last_offset,
                                          int last_rank) {
  const size_t mark = undo_.size();
  for (size_t begin = 0, end; begin < waiting.size(); begin = end) {
    int last = items_[waiting[begin]].last;
    for (end = begin + 1; end < waiting.size() && items_[waiting[end]].first <= last; ++end)
      last = std::max(last, items_[waiting[end]].last);
    const Outcome outcome =
        SolveGroup(waiting.subspan(begin, end - begin), last, last_offset, last_rank);
    if (outcome != Outcome::kFound) {
      TakeBack(mark);
      return outcome;
    }
  }
  return Outcome::kFound;
}

OffsetSearch::Outcome OffsetSearch::SolveGroup(std::span<const int> group, int last,
                                               int64_t last_offset, int last_rank) {
  if (Hopeless(group, last, last_offset))
    return *work_ < 0 ? Outcome::kOutOfWork : Outcome::kImpossible;
  int64_t lid = std::numeric_limits<int64_t>::max();  // an item fits entirely below
  for (int r : group) lid = std::min(lid, items_[r].floor + items_[r].bytes);
  if (lid <= last_offset) return Outcome::kImpossible;

  std::vector<std::pair<int64_t, int>> next;  // offset and rank
  for (int r : group) {
    const int64_t floor = items_[r].floor;
    if (floor < lid && std::pair(floor, r) > std::pair(last_offset, last_rank))
      next.emplace_back(floor, r);
  }
  std::sort(next.begin(), next.end());
  std::vector<int> rest(group.size() - 1);
  for (const auto& [offset, rank] : next) {
    std::remove_copy(group.begin(), group.end(), rest.begin(), rank);
    const size_t mark = undo_.size();
    Put(rank, rest);
    const Outcome outcome = Solve(rest, offset, rank);
    if (outcome != Outcome::kImpossible) return outcome;
    TakeBack(mark);
  }
  return Outcome::kImpossible;
}

void OffsetSearch::Put(int rank, std::span<const int> rest) {
  const Item& item = items_[rank];
  undo_.push_back({rank, kPlaced});
  for (int s = item.first; s <= item.last; ++s) left_[s] -= item.bytes;
  const int64_t end = item.floor + item.bytes;
  for (int r : rest) {
    Item& other = items_[r];
    if (other.last < item.first || item.last < other.first || other.floor >= end) continue;
    undo_.push_back({r, other.floor});
    other.floor = end;
  }
}

void OffsetSearch::TakeBack(size_t mark) {
  for (; undo_.size() > mark; undo_.pop_back()) {
    const auto [rank, floor] = undo_.back();
    Item& item = items_[rank];
    if (floor != kPlaced) {
      item.floor = floor;
      continue;
    }
    for (int s = item.first; s <= item.last; ++s) left_[s] += item.bytes;
  }
}

// Whether some section cannot hold the unplaced items, each no lower than its floor and
// `last_offset`; also true if the work limit is reached.
bool OffsetSearch::Hopeless(std::span<const int> group, int last, int64_t last_offset) {
  const int first = items_[group[0]].first;
  *work_ -= static_cast<int64_t>(group.size()) + last - first + 1;
  std::fill(lowest_.begin() + first, lowest_.begin() + last + 1, capacity_);
  for (int r : group) {
    const Item& i = items_[r];
    const int64_t at = std::max(i.floor, last_offset);
    for (int s = i.first; s <= i.last; ++s) lowest_[s] = std::min(lowest_[s], at);
    *work_ -= i.last - i.first;
  }
  if (*work_ < 0) return true;
  for (int s = first; s <= last; ++s) {
    if (lowest_[s] + left_[s] > capacity_) return true;
  }
  return false;
}

}  // namespace mxtrain::executor
