// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/context.h"

#include <charconv>

#include "mxtrain/base/error.h"

namespace mxtrain {

std::string Context::ToString() const {
  const char* name = type == DeviceType::kCPU   ? "cpu"
                     : type == DeviceType::kGPU ? "gpu"
                                                : "cpu_pinned";
  return format("{}({})", name, id);
}

Context Context::Parse(std::string_view text) {
  Context ctx;
  std::string_view rest = text;
  auto take = [&](std::string_view word, DeviceType type) {
    if (!rest.starts_with(word)) return false;
    rest.remove_prefix(word.size());
    ctx.type = type;
    return true;
  };
  const bool named = take("cpu_pinned", DeviceType::kCPUPinned) || take("cpu", DeviceType::kCPU) ||
                     take("gpu", DeviceType::kGPU);
  if (named && rest.size() > 2 && rest.front() == '(' && rest.back() == ')') {
    rest = rest.substr(1, rest.size() - 2);
  } else if (named && rest.size() > 1 && rest.front() == ':') {
    rest.remove_prefix(1);
  } else if (named && rest.empty()) {
    return ctx;
  }
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), ctx.id);
  if (!named || status != std::errc() || end != rest.data() + rest.size() || ctx.id < 0) {
    Throw(ErrorKind::kUsage, "'{}' is not a device; use cpu, gpu or gpu:N", text);
  }
  return ctx;
}

}  // namespace mxtrain
