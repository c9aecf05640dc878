// SPDX-License-Identifier: Apache-2.0
#pragma once
// PCRE2's objects with owners, and the bounds on what a pattern may take.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <memory>
#include <string>

namespace mxtrain::text {

template <auto Free>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using PcreCode = std::unique_ptr<pcre2_code, FreedBy<pcre2_code_free>>;
using PcreMatchData = std::unique_ptr<pcre2_match_data, FreedBy<pcre2_match_data_free>>;

// Throws kData, the reason alone.
PcreCode CompilePcre(const std::string& pattern, uint32_t options);

// For any pattern; of the calling thread.
pcre2_match_context* BoundedMatches();

std::string MessageOfPcre(int code);

}  // namespace mxtrain::text
