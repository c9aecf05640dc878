// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "mxtrain/io/source_factory.h"
#include "tests/support/error_message.h"

namespace mxtrain::test {

// Why a source cannot be made; "" if it can.
inline std::string WhyNoSource(const std::string& kind, const Kwargs& kwargs) {
  return MessageOf([&] { io::MakeSource(kind, kwargs); });
}

}  // namespace mxtrain::test
