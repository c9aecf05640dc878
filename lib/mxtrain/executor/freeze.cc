#include "mxtrain/executor/freeze.h"

#include <algorithm>
#include <map>

namespace mxtrain::executor {
namespace {

// Who wrote each byte of a space last, and who has read it since. Segments are cut where accesses begin and end.
class SpaceHistory {
 public:
  template <typename F>
  void ForRange(int64_t begin, int64_t end, F&& f) {
    Cut(begin);
    Cut(end);
    for (auto it = segments_.find(begin); it != segments_.end() && it->first < end; ++it) f(it->second);
  }
  struct Segment {
    int writer = -1;
    std::vector<int> readers;
  };

 private:
  void Cut(int64_t at) {
    if (segments_.empty()) segments_.emplace(INT64_MIN, Segment{});
    auto it = std::prev(segments_.upper_bound(at));
    if (it->first != at) segments_.emplace(at, it->second);
  }
  std::map<int64_t, Segment> segments_;  // by begin; each reaches to the next
};

// Removes edges that follow from others: operation a is dropped when a later predecessor follows a already.
class Reducer {
 public:
  explicit Reducer(size_t n) : words_((n + 63) / 64), ancestors_(n, std::vector<uint64_t>(words_)) {}
  std::vector<int> Reduce(int op, std::vector<int> after) {
    std::sort(after.begin(), after.end(), std::greater<>());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    std::vector<int> kept;
    std::vector<uint64_t>& mine = ancestors_[op];
    for (int a : after) {
      if (mine[a / 64] >> (a % 64) & 1) continue;
      kept.push_back(a);
      mine[a / 64] |= uint64_t{1} << (a % 64);
      for (size_t w = 0; w < words_; ++w) mine[w] |= ancestors_[a][w];
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
  }

 private:
  size_t words_;
  std::vector<std::vector<uint64_t>> ancestors_;
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
      spaces[r.space].ForRange(r.begin, r.end, [&](SpaceHistory::Segment& s) { s.readers.push_back(op); });
    }
    for (const ByteRange& w : operations[op].writes) {
      if (w.begin >= w.end) continue;
      spaces[w.space].ForRange(w.begin, w.end, [&](SpaceHistory::Segment& s) {
        s.writer = op;
        s.readers.clear();
      });
    }
    after.erase(std::remove(after.begin(), after.end(), op), after.end());
    edges.push_back(reducer.Reduce(op, std::move(after)));
  }
  return edges;
}

}  // namespace mxtrain::executor
