// SPDX-License-Identifier: Apache-2.0
#pragma once
// Positions of the boxes of a net: rows by depth and lanes side by side, so that neither boxes nor
// passing connections overlap.
#include <utility>
#include <vector>

namespace mxtrain::commands {

struct NetLayout {
  // A box, or a point where a connection passes other boxes.
  struct Vertex {
    int box = -1;  // -1: a connection passes
    int row = 0;   // the longest path from an input
    int lane = 0;  // 0: the longest path through the net; others are right (above 0) and left of it
    std::vector<int> inputs;  // vertices of the row before
  };
  std::vector<Vertex> vertices;
  int rows = 0;
  // By row: whether it has a single vertex, so that nothing passes beside it.
  std::vector<bool> narrow;
};

// `inputs`: of each box, boxes before it.
NetLayout LayOutNet(const std::vector<std::vector<int>>& inputs);

}  // namespace mxtrain::commands
