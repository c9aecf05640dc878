// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/freeze.h"

#include <algorithm>
#include <map>
#include <utility>

namespace mxtrain::executor {
namespace {

// The last writer of each byte of a space, and the readers since. Segments are split at the ends of
// accesses; a write merges all it covers, so their number depends on live data, not on history.
class SpaceHistory {
 public:
  struct Segment {
    int writer = -1;
    std::vector<int> readers;
  };

  template <typename F>
  void ForRange(int64_t begin, int64_t end, F&& f) {
    Split(begin);
    Split(end);
    for (auto it = segments_.find(begin); it != segments_.end() && it->first < end; ++it)
      f(it->second);
  }
  void Write(int64_t begin, int64_t end, int writer) {
    Split(begin);
    Split(end);
    const auto first = segments_.find(begin);
    segments_.erase(std::next(first), segments_.lower_bound(end));
    first->second = {writer, {}};
  }

 private:
  void Split(int64_t at) {
    if (segments_.empty()) segments_.emplace(INT64_MIN, Segment{});
    auto it = std::prev(segments_.upper_bound(at));
    if (it->first != at) segments_.emplace(at, it->second);
  }
  std::map<int64_t, Segment> segments_;  // by begin; each extends to the next
};

// Transitive reduction: drops predecessor a if a later predecessor already follows a.
//
// Operations are arranged in chains, in which each follows its predecessor. The ancestors of an
// operation are then a prefix of each chain (Jagadish 1990). A net's step has few chains, while a
// table of all pairs would grow quadratically.
class Reducer {
 public:
  explicit Reducer(size_t n) : chain_of_(n), follows_(n) {}

  std::vector<int> Reduce(int op, std::vector<int> after) {
    std::sort(after.begin(), after.end(), std::greater<>());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    std::vector<int> kept;
    Followed& mine = follows_[op];
    for (int a : after) {
      if (Covers(mine, a)) continue;
      kept.push_back(a);
      mine = Merge(mine, follows_[a]);
    }
    std::reverse(kept.begin(), kept.end());
    Append(op);
    return kept;
  }

 private:
  using Followed = std::vector<std::pair<int, int>>;  // chain, last operation of it; by chain

  bool Covers(const Followed& followed, int op) const {
    const auto at =
        std::lower_bound(followed.begin(), followed.end(), std::pair(chain_of_[op], op));
    return at != followed.end() && at->first == chain_of_[op];
  }

  static Followed Merge(const Followed& a, const Followed& b) {
    Followed merged;
    merged.reserve(a.size() + b.size());
    auto x = a.begin(), y = b.begin();
    while (x != a.end() || y != b.end()) {
      if (y == b.end() || (x != a.end() && x->first < y->first)) {
        merged.push_back(*x++);
      } else if (x == a.end() || y->first < x->first) {
        merged.push_back(*y++);
      } else {
        merged.emplace_back(x->first, std::max(x->second, y->second));
        ++x, ++y;
      }
    }
    return merged;
  }

  // Appends it to a chain whose last operation it follows, else starts a new chain.
  void Append(int op) {
    Followed& mine = follows_[op];
    const auto onto = std::find_if(mine.begin(), mine.end(),
                                   [this](const auto& f) { return ends_[f.first] == f.second; });
    if (onto != mine.end()) {
      chain_of_[op] = onto->first;
      onto->second = op;
    } else {
      chain_of_[op] = static_cast<int>(ends_.size());
      ends_.push_back(op);
      mine.emplace_back(chain_of_[op], op);
    }
    ends_[chain_of_[op]] = op;
  }

  std::vector<int> chain_of_;      // [operation]
  std::vector<int> ends_;          // [chain]: its last operation
  std::vector<Followed> follows_;  // [operation], including itself
};

}  // namespace

std::vector<std::vector<int>> FindEdges(const std::vector<Access>& operations) {
  std::map<int, SpaceHistory> spaces;
  Reducer reducer(operations.size());
  std::vector<std::vector<int>> edges;
  for (int op = 0; op < static_cast<int>(operations.size()); ++op) {
    std::vector<int> after;
    for (const ByteRange& r : operations[op].reads) {
      if (r.begin >= r.end) continue;
      spaces[r.space].ForRange(r.begin, r.end, [&](SpaceHistory::Segment& s) {
        if (s.writer >= 0) after.push_back(s.writer);
      });
    }
    for (const ByteRange& w : operations[op].writes) {
      if (w.begin >= w.end) continue;
      spaces[w.space].ForRange(w.begin, w.end, [&](SpaceHistory::Segment& s) {
        if (s.writer >= 0) after.push_back(s.writer);
        after.insert(after.end(), s.readers.begin(), s.readers.end());
      });
    }
    for (const ByteRange& r : operations[op].reads) {
      if (r.begin >= r.end) continue;
      spaces[r.space].ForRange(r.begin, r.end,
                               [&](SpaceHistory::Segment& s) { s.readers.push_back(op); });
    }
    for (const ByteRange& w : operations[op].writes) {
      if (w.begin >= w.end) continue;
      spaces[w.space].Write(w.begin, w.end, op);
    }
    after.erase(std::remove(after.begin(), after.end(), op), after.end());
    edges.push_back(reducer.Reduce(op, std::move(after)));
  }
  return edges;
}

}  // namespace mxtrain::executor
