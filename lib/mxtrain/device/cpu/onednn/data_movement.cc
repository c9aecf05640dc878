// Concat, sum and reorder: primitives that are described by their arrays alone.
#include "mxtrain/device/cpu/onednn/internal.h"

namespace mxtrain::onednn {
namespace {

std::vector<Memory> MemoriesOf(std::span<const Array> arrays) {
  std::vector<Memory> memories;
  for (const Array& array : arrays) memories.push_back(MemoryOf(array));
  return memories;
}

std::vector<ArrayArg> ManyToOne(std::span<const Array> sources, const Array& dst) {
  std::vector<ArrayArg> args{{Arg::kDst, dst}};
  for (size_t i = 0; i < sources.size(); ++i) args.push_back({SourceArg(static_cast<int>(i)), sources[i]});
  return args;
}

}  // namespace

Result Concat(Backend& backend, std::span<const Array> sources, int axis, const Array& dst) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine, dnnl::concat::primitive_desc(MemoryOf(dst), axis, MemoriesOf(sources), engine, Attributes()),
                    ManyToOne(sources, dst));
  });
}

Result Sum(Backend& backend, std::span<const Array> sources, const Array& dst) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const std::vector<float> ones(sources.size(), 1.0f);
    return Describe(backend, engine, dnnl::sum::primitive_desc(MemoryOf(dst), ones, MemoriesOf(sources), engine, Attributes()),
                    ManyToOne(sources, dst));
  });
}

Result Reorder(Backend& backend, const Array& src, const Array& dst) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine, dnnl::reorder::primitive_desc(engine, MemoryOf(src), engine, MemoryOf(dst), Attributes()),
                    std::vector<ArrayArg>{{Arg::kSrc, src}, {Arg::kDst, dst}});
  });
}

}  // namespace mxtrain::onednn
