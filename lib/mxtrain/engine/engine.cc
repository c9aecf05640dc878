// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/engine.h"

#include <algorithm>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/engine/internal/naive_engine.h"
#include "mxtrain/engine/internal/threaded_engine.h"

namespace mxtrain::engine {
namespace {

std::exception_ptr DroppedCallback() {
  return std::make_exception_ptr(Error(ErrorKind::kBug,
                                       "the callback was dropped without being called; an "
                                       "asynchronous function must call it when its work is done"));
}

}  // namespace

Callback::Callback(Callback&& other) noexcept
    : complete_(std::exchange(other.complete_, nullptr)), token_(other.token_) {}

Callback& Callback::operator=(Callback&& other) noexcept {
  if (this != &other) {
    Callback replaced(std::move(*this));
    complete_ = std::exchange(other.complete_, nullptr);
    token_ = other.token_;
  }
  return *this;
}

Callback::~Callback() {
  if (complete_) complete_(token_, DroppedCallback());
}

void Callback::operator()(std::exception_ptr error) {
  if (!complete_)
    Throw(ErrorKind::kBug,
          "the callback of an asynchronous function was called twice, or after it was moved away");
  std::exchange(complete_, nullptr)(token_, std::move(error));
}

std::unique_ptr<Engine> Create(EngineOptions options) {
  if (options.type == "threaded") return std::make_unique<ThreadedEngine>(std::move(options));
  if (options.type == "naive") return std::make_unique<NaiveEngine>(std::move(options));
  Throw(ErrorKind::kUsage, "engine type '{}' is unknown; use 'threaded' or 'naive'", options.type);
}

void DeduplicateVars(std::vector<VarHandle>* reads, std::vector<VarHandle>* writes) {
  const auto make_distinct = [](std::vector<VarHandle>* vars) {
    std::sort(vars->begin(), vars->end(), std::less<>());
    vars->erase(std::unique(vars->begin(), vars->end()), vars->end());
  };
  make_distinct(reads);
  make_distinct(writes);
  std::erase_if(*reads, [&](VarHandle var) {
    return std::binary_search(writes->begin(), writes->end(), var, std::less<>());
  });
}

}  // namespace mxtrain::engine
