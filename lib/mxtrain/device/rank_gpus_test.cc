// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/rank_gpus.h"

#include <doctest/doctest.h>

#include <mutex>
#include <vector>

#include "mxtrain/base/error.h"
#include "tests/support/thread_ranks.h"

namespace mxtrain {
namespace {

TEST_CASE("the GPUs of ranks are in one order, however many each has") {
  const std::vector<std::vector<std::string>> gpus{{"a", "b"}, {"c"}, {}, {"d", "e", "f"}};
  const std::vector<int> first{0, 2, 3, 3};
  test::RunRanks(4, [&](const std::shared_ptr<ProcessGroup>& group) {
    const auto rank = static_cast<size_t>(group->rank());
    const RankGpus found = OrderGpus(*group, gpus[rank]);
    CHECK(found.first == first[rank]);
    CHECK(found.all == 6);
  });
}

TEST_CASE("two ranks with the same GPU are refused on all ranks, by name") {
  std::mutex mutex;
  test::RunRanks(3, [&](const std::shared_ptr<ProcessGroup>& group) {
    const std::vector<std::string> own{group->rank() == 1 ? "GPU-1 of node2" : "GPU-0 of node1"};
    std::string text;
    try {
      OrderGpus(*group, own);
    } catch (const Error& e) {
      text = e.what();
      CHECK(e.kind() == ErrorKind::kUsage);
    }
    const std::lock_guard lock(mutex);  // doctest
    CHECK(text.find("ranks 0 and 2 have the same GPU, GPU-0 of node1") == 0);
    CHECK(text.find("--device auto") != std::string::npos);
  });
}

TEST_CASE("two containers of one machine that share a GPU are refused") {
  test::RunRanks(2, [&](const std::shared_ptr<ProcessGroup>& group) {
    const std::vector<std::string> own{
        format("GPU-8f6b, 0000:41:00.0 on container{}", group->rank())};
    CHECK_THROWS_WITH_AS(
        OrderGpus(*group, own),
        doctest::Contains("ranks 0 and 1 have the same GPU, GPU-8f6b, 0000:41:00.0 on container1:"),
        Error);
  });
}

TEST_CASE("a rank that cannot take part ends all, and is named by the others") {
  test::RunRanks(2, [](const std::shared_ptr<ProcessGroup>& group) {
    const bool lacks = group->rank() == 1;
    const std::vector<std::string> own{format("GPU-{}", group->rank())};
    std::string text;
    try {
      OrderGpus(*group, own, lacks ? "libnccl.so.2 was not found" : "");
    } catch (const Error& e) {
      text = e.what();
      CHECK(e.kind() == ErrorKind::kDevice);
    }
    CHECK(text == (lacks ? "libnccl.so.2 was not found" : "on rank 1: libnccl.so.2 was not found"));
  });
}

}  // namespace
}  // namespace mxtrain
