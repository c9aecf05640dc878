// SPDX-License-Identifier: Apache-2.0
// Transforms move every part of an example that has coordinates alike: images, targets, points.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mxtrain/base/philox.h"
#include "mxtrain/io/image_targets.h"
#include "tests/support/augmented.h"
#include "tests/support/error_message.h"
#include "tests/support/pipeline_data.h"

namespace mxtrain::test {
namespace {

using Chain = std::vector<TransformSpec>;

// Black, with a white square of 7 pixels about the center of pixel (x, y).
Image MarkedAt(int height, int width, int x, int y, int channels) {
  Image image;
  image.Resize(height, width, channels);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{0});
  for (int v = y - 3; v <= y + 3; ++v) {
    for (int u = (x - 3) * channels; u < (x + 4) * channels; ++u) image.row(v)[u] = 255;
  }
  return image;
}

struct Run {
  Image image;
  ImageOrigin origin;
};

Run RunOf(const Chain& chain, const Image& image, int64_t index, bool target) {
  const Augmenter augmenter(chain, image.channels);
  Run run;
  Image scratch;
  const auto steps = augmenter.Begin(image.height, image.width, RandomStream(7, index % 3, index),
                                     0, augmenter.size(), {/*recolours=*/!target, &run.origin});
  augmenter.ToImage(steps, image, {image.height, image.width, {0, 0, image.height, image.width}, 1},
                    &run.image, &scratch);
  return run;
}

// Where the white of an image lies, and how much of it there is.
struct Mark {
  Point center;
  double white = 0;  // pixels
};

Mark MarkOf(const Image& image) {
  Mark mark;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const double white = image.row(y)[x * image.channels] / 255.0;
      mark.white += white;
      mark.center.x += white * (x + 0.5);
      mark.center.y += white * (y + 0.5);
    }
  }
  if (mark.white > 0) mark.center.x /= mark.white, mark.center.y /= mark.white;
  return mark;
}

const std::vector<Chain>& GeometricChains() {
  static const std::vector<Chain> chains = {
      {},
      {{"resize", {{"", "40"}}}},
      {{"resize", {{"", "(70, 50)"}, {"interpolation", "bicubic"}, {"antialias", "True"}}}},
      {{"resize", {{"", "(30, 90)"}, {"interpolation", "nearest"}}}},
      {{"center_crop", {{"", "48"}}}},
      {{"center_crop", {{"", "(50, 100)"}}}},
      {{"center_crop", {{"fraction", "0.8"}}}},
      {{"letterbox", {{"", "(60, 50)"}, {"fill", "0"}}}},
      {{"center_crop", {{"", "(30, 90)"}}},
       {"letterbox", {{"", "80"}, {"fill", "0"}}},
       {"flip", {}}},
      {{"flip", {}}},
      {{"flip", {{"direction", "vertical"}}}},
      {{"random_crop", {{"", "(44, 52)"}}}},
      {{"random_crop", {{"", "60"}, {"pad", "9"}}}},
      {{"random_crop", {{"", "(110, 50)"}, {"pad", "4"}}}},
      {{"random_resized_crop", {{"", "48"}, {"area", "0.3, 1"}}}},
      {{"rotate", {{"", "50"}}}},
      {{"rotate", {{"", "-10, 90"}, {"interpolation", "nearest"}, {"p", "0.7"}}}},
      {{"scale", {{"", "0.6, 1.6"}}}},
      {{"aspect", {{"", "0.6, 1.6"}}}},
      {{"shear", {{"", "30"}}}},
      {{"perspective", {{"", "0.6"}}}},
      {{"flip", {}},
       {"perspective", {{"p", "0.8"}}},
       {"center_crop", {{"", "50"}}},
       {"rotate", {{"", "20"}}}},
      {{"trivial_augment", {}}},
      {{"rand_augment", {{"n", "3"}, {"magnitude", "6"}, {"interpolation", "bilinear"}}}},
      // Merged, and not merged.
      {{"flip", {}},
       {"center_crop", {{"", "56"}}},
       {"resize", {{"", "40"}}},
       {"flip", {{"direction", "vertical"}}},
       {"random_crop", {{"", "36"}}},
       {"flip", {}}},
      {{"random_resized_crop", {{"", "(60, 44)"}, {"area", "0.4, 1"}}},
       {"flip", {}},
       {"rotate", {{"", "15"}}},
       {"random_crop", {{"", "48"}, {"pad", "4"}}},
       {"resize", {{"", "(52, 66)"}}},
       {"trivial_augment", {}},
       {"shear", {{"", "10"}}},
       {"flip", {{"direction", "vertical"}}},
       {"center_crop", {{"", "40"}}},
       {"resize", {{"", "55"}}}},
  };
  return chains;
}

