// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "mxtrain/executor/memory_plan.h"
#include "tests/support/random_nets.h"

namespace mxtrain::executor {
namespace {

unsigned NumGraphs() {
  return test::NumRandomNets(40);
}

int64_t Stored(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

int64_t NaiveBound(const std::vector<Buffer>& buffers) {
  int64_t most = 0;
  for (const Buffer& at : buffers) {  // the sum is largest where some buffer starts
    int64_t sum = 0;
    for (const Buffer& b : buffers) {
      if (!b.external && b.first <= at.first && at.first <= b.last) sum += Stored(b.bytes);
    }
    most = std::max(most, sum);
  }
  return most;
}

void CheckPlacement(const std::vector<Buffer>& buffers, int64_t size) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& a = buffers[i];
    if (a.external) {
      CHECK(a.offset == -1);
      continue;
    }
    CHECK(a.offset >= 0);
    CHECK(a.offset % 64 == 0);
    CHECK(a.offset + a.bytes <= size);
    for (size_t k = 0; k < i; ++k) {
      const Buffer& b = buffers[k];
      if (b.external || a.last < b.first || b.last < a.first) continue;
      CHECK((a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset));
    }
  }
}

// The smallest possible arena. Some optimal placement results from placing buffers in some order,
// each at the lowest offset where it fits. Tries all orders, pruned by the best so far.
class BruteForce {
 public:
  explicit BruteForce(const std::vector<Buffer>& buffers)
      : buffers_(buffers), offset_(buffers.size(), -1), bound_(NaiveBound(buffers)) {}
  int64_t Optimum() {
    Place(0, 0);
    return best_;
  }

 private:
  void Place(size_t placed, int64_t top) {
    if (top >= best_ || best_ == bound_) return;
    if (placed == buffers_.size()) best_ = top;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (offset_[i] >= 0) continue;
      offset_[i] = LowestFit(i);
      Place(placed + 1, std::max(top, offset_[i] + Stored(buffers_[i].bytes)));
      offset_[i] = -1;
    }
  }
  int64_t LowestFit(size_t i) const {
    const Buffer& a = buffers_[i];
    int64_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t k = 0; k < buffers_.size(); ++k) {
        const Buffer& b = buffers_[k];
        if (offset_[k] < 0 || a.last < b.first || b.last < a.first) continue;
        if (at < offset_[k] + Stored(b.bytes) && offset_[k] < at + Stored(a.bytes)) {
          at = offset_[k] + Stored(b.bytes);
          moved = true;
        }
      }
    }
    return at;
  }

  const std::vector<Buffer>& buffers_;
  std::vector<int64_t> offset_;
  const int64_t bound_;
  int64_t best_ = INT64_MAX;
};

std::vector<Buffer> RandomBuffers(std::mt19937& random, int count, int positions) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    Buffer b;
    b.bytes = 1 + static_cast<int64_t>(random() % 1000);
    b.first = static_cast<int>(random() % static_cast<unsigned>(positions));
    b.last = b.first + static_cast<int>(random() % static_cast<unsigned>(positions - b.first));
    b.external = random() % 10 == 0;
    buffers.push_back(b);
  }
  return buffers;
}

// Forward and backward pass of a chain: forward results are read again in backward; gradients and
// workspaces are short-lived. Sizes shrink with depth, as in nets that halve their images.
std::vector<Buffer> NetLikeBuffers(std::mt19937& random, int layers) {
  std::vector<Buffer> buffers;
  const int last = 2 * layers - 1;
  for (int k = 0; k < layers; ++k) {
    const int64_t bytes =
        (int64_t{1} << 20 >> (4 * k / layers)) / (1 + static_cast<int64_t>(random() % 3));
    const bool kept = random() % 4 != 0;
    buffers.push_back({bytes, k, kept ? last - k : k + 1, -1, false});  // output
    const int read = last - k + 1 + static_cast<int>(random() % 2);
    buffers.push_back({bytes, last - k, std::min(last, read), -1, false});  // gradient
    if (random() % 3 == 0) {
      const auto workspace = static_cast<int64_t>(random() % (1 << 18));
      buffers.push_back({workspace, k, k, -1, false});
    }
    if (random() % 3 == 0) buffers.push_back({bytes / 4, k, last - k, -1, false});  // saved
  }
  return buffers;
}

