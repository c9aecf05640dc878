// SPDX-License-Identifier: Apache-2.0
#pragma once
// Depth-first post-order without recursion: depth is limited only by memory, so a chain of 10^5
// nodes works.
#include <utility>
#include <vector>

namespace mxtrain {

// Visits every vertex that `roots` reach once, after its inputs (in their order): the order of
// naive recursion.
//   degree(v)    the number of inputs of v
//   input(v, i)  one of them
//   enter(v)     marks v as seen; returns true, or false if it was seen before
// A caller that must detect cycles does so in `enter`: a vertex entered but not yet visited is on
// the current path.
template <typename Roots, typename Degree, typename Input, typename Enter, typename Visit>
void PostOrder(const Roots& roots, Degree degree, Input input, Enter enter, Visit visit) {
  using V = std::decay_t<decltype(*std::begin(roots))>;
  std::vector<std::pair<V, decltype(degree(*std::begin(roots)))>> path;
  for (const V& root : roots) {
    if (enter(root)) path.emplace_back(root, 0);
    while (!path.empty()) {
      auto& [v, next] = path.back();
      if (next == degree(v)) {
        visit(v);
        path.pop_back();
        continue;
      }
      const V in = input(v, next++);
      if (enter(in)) path.emplace_back(in, 0);
    }
  }
}

}  // namespace mxtrain
