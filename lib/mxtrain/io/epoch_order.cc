// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/epoch_order.h"

#include <numeric>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/philox.h"

namespace mxtrain::io {
namespace {

// Fisher-Yates shuffle; random numbers come four at a time.
void Shuffle(uint64_t seed, uint64_t stream, int64_t epoch, std::vector<int64_t>* order) {
  const auto size = static_cast<uint64_t>(order->size());
  PhiloxBits bits{};
  for (uint64_t i = 0; i + 1 < size; ++i) {
    if (i % 4 == 0) bits = Philox(seed, stream, static_cast<uint64_t>(epoch), i / 4);
    const uint64_t j = i + (bits.v[i % 4] * (size - i) >> 32);
    std::swap((*order)[i], (*order)[j]);
  }
}

// The examples of one class, in one random order after another.
class Deck {
 public:
  void Add(int64_t example) { cards_.push_back(example); }
  bool empty() const { return cards_.empty(); }
  int64_t Draw(uint64_t seed, uint64_t deck, int64_t epoch) {
    if (next_ % cards_.size() == 0)
      Shuffle(seed, StreamOf("io.balance", deck + (next_ / cards_.size() << 32)), epoch, &cards_);
    return cards_[next_++ % cards_.size()];
  }

 private:
  std::vector<int64_t> cards_;
  size_t next_ = 0;
};

}  // namespace

std::vector<int64_t> EpochOrder(int64_t size, const OrderOptions& options, int64_t epoch) {
  MXTRAIN_ASSERT(size >= 0 && size < int64_t{1} << 32);
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (options.shuffle) Shuffle(options.seed, StreamOf("io.order"), epoch, &order);
  return order;
}

std::vector<int64_t> BalancedOrder(const std::vector<int>& classes, const OrderOptions& options,
                                   int64_t epoch) {
  std::vector<Deck> decks;
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto c = static_cast<size_t>(classes[i]);
    if (c >= decks.size()) decks.resize(c + 1);
    decks[c].Add(static_cast<int64_t>(i));
  }
  std::erase_if(decks, [](const Deck& deck) { return deck.empty(); });
  std::vector<int64_t> order;
  for (size_t i = 0; i < classes.size(); ++i) {
    const size_t deck = i % decks.size();
    order.push_back(decks[deck].Draw(options.seed, deck, epoch));
  }
  Shuffle(options.seed, StreamOf("io.order"), epoch, &order);
  return order;
}

}  // namespace mxtrain::io
