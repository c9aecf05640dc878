// SPDX-License-Identifier: Apache-2.0
// Boxes: how much they overlap, which are kept, those of the points of a grid and of regions.
#include <cmath>
#include <limits>
#include <numeric>

#include "mxtrain/onnx/internal/export_node.h"
#include "mxtrain/operator/boxes.h"
#include "mxtrain/operator/point_grid.h"
#include "mxtrain/operator/pyramid_anchors.h"

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

// What the parameters of box_nms say.
struct NmsRule {
  int64_t box, score, id, background, most;  // columns, a class, and topk
  bool all_classes, center;
  float overlap, least_score;

  // Of rows of class, score and corners, of which all take part.
  static NmsRule OfClasses(float overlap) {
    return {2, 1, 0, -1, -1, false, false, overlap, -std::numeric_limits<float>::infinity()};
  }
};

// Below every score that takes part.
std::string NoScore(ExportNode& node) {
  return node.Scalar(-std::numeric_limits<float>::infinity());
}

// [N, boxes]: of the rows that take part, NoScore for others.
std::string ScoresTakingPart(ExportNode& node, const NmsRule& rule, const std::string& data) {
  const std::string scores = Column(node, data, rule.score);
  std::string takes = node.Add("Greater", {scores, node.Scalar(rule.least_score)});
  if (rule.id >= 0 && rule.background >= 0) {
    const std::string is_background = node.Add(
        "Equal", {Column(node, data, rule.id), node.Scalar(static_cast<float>(rule.background))});
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
std::string RanksByClass(ExportNode& node, const NmsRule& rule, const std::string& rows,
                         const std::string& takes, int64_t count) {
  const std::string of_any = node.Unsqueeze(Ranks(node, takes, count), {1});
  if (rule.id < 0 || rule.all_classes) return of_any;
  // Rows that take no part may say anything.
  const std::string classes =
      node.AsInt(node.Add("Where", {takes, Column(node, rows, rule.id), node.Scalar(0)}));
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
std::string BoxesOf(ExportNode& node, const NmsRule& rule, const std::string& rows) {
  const auto columns = [&](int64_t begin) {
    const int64_t first = rule.box + begin;
    return node.Add("Slice", {rows, node.Ints({first}), node.Ints({first + 2}), node.Ints({2})});
  };
  const std::string first = columns(0), second = columns(2);
  const std::string limited =
      rule.center ? node.Add("Relu", {second}) : node.Add("Max", {first, second});
  return node.Add("Concat", {first, limited}, {{"axis", int64_t{2}}});
}

// Which of the rows [N, count, columns], the best first, are kept: 1, else 0, [N, count].
std::string Kept(ExportNode& node, const NmsRule& rule, const std::string& rows,
                 const std::string& scores, int64_t count) {
  const std::string takes = node.Add("Greater", {scores, NoScore(node)});
  // [kept, 3]: image, class, box.
  const std::string kept =
      node.Add("NonMaxSuppression",
               {BoxesOf(node, rule, rows), RanksByClass(node, rule, rows, takes, count),
                node.Ints({count}), node.Floats({1}, {rule.overlap}), node.Floats({1}, {0})},
               {{"center_point_box", int64_t{rule.center}}});
  const std::string places = node.Add("Gather", {kept, node.Ints({0, 2})}, {{"axis", int64_t{1}}});
  const auto filled = [&node](const std::string& shape, float value) {
    return node.Add("ConstantOfShape", {shape}, {{"value", Tensor::Floats({1}, {value})}});
  };
  const std::string number =
      node.Add("Slice", {node.Add("Shape", {kept}), node.Ints({0}), node.Ints({1})});
  return node.Add("ScatterND", {filled(node.Add("Shape", {scores}), 0), places, filled(number, 1)});
}

// Rows [images, boxes, columns], of which ONNX has that many axes.
std::string KeptRows(ExportNode& node, const NmsRule& rule, const std::string& data,
                     int64_t boxes) {
  const int64_t count = rule.most < 1 ? boxes : std::min(rule.most, boxes);
  const auto rows_at = [&node](const std::string& rows, const std::string& indices) {
    return node.Add("GatherND", {rows, node.Unsqueeze(indices, {2})}, {{"batch_dims", int64_t{1}}});
  };
  const ExportNode::Order best =
      node.TopK(ScoresTakingPart(node, rule, data), node.Ints({count}), 1);
  const std::string candidates = rows_at(data, best.indices);
  // The kept ones in their order, then the others, which become -1.
  const ExportNode::Order first =
      node.TopK(Kept(node, rule, candidates, best.values, count), node.Ints({count}), 1);
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
  const NmsRule rule{node.Get<int64_t>("coord_start"), node.Get<int64_t>("score_index"),
                     node.Get<int64_t>("id_index"),    node.Get<int64_t>("background_id"),
                     node.Get<int64_t>("topk"),        node.Get<bool>("force_suppress"),
                     node.Is("in_format", "center"),   node.Number("overlap_thresh"),
                     node.Number("valid_thresh")};
  if (node.ndim() == 3) return node.OutIs(KeptRows(node, rule, node.in(0), boxes));
  const std::string together = node.Add("Reshape", {node.in(0), node.Ints({-1, boxes, columns})});
  const std::string rows = KeptRows(node, rule, together, boxes);
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

// --- regions ---

// Columns begin and begin + 1 of [..., ..., 4].
std::string Half(ExportNode& node, const std::string& boxes, int64_t begin, int64_t axis) {
  return node.Add("Slice", {boxes, node.Ints({begin}), node.Ints({begin + 2}), node.Ints({axis})});
}

// The boxes [..., 4] at offsets from boxes of that middle and extent, [..., 2], within an image of
// that size.
std::string BoxesAt(ExportNode& node, const std::string& offsets, const std::string& middle,
                    const std::string& extent, int64_t axis, const std::string& size) {
  const std::string limit = node.Scalar(static_cast<float>(std::log(kMostAnchorGrowth)));
  const std::string moved =
      node.Add("Add", {node.Add("Mul", {Half(node, offsets, 0, axis), extent}), middle});
  const std::string grown = node.Add(
      "Mul", {node.Add("Exp", {node.Add("Min", {Half(node, offsets, 2, axis), limit})}), extent});
  const std::string half = node.Add("Mul", {grown, node.Scalar(0.5f)});
  const auto inside = [&](const char* op) {
    const std::string corner = node.Add(op, {moved, half});
    return node.Add("Min", {node.Add("Max", {corner, node.Scalar(0)}), size});
  };
  const std::string low = inside("Sub"), high = inside("Add");
  return node.Add("Concat", {low, high}, {{"axis", axis}});
}

// Whether both sides of the boxes [..., 4] are at least so long: [..., 1].
std::string HasSides(ExportNode& node, const std::string& boxes, int64_t axis, float least) {
  const std::string sides =
      node.Add("Sub", {Half(node, boxes, 2, axis), Half(node, boxes, 0, axis)});
  return node.Add("GreaterOrEqual",
                  {node.Reduce("ReduceMin", sides, {axis}, true), node.Scalar(least)});
}

// The candidates of a level, [N, candidates, 6]: the level, the score, the box.
std::string CandidatesOfLevel(ExportNode& node, const PyramidFields& fields, int level,
                              const std::string& size) {
  const int levels = fields.strides.ndim();
  const auto ratios = static_cast<int64_t>(fields.ratios.size());
  const TShape& map = node.in_shape(level);
  const int64_t anchors = map[2] * map[3] * ratios,
                count = std::min(node.Get<int64_t>("candidates"), anchors);
  const std::string scores =
      node.Add("Reshape", {node.Transpose(node.in(level), {0, 2, 3, 1}), node.Ints({0, -1})});
  const std::string by_ratio =
      node.Add("Reshape", {node.in(levels + level), node.Ints({0, ratios, 4, map[2], map[3]})});
  const std::string offsets =
      node.Add("Reshape", {node.Transpose(by_ratio, {0, 3, 4, 1, 2}), node.Ints({0, -1, 4})});
  const ExportNode::Order best = node.TopK(scores, node.Ints({count}), 1);

  std::vector<TBlob> shapes(static_cast<size_t>(2 * levels));  // without elements
  for (int i = 0; i < 2 * levels; ++i) shapes[static_cast<size_t>(i)].shape = node.in_shape(i);
  const PyramidMaps<float> maps(fields, shapes);
  std::vector<float> middles, extents;
  for (int64_t a = 0; a < anchors; ++a) {
    const auto box = maps.Anchor(maps.PlaceOf(maps.level[level].first + a));
    middles.insert(middles.end(), {box.x, box.y});
    extents.insert(extents.end(), {box.width, box.height});
  }
  const auto of_best = [&](const std::vector<float>& numbers) {
    return node.Add("Gather", {node.Floats({anchors, 2}, numbers), best.indices},
                    {{"axis", int64_t{0}}});
  };
  const std::string of_boxes = node.Add("GatherND", {offsets, node.Unsqueeze(best.indices, {2})},
                                        {{"batch_dims", int64_t{1}}});
  const std::string boxes = BoxesAt(node, of_boxes, of_best(middles), of_best(extents), 2, size);
  const std::string score = node.Add("Where", {HasSides(node, boxes, 2, node.Number("least_side")),
                                               node.Unsqueeze(best.values, {2}), NoScore(node)});
  const std::string number = node.Add(
      "Expand", {node.Floats({1, 1, 1}, {static_cast<float>(level)}), node.Add("Shape", {score})});
  return node.Add("Concat", {number, score, boxes}, {{"axis", int64_t{2}}});
}

void PyramidProposals(ExportNode& node) {
  PyramidFields fields;
  fields.strides = node.Get<TShape>("strides");
  fields.sizes = node.Get<std::vector<double>>("sizes");
  fields.ratios = node.Get<std::vector<double>>("ratios");
  const int levels = fields.strides.ndim();
  int64_t count = 0;
  const auto most = node.Get<int64_t>("candidates"), wanted = node.Get<int64_t>("count");
  for (int l = 0; l < levels; ++l) {
    const TShape& map = node.in_shape(l);
    if (map[2] == TShape::kUnknown || map[3] == TShape::kUnknown)
      node.Refuse("the size of its maps depends on the size of the batch");
    count += std::min(most, map[2] * map[3] * static_cast<int64_t>(fields.ratios.size()));
  }
  const TShape& first = node.in_shape(0);
  const int64_t stride = fields.strides[0];
  const std::string size = node.Floats(
      {1, 1, 2}, {static_cast<float>(first[3] * stride), static_cast<float>(first[2] * stride)});
  std::vector<std::string> of_levels;
  for (int l = 0; l < levels; ++l) of_levels.push_back(CandidatesOfLevel(node, fields, l, size));
  const std::string all =
      levels == 1 ? of_levels[0] : node.Add("Concat", of_levels, {{"axis", int64_t{1}}});
  std::string rows = KeptRows(node, NmsRule::OfClasses(node.Number("overlap")), all, count);
  if (wanted < count)
    rows = node.Add("Slice", {rows, node.Ints({0}), node.Ints({wanted}), node.Ints({1})});
  if (wanted > count)
    rows = node.Add("Pad", {rows, node.Ints({0, 0, 0, 0, wanted - count, 0}), node.Scalar(-1)});
  const auto columns = [&](int64_t begin, int64_t end) {
    return node.Add("Slice", {rows, node.Ints({begin}), node.Ints({end}), node.Ints({2})});
  };
  const std::string image = node.Unsqueeze(node.AsFloat(node.PositionsOf(0, 0)), {1, 2});
  const std::string number = node.Add(
      "Where",
      {node.Add("GreaterOrEqual", {columns(0, 1), node.Scalar(0)}), image, node.Scalar(-1)});
  node.Out("Concat", {number, columns(2, 6)}, {{"axis", int64_t{2}}});
}

void RegionLevels(ExportNode& node) {
  const auto first = node.Get<int>("first_level"), last = node.Get<int>("last_level");
  const std::string sides = node.Add(
      "Relu", {node.Add("Sub", {Half(node, node.in(0), 3, 1), Half(node, node.in(0), 1, 1)})});
  const std::string area =
      node.Add("Mul", {node.Add("Slice", {sides, node.Ints({0}), node.Ints({1}), node.Ints({1})}),
                       node.Add("Slice", {sides, node.Ints({1}), node.Ints({2}), node.Ints({1})})});
  const auto is_from = [&](int level) {
    const double side =
        node.Get<double>("usual_size") * std::exp2(level - node.Get<double>("usual_level") - 1e-6);
    return node.Add("GreaterOrEqual", {area, node.Scalar(static_cast<float>(side * side))});
  };
  const std::string number =
      node.Add("Slice", {node.in(0), node.Ints({0}), node.Ints({1}), node.Ints({1})});
  const std::string exists = node.Add("GreaterOrEqual", {number, node.Scalar(0)});
  for (int level = first; level <= last; ++level) {
    std::string here = exists;
    if (level > first) here = node.Add("And", {here, is_from(level)});
    if (level < last) here = node.Add("And", {here, node.Add("Not", {is_from(level + 1)})});
    node.Out("Where", {here, node.in(0), node.Scalar(-1)}, {}, level - first);
  }
}

void RegionBoxes(ExportNode& node) {
  const TShape &scores = node.in_shape(1), &image = node.in_shape(3);
  const int64_t regions = scores[1], columns = scores[2], classes = columns - 1;
  if (image[2] == TShape::kUnknown || image[3] == TShape::kUnknown || regions == TShape::kUnknown)
    node.Refuse(
        "the size of the image, or the number of regions, depends on the size of the batch");
  const std::string all = node.Add("Softmax", {node.in(1)}, {{"axis", int64_t{2}}});
  const std::string foreground =
      node.Add("Slice", {all, node.Ints({1}), node.Ints({columns}), node.Ints({2})});
  // [N, classes, R, 1]
  const std::string found = node.Unsqueeze(node.Transpose(foreground, {0, 2, 1}), {3});
  // [N, classes, R, 4], times the variances.
  const std::string by_class =
      node.Add("Reshape", {node.in(2), node.Ints({0, regions, columns, 4})});
  const std::string of_classes =
      node.Add("Slice", {by_class, node.Ints({1}), node.Ints({columns}), node.Ints({2})});
  const auto variances = node.Get<std::vector<double>>("variances");
  const std::string offsets =
      node.Add("Mul", {node.Transpose(of_classes, {0, 2, 1, 3}),
                       node.Floats({1, 1, 1, 4}, {variances.begin(), variances.end()})});
  // [N, 1, R, columns] of the regions.
  const std::string rois = node.Unsqueeze(node.in(0), {1});
  const std::string low = Half(node, rois, 1, 3), high = Half(node, rois, 3, 3);
  const std::string middle = node.Add("Mul", {node.Add("Add", {low, high}), node.Scalar(0.5f)});
  const std::string size =
      node.Floats({1, 1, 1, 2}, {static_cast<float>(image[3]), static_cast<float>(image[2])});
  const std::string boxes = BoxesAt(node, offsets, middle, node.Add("Sub", {high, low}), 3, size);
  std::vector<float> numbers(static_cast<size_t>(classes));
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const std::string labels =
      node.Add("Expand", {node.Floats({1, classes, 1, 1}, numbers), node.Add("Shape", {found})});
  const std::string exists = node.Add(
      "GreaterOrEqual",
      {node.Add("Slice", {rois, node.Ints({0}), node.Ints({1}), node.Ints({3})}), node.Scalar(0)});
  const std::string is_box =
      node.Add("And", {exists, HasSides(node, boxes, 3, node.Number("least_side"))});
  node.Out("Where", {is_box, node.Add("Concat", {labels, found, boxes}, {{"axis", int64_t{3}}}),
                     node.Scalar(-1)});
}

}  // namespace

std::vector<ExportEntry> BoxExports() {
  return {
      {"_contrib_box_iou", BoxIou},   {"_contrib_box_nms", BoxNms},
      {"PointBoxes", PointBoxes},     {"PyramidProposals", PyramidProposals},
      {"RegionLevels", RegionLevels}, {"RegionBoxes", RegionBoxes},
  };
}

}  // namespace mxtrain::onnx
