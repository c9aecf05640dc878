#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::executor {
namespace {

int64_t Stored(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

int64_t NaiveBound(const std::vector<Buffer>& buffers) {
  int64_t most = 0;
  for (const Buffer& at : buffers) {  // the sum is largest where some buffer begins
    int64_t sum = 0;
    for (const Buffer& b : buffers) {
      if (!b.outer && b.first <= at.first && at.first <= b.last) sum += Stored(b.bytes);
    }
    most = std::max(most, sum);
  }
  return most;
}

void CheckPlacement(const std::vector<Buffer>& buffers, int64_t size) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& a = buffers[i];
    if (a.outer) {
      CHECK(a.offset == -1);
      continue;
    }
    CHECK(a.offset >= 0);
    CHECK(a.offset % 64 == 0);
    CHECK(a.offset + a.bytes <= size);
    for (size_t k = 0; k < i; ++k) {
      const Buffer& b = buffers[k];
      if (b.outer || a.last < b.first || b.last < a.first) continue;
      CHECK((a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset));
    }
  }
}

// The smallest arena there is. Some best placement comes from placing buffers in some order, each at the lowest offset where it fits.
int64_t Optimum(const std::vector<Buffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offset(buffers.size(), -1);
    int64_t top = 0;
    for (size_t i : order) {
      const Buffer& a = buffers[i];
      int64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < buffers.size(); ++k) {
          const Buffer& b = buffers[k];
          if (offset[k] < 0 || a.last < b.first || b.last < a.first) continue;
          if (at < offset[k] + Stored(b.bytes) && offset[k] < at + Stored(a.bytes)) {
            at = offset[k] + Stored(b.bytes);
            moved = true;
          }
        }
      }
      offset[i] = at;
      top = std::max(top, at + Stored(a.bytes));
    }
    best = std::min(best, top);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::vector<Buffer> RandomBuffers(std::mt19937& random, int count, int positions) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    Buffer b;
    b.bytes = 1 + static_cast<int64_t>(random() % 1000);
    b.first = static_cast<int>(random() % static_cast<unsigned>(positions));
    b.last = b.first + static_cast<int>(random() % static_cast<unsigned>(positions - b.first));
    b.outer = random() % 10 == 0;
    buffers.push_back(b);
  }
  return buffers;
}

// Forward and backward pass of a chain: what forward made is read when backward comes back to it; gradients and workspaces live shortly.
// Sizes shrink with depth, as in nets that halve their pictures.
std::vector<Buffer> NetLikeBuffers(std::mt19937& random, int layers) {
  std::vector<Buffer> buffers;
  const int last = 2 * layers - 1;
  for (int k = 0; k < layers; ++k) {
    const int64_t bytes = (int64_t{1} << 20 >> (4 * k / layers)) / (1 + static_cast<int64_t>(random() % 3));
    const bool kept = random() % 4 != 0;
    buffers.push_back({bytes, k, kept ? last - k : k + 1, -1, false});                                               // output
    buffers.push_back({bytes, last - k, std::min(last, last - k + 1 + static_cast<int>(random() % 2)), -1, false});  // gradient
    if (random() % 3 == 0) buffers.push_back({static_cast<int64_t>(random() % (1 << 18)), k, k, -1, false});         // workspace
    if (random() % 3 == 0) buffers.push_back({bytes / 4, k, last - k, -1, false});                                   // saved
  }
  buffers.resize(std::min<size_t>(buffers.size(), 200));
  return buffers;
}

TEST_CASE("buffers alive together share no byte; the bound is what a plain sum says") {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    std::vector<Buffer> buffers = RandomBuffers(random, 1 + static_cast<int>(random() % 40), 30);
    const int64_t bound = LowerBound(buffers);
    CHECK(bound == NaiveBound(buffers));
    const int64_t size = AssignOffsets(&buffers, bound);
    CHECK(size >= bound);
    CheckPlacement(buffers, size);
  }
}

TEST_CASE("small sets are placed as well as can be") {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    std::vector<Buffer> buffers = RandomBuffers(random, 6, 6);
    for (Buffer& b : buffers) b.outer = false;
    const int64_t best = Optimum(buffers);
    CHECK(AssignOffsets(&buffers, LowerBound(buffers)) == best);
  }
}

TEST_CASE("sets of the shape of a net come within 2 % of the bound") {
  std::mt19937 random(3);
  double worst = 1;
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    std::vector<Buffer> buffers = NetLikeBuffers(random, 80);
    const int64_t bound = LowerBound(buffers);
    const int64_t size = AssignOffsets(&buffers, bound);
    CheckPlacement(buffers, size);
    const double ratio = static_cast<double>(size) / static_cast<double>(bound);
    worst = std::max(worst, ratio);
    CHECK(ratio <= 1.02);
  }
  MESSAGE("worst ratio of arena to bound: " << worst);
}

TEST_CASE("the same buffers lie at the same offsets every time; no buffers need no bytes") {
  std::mt19937 random(4);
  std::vector<Buffer> a = NetLikeBuffers(random, 40), b = a;
  AssignOffsets(&a, LowerBound(a));
  AssignOffsets(&b, LowerBound(b));
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i].offset == b[i].offset);
  std::vector<Buffer> none;
  CHECK(AssignOffsets(&none, LowerBound(none)) == 0);
}

}  // namespace
}  // namespace mxtrain::executor
