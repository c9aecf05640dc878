// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests and resources of operators in MXNet's form (docs/mxnet_forms.md):
//
//   auto space = ctx.requested[kTempSpace].get_space(shape, stream);
//   auto random = ctx.requested[kRandom].get_random(stream);
//
// In a SimpleOp env.resource[0].get_space(shape, stream) (mxnet_simple_op.h). A request for
// temporary space may say how many bytes will be taken; these are part of the memory plan, others
// are not.
#include <span>
#include <utility>

#include "mxtrain/operator/mxnet_tensor.h"

namespace mxtrain::mxnet {

struct ResourceRequest : mxtrain::ResourceRequest {
  ResourceRequest() : ResourceRequest(kTempSpace) {}
  ResourceRequest(Type request, int64_t size = kUnknownSize)
      : mxtrain::ResourceRequest{request, request == kTempSpace ? size : 0} {}
};

namespace detail {

struct Uniform {
  RandomDraws draws;
  uint64_t first;
  double low, high;
  MXTRAIN_HD double operator()(uint64_t i) const {
    return low + (high - low) * static_cast<double>(draws.Uniform(first + i));
  }
};
struct Gaussian {
  RandomDraws draws;
  uint64_t first;
  double mean, deviation;
  MXTRAIN_HD double operator()(uint64_t i) const {
    return mean + deviation * static_cast<double>(draws.Normal(first + i));
  }
};
template <typename T, typename F>
struct Samples {
  T* out;
  F f;
  MXTRAIN_HD void operator()(int64_t i) const {
    out[i] = ElementOf<T>(f(static_cast<uint64_t>(i)));
  }
};

}  // namespace detail

// The random numbers of an operator in one step. Each call takes further ones; another object of
// the same request and step repeats them. They depend neither on threads nor on the device. A span
// is memory of the CPU; tensors are filled where they are.
class Random {
 public:
  explicit Random(const RandomDraws& draws, Stream<gpu>* stream = nullptr)
      : draws_(draws), stream_(stream) {}

  // In [low, high), up to rounding.
  template <typename T>
  void SampleUniform(std::span<T> out, double low = 0, double high = 1) {
    Fill<cpu>(out.data(), out.size(), detail::Uniform{draws_, TakeUniform(out.size()), low, high});
  }
  template <typename Device, int dimension, typename T>
  void SampleUniform(const mshadow::Tensor<Device, dimension, T>* out, double low = 0,
                     double high = 1) {
    const auto size = static_cast<size_t>(out->Size());
    Fill<Device>(out->dptr_, size, detail::Uniform{draws_, TakeUniform(size), low, high});
  }
  template <typename T>
  void SampleGaussian(std::span<T> out, double mean = 0, double deviation = 1) {
    Fill<cpu>(out.data(), out.size(),
              detail::Gaussian{draws_, TakeNormal(out.size()), mean, deviation});
  }
  template <typename Device, int dimension, typename T>
  void SampleGaussian(const mshadow::Tensor<Device, dimension, T>* out, double mean = 0,
                      double deviation = 1) {
    const auto size = static_cast<size_t>(out->Size());
    Fill<Device>(out->dptr_, size, detail::Gaussian{draws_, TakeNormal(size), mean, deviation});
  }

  // As MXNet's object, of which get_random returns a pointer.
  Random* operator->() { return this; }

 private:
  template <typename Device, typename T, typename F>
  void Fill(T* out, size_t size, const F& f) {
    ForEach(Device{}, stream_, static_cast<int64_t>(size), detail::Samples<T, F>{out, f});
  }
  // The first index of the numbers of a call, which begin with a block of their own.
  uint64_t TakeUniform(size_t count) { return 4 * std::exchange(block_, block_ + (count + 3) / 4); }
  uint64_t TakeNormal(size_t count) { return 2 * std::exchange(block_, block_ + (count + 1) / 2); }

  RandomDraws draws_;
  Stream<gpu>* stream_;
  uint64_t block_ = 0;  // the next Philox block: of four uniform numbers, or of two normal ones
};

// A granted resource. Space has the order of the worker's stream, whatever stream is given;
// get_random fills tensors of a GPU on the given one.
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
    return mxtrain::TBlob{GetSpace<T>(shape.Size()), shape, DTypeOf<T>::value, {}, ctx};
  }
  // The same as a tensor.
  template <typename Device, int dimension>
  mshadow::Tensor<Device, dimension, real_t> get_space(const mshadow::Shape<dimension>& shape,
                                                       Stream<Device>* on = nullptr) const {
    return {GetSpace<real_t>(shape.Size()), shape, on};
  }
  // kBug, naming the operator, if temporary space was requested.
  template <typename Device, typename T = real_t>
  Random get_random(mxtrain::Stream* on = nullptr) const {
    return get_random(on);
  }
  Random get_random(mxtrain::Stream* on = nullptr) const {
    if (type != ResourceRequest::kRandom) {
      Throw(ErrorKind::kBug,
            "{}: get_random of a resource that was requested for temporary space; request kRandom "
            "too",
            who);
    }
    return Random(Draws(), on);
  }
};

}  // namespace mxtrain::mxnet