// Changes values, and draws; after each step pixels move again, by numbers drawn after it.
const Chain kColourful = {{"brightness", {{"", "0.4"}}},
                          {"flip", {}},
                          {"contrast", {{"", "0.4"}}},
                          {"rotate", {{"", "20"}}},
                          {"saturation", {{"", "0.5"}}},
                          {"random_crop", {{"", "50"}, {"pad", "2"}}},
                          {"hue", {{"", "0.3"}}},
                          {"shear", {{"", "9"}}},
                          {"lighting", {}},
                          {"flip", {{"direction", "vertical"}}},
                          {"gaussian_noise", {{"", "0.2"}}},
                          {"scale", {{"", "0.8, 1.2"}}},
                          {"trivial_augment", {}},
                          {"rand_augment", {{"n", "4"}}},
                          {"random_erasing", {{"p", "0.7"}, {"noise", "True"}}},
                          {"random_resized_crop", {{"", "40"}}},
                          {"random_erasing", {{"p", "0.7"}}},
                          {"aspect", {{"", "0.8, 1.2"}}}};

// The same without what it does to values, drawing as much.
Chain Colourless() {
  Chain chain = kColourful;
  std::erase_if(chain, [](const TransformSpec& spec) {
    return spec.name == "trivial_augment" || spec.name == "rand_augment" ||
           spec.name == "random_erasing";
  });
  for (TransformSpec& spec : chain) {
    if (spec.name == "hue") spec.name = "brightness";  // a rotation by nothing still rounds
    for (const char* name :
         {"brightness", "contrast", "saturation", "hue", "lighting", "gaussian_noise"}) {
      if (spec.name == name)
        spec.kwargs = {
            {spec.name == "lighting" || spec.name == "gaussian_noise" ? "std" : "amount", "0"}};
    }
  }
  return chain;
}

Chain Without(Chain chain, const std::vector<std::string>& names) {
  std::erase_if(chain, [&](const TransformSpec& spec) {
    return std::count(names.begin(), names.end(), spec.name) > 0;
  });
  return chain;
}

Image Random(int height, int width, int channels, uint64_t seed) {
  Image image;
  image.Resize(height, width, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(PhiloxAt(seed, 5, 6, i));
  return image;
}

// How much larger an area about a point becomes.
double AreaScaleAt(const PointMap& map, const Point& p) {
  constexpr double kStep = 1e-4;
  const Point here = map(p), right = map({p.x + kStep, p.y}), below = map({p.x, p.y + kStep});
  return std::abs((right.x - here.x) * (below.y - here.y) -
                  (right.y - here.y) * (below.x - here.x)) /
         (kStep * kStep);
}

}  // namespace

TEST_CASE("maps of points: one after the other, and back") {
  const PointMap shear{1.5, 0.25, 3, -0.5, 0.75, 8},
      tilt{1.1, 0.05, 2, -0.1, 0.9, 4, 0.002, -0.001, 1.1};
  for (const auto& [first, second] : {std::pair(shear, tilt), std::pair(tilt, shear),
                                      std::pair(tilt, tilt), std::pair(shear, shear)}) {
    for (const Point p : {Point{0, 0}, Point{30, 5}, Point{11, 47}}) {
      const Point one_by_one = second(first(p)), at_once = first.Then(second)(p);
      CHECK(at_once.x == doctest::Approx(one_by_one.x));
      CHECK(at_once.y == doctest::Approx(one_by_one.y));
      const Point back = first.Then(second).Inverse()(at_once);
      CHECK(std::abs(back.x - p.x) < 1e-9);
      CHECK(std::abs(back.y - p.y) < 1e-9);
    }
  }
}

