// SPDX-License-Identifier: Apache-2.0
#pragma once
// A head of a net as its task sees it. A net may have several, each with a task of its own.
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/base/shape.h"
#include "mxtrain/base/standardization.h"
#include "mxtrain/symbol/symbol.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::tasks {

// What the data, or the model that was trained on it, says about the label of a head.
struct LabelFacts {
  std::vector<std::string> classes;      // names of its classes, in the order of the label's values
  std::vector<std::string> all_classes;  // those that the data names, perhaps of another label
  std::vector<std::string> columns;      // names of its numbers, as in the header of a table
  std::optional<Standardization> units;  // how its numbers were standardized; none if they were not
};

struct Head {
  std::string name;                      // of the output, as in HeadName: "softmax"
  int output = 0;                        // its index among the outputs of the net
  std::optional<LossReport::Head> loss;  // none: the output is not of a loss
  std::string label;                     // that it is compared with; "" if none is known
  std::string op;                        // that makes it, past BlockGrad; "" for a variable
  TShape shape;                          // with the batch as the first axis; of unknown rank if it
                                         // cannot be inferred
  TShape label_shape;                    // as `shape`
  std::vector<TShape> inputs;            // of the net's inputs, as `shape`
  // Rows of class, score, left, top, right, bottom: of PointBoxes, or what box_nms keeps of them.
  bool gives_boxes = false;
  int64_t box_classes = 0;  // of those; 0: not known
  LabelFacts facts;

  bool has_shape() const { return shape.has_rank() && shape.known(); }
  // Numbers of an example; 0 without a shape.
  int64_t width() const { return has_shape() ? shape.Product(1, shape.ndim()) : 0; }
  // Whether its numbers are scores of classes of which one is true, for each example or for each
  // part of it: of a SoftmaxOutput; without a loss, of a softmax, or a list of as many as the data
  // has names of classes.
  bool gives_classes() const;
  // The value of a loss (MakeLoss), no prediction.
  bool is_value_of_loss() const { return loss && loss->kind == LossReport::Head::Kind::kMean; }
  // Whether the loss compares it with a label of the data.
  bool has_loss_of_label() const {
    return loss && !is_value_of_loss() && loss->kind != LossReport::Head::Kind::kUnknown;
  }
  // Whether it has a row for each example; true if that is not known.
  bool has_rows() const {
    return !has_shape() || shape.ndim() == 0 || inputs.empty() || !inputs[0].has_rank() ||
           inputs[0].ndim() == 0 || shape[0] == inputs[0][0];
  }
  // Whether an example has scores of classes for each pixel of an image: [N, classes, H, W].
  bool gives_class_map() const {
    return gives_classes() && has_shape() && shape.ndim() == 4 && has_rows() &&
           shape[2] * shape[3] > 1;
  }
  // Whether an example is numbers of the form of an image, gray or RGB: [N, 1 or 3, H, W].
  bool gives_image() const {
    return has_shape() && shape.ndim() == 4 && (shape[1] == 1 || shape[1] == 3) && shape[2] > 1 &&
           shape[3] > 1;
  }
  // A shape of [N], [N, W], or [N, W, 1, ...]: a list for each example, no map or image.
  bool is_list() const { return has_shape() && (shape.ndim() <= 2 || width() == shape[1]); }
};

// The outputs of a net in their order; without labels of outputs that are not of a loss, and
// without facts about labels. `shapes`: as far as they can be inferred; `inputs`: names of those
// arguments that are data.
std::vector<Head> HeadsOf(const Symbol& net, const Symbol::Shapes& shapes,
                          const std::vector<std::string>& inputs);
// The shape of an argument of the net; of unknown rank if it is not known, or there is none.
TShape ShapeOf(const Symbol& net, const Symbol::Shapes& shapes, const std::string& argument);

}  // namespace mxtrain::tasks
