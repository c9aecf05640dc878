// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/preprocessing.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"

namespace mxtrain::onnx {
namespace {

constexpr int64_t kAntialiasOpset = 18;
// What the names of the nodes and their values begin with; those of the arrays; of the net's input.
constexpr const char *kNodePrefix = "preprocessing", *kArrayPrefix = "preprocessing_constant",
                     *kInputPrefix = "preprocessed_";

class Chain {
 public:
  explicit Chain(Model* model) : model_(*model) {
    const bool images = model->inputs.size() == 1 && model->inputs[0].dims.size() == 4 &&
                        model->inputs[0].type == ElementType::kFloat;
    if (!images)
      Throw(ErrorKind::kConfig,
            "preprocessing can be exported for a net with one input of images; this one has {} "
            "input{}",
            model->inputs.size(), model->inputs.size() == 1 ? ", not of images" : "s");
  }

  void Add(const Preprocessing& preprocessing) {
    ModelValue& input = model_.inputs[0];
    const int64_t channels = input.dims[1], height = input.dims[2], width = input.dims[3];
    const std::string net_input = kInputPrefix + input.name;
    for (ModelNode& node : model_.nodes) std::ranges::replace(node.inputs, input.name, net_input);
    for (const ModelValue& output : model_.outputs) {
      if (output.name == input.name)
        Throw(ErrorKind::kConfig, "the net outputs its input; there is nothing to prepare it for");
    }
    const bool fixed = preprocessing.steps.empty();
    height_ = fixed ? height : -1;
    width_ = fixed ? width : -1;
    input.dims = {ModelValue::kDynamic, fixed ? height : ModelValue::kDynamic,
                  fixed ? width : ModelValue::kDynamic, channels};
    input.dim_names = {"N", fixed ? "" : "height", fixed ? "" : "width", ""};
    input.type = ElementType::kUint8;
    value_ = Node("Transpose", {input.name}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
    value_ = Node("Cast", {value_}, {{"to", static_cast<int64_t>(ElementType::kFloat)}});
    for (const PixelStep& step : preprocessing.steps) AddStep(step);
    if (height_ != height || width_ != width) {
      Throw(ErrorKind::kConfig,
            "the transforms do not make images of {} x {}, which the net reads, of images of any "
            "size",
            height, width);
    }
    Normalize(preprocessing, channels, net_input);
    std::move(model_.nodes.begin(), model_.nodes.end(), std::back_inserter(nodes_));
    model_.nodes = std::move(nodes_);
  }

 private:
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const Attributes& attributes = {}, const std::string& output = "") {
    const std::string name =
        output.empty() ? format("{}{}_{}", kNodePrefix, nodes_.size(), op) : output;
    nodes_.push_back({op, name, "", inputs, {name}, attributes});
    return name;
  }
  std::string Array(Tensor tensor) {
    const std::string name = format("{}{}", kArrayPrefix, num_arrays_++);
    model_.initializers[name] = std::move(tensor);
    return name;
  }
  std::string Ints(const std::vector<int64_t>& values) {
    return Array(Tensor::Ints({static_cast<int64_t>(values.size())}, values));
  }
  std::string Number(float value) { return Array(Tensor::Scalar(value)); }

  // An edge of the images, as an array of one integer.
  std::string Edge(int axis) {
    return Node("Slice", {Node("Shape", {value_}), Ints({axis}), Ints({axis + 1}), Ints({0})});
  }
  std::string Minus(const std::string& a, const std::string& b) { return Node("Sub", {a, b}); }
  std::string Times(const std::string& a, const std::string& b) { return Node("Mul", {a, b}); }
  std::string Over(const std::string& a, const std::string& b) { return Node("Div", {a, b}); }
  std::string Half(const std::string& a) { return Over(a, Ints({2})); }

  void AddStep(const PixelStep& step) {
    switch (step.kind) {
      case PixelStep::kResizeShorter:
        return ResizeShorter(step);
      case PixelStep::kResize:
        Resize(step, Ints({step.height, step.width}));
        return SetSize(step.height, step.width);
      case PixelStep::kCenterCrop:
        return CenterCrop(step);
      case PixelStep::kCenterFraction:
        return CenterFraction(step);
    }
  }

  void SetSize(int64_t height, int64_t width) {
    height_ = height;
    width_ = width;
    shorter_ = std::min(height, width);
    square_ = height == width;
  }

  std::string Double(double value) {
    Tensor tensor{ElementType::kDouble, {1}, std::string(sizeof value, '\0')};
    std::copy_n(reinterpret_cast<const char*>(&value), sizeof value, tensor.bytes.begin());
    return Array(std::move(tensor));
  }
  std::string CastTo(ElementType type, const std::string& value) {
    return Node("Cast", {value}, {{"to", static_cast<int64_t>(type)}});
  }
  // 0, 1, ... below `count`, in an array of these dimensions.
  std::string Indices(const std::string& count, const std::vector<int64_t>& dims) {
    const auto scalar = [this](const std::string& one) {
      return Node("Squeeze", {one, Ints({0})});
    };
    const std::string range = Node("Range", {scalar(Ints({0})), scalar(count), scalar(Ints({1}))});
    return Node("Reshape", {CastTo(ElementType::kDouble, range), Ints(dims)});
  }

