// SPDX-License-Identifier: Apache-2.0
#include "app/commands/net_layout.h"

#include <algorithm>
#include <map>
#include <set>

namespace mxtrain::commands {
namespace {

using Vertex = NetLayout::Vertex;

// Boxes in their rows; a connection over several rows gets a vertex in each between. Connections
// from one box share theirs.
void AddVertices(const std::vector<std::vector<int>>& inputs, NetLayout* layout) {
  std::vector<Vertex>& vertices = layout->vertices;
  for (size_t box = 0; box < inputs.size(); ++box) {
    int row = 0;
    for (int from : inputs[box]) row = std::max(row, vertices[static_cast<size_t>(from)].row + 1);
    vertices.push_back({static_cast<int>(box), row, 0, {}});
    layout->rows = std::max(layout->rows, row + 1);
  }
  std::map<std::pair<int, int>, int> passing;  // (box that it comes from, row) -> vertex
  for (size_t box = 0; box < inputs.size(); ++box) {
    for (int from : inputs[box]) {
      int last = from;
      for (int row = vertices[static_cast<size_t>(from)].row + 1; row < vertices[box].row; ++row) {
        const auto [found, is_new] =
            passing.try_emplace({from, row}, static_cast<int>(vertices.size()));
        if (is_new) vertices.push_back({-1, row, 0, {last}});
        last = found->second;
      }
      vertices[box].inputs.push_back(last);
    }
  }
}

// The longest path, in boxes, through vertices without a lane; from its end to its beginning.
std::vector<int> LongestWay(const std::vector<Vertex>& vertices, const std::vector<int>& by_row,
                            const std::vector<bool>& placed) {
  std::vector<int> length(vertices.size()), before(vertices.size(), -1);
  int end = -1;
  for (int v : by_row) {
    if (placed[static_cast<size_t>(v)]) continue;
    const Vertex& vertex = vertices[static_cast<size_t>(v)];
    for (int from : vertex.inputs) {
      if (placed[static_cast<size_t>(from)] ||
          length[static_cast<size_t>(from)] <= length[static_cast<size_t>(v)])
        continue;
      length[static_cast<size_t>(v)] = length[static_cast<size_t>(from)];
      before[static_cast<size_t>(v)] = from;
    }
    // A passing connection has a small weight, so that paths follow it to its end.
    length[static_cast<size_t>(v)] += vertex.box >= 0 ? 1000 : 1;
    if (end < 0 || length[static_cast<size_t>(v)] > length[static_cast<size_t>(end)]) end = v;
  }
  std::vector<int> way;
  for (int v = end; v >= 0; v = before[static_cast<size_t>(v)]) way.push_back(v);
  return way;
}

// The free lane nearest to the middle in all rows of a path; right before left.
int FreeLane(const std::vector<Vertex>& vertices, const std::vector<int>& way,
             const std::set<std::pair<int, int>>& taken) {
  for (int distance = 0;; ++distance) {
    for (int lane : {distance, -distance}) {
      const auto is_taken = [&](int v) {
        return taken.contains({vertices[static_cast<size_t>(v)].row, lane});
      };
      if (std::none_of(way.begin(), way.end(), is_taken)) return lane;
    }
  }
}

}  // namespace

NetLayout LayOutNet(const std::vector<std::vector<int>>& inputs) {
  NetLayout layout;
  AddVertices(inputs, &layout);
  std::vector<int> by_row(layout.vertices.size());
  for (size_t v = 0; v < by_row.size(); ++v) by_row[v] = static_cast<int>(v);
  std::stable_sort(by_row.begin(), by_row.end(), [&](int a, int b) {
    return layout.vertices[static_cast<size_t>(a)].row <
           layout.vertices[static_cast<size_t>(b)].row;
  });
  std::vector<bool> placed(layout.vertices.size());
  std::set<std::pair<int, int>> taken;  // (row, lane)
  for (std::vector<int> way = LongestWay(layout.vertices, by_row, placed); !way.empty();
       way = LongestWay(layout.vertices, by_row, placed)) {
    const int lane = FreeLane(layout.vertices, way, taken);
    for (int v : way) {
      placed[static_cast<size_t>(v)] = true;
      layout.vertices[static_cast<size_t>(v)].lane = lane;
      taken.insert({layout.vertices[static_cast<size_t>(v)].row, lane});
    }
  }
  std::vector<int> count(static_cast<size_t>(layout.rows));
  for (const Vertex& vertex : layout.vertices) ++count[static_cast<size_t>(vertex.row)];
  for (int n : count) layout.narrow.push_back(n == 1);
  return layout;
}

}  // namespace mxtrain::commands
