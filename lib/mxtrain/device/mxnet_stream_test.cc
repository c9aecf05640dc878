// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/mxnet_stream.h"

#include <doctest/doctest.h>

#include "tests/support/fake_stream.h"

namespace mxtrain::mxnet {
namespace {

template <typename xpu>
bool HasStream(const RunContext& ctx) {
  Stream<xpu>* s = get_stream<xpu>(ctx);
  return s != nullptr;
}

TEST_CASE("get_stream is the worker's stream, null on the CPU") {
  test::FakeStream stream;
  const RunContext on_gpu{Context::gpu(0), &stream}, on_cpu{Context::cpu(), nullptr};
  CHECK(get_stream<gpu>(on_gpu) == &stream);
  CHECK(HasStream<gpu>(on_gpu));
  CHECK_FALSE(HasStream<cpu>(on_cpu));
  CHECK(gpu::kDevMask == on_gpu.ctx.type);
  CHECK(cpu::kDevMask == on_cpu.ctx.type);
}

}  // namespace
}  // namespace mxtrain::mxnet