TEST_CASE("perspective: corners move inward, and what was between them is inside") {
  std::set<int> shifts;
  for (int64_t index = 0; index < 60; ++index) {
    const Image image = Random(48, 80, 3, 3);
    const Run run = RunOf({{"perspective", {{"", "0.4"}, {"fill", "9"}}}}, image, index, false);
    const PointMap map = run.origin.map();
    const double most_x = 0.4 * 80 / 2, most_y = 0.4 * 48 / 2;
    for (const Point corner : {Point{0, 0}, Point{80, 0}, Point{80, 48}, Point{0, 48}}) {
      const Point to = map(corner);
      const double x = std::abs(to.x - corner.x), y = std::abs(to.y - corner.y);
      CHECK(x <= most_x + 1e-9);
      CHECK(y <= most_y + 1e-9);
      CHECK((to.x - corner.x) * (40 - corner.x) >= -1e-9);  // inward
      CHECK((to.y - corner.y) * (24 - corner.y) >= -1e-9);
      shifts.insert(static_cast<int>(100 * x / most_x));
    }
    // Pixels whose place in the image is outside of it are filled.
    const PointMap back = map.Inverse();
    for (int y = 0; y < 48; ++y) {
      for (int x = 0; x < 80; ++x) {
        const Point from = back({x + 0.5, y + 0.5});
        if (from.x > -1.1 && from.x < 81.1 && from.y > -1.1 && from.y < 49.1) continue;
        CHECK(run.image.row(y)[x * 3] == 9);
      }
    }
  }
  CHECK(shifts.size() > 60);
  const Image image = Random(20, 20, 1, 4);
  CHECK(RunOf({{"perspective", {{"p", "0"}}}}, image, 1, false).image.pixels == image.pixels);
  CHECK(RunOf({{"perspective", {{"", "0"}}}}, image, 1, false).image.pixels == image.pixels);
}

TEST_CASE("a point moves with the pixels that it marks") {
  constexpr int kHeight = 64, kWidth = 80;
  int compared = 0, left = 0, lost = 0;
  for (size_t c = 0; c < GeometricChains().size(); ++c) {
    for (int64_t index = 0; index < 24; ++index) {
      const int x = 10 + static_cast<int>(index * 23 % 60),
                y = 10 + static_cast<int>(index * 17 % 44);
      const Image image = MarkedAt(kHeight, kWidth, x, y, index % 2 ? 3 : 1);
      const Run run = RunOf(GeometricChains()[c], image, index, /*target=*/true);
      const Point moved = run.origin.map()({x + 0.5, y + 0.5});
      const Mark mark = MarkOf(run.image);
      const double right = run.image.width - moved.x, below = run.image.height - moved.y,
                   inside = std::min({moved.x, moved.y, right, below});
      CAPTURE(c);
      CAPTURE(index);
      const double whole = 49 * AreaScaleAt(run.origin.map(), {x + 0.5, y + 0.5});
      if (inside > 9 && mark.white < 0.75 * whole) {
        ++lost;  // the pixels left the image between two steps; the point came back
      } else if (inside > 9) {
        ++compared;
        CHECK(std::abs(mark.center.x - moved.x) < 1);
        CHECK(std::abs(mark.center.y - moved.y) < 1);
      } else if (inside < -16) {
        ++left;
        CHECK(mark.white < 1);
      }
    }
  }
  CHECK(compared > 250);
  CHECK(lost < 12);
  CHECK(left > 10);
}

TEST_CASE("the images of an example and its target have one map, whatever changes their values") {
  for (int64_t index = 0; index < 40; ++index) {
    const Image first = Random(64, 72, 3, 1), second = Random(64, 72, 3, 2);
    const Run data = RunOf(kColourful, first, index, false),
              other = RunOf(kColourful, second, index, false),
              target = RunOf(kColourful, second, index, true);
    for (const Run* run : {&other, &target}) {
      CHECK(run->image.height == data.image.height);
      const Point at = data.origin.map()({3, 60}), same = run->origin.map()({3, 60});
      CHECK(at.x == same.x);
      CHECK(at.y == same.y);
    }
  }
}

TEST_CASE("a target keeps its values and moves as an image whose values are left alone") {
  const Chain coloured = Without(kColourful, {"trivial_augment", "rand_augment", "random_erasing"});
  for (int64_t index = 0; index < 20; ++index) {
    const Image image = Random(64, 72, index % 2 ? 3 : 1, 3);
    CHECK(RunOf(coloured, image, index, true).image.pixels ==
          RunOf(Colourless(), image, index, false).image.pixels);
    const Chain only_values =
        Without(kColourful, {"flip", "rotate", "random_crop", "shear", "scale", "trivial_augment",
                             "rand_augment", "random_resized_crop", "aspect"});
    CHECK(RunOf(only_values, image, index, true).image.pixels == image.pixels);
    CHECK(RunOf(only_values, image, index, false).image.pixels != image.pixels);
  }
}