  // The weights [to, from] by which an edge of `from` pixels becomes one of `to`: by area where
  // `by_area` and the edge is reduced, else linear. In double precision, as positions are.
  std::string WeightsOf(const std::string& from, const std::string& to,
                        const std::string& by_area) {
    const std::string from_double = CastTo(ElementType::kDouble, from), one = Double(1),
                      zero = Double(0);
    const std::string step = Over(from_double, CastTo(ElementType::kDouble, to));
    const std::string low = Times(Indices(to, {-1, 1}), step), high = Node("Add", {low, step}),
                      pixel = Indices(from, {1, -1}), end = Node("Add", {pixel, one});
    const std::string covered = Minus(Node("Min", {high, end}), Node("Max", {low, pixel}));
    const std::string area = Over(Node("Max", {covered, zero}), step);
    const std::string middle = Minus(Node("Add", {low, Times(step, Double(0.5))}), Double(0.5));
    const std::string inside = Node("Min", {Node("Max", {middle, zero}), Minus(from_double, one)});
    const std::string linear = Node("Max", {Minus(one, Node("Abs", {Minus(inside, pixel)})), zero});
    const std::string use = Node("And", {by_area, Node("Greater", {step, one})});
    return CastTo(ElementType::kFloat, Node("Where", {use, area, linear}));
  }

  void ResizeByArea(const PixelStep& step, const std::string& sizes) {
    const std::string height = Edge(2), width = Edge(3);
    const auto part = [&](int64_t i) {
      return Node("Slice", {sizes, Ints({i}), Ints({i + 1}), Ints({0})});
    };
    const std::string to_height = part(0), to_width = part(1);
    const auto halved = [&](const std::string& to, const std::string& from) {
      return Node("LessOrEqual", {Times(to, Ints({2})), from});
    };
    const std::string always = Node("Greater", {height, Ints({0})});
    const std::string by_area =
        step.method == PixelStep::kArea
            ? always
            : Node("Or", {halved(to_height, height), halved(to_width, width)});
    const std::string rows = Node("MatMul", {WeightsOf(height, to_height, by_area), value_});
    const std::string columns = Node("Transpose", {WeightsOf(width, to_width, by_area)},
                                     {{"perm", std::vector<int64_t>{1, 0}}});
    Round(Node("MatMul", {rows, columns}));
  }

  // `sizes`: height and width.
  void Resize(const PixelStep& step, const std::string& sizes) {
    if (step.method == PixelStep::kArea || step.method == PixelStep::kAuto)
      return ResizeByArea(step, sizes);
    const bool cubic = step.method == PixelStep::kCubic;
    const std::string first =
        Node("Slice", {Node("Shape", {value_}), Ints({0}), Ints({2}), Ints({0})});
    Attributes attributes{{"mode", std::string(cubic ? "cubic" : "linear")},
                          {"coordinate_transformation_mode", std::string("half_pixel")}};
    if (step.antialias) {
      model_.opset = std::max(model_.opset, kAntialiasOpset);
      attributes["antialias"] = int64_t{1};
    }
    if (cubic) {
      // Pillow's and torchvision's kernel if antialiased, else OpenCV's.
      attributes["cubic_coeff_a"] = step.antialias ? -0.5f : -0.75f;
      attributes["exclude_outside"] = int64_t{step.antialias};
    }
    // As Pillow does it: the width first, and pixels are rounded in between.
    if (step.antialias) {
      const std::string width = Node("Slice", {sizes, Ints({1}), Ints({2}), Ints({0})});
      ResizeTo({first, Edge(2), width}, attributes);
    }
    ResizeTo({first, sizes}, attributes);
  }

  // To the joined sizes of all axes.
  void ResizeTo(const std::vector<std::string>& sizes, const Attributes& attributes) {
    const std::string whole = Node("Concat", sizes, {{"axis", int64_t{0}}});
    Round(Node("Resize", {value_, "", "", whole}, attributes));
  }
  void Round(const std::string& resized) {
    const std::string bounded = Node("Clip", {resized, Number(0), Number(255)});
    value_ = Node("Floor", {Node("Add", {bounded, Number(0.5f)})});
  }

  void ResizeShorter(const PixelStep& step) {
    const std::string height = Edge(2), width = Edge(3), edge = Ints({step.height});
    const std::string shorter = Node("Min", {height, width});
    const std::string sizes =
        Node("Concat", {Over(Times(height, edge), shorter), Over(Times(width, edge), shorter)},
             {{"axis", int64_t{0}}});
    Resize(step, sizes);
    if (square_) return SetSize(step.height, step.height);
    height_ = width_ = -1;
    shorter_ = step.height;
  }

