// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "mxtrain/base/error.h"

namespace mxtrain::test {

// The text of the Error that a call throws; "" if it throws none.
template <typename Call>
std::string MessageOf(Call&& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

inline bool Says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace mxtrain::test
