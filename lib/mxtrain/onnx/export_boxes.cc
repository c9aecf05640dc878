// SPDX-License-Identifier: Apache-2.0
// Boxes: how much they overlap, which are kept, and those of the points of a grid.
#include <limits>
#include <numeric>

#include "mxtrain/onnx/internal/export_node.h"
#include "mxtrain/operator/boxes.h"
#include "mxtrain/operator/point_grid.h"

namespace mxtrain::onnx {
namespace {

// [...] of rows [..., columns].
std::string Column(ExportNode& node, const std::string& rows, int64_t column) {
  return node.Add("Gather", {rows, node.Int(column)}, {{"axis", int64_t{-1}}});
}

// --- intersection over union ---

struct Sides {
  std::string low, high;
};

// From where to where the boxes [..., 4] reach along an axis, 0 or 1.
Sides SidesOf(ExportNode& node, const std::string& boxes, int axis) {
  const std::string first = Column(node, boxes, axis), second = Column(node, boxes, axis + 2);
  if (node.Is("format", "corner")) return {first, second};
  const std::string half = node.Add("Div", {second, node.Scalar(2)});
  return {node.Add("Sub", {first, half}), node.Add("Add", {first, half})};
}

// 0 where a side is on the wrong one.
std::string LengthOf(ExportNode& node, const Sides& sides) {
  return node.Add("Relu", {node.Add("Sub", {sides.high, sides.low})});
}

void BoxIou(ExportNode& node) {
  // The boxes of lhs along axes before those of rhs.
  std::vector<int64_t> behind(static_cast<size_t>(node.in_shape(1).ndim() - 1));
  std::iota(behind.begin(), behind.end(), node.ndim() - 1);
  std::string common, area, other_area;
  for (int axis = 0; axis < 2; ++axis) {
    Sides a = SidesOf(node, node.in(0), axis);
    const Sides b = SidesOf(node, node.in(1), axis);
    a = {node.Unsqueeze(a.low, behind), node.Unsqueeze(a.high, behind)};
    const Sides both{node.Add("Max", {a.low, b.low}), node.Add("Min", {a.high, b.high})};
    const auto times = [&](std::string* product, const Sides& sides) {
      const std::string length = LengthOf(node, sides);
      *product = product->empty() ? length : node.Add("Mul", {*product, length});
    };
    times(&common, both);
    times(&area, a);
    times(&other_area, b);
  }
  const std::string joint = node.Add("Sub", {node.Add("Add", {area, other_area}), common});
  const std::string zero = node.Scalar(0), overlaps = node.Add("Greater", {common, zero});
  node.Out("Where", {overlaps, node.Add("Div", {common, joint}), zero});
}

// --- non-maximum suppression ---

// Below every score that takes part.
std::string NoScore(ExportNode& node) {
  return node.Scalar(-std::numeric_limits<float>::infinity());
}

// [N, boxes]: of the rows that take part, NoScore for others.
std::string ScoresTakingPart(ExportNode& node, const std::string& data) {
  const std::string scores = Column(node, data, node.Get<int64_t>("score_index"));
  std::string takes = node.Add("Greater", {scores, node.Scalar(node.Number("valid_thresh"))});
  const auto id = node.Get<int64_t>("id_index"), background = node.Get<int64_t>("background_id");
  if (id >= 0 && background >= 0) {
    const std::string is_background =
        node.Add("Equal", {Column(node, data, id), node.Scalar(static_cast<float>(background))});
    takes = node.Add("And", {takes, node.Add("Not", {is_background})});
  }
  return node.Add("Where", {takes, scores, NoScore(node)});
}

// [N, count]: as scores in their order, the rows of which `takes` says that they take part; other
// rows 0. No two are equal, of which ONNX leaves open which one is first.
std::string Ranks(ExportNode& node, const std::string& takes, int64_t count) {
  std::vector<float> ranks(static_cast<size_t>(count));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<float>(ranks.size() - i);
  return node.Add("Where", {takes, node.Floats({1, count}, ranks), node.Scalar(0)});
}

// Ranks [N, classes, count], each in the row of its class and 0 elsewhere; of one row where classes
// do not matter. Classes are whole numbers.
std::string RanksByClass(ExportNode& node, const std::string& rows, const std::string& takes,
                         int64_t count) {
  const std::string of_any = node.Unsqueeze(Ranks(node, takes, count), {1});
  const auto id = node.Get<int64_t>("id_index");
  if (id < 0 || node.Get<bool>("force_suppress")) return of_any;
  // Rows that take no part may say anything.
  const std::string classes =
      node.AsInt(node.Add("Where", {takes, Column(node, rows, id), node.Scalar(0)}));
  const Attributes of_all{{"keepdims", int64_t{0}}};
  const std::string first = node.Add("ReduceMin", {classes}, of_all),
                    last = node.Add("ReduceMax", {classes}, of_all);
  const std::string number = node.Add("Add", {node.Add("Sub", {last, first}), node.Int(1)});
  const std::string is_class =
      node.Add("OneHot", {node.Add("Sub", {classes, first}), number, node.Floats({2}, {0, 1})},
               {{"axis", int64_t{1}}});
  return node.Add("Mul", {is_class, of_any});
}

// [N, count, 4] as NonMaxSuppression takes them, which would turn a box whose corners are on wrong
// sides: that has no area.
std::string BoxesOf(ExportNode& node, const std::string& rows) {
  const auto columns = [&](int64_t begin) {
    const int64_t first = node.Get<int64_t>("coord_start") + begin;
    return node.Add("Slice", {rows, node.Ints({first}), node.Ints({first + 2}), node.Ints({2})});
  };
  const std::string first = columns(0), second = columns(2);
  const std::string limited = node.Is("in_format", "center") ? node.Add("Relu", {second})
                                                             : node.Add("Max", {first, second});
  return node.Add("Concat", {first, limited}, {{"axis", int64_t{2}}});
}

// Which of the rows [N, count, columns], the best first, are kept: 1, else 0, [N, count].
std::string Kept(ExportNode& node, const std::string& rows, const std::string& scores,
                 int64_t count) {
  const std::string takes = node.Add("Greater", {scores, NoScore(node)});
  // [kept, 3]: image, class, box.
  const std::string kept =
      node.Add("NonMaxSuppression",
               {BoxesOf(node, rows), RanksByClass(node, rows, takes, count), node.Ints({count}),
                node.Floats({1}, {node.Number("overlap_thresh")}), node.Floats({1}, {0})},
               {{"center_point_box", int64_t{node.Is("in_format", "center")}}});
  const std::string places = node.Add("Gather", {kept, node.Ints({0, 2})}, {{"axis", int64_t{1}}});
  const auto filled = [&node](const std::string& shape, float value) {
    return node.Add("ConstantOfShape", {shape}, {{"value", Tensor::Floats({1}, {value})}});
  };
  const std::string number =
      node.Add("Slice", {node.Add("Shape", {kept}), node.Ints({0}), node.Ints({1})});
  return node.Add("ScatterND", {filled(node.Add("Shape", {scores}), 0), places, filled(number, 1)});
}

// Rows [images, boxes, columns], of which ONNX has that many axes.
std::string KeptRows(ExportNode& node, const std::string& data, int64_t boxes) {
  const auto most = node.Get<int64_t>("topk");
  const int64_t count = most < 1 ? boxes : std::min(most, boxes);
  const auto rows_at = [&node](const std::string& rows, const std::string& indices) {
    return node.Add("GatherND", {rows, node.Unsqueeze(indices, {2})}, {{"batch_dims", int64_t{1}}});
  };
  const ExportNode::Order best = node.TopK(ScoresTakingPart(node, data), node.Ints({count}), 1);
  const std::string candidates = rows_at(data, best.indices);
  // The kept ones in their order, then the others, which become -1.
  const ExportNode::Order first =
      node.TopK(Kept(node, candidates, best.values, count), node.Ints({count}), 1);
  const std::string rows = node.Add("Where", {node.Unsqueeze(node.AsBool(first.values), {2}),
                                              rows_at(candidates, first.indices), node.Scalar(-1)});
  if (count == boxes) return rows;
  return node.Add("Pad", {rows, node.Ints({0, 0, 0, 0, boxes - count, 0}), node.Scalar(-1)});
}

void BoxNms(ExportNode& node) {
  if (node.Text("in_format") != node.Text("out_format"))
    node.Refuse("its output has boxes of another format than its data");
  const TShape& data = node.in_shape(0);
  const int64_t boxes = data[node.ndim() - 2], columns = data[node.ndim() - 1];
  if (boxes == TShape::kUnknown)
    node.Refuse("the number of boxes depends on the size of the batch");
  if (node.ndim() == 3) return node.OutIs(KeptRows(node, node.in(0), boxes));
  const std::string together = node.Add("Reshape", {node.in(0), node.Ints({-1, boxes, columns})});
  const std::string rows = KeptRows(node, together, boxes);
  node.Out("Reshape", {rows, node.Ints({data.begin(), data.end()})});  // kUnknown is -1
}

// --- boxes of points ---

// [N, channels, points] of the maps of all levels.
std::string OfAllPoints(ExportNode& node, int first, int levels) {
  std::vector<std::string> flat;
  for (int l = 0; l < levels; ++l)
    flat.push_back(node.Add("Reshape", {node.in(first + l), node.Ints({0, 0, -1})}));
  return levels == 1 ? flat[0] : node.Add("Concat", flat, {{"axis", int64_t{2}}});
}

// [1, 2, points]: two numbers of each point.
template <typename F>
std::string OfEachPoint(ExportNode& node, const PointMaps<float>& maps, const F& numbers) {
  const auto points = static_cast<size_t>(maps.points);
  std::vector<float> all(2 * points);
  for (size_t i = 0; i < points; ++i) {
    const auto at = maps.PlaceOf(static_cast<int64_t>(i));
    const auto [x, y] = numbers(at, maps.level[at.level].stride);
    all[i] = x, all[points + i] = y;
  }
  return node.Floats({1, 2, maps.points}, all);
}

// [N, 4, points]: the means of the distributions [N, 4 bins, points], in strides.
std::string Means(ExportNode& node, const std::string& logits, int64_t bins) {
  std::vector<float> strides(static_cast<size_t>(bins));
  std::iota(strides.begin(), strides.end(), 0.0f);
  const std::string by_bin = node.Add("Reshape", {logits, node.Ints({0, 4, bins, -1})});
  const std::string parts = node.Add("Mul", {node.Add("Softmax", {by_bin}, {{"axis", int64_t{2}}}),
                                             node.Floats({1, 1, bins, 1}, strides)});
  return node.Reduce("ReduceSum", parts, {2}, false);
}

// e^(what the map says), in pixels.
std::string Lengths(ExportNode& node, const std::string& logarithms, const std::string& stride) {
  const std::string limit = node.Scalar(PointMaps<float>::kMostLogDistance);
  return node.Add("Mul", {node.Add("Exp", {node.Add("Min", {logarithms, limit})}), stride});
}

// [N, 4, points]: left, top, right, bottom of the proposed boxes.
std::string SidesOfPoints(ExportNode& node, const PointMaps<float>& maps) {
  using Two = std::pair<float, float>;
  std::string numbers = OfAllPoints(node, maps.levels, maps.levels);
  if (maps.form == kDistributions) numbers = Means(node, numbers, maps.bins);
  const auto half = [&](int64_t begin) {
    return node.Add("Slice", {numbers, node.Ints({begin}), node.Ints({begin + 2}), node.Ints({1})});
  };
  const std::string first = half(0), second = half(2);
  const std::string stride = OfEachPoint(node, maps, [](const auto&, float step) {
    return Two{step, step};
  });
  std::string from, before, after;  // lengths before and after a place
  if (maps.form == kCenters) {
    const std::string corner = OfEachPoint(node, maps, [](const auto& at, float step) {
      return Two{at.x - step / 2, at.y - step / 2};
    });
    from = node.Add("Add", {corner, node.Add("Mul", {first, stride})});
    before = after = node.Add("Mul", {Lengths(node, second, stride), node.Scalar(0.5f)});
  } else {
    from = OfEachPoint(node, maps, [](const auto& at, float) { return Two{at.x, at.y}; });
    const auto length = [&](const std::string& said) {
      return maps.form == kDistributions ? node.Add("Mul", {said, stride})
                                         : Lengths(node, said, stride);
    };
    before = length(first);
    after = length(second);
  }
  return node.Add("Concat", {node.Add("Sub", {from, before}), node.Add("Add", {from, after})},
                  {{"axis", int64_t{1}}});
}

void PointBoxes(ExportNode& node) {
  const auto strides = node.Get<TShape>("strides");
  std::vector<TBlob> shapes(static_cast<size_t>(node.num_inputs()));  // without elements
  for (int i = 0; i < node.num_inputs(); ++i)
    shapes[static_cast<size_t>(i)].shape = node.in_shape(i);
  const int form =
      node.Is("form", "centers") ? kCenters : FormOfBins(node.Get<int>("bins"), "PointBoxes");
  const PointMaps<float> maps(strides, shapes, form);

  const std::string scores = OfAllPoints(node, 0, maps.levels);
  const Attributes of_class{{"axis", int64_t{1}}, {"keepdims", int64_t{1}}};
  const std::string label = node.AsFloat(node.Add("ArgMax", {scores}, of_class));
  std::string score = node.Add("Sigmoid", {node.Reduce("ReduceMax", scores, {1}, true)});
  if (maps.form == kCenters) {
    const std::string objectness = OfAllPoints(node, 2 * maps.levels, maps.levels);
    score = node.Add("Mul", {score, node.Add("Sigmoid", {objectness})});
  }
  std::string sides = SidesOfPoints(node, maps);
  if (node.Get<bool>("clip")) {
    const auto [width, height] = maps.Extent();
    sides = node.Add("Min", {node.Add("Max", {sides, node.Scalar(0)}),
                             node.Floats({1, 4, 1}, {width, height, width, height})});
  }
  const std::string columns = node.Add("Concat", {label, score, sides}, {{"axis", int64_t{1}}});
  node.Out("Transpose", {columns}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
}

}  // namespace

std::vector<ExportEntry> BoxExports() {
  return {
      {"_contrib_box_iou", BoxIou},
      {"_contrib_box_nms", BoxNms},
      {"PointBoxes", PointBoxes},
  };
}

}  // namespace mxtrain::onnx