TEST_CASE("gaussian_noise has its deviation, is rounded and stays within white and black") {
  Image gray;
  gray.Resize(101, 99, 1);  // an odd number of pixels
  std::fill(gray.pixels.begin(), gray.pixels.end(), uint8_t{128});
  const Image noisy = Augmented({{"gaussian_noise", {{"", "0.1"}}}}, gray);
  double sum = 0, squares = 0;
  for (const uint8_t value : noisy.pixels) {
    sum += value - 128;
    squares += (value - 128.0) * (value - 128.0);
  }
  const auto n = static_cast<double>(noisy.pixels.size());
  CHECK(std::abs(sum / n) < 1);
  CHECK(std::sqrt(squares / n) == doctest::Approx(25.5).epsilon(0.03));
  CHECK(noisy.pixels != Augmented({{"gaussian_noise", {{"", "0.1"}}}}, gray, 1).pixels);
  CHECK(Augmented({{"gaussian_noise", {{"std", "0"}}}}, gray).pixels == gray.pixels);
  const Image strong = Augmented({{"gaussian_noise", {{"", "5"}}}}, gray);
  CHECK(std::count(strong.pixels.begin(), strong.pixels.end(), 0) > 4000);
  CHECK(std::count(strong.pixels.begin(), strong.pixels.end(), 255) > 4000);
  CHECK(MessageOf([] {
          Augmenter({{"gaussian_noise", {{"", "-1"}}}}, 1);
        }).find("gaussian_noise: std = '-1': -1 is out of range") != std::string::npos);
  CHECK(EvaluationTransforms({{"gaussian_noise", {{"", "0.1"}}}}).empty());
}

namespace {

// Images as pixels, each with its points and a target.
class Pointed final : public Source {
 public:
  Pointed(int64_t size, int64_t most) {
    for (int64_t i = 0; i < size; ++i) {
      images_.push_back(Random(20, 24, 3, static_cast<uint64_t>(i)));
      std::vector<float>& points = points_.emplace_back();
      for (int64_t k = 0; k < i % 4; ++k)
        points.insert(points.end(), {static_cast<float>(3 * k + 1), static_cast<float>(2 * k + 5),
                                     static_cast<float>(100 * i + k)});
    }
    labels_[0].shape = TShape{most, 3};
  }
  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_; }
  const std::vector<FieldSpec>& label_fields() const override { return labels_; }
  void Read(int64_t index, Sample* sample) const override {
    const auto i = static_cast<size_t>(index);
    sample->data.resize(1);
    sample->labels.resize(2);
    sample->data[0].pixels = sample->labels[1].pixels = images_[i].pixels;
    sample->labels[0].values = points_[i];
  }
  std::string Name(int64_t index) const override { return format("example {}", index); }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return none_; }

  std::vector<Image> images_;
  std::vector<std::vector<float>> points_;
  std::vector<std::string> none_;
  std::vector<FieldSpec> data_ = {{"data", FieldKind::kImage, TShape{3, 20, 24}}},
                         labels_ = {{"points", FieldKind::kPoints, TShape{3, 3}},
                                    {"clean", FieldKind::kImage, TShape{3, 20, 24}}};
};

struct Labels {
  std::vector<float> data, points, image;
  std::vector<int64_t> index;
  bool operator==(const Labels&) const = default;
};

std::vector<Labels> LabelsOf(DataIter& iter, int64_t epoch = 0, int64_t first = 0) {
  std::vector<Labels> all;
  DataBatch batch;
  iter.Reset(epoch, first);
  while (iter.Next(&batch))
    all.push_back({batch.data[0].ToVector(), batch.label[0].ToVector(), batch.label[1].ToVector(),
                   batch.index});
  return all;
}

const Chain kMoving = {
    {"resize", {{"", "30"}}}, {"random_crop", {{"", "24"}}},     {"flip", {}},
    {"rotate", {{"", "20"}}}, {"gaussian_noise", {{"", "0.1"}}}, {"normalize", {{"mean", "0.4"}}}};

}  // namespace

