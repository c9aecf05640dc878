// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests and resources of operators in MXNet's form (docs/mxnet_forms.md):
//
//   auto space = ctx.requested[kTempSpace].get_space(shape, stream);
//   auto random = ctx.requested[kRandom].get_random(stream);
//
// In a SimpleOp: Resource(env.resource[0], ctx.ctx).get_space(shape, stream). A request for
// temporary space may say how many bytes will be taken; these are part of the memory plan, others
// are not.
#include <span>

#include "mxtrain/operator/kernel.h"

namespace mxtrain::mxnet {

using real_t = float;

struct ResourceRequest : mxtrain::ResourceRequest {
  ResourceRequest(Type request, int64_t size = kUnknownSize)
      : mxtrain::ResourceRequest{request, request == kTempSpace ? size : 0} {}
};

// The random numbers of an operator in one step. Each call takes further ones; another object of
// the same request and step repeats them. On the CPU; device code uses Resource::Draws. The numbers
// do not depend on threads.
class Random {
 public:
  explicit Random(const RandomDraws& draws) : draws_(draws) {}

  // In [low, high), up to rounding.
  template <typename T>
  void SampleUniform(std::span<T> out, double low = 0, double high = 1) {
    const uint64_t first = 4 * block_;
    Fill(out, [draws = draws_, first, low, high](uint64_t i) {
      return low + (high - low) * static_cast<double>(draws.Uniform(first + i));
    });
    block_ += (out.size() + 3) / 4;
  }
  template <typename T>
  void SampleGaussian(std::span<T> out, double mean = 0, double deviation = 1) {
    const uint64_t first = 2 * block_;
    Fill(out, [draws = draws_, first, mean, deviation](uint64_t i) {
      return mean + deviation * static_cast<double>(draws.Normal(first + i));
    });
    block_ += (out.size() + 1) / 2;
  }

 private:
  template <typename T, typename F>
  static void Fill(std::span<T> out, const F& f) {
    Launch(OnCpu{}, static_cast<int64_t>(out.size()), [out, &f](int64_t i) {
      out[static_cast<size_t>(i)] = ElementOf<T>(f(static_cast<uint64_t>(i)));
    });
  }

  RandomDraws draws_;
  uint64_t block_ = 0;  // the next Philox block: of four uniform numbers, or of two normal ones
};

// A granted resource. The streams are ignored: a kernel runs on the worker's stream.
struct Resource : mxtrain::Resource {
  Resource(const mxtrain::Resource& granted, Context where)
      : mxtrain::Resource(granted), ctx(where) {}

  Context ctx;  // of the scratch

  // Contents are undefined; valid until the next call. If the request said how many bytes: kBug,
  // naming the operator, for more. If not: as large as wanted.
  TBlob get_space(const TShape& shape, mxtrain::Stream* = nullptr) const {
    return get_space_typed<real_t>(shape);
  }
  template <typename T>
  TBlob get_space_typed(const TShape& shape, mxtrain::Stream* = nullptr) const {
    return {GetSpace<T>(shape.Size()), shape, DTypeOf<T>::value, {}, ctx};
  }
  // kBug, naming the operator, if temporary space was requested.
  Random get_random(mxtrain::Stream* = nullptr) const {
    if (type != ResourceRequest::kRandom) {
      Throw(ErrorKind::kBug,
            "{}: get_random of a resource that was requested for temporary space; request kRandom "
            "too",
            who);
    }
    return Random(Draws());
  }
};

}  // namespace mxtrain::mxnet
