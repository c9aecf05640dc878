// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <string>

namespace mxtrain::test {

inline bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A check that shows the text where it fails.
inline void CheckHas(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(Has(text, part));
}

}  // namespace mxtrain::test