// A graph of nodes that read some of their near predecessors, with a backward pass (`training`) or
// without: branches, skips, varying sizes.
std::vector<Buffer> GraphLikeBuffers(std::mt19937& random, int nodes, bool training) {
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  const int end = 2 * nodes - 1;
  std::vector<Buffer> buffers;
  for (int k = 0; k < nodes; ++k) {
    const int64_t bytes = 64 * (1 + below(1 << (12 - 8 * k / nodes)));
    const int reader = std::min(nodes - 1, k + (below(3) == 0 ? 1 + below(12) : 1));
    const bool kept = training && below(3) != 0;
    buffers.push_back({bytes, k, kept ? end - std::max(0, k - below(3)) : reader, -1, false});
    if (training) buffers.push_back({bytes, end - reader, end - k, -1, false});  // its gradient
    if (below(3) == 0) buffers.push_back({64 * (1 + below(4096)), k, k, -1, false});
  }
  return buffers;
}

TEST_CASE("buffers live together share no byte; the bound is what a plain sum gives") {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    std::vector<Buffer> buffers = RandomBuffers(random, 1 + static_cast<int>(random() % 40), 30);
    const int64_t bound = LowerBound(buffers);
    CHECK(bound == NaiveBound(buffers));
    const int64_t size = AssignOffsets(&buffers, bound).bytes;
    CHECK(size >= bound);
    CheckPlacement(buffers, size);
  }
}

// Eight buffers that fill four units at all times and do not fit into four: the short ones need the
// long ones in different places. In any unit and order, forwards or backwards.
std::vector<Buffer> TightBuffers(std::mt19937& random) {
  const int64_t unit = 1 + static_cast<int64_t>(random() % 1000);
  const bool backwards = random() % 2 == 0;
  std::vector<Buffer> buffers = {{3, 0, 0}, {1, 0, 2}, {1, 1, 3}, {2, 1, 1},
                                 {1, 2, 4}, {1, 2, 2}, {2, 3, 3}, {3, 4, 4}};
  for (Buffer& b : buffers) {
    b.bytes *= (unit + 63) / 64 * 64;
    if (backwards) b = {b.bytes, 4 - b.last, 4 - b.first};
  }
  std::shuffle(buffers.begin(), buffers.end(), random);
  return buffers;
}

TEST_CASE("ten thousand small sets are placed optimally, and the optimality is reported" *
          doctest::test_suite("long")) {
  std::mt19937 random(2);
  int met = 0, proven = 0;
  for (int round = 0; round < 10000; ++round) {
    CAPTURE(round);
    std::vector<Buffer> buffers =
        round % 20 == 0 ? TightBuffers(random)
                        : RandomBuffers(random, 1 + static_cast<int>(random() % 8), 8);
    for (Buffer& b : buffers) {
      b.external = false;
      if (round % 2 == 1) b.bytes = 64 * (1 + b.bytes % 4);  // few sizes leave more gaps
    }
    const int64_t bound = LowerBound(buffers), best = BruteForce(buffers).Optimum();
    const Placement placement = AssignOffsets(&buffers, bound);
    REQUIRE(placement.bytes == best);
    REQUIRE(placement.optimality ==
            (best == bound ? Optimality::kMeetsBound : Optimality::kProvenSmallest));
    (best == bound ? met : proven) += 1;
  }
  CHECK(met > 1000);
  CHECK(proven >= 500);
}

TEST_CASE("sets of the shape of a net come within 1 % of the bound") {
  std::mt19937 random(3);
  double worst = 1;
  int met = 0, proven = 0;
  for (unsigned round = 0; round < NumGraphs(); ++round) {
    CAPTURE(round);
    std::vector<Buffer> buffers =
        round % 2
            ? NetLikeBuffers(random, 90 + static_cast<int>(random() % 100))
            : GraphLikeBuffers(random, 180 + static_cast<int>(random() % 100), round % 4 != 0);
    CHECK(buffers.size() >= 200);
    const int64_t bound = LowerBound(buffers);
    const Placement placement = AssignOffsets(&buffers, bound);
    CheckPlacement(buffers, placement.bytes);
    const double ratio = static_cast<double>(placement.bytes) / static_cast<double>(bound);
    worst = std::max(worst, ratio);
    met += placement.optimality == Optimality::kMeetsBound;
    proven += placement.optimality == Optimality::kProvenSmallest;
    CHECK(ratio <= 1.01);
  }
  MESSAGE("worst ratio of arena to bound: " << worst << "; " << met << " at the bound, " << proven
                                            << " proven, of " << NumGraphs());
}

TEST_CASE("the same buffers get the same offsets every time; no buffers need no bytes") {
  std::mt19937 random(4);
  std::vector<Buffer> a = NetLikeBuffers(random, 40), b = a;
  AssignOffsets(&a, LowerBound(a));
  AssignOffsets(&b, LowerBound(b));
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i].offset == b[i].offset);
  std::vector<Buffer> none;
  CHECK(AssignOffsets(&none, LowerBound(none)).bytes == 0);
}

}  // namespace
}  // namespace mxtrain::executor
