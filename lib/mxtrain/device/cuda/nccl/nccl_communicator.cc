// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/internal/nccl_communicator.h"

#include "mxtrain/base/error.h"

namespace mxtrain::cuda {
namespace {

// For the sums that are issued when a communicator is destroyed.
constexpr std::chrono::seconds kPatience{60};

}  // namespace

NcclCommunicator::NcclCommunicator(std::unique_ptr<NcclGroup> group,
                                   std::span<const Context> devices, const NcclStreams& streams)
    : streams_(streams), group_(std::move(group)) {
  for (const Context device : devices.subspan(1)) {
    Other& other = others_.emplace_back();
    other.stream = streams_.make(device);
    other.ended = other.stream->NewEvent();
  }
}

NcclCommunicator::~NcclCommunicator() {
  group_->End(kPatience, [this] {
    others_.clear();
    try {
      if (ended_) ended_->Wait();
    } catch (const Error&) {  // already reported to whoever waited for that work
    }
  });
}

void NcclCommunicator::AllReduce(RunContext ctx, std::span<const ArrayOnEach> arrays) {
  Stream& first = *ctx.stream;
  if (!begun_) begun_ = first.NewEvent();
  first.Record(*begun_);
  std::vector<cudaStream_t> streams{streams_.handle_of(first)};
  for (Other& other : others_) {
    other.stream->WaitFor(*begun_);
    streams.push_back(streams_.handle_of(*other.stream));
  }
  group_->AllReduce(arrays, streams);
  for (Other& other : others_) {
    other.stream->Record(*other.ended);
    first.WaitFor(*other.ended);
  }
  if (!ended_) ended_ = first.NewEvent();
  first.Record(*ended_);
  group_->Expect(streams_.mark(first));
}

}  // namespace mxtrain::cuda