  void Crop(const std::vector<std::string>& begin, const std::vector<std::string>& size) {
    const Attributes joined{{"axis", int64_t{0}}};
    const std::string starts = Node("Concat", begin, joined);
    const std::string ends = Node("Add", {starts, Node("Concat", size, joined)});
    value_ = Node("Slice", {value_, starts, ends, Ints({2, 3})});
  }

  void CenterCrop(const PixelStep& step) {
    const int64_t sizes[] = {step.height, step.width};
    if (shorter_ < std::max(sizes[0], sizes[1]) && !(height_ >= sizes[0] && width_ >= sizes[1])) {
      Throw(ErrorKind::kConfig,
            "center_crop enlarges smaller images, which ONNX cannot decide; put a resize to at "
            "least {} before it",
            std::max(sizes[0], sizes[1]));
    }
    std::vector<std::string> begin, size;
    for (int i = 0; i < 2; ++i) {
      // Half of what remains; half a pixel is rounded to even.
      size.push_back(Ints({sizes[i]}));
      const std::string spare = Minus(Edge(2 + i), size.back()), half = Half(spare);
      const std::string odd = Minus(spare, Times(half, Ints({2})));
      const std::string odd_half = Minus(half, Times(Half(half), Ints({2})));
      begin.push_back(Node("Add", {half, Times(odd, odd_half)}));
    }
    Crop(begin, size);
    SetSize(step.height, step.width);
  }

  void CenterFraction(const PixelStep& step) {
    const std::string height = Edge(2), width = Edge(3), shorter = Node("Min", {height, width});
    const std::string exact = Times(CastTo(ElementType::kDouble, shorter), Double(step.fraction));
    const std::string edge =
        Node("Max", {CastTo(ElementType::kInt64, Node("Floor", {exact})), Ints({1})});
    Crop({Half(Minus(height, edge)), Half(Minus(width, edge))}, {edge, edge});
    height_ = width_ = -1;
    shorter_ = 1;
    square_ = true;
  }

  void Normalize(const Preprocessing& preprocessing, int64_t channels,
                 const std::string& net_input) {
    std::vector<float> mean, factor;
    for (int64_t c = 0; c < channels; ++c) {
      const auto of = [c](const std::vector<float>& values) {
        return values[values.size() == 1 ? 0 : static_cast<size_t>(c)];
      };
      mean.push_back(255 * of(preprocessing.mean));
      factor.push_back(1 / (255 * of(preprocessing.std)));
    }
    const std::string centred =
        Node("Sub", {value_, Array(Tensor::Floats({1, channels, 1, 1}, mean))});
    Node("Mul", {centred, Array(Tensor::Floats({1, channels, 1, 1}, factor))}, {}, net_input);
  }

  Model& model_;
  std::vector<ModelNode> nodes_;  // before those of the net
  std::string value_;
  int num_arrays_ = 0;
  // What is known of the images: their size (-1: differs), and the least length of an edge.
  int64_t height_ = -1, width_ = -1, shorter_ = 1;
  bool square_ = false;
};

// Nodes of opset 17 that are written differently since 18.
void RaiseOpset(Model* model) {
  if (model->opset < kAntialiasOpset) return;
  for (ModelNode& node : model->nodes) {
    const bool reduction = node.op.starts_with("Reduce") && node.attributes.contains("axes");
    if (!reduction) continue;
    const auto axes = std::get<std::vector<int64_t>>(node.attributes["axes"]);
    const std::string name = node.outputs[0] + "_axes";
    model->initializers[name] = Tensor::Ints({static_cast<int64_t>(axes.size())}, axes);
    node.inputs.push_back(name);
    node.attributes.erase("axes");
  }
}

}  // namespace

void AddPreprocessing(const Preprocessing& preprocessing, Model* model) {
  Chain(model).Add(preprocessing);
  RaiseOpset(model);
}

bool RemovePreprocessing(int64_t height, int64_t width, Model* model) {
  if (model->inputs.size() != 1 || model->inputs[0].dims.size() != 4) return false;
  ModelValue& input = model->inputs[0];
  const std::string net_input = kInputPrefix + input.name;
  auto first = model->nodes.begin();  // of the net
  while (first != model->nodes.end() && first->outputs.size() == 1 &&
         first->outputs[0].starts_with(kNodePrefix))
    ++first;
  if (first == model->nodes.end() || first->outputs != std::vector{net_input}) return false;
  ++first;
  const bool still_read = std::any_of(first, model->nodes.end(), [&](const ModelNode& node) {
    return std::ranges::any_of(node.inputs, [&](const std::string& name) {
      return name == input.name || name.starts_with(kNodePrefix);
    });
  });
  if (still_read) return false;
  model->nodes.erase(model->nodes.begin(), first);
  for (ModelNode& node : model->nodes) std::ranges::replace(node.inputs, net_input, input.name);
  std::erase_if(model->initializers,
                [](const auto& array) { return array.first.starts_with(kArrayPrefix); });
  input.type = ElementType::kFloat;
  input.dims = {ModelValue::kDynamic, input.dims[3], height, width};
  input.dim_names = {"N", "", "", ""};
  return true;
}

}  // namespace mxtrain::onnx
