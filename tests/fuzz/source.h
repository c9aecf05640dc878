// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the targets of sources do with one: open it, read every example, name them.
#include "mxtrain/io/source_factory.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {

// Examples may be bad one by one.
inline void ReadAll(std::string_view kind, const Kwargs& kwargs) {
  MayRefuse([&] {
    const std::unique_ptr<io::Source> source = io::MakeSource(kind, kwargs);
    io::Sample sample;
    for (int64_t i = 0; i < source->size(); ++i) {
      MayRefuse([&] { source->Read(i, &sample); });
      source->Name(i);
      if (const std::optional<int> of = source->ClassOf(i); of && *of >= source->num_classes())
        std::abort();
    }
  });
}

}  // namespace mxtrain::fuzz
