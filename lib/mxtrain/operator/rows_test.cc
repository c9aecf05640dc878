// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.h"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "mxtrain/operator/channel_sums.h"

namespace mxtrain {
namespace {

TEST_CASE("consecutive slices cover a row") {
  for (const int64_t rows : {1, 3, 64, 5000}) {
    for (const int64_t length : {0, 1, 7, 2047, 2048, 100003, 30000000}) {
      const Slices slices(rows, length);
      CHECK(slices.count >= 1);
      CHECK(slices.Begin(0) == 0);
      CHECK(slices.Begin(slices.count) == length);
      for (int64_t s = 0; s < slices.count; ++s) {
        CHECK(slices.Begin(s) <= slices.Begin(s + 1));
        CHECK(slices.Begin(s + 1) - slices.Begin(s) <= slices.longest());
      }
    }
  }
}

struct Number {
  const double* x;
  double operator()(int64_t i) const { return x[i]; }
};

TEST_CASE("a sum evaluates every term once") {
  for (const int64_t n : {0, 1, 2048, 9001}) {
    std::vector<double> x(static_cast<size_t>(n));
    std::iota(x.begin(), x.end(), 1);
    const Slices slices(1, n);
    std::vector<double> scratch(static_cast<size_t>(BytesOfSum<double>(slices)) / sizeof(double));
    CHECK(*SumTerms(OnCpu{}, slices, Number{x.data()}, scratch.data()) ==
          static_cast<double>(n * (n + 1) / 2));
  }
}

// The members of a team of any size, also on the GPU, visit every element of a channel once.
TEST_CASE("a walk over a channel visits its elements") {
  for (const ChannelView view : {ChannelView(5, 3, 7), ChannelView(9, 4, 1), ChannelView(1, 2, 300),
                                 ChannelView(70, 1, 49)}) {
    for (const int64_t step : {1, 2, 32, 256}) {
      const int64_t begin = view.size() / 3, channel = view.channels - 1;
      std::vector<int> met(static_cast<size_t>(view.outer * view.channels * view.inner));
      for (int64_t rank = 0; rank < step; ++rank) {
        for (detail::ChannelWalk walk(view, channel, begin + rank, view.size(), step); !walk.Done();
             walk.Next()) {
          ++met[static_cast<size_t>(walk.place())];
        }
      }
      for (int64_t at = 0; at < static_cast<int64_t>(met.size()); ++at) {
        const int64_t element = at / (view.channels * view.inner) * view.inner + at % view.inner;
        CHECK(met[static_cast<size_t>(at)] == (view.ChannelOf(at) == channel && element >= begin));
      }
    }
  }
}

struct PlaceOnce {
  int64_t Of(int64_t channel) const { return channel; }
  double operator()(int64_t place, int64_t channel) const {
    return static_cast<double>(place * 10 + channel);
  }
};

TEST_CASE("sums over channels") {
  for (const ChannelView view :
       {ChannelView(5, 3, 7), ChannelView(9000, 2, 1), ChannelView(2, 2, 9000),
        ChannelView(0, 3, 4), ChannelView(3, 2, 0)}) {
    std::vector<double> scratch(static_cast<size_t>(BytesOfChannelSums<double>(view)) /
                                sizeof(double)),
        sums(static_cast<size_t>(view.channels));
    for (int64_t at = 0; at < view.outer * view.channels * view.inner; ++at) {
      sums[static_cast<size_t>(view.ChannelOf(at))] +=
          static_cast<double>(at * 10 + view.ChannelOf(at));
    }
    TBlob workspace{
        scratch.data(), TShape{BytesOfChannelSums<double>(view)}, DType::kUint8, {}, {}};
    const double* found = SumChannels<double>(OnCpu{}, view, PlaceOnce{}, workspace);
    for (size_t c = 0; c < sums.size(); ++c) CHECK(found[c] == sums[c]);
    --workspace.shape[0];
    CHECK_THROWS(SumChannels<double>(OnCpu{}, view, PlaceOnce{}, workspace));
  }
}

}  // namespace
}  // namespace mxtrain
