#include "mxtrain/io/epoch_order.h"

#include <numeric>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/philox.h"

namespace mxtrain::io {
namespace {

// Fisher and Yates; the numbers come four at a time.
void Shuffle(uint64_t seed, int64_t epoch, std::vector<int64_t>* order) {
  const uint64_t stream = StreamOf("io.order");
  const auto size = static_cast<uint64_t>(order->size());
  PhiloxBits bits{};
  for (uint64_t i = 0; i + 1 < size; ++i) {
    if (i % 4 == 0) bits = Philox(seed, stream, static_cast<uint64_t>(epoch), i / 4);
    const uint64_t j = i + (bits.v[i % 4] * (size - i) >> 32);
    std::swap((*order)[i], (*order)[j]);
  }
}

}  // namespace

std::vector<int64_t> EpochOrder(int64_t size, const OrderOptions& options, int64_t epoch) {
  MXTRAIN_ASSERT(size >= 0 && size < int64_t{1} << 32 && options.part_index >= 0 && options.part_index < options.num_parts);
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (options.shuffle) Shuffle(options.seed, epoch, &order);
  if (options.num_parts == 1) return order;
  std::vector<int64_t> part;
  for (int64_t i = options.part_index; i < size; i += options.num_parts) part.push_back(order[static_cast<size_t>(i)]);
  return part;
}

}  // namespace mxtrain::io