TEST_CASE("points are moved, padded, and dropped where they leave the image") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Pointed>(9, 3);
  const auto plain = NewPipeline(runtime, source, {}, Param({{"batch_size", "9"}}));
  CHECK(plain->provide_label()[0].shape == TShape{9, 3, 3});
  CHECK(plain->provide_label()[1].shape == TShape{9, 3, 20, 24});
  const std::vector<float> as_given = LabelsOf(*plain)[0].points;
  CHECK(std::vector<float>(as_given.begin() + 18, as_given.begin() + 27) ==
        std::vector<float>{1, 5, 200, 4, 7, 201, -1, -1, -1});
  CHECK(as_given[0] == -1);

  // The left half, mirrored: x becomes 12 - x.
  const auto cropped = NewPipeline(
      runtime, source,
      {{"resize", {{"", "20"}}}, {"center_crop", {{"", "(20, 12)"}}}, {"flip", {{"", "1"}}}},
      Param({{"batch_size", "9"}}));
  const std::vector<float> moved = LabelsOf(*cropped)[0].points;
  // Of (1, 5), (4, 7) and (7, 9) the last is within 6 .. 18.
  CHECK(std::vector<float>(moved.begin() + 27, moved.begin() + 36) ==
        std::vector<float>{11, 9, 302, -1, -1, -1, -1, -1, -1});
  CHECK(std::all_of(moved.begin(), moved.begin() + 27, [](float x) { return x == -1; }));
}

TEST_CASE("targets and points do not depend on workers, the cache, parts or where one begins") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Pointed>(26, 3);
  const auto make = [&](const Kwargs& more) {
    Kwargs kwargs = {{"batch_size", "4"}, {"shuffle", "True"}, {"seed", "3"}};
    for (const auto& param : more) {
      std::erase_if(kwargs, [&](const auto& known) { return known.first == param.first; });
      kwargs.push_back(param);
    }
    return NewPipeline(runtime, source, kMoving, Param(kwargs));
  };
  const auto iter = make({{"workers", "1"}});
  const std::vector<Labels> first = LabelsOf(*iter), second = LabelsOf(*iter, 1);
  CHECK(first.size() == 6);
  CHECK(first[0].points != second[0].points);
  const auto cached = make({{"cache", "ram"}, {"workers", "3"}});
  for (int round = 0; round < 2; ++round) {
    const std::vector<Labels> again = LabelsOf(*cached);
    for (size_t b = 0; b < first.size(); ++b) {
      CHECK(again[b].data == first[b].data);
      CHECK(again[b].image == first[b].image);
      CHECK(again[b].points.size() == first[b].points.size());
      for (size_t i = 0; i < first[b].points.size(); ++i)
        CHECK(again[b].points[i] == doctest::Approx(first[b].points[i]).epsilon(1e-5));
    }
  }
  CHECK((LabelsOf(*make({{"workers", "2"}}), 1, 4) ==
         std::vector<Labels>(second.begin() + 4, second.end())));
  for (const char* part : {"0", "1"}) {
    const size_t begin = part[0] == '1' ? 2 : 0;
    const auto own =
        LabelsOf(*make({{"batch_size", "2"}, {"num_parts", "2"}, {"part_index", part}}));
    for (size_t b = 0; b < first.size(); ++b) {
      const auto& all = first[b].points;
      CHECK(own[b].points ==
            std::vector<float>(all.begin() + static_cast<ptrdiff_t>(9 * begin),
                               all.begin() + static_cast<ptrdiff_t>(9 * begin + 18)));
      const auto size = static_cast<ptrdiff_t>(first[b].image.size() / 4);
      CHECK(own[b].image ==
            std::vector<float>(first[b].image.begin() + size * static_cast<ptrdiff_t>(begin),
                               first[b].image.begin() + size * static_cast<ptrdiff_t>(begin + 2)));
    }
  }
}

TEST_CASE("a target is pixel / 255, also where the data is normalized or fed as pixels") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Pointed>(6, 3);
  for (const bool pixels : {false, true}) {
    for (const Chain& chain :
         {Chain{{"normalize", {{"mean", "0.4"}, {"std", "0.2"}}}},
          Chain{{"brightness", {{"", "0.5"}}}, {"gaussian_noise", {{"", "0.3"}}}}}) {
      PipelineParam param = Param({{"batch_size", "6"}});
      param.pixels = pixels;
      const auto iter = NewPipeline(runtime, source, chain, param);
      DataBatch batch;
      REQUIRE(iter->Next(&batch));
      const std::vector<float> planes = batch.label[1].ToVector();
      int different = 0;
      for (size_t i = 0; i < 6; ++i) {
        for (size_t k = 0; k < 480; ++k) {
          for (size_t c = 0; c < 3; ++c) {
            different += planes[(i * 3 + c) * 480 + k] !=
                         static_cast<float>(source->images_[i].pixels[3 * k + c]) / 255.0f;
          }
        }
      }
      CHECK(different == 0);
    }
  }
}

