#pragma once
// What a Symbol points to. Private to symbol/.
#include <mutex>

#include "mxtrain/symbol/symbol.h"
#include "mxtrain/symbol/vertex.h"

namespace mxtrain {

struct Symbol::Rep {
  explicit Rep(std::vector<Edge> edges) : heads(std::move(edges)) {}
  const std::vector<Edge> heads;

  // The heads laid out, once, by whichever thread asks first.
  const Graph& graph() const {
    std::call_once(laid_out_, [this] { graph_ = LayOut(heads); });
    return graph_;
  }

 private:
  mutable std::once_flag laid_out_;
  mutable Graph graph_;
};

}  // namespace mxtrain
