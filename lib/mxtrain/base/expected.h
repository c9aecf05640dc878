// SPDX-License-Identifier: Apache-2.0
#pragma once
// A value or the reason why there is none, for outcomes that are part of normal work (a kernel that
// refuses a shape). C++20 has no std::expected.
#include <string>
#include <utility>
#include <variant>

namespace mxtrain {

// Why a kernel refuses a request. `reason` is a phrase without a final dot: "float32 only".
struct Refusal {
  std::string reason;
};

template <typename T, typename E>
class Expected {
 public:
  Expected(T value) : value_(std::in_place_index<0>, std::move(value)) {}
  Expected(E error) : value_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return value_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& operator*() { return std::get<0>(value_); }
  const T& operator*() const { return std::get<0>(value_); }
  T* operator->() { return &std::get<0>(value_); }
  const T* operator->() const { return &std::get<0>(value_); }
  const E& error() const { return std::get<1>(value_); }

 private:
  std::variant<T, E> value_;
};

}  // namespace mxtrain