TEST_CASE("a target is read at the bits of the data") {
  const TempDir dir;
  std::string body;
  for (int i = 0; i < 12 * 10; ++i) {
    body += static_cast<char>(i * 2);
    body += static_cast<char>(i * 7);
  }
  dir.Write("deep/a/1.pgm", "P5 12 10 65535\n" + body);
  const std::shared_ptr<const Source> source =
      MakeSource("image_folder", {{"path", dir.path("deep")}, {"label", "image"}});
  Runtime runtime = MakeRuntime();
  const auto iter = NewPipeline(runtime, source, {{"random_crop", {{"", "8"}}}, {"flip", {}}},
                                Param({{"batch_size", "1"}, {"bits", "16"}, {"channels", "1"}}));
  DataBatch batch;
  REQUIRE(iter->Next(&batch));
  const std::vector<float> label = batch.label[0].ToVector();
  CHECK(label == batch.data[0].ToVector());
  CHECK(std::any_of(label.begin(), label.end(),
                    [](float x) { return std::abs(x * 255 - std::round(x * 255)) > 0.1f; }));
}

TEST_CASE("labels that do not fit their images are refused") {
  Runtime runtime = MakeRuntime();
  const auto source = std::make_shared<Pointed>(8, 2);
  const auto evaluated =
      NewPipeline(runtime, source, {}, Param({{"batch_size", "8"}, {"mode", "evaluation"}}));
  DataBatch batch;
  REQUIRE(evaluated->Next(&batch));
  REQUIRE(batch.bad.size() == 2);
  CHECK(batch.bad[0].reason == "'points' has 3 points, more than the 2 of a batch");
  CHECK(batch.count == 6);
  source->points_[1].pop_back();
  source->labels_[1].shape = TShape{3, 24, 20};
  const auto odd = NewPipeline(runtime, source, {{"center_crop", {{"", "8"}}}},
                               Param({{"batch_size", "8"}, {"mode", "evaluation"}}));
  REQUIRE(odd->Next(&batch));
  REQUIRE(batch.bad.size() == 8);
  CHECK(batch.bad[1].reason == "'points' has 2 numbers, which are no points of 3 numbers");
  CHECK(batch.bad[0].reason == "the image has 24x20 pixels, but its target 'clean' has 20x24");
  const auto why_not = [&](const Kwargs& more) {
    Kwargs kwargs = {{"batch_size", "4"}};
    kwargs.insert(kwargs.end(), more.begin(), more.end());
    return MessageOf([&] { NewPipeline(runtime, source, {}, Param(kwargs)); });
  };
  CHECK(why_not({{"mixup", "0.2"}, {"soft_labels", "3"}}) ==
        "mixup and cutmix mix the classes of two examples, but the label 'points' is points "
        "of an image: turn them off");
  CHECK(why_not({{"soft_labels", "3"}}) ==
        "the label 'points' is points of an image; only the number of a class becomes a "
        "distribution over classes");
  source->labels_.erase(source->labels_.begin());
  CHECK(why_not({{"cutmix", "1"}}).find("the label 'clean' is an image: turn them off") !=
        std::string::npos);
}

