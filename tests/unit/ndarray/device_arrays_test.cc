// Arrays on a device that is asynchronous and whose memory the host cannot touch: what is promised of copies.
#include <doctest/doctest.h>

#include <numeric>

#include "mxtrain/ndarray/ndarray.h"
#include "tests/support/fake_gpu.h"

namespace mxtrain::test {
namespace {

const Context kGpu = Context::gpu(0);

TEST_CASE("parts of one array that overlap are copied as if all were read first, on every device") {
  const auto runtime = NewFakeGpuRuntime();
  const int64_t n = 9;
  std::vector<float> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  for (const Context ctx : {Context::cpu(), kGpu}) {
    for (int64_t from = 0; from < n; ++from) {
      for (int64_t to = 0; to < n; ++to) {
        for (int64_t length = 0; length <= n - std::max(from, to); ++length) {
          const NDArray array = NDArray::FromVector(*runtime, {n}, numbers, ctx);
          array.Slice(to, to + length).CopyFrom(array.Slice(from, from + length));
          std::vector<float> wanted = numbers;
          for (int64_t i = 0; i < length; ++i) wanted[to + i] = numbers[from + i];
          CHECK_MESSAGE(array.ToVector() == wanted, length, " from ", from, " to ", to, " on ", ctx.ToString());
        }
      }
    }
  }
}

}  // namespace
}  // namespace mxtrain::test
