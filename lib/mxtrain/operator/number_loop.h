// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops over many numbers with little to do for each. Of an array whose type is known only at run
// time NumberReader would look at the type for each of them, which takes longer than that.
#include <cmath>
#include <cstdint>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/number_reader.h"

namespace mxtrain {

// Numbers of rows below which a second thread does not pay: what is done with one takes far less
// than what kParallelGrain is for, and waking a thread takes tens of microseconds.
inline constexpr int64_t kNumbersOfThread = 16 * kParallelGrain;

// use(i, number, index) for i in [begin, end), in order: Number(i) and Index(i) of a NumberReader.
// The types that batches have, float32 and int32, are read by loops of their own.
template <typename Use>
void ForNumbers(const TBlob& array, int64_t begin, int64_t end, Use use) {
  const NumberReader reader(array);
  if (array.type == DType::kFloat32) {
    const auto* const numbers = static_cast<const float*>(array.data);
    constexpr float kExact = 0x1p62F;  // below it an index is the number itself
    for (int64_t i = begin; i < end; ++i) {
      const float number = numbers[i];
      use(i, static_cast<double>(number),
          std::fabs(number) < kExact ? static_cast<int64_t>(number) : reader.Index(i));
    }
  } else if (array.type == DType::kInt32) {
    const auto* const numbers = static_cast<const int32_t*>(array.data);
    for (int64_t i = begin; i < end; ++i)
      use(i, static_cast<double>(numbers[i]), static_cast<int64_t>(numbers[i]));
  } else {
    for (int64_t i = begin; i < end; ++i) use(i, reader.Number(i), reader.Index(i));
  }
}

// Asks for memory that is read, or also written, soon: a row of a large table is in no cache.
template <bool kWritten, typename T>
[[gnu::always_inline]] inline void PrefetchNumbers(const T* numbers, int64_t count) {
  constexpr int64_t kLine = 64;
  const auto* const bytes = reinterpret_cast<const char*>(numbers);
  for (int64_t k = 0; k < count * static_cast<int64_t>(sizeof(T)); k += kLine)
    __builtin_prefetch(bytes + k, kWritten);
}

}  // namespace mxtrain