TEST_CASE("image targets: the image itself, or the file of its name in another folder") {
  const TempDir dir;
  for (int i = 0; i < 6; ++i) {
    const Image image = Numbered(i);
    dir.Write(format("noisy/{}/{}.png", i % 2 ? "odd" : "even", i), EncodePng(image));
    Image inverse = image;
    for (uint8_t& value : inverse.pixels) value = static_cast<uint8_t>(255 - value);
    const bool jpeg = i == 4;
    dir.Write(format("clean/{}/{}.{}", i % 2 ? "odd" : "even", i, jpeg ? "JPG" : "png"),
              jpeg ? EncodeJpeg(inverse) : EncodePng(inverse));
  }
  const std::string noisy = dir.path("noisy"), clean = dir.path("clean");
  Runtime runtime = MakeRuntime();
  const Chain chain = {{"random_resized_crop", {{"", "16"}}}, {"flip", {}}};
  const auto load = [&](const Kwargs& params, const Kwargs& more = {}) {
    Kwargs kwargs = {{"batch_size", "6"}, {"mode", "evaluation"}};
    kwargs.insert(kwargs.end(), more.begin(), more.end());
    const std::shared_ptr<const Source> source = MakeSource("image_folder", params);
    CHECK(source->class_names().empty());
    const auto iter = NewPipeline(runtime, source, chain, Param(kwargs));
    CHECK(iter->provide_label()[0].name == "label");
    CHECK(iter->provide_label()[0].shape == TShape{6, 3, 16, 16});
    DataBatch batch;
    REQUIRE(iter->Next(&batch));
    return batch;
  };
  for (const char* cache : {"none", "ram"}) {
    const DataBatch own = load({{"path", noisy}, {"label", "image"}}, {{"cache", cache}});
    CHECK(own.data[0].ToVector() == own.label[0].ToVector());
    const DataBatch pair =
        load({{"path", noisy}, {"label", "image"}, {"targets", clean}}, {{"cache", cache}});
    const std::vector<float> data = pair.data[0].ToVector(), label = pair.label[0].ToVector();
    double worst = 0;
    for (size_t i = 0; i < data.size(); ++i)
      worst = std::max(worst, std::abs(1.0 - double{data[i]} - double{label[i]}));
    CHECK(worst < 0.25);  // of a JPEG; of others 1 / 255
    CHECK(pair.bad.empty());
  }

  std::filesystem::remove(dir.path("clean/odd/3.png"));
  dir.Write("clean/even/2.png", EncodePng(Numbered(3)));
  const DataBatch bad = load({{"path", noisy}, {"label", "image"}, {"targets", clean}});
  REQUIRE(bad.bad.size() == 2);
  CHECK(bad.bad[0].reason == "the image has 32x26 pixels, but its target 'label' has 33x27");
  CHECK(bad.bad[1].reason ==
        "its target " + clean + "/odd/3.png does not exist, nor with the ending of another image");

  const auto why_not = [&](const char* kind, const Kwargs& params) {
    return MessageOf([&] { MakeSource(kind, params); });
  };
  CHECK(why_not("image_folder", {{"path", noisy}, {"targets", clean}}) ==
        format("targets = '{}' needs label = image or mask", clean));
  CHECK(why_not("image_folder", {{"path", noisy}, {"label", "image"}, {"targets", "none"}}) ==
        "targets = 'none': there is no such folder");
  dir.Write("cifar/test_batch.bin", std::string(3073, '\1'));
  CHECK(
      why_not(
          "cifar10",
          {{"path", dir.path("cifar")}, {"split", "test"}, {"label", "image"}, {"targets", clean}})
          .find("the images are not files of their own") != std::string::npos);
  const auto cifar =
      MakeSource("cifar10", {{"path", dir.path("cifar")}, {"split", "test"}, {"label", "image"}});
  CHECK(cifar->label_fields()[0].shape == TShape{3, 32, 32});
  CHECK_FALSE(cifar->ClassOf(0).has_value());
  CHECK(MakeSource(
            "image_folder",
            {{"path", noisy}, {"label", "image"}, {"holdout", "0.5"}, {"holdout_side", "held_out"}})
            ->size() == 3);

  dir.Write("pairs.csv",
            "from,to\nnoisy/odd/1.png,clean/odd/1.png\nnoisy/odd/5.png,clean/odd/5.png\n");
  const std::shared_ptr<const Source> table = MakeSource("csv", {{"path", dir.path("pairs.csv")},
                                                                 {"picture_fields", "data"},
                                                                 {"image_labels", "answer"},
                                                                 {"data_fields", "data=from"},
                                                                 {"label_fields", "answer=to"}});
  CHECK(table->label_fields()[0].kind == FieldKind::kImage);
  CHECK(table->FileOf(1) == dir.path("noisy/odd/5.png"));
  Sample sample;
  CHECK(table->LabelOf(0, 0, &sample).empty());
  const auto pairs = NewPipeline(runtime, table, chain, Param({{"batch_size", "2"}}));
  DataBatch batch;
  REQUIRE(pairs->Next(&batch));
  const float image = batch.data[0].ToVector()[7], answer = batch.label[0].ToVector()[7];
  CHECK(std::abs(1 - image - answer) < 0.01);
}

}  // namespace mxtrain::test
