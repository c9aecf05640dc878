// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// By the definition; inputs in the order of the operator's.
Arrays EncodedBoxes(const Arrays& in, size_t boxes, size_t objects) {
  Values targets(in[2].size()), masks(in[2].size());
  for (size_t i = 0; i < in[0].size(); ++i) {
    const double match = in[1][i];
    if (in[0][i] <= 0.5 || match < 0 || match >= static_cast<double>(objects)) continue;
    const double *a = &in[2][i * 4],
                 *b = &in[3][(i / boxes * objects + static_cast<size_t>(match)) * 4];
    const double wa = a[2] - a[0], ha = a[3] - a[1], w = b[2] - b[0], h = b[3] - b[1];
    const double offsets[4] = {(b[0] + w / 2 - a[0] - wa / 2) / wa,
                               (b[1] + h / 2 - a[1] - ha / 2) / ha, std::log(w / wa),
                               std::log(h / ha)};
    for (size_t k = 0; k < 4; ++k) {
      masks[i * 4 + k] = 1;
      targets[i * 4 + k] = (offsets[k] - in[4][k]) / in[5][k];
    }
  }
  return {targets, masks};
}

void ExamineBoxEncode(int64_t images, int64_t boxes, int64_t objects) {
  OperatorCase c;
  c.op = "box_encode";
  c.name = format("box_encode {} x {} anchors, {} objects", images, boxes, objects);
  c.shapes = {{images, boxes}, {images, boxes}, {images, boxes, 4}, {images, objects, 4}, {4}, {4}};
  c.inputs = {Cycle({1, -1, 0, 1, 1}),
              Cycle({0, 1, 2, -1, 1, 2, 3}),  // -1 and 3 are no objects
              Cycle({0, 0, 1, 2, 0.5, 1, 1.5, 1.25, 3, 2, 5, 6}),
              Cycle({0.25, 0, 1.25, 3, -1, -2, 1, 0.5, 2, 2, 2.5, 4, 0, 0, 1, 1}),
              Cycle({0.125, -0.25, 0.5, 0}),
              Cycle({0.5, 0.25, 1, -0.5})};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return EncodedBoxes(in, static_cast<size_t>(boxes), static_cast<size_t>(objects));
  };
  c.backward = false;
  c.types = kAllFloatingTypes;
  c.tolerance = {32, "differences of coordinates, over standard deviations"};
  RunCase(c);
}

TEST_CASE("box_encode") {
  ExamineBoxEncode(1, 6, 3);
  ExamineBoxEncode(3, 11, 2);
  ExamineBoxEncode(2, 5, 1);
  ExamineBoxEncode(2, 4, 0);  // every match is none
  ExamineBoxEncode(0, 4, 2);
  ExamineBoxEncode(2, 0, 2);
}

TEST_CASE("box_encode: shapes") {
  const auto op = TestRegistry().Create("box_encode", {});
  CHECK(op->TypeString() == "_contrib_box_encode");
  CHECK(op->NeedsHeadGradient());
  CHECK(!op->HasGradient(3));
  std::vector<TShape> in(6), out(2), aux;
  in[0] = {2, 7};
  in[3] = {TShape::kUnknown, 3, 4};
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in == std::vector<TShape>{{2, 7}, {2, 7}, {2, 7, 4}, {2, 3, 4}, {4}, {4}});
  CHECK(out == std::vector<TShape>{{2, 7, 4}, {2, 7, 4}});
  const auto message = [&](size_t which, const TShape& shape) {
    return MessageOf([&] {
      std::vector<TShape> shapes = in, outputs(2), states;
      shapes[which] = shape;
      op->InferShape(&shapes, &outputs, &states);
    });
  };
  CHECK(message(1, {2, 6}) ==
        "_contrib_box_encode: matches has shape [2, 6], but [2, 7] was expected");
  CHECK(Says(message(2, {2, 7, 5}), "_contrib_box_encode: anchors has shape [2, 7, 5]"));
  CHECK(Says(message(3, {3, 3, 4}), "_contrib_box_encode: refs has shape [3, 3, 4]"));
  CHECK(Says(message(4, {5}), "_contrib_box_encode: means has shape [5]"));
}

}  // namespace
}  // namespace mxtrain::test
