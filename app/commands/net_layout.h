#pragma once
// Places for the boxes of a net: rows by depth, and lanes side by side, so that neither boxes nor the connections that pass them overlap.
#include <utility>
#include <vector>

namespace mxtrain::commands {

struct NetLayout {
  // A box, or a place that a connection passes on its way past boxes.
  struct Vertex {
    int box = -1;             // -1: a connection passes
    int row = 0;              // the longest way from an input
    int lane = 0;             // 0: the longest way through the net; others to its right (above 0) and left
    std::vector<int> inputs;  // vertices of the row before
  };
  std::vector<Vertex> vertices;
  int rows = 0;
  // By row: whether it holds one vertex alone, so that nothing passes beside it.
  std::vector<bool> narrow;
};

// `inputs`: of each box, boxes before it.
NetLayout LayOutNet(const std::vector<std::vector<int>>& inputs);

}  // namespace mxtrain::commands
