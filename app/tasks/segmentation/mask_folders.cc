// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/segmentation/mask_folders.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include "app/tasks/recipe_text.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/folder_names.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/image_formats.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostMasks = 200;      // that are read
constexpr size_t kMostColours = 64;      // of masks in colours
constexpr int64_t kSeenImages = 20'000;  // in all epochs
constexpr double kMaskHoldout = 0.2;

constexpr std::string_view kImageFolders[] = {"images", "image",      "imgs",
                                              "img",    "jpegimages", "rgb"};
constexpr std::string_view kMaskFolders[] = {
    "masks",  "mask", "labels", "label", "annotations", "gt", "groundtruth", "segmentationclass",
    "targets"};

bool IsOneOf(std::string_view name, std::span<const std::string_view> names) {
  const std::string lower = Lower(std::string(name));
  return std::ranges::find(names, lower) != names.end();
}

// Images and their masks.
struct Pair {
  fs::path images, masks;
};

bool HoldsImages(const fs::path& folder) {
  std::error_code broken;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(
           folder, fs::directory_options::skip_permission_denied, broken)) {
    if (io::HasImageEnding(entry.path().string())) return true;
  }
  return false;
}

std::optional<Pair> PairIn(const fs::path& folder) {
  Pair pair;
  std::error_code broken;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, broken)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory(broken)) continue;
    if (IsOneOf(name, kImageFolders)) pair.images = entry.path();
    if (IsOneOf(name, kMaskFolders)) pair.masks = entry.path();
  }
  if (pair.images.empty() || pair.masks.empty() || !HoldsImages(pair.masks)) return std::nullopt;
  return pair;
}

// The folder of this part of the data, by its name; of several the first.
fs::path PartOf(const fs::path& folder, io::Split split) {
  fs::path found;
  std::error_code broken;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, broken)) {
    const bool fits =
        entry.is_directory(broken) && io::SplitOf(entry.path().filename().string()) == split;
    if (fits && (found.empty() || entry.path() < found)) found = entry.path();
  }
  return found;
}

std::optional<Pair> PairOf(const fs::path& root, io::Split split) {
  if (const fs::path part = PartOf(root, split); !part.empty()) return PairIn(part);
  const auto all = PairIn(root);
  if (!all) return std::nullopt;
  const Pair part{PartOf(all->images, split), PartOf(all->masks, split)};
  if (part.images.empty() || part.masks.empty()) return std::nullopt;
  return part;
}

// The facts that the choice of net and training depends on.
struct MaskFolder {
  std::string name;
  std::string train, train_masks, val, val_masks;  // empty val: held out of the training folder
  std::string suffix;                              // of the masks' names
  int64_t train_images = 0, val_images = 0;
  int height = 0, width = 0;         // the medians
  std::vector<std::string> classes;  // names, or numbers
  bool named = false;
  std::vector<std::string> colours;  // of masks in colours, one for each class
  std::vector<std::string> ignored;
};

// Names, one in each line; none without such a file.
std::vector<std::string> NamesIn(const fs::path& root) {
  for (const char* file : {"classes.txt", "class_names.txt", "labels.txt"}) {
    std::error_code none;
    if (!fs::is_regular_file(root / file, none)) continue;
    std::vector<std::string> names;
    std::istringstream text(ReadFile((root / file).string()));
    for (std::string line; std::getline(text, line);) {
      if (names.empty() && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
      if (const std::string_view name = Trim(line, " \t\r"); !name.empty())
        names.emplace_back(name);
    }
    return names;
  }
  return {};
}

std::shared_ptr<const io::Source> OpenImages(const fs::path& folder) {
  return io::MakeSource("image_list", {{"path", folder.string()}, {"recursive", "True"}});
}

// What is in the masks: numbers; if they are not classes, colours with how many pixels have each.
struct MaskValues {
  std::set<int> numbers;
  std::map<std::string, int64_t> colours;
  bool gray = true;  // the colours are levels of gray, in their order
  int64_t pixels = 0;
};

void AddMask(const io::Image& image, const std::string& name, MaskValues* values) {
  const auto channels = static_cast<size_t>(image.channels);
  const size_t pixels = static_cast<size_t>(image.height) * static_cast<size_t>(image.width);
  values->pixels += static_cast<int64_t>(pixels);
  for (size_t p = 0; p < pixels; ++p) {
    const auto value = [&](size_t c) -> int {
      const size_t at = p * channels + std::min(c, channels - 1);
      return image.is_deep() ? image.deep[at] : image.pixels[at];
    };
    if (value(0) > 255 || value(1) > 255 || value(2) > 255)
      Throw(ErrorKind::kData, "{} has the number {}; masks have at most 255 classes", name,
            std::max({value(0), value(1), value(2)}));
    const bool gray = value(0) == value(1) && value(1) == value(2);
    values->gray = values->gray && gray;
    if (gray) values->numbers.insert(value(0));
    if (values->colours.size() <= kMostColours)
      ++values->colours[format("#{:02x}{:02x}{:02x}", value(0), value(1), value(2))];
  }
}

// Of masks spread over the folder. Throws kData for one that cannot be decoded.
MaskValues ValuesOf(const io::Source& masks) {
  MaskValues values;
  const int64_t count = std::min(masks.size(), kMostMasks);
  io::Sample sample;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = i * masks.size() / count;
    masks.Read(index, &sample);
    io::DecodeOptions stored;
    stored.as_stored = true;
    stored.bits = 16;
    const auto image = io::DecodeImage(sample.data[0].encoded, stored);
    if (!image) Throw(ErrorKind::kData, "{}: {}", masks.Name(index), image.error().reason);
    AddMask(*image, masks.Name(index), &values);
  }
  // Gray levels far apart, as 0 and 255, are colours too.
  std::set<int> below = values.numbers;
  below.erase(255);
  const int highest = below.empty() ? 0 : *below.rbegin();
  const bool levels = values.gray && (values.numbers == std::set<int>{0, 255} ||
                                      highest + 1 > 3 * std::ssize(below));
  if (values.gray && !levels) values.colours.clear();
  if (values.colours.size() > kMostColours) {
    Throw(ErrorKind::kData,
          "the masks have more than {} colours, so that they say no classes; a mask is a PNG whose "
          "indices, gray values or colours are classes",
          kMostColours);
  }
  return values;
}

// Soft edges make colours that are no classes.
void WarnOfRare(const MaskValues& values, const Logger& log) {
  std::vector<std::string> rare;
  for (const auto& [colour, count] : values.colours) {
    if (count * 200 < values.pixels) rare.push_back(colour);
  }
  if (rare.empty()) return;
  log.Write(
      LogLevel::kWarning,
      format("fewer than one pixel in 200 of the masks has the colour {}: of soft edges, it is "
             "no class; list it as mask_ignore then, not among the classes",
             FirstOf(rare, 8)));
}

void NameClasses(const MaskValues& values, const fs::path& root, const Logger& log,
                 MaskFolder* folder) {
  const std::vector<std::string> names = NamesIn(root);
  size_t found = 0;
  if (!values.colours.empty()) {
    WarnOfRare(values, log);
    std::vector<std::pair<int64_t, std::string>> colours;  // levels in their order, else by pixels
    for (const auto& [colour, count] : values.colours)
      colours.emplace_back(values.gray ? 0 : -count, colour);
    std::ranges::sort(colours);
    for (const auto& [count, colour] : colours) folder->colours.push_back(colour);
    found = colours.size();
    folder->named = values.gray && names.size() == found;
    if (!names.empty() && !folder->named) {
      log.Write(LogLevel::kWarning,
                format("which of the {} colours of the masks has which of the {} names of the list "
                       "of classes is not known: put them into mask_classes in the order of "
                       "mask_colours",
                       found, names.size()));
    }
  } else {
    for (const int number : values.numbers) {
      if (number != 255) found = std::max(found, static_cast<size_t>(number) + 1);
    }
    folder->named = !names.empty();
    for (const int number : values.numbers) {
      if (folder->named && number >= std::ssize(names) && number != 255)
        folder->ignored.push_back(std::to_string(number));
    }
    if (!folder->ignored.empty()) {
      log.Write(
          LogLevel::kWarning,
          format("the list of classes has {}, from 0 to {}; the masks have also {}, which "
                 "are written as mask_ignore: of no class",
                 Counted(names.size(), "name"), names.size() - 1, FirstOf(folder->ignored, 8)));
    }
  }
  if (folder->named) folder->classes = names;
  for (size_t k = 0; k < found && !folder->named; ++k)
    folder->classes.push_back(format("class_{}", k));
}

// The path below the folder, without its ending.
std::string StemOf(const std::string& file, const fs::path& folder) {
  return fs::path(file).lexically_relative(folder).replace_extension().generic_string();
}

// What the names of the masks have after those of their images; reports images without a mask.
std::string SuffixOf(const io::Source& images, const io::Source& masks, const Pair& pair,
                     const Logger& log) {
  std::set<std::string> stems;
  for (int64_t i = 0; i < masks.size(); ++i) stems.insert(StemOf(masks.FileOf(i), pair.masks));
  const auto without = [&](const std::string& suffix) {
    std::vector<std::string> lacking;
    for (int64_t i = 0; i < images.size(); ++i) {
      if (!stems.contains(StemOf(images.FileOf(i), pair.images) + suffix))
        lacking.push_back(images.FileOf(i));
    }
    return lacking;
  };
  std::string best;
  std::vector<std::string> lacking = without("");
  const std::string first = StemOf(images.FileOf(0), pair.images);
  for (auto stem = stems.lower_bound(first); stem != stems.end() && stem->starts_with(first);
       ++stem) {
    const std::string suffix = stem->substr(first.size());
    std::vector<std::string> fewer = without(suffix);
    if (fewer.size() < lacking.size()) best = suffix, lacking = std::move(fewer);
  }
  if (std::ssize(lacking) == images.size()) {
    Throw(ErrorKind::kData, "none of the images in {} has a mask of its name in {}",
          pair.images.string(), pair.masks.string());
  }
  if (!lacking.empty()) {
    log.Write(LogLevel::kWarning, format("{} of {} images have no mask (first: {})", lacking.size(),
                                         images.size(), lacking[0]));
  }
  return best;
}

// The configuration of a net from random weights.
constexpr const char* kSmallNet = R"(
blocks:
  conv:
    params: {width, stride: 1}
    layers:
      - Convolution: {num_filter: "${width}", kernel: 3, pad: 1, stride: "${stride}", no_bias: true}
      - BatchNorm: {fix_gamma: false}
      - Activation: {act_type: relu}
  finer:                                  # twice as fine, beside what was seen at that size (U-Net)
    params: {width}
    inputs: [deep, fine]
    layers:
      - UpSampling: {name: up, inputs: deep, scale: 2, sample_type: nearest}
      - Concat: {inputs: [up, fine]}
      - conv: {width: "${width}"}

)";
constexpr const char* kSmallLayers = R"(    - conv: {name: fine1, width: 24, stride: 2}
    - conv: {name: fine2, width: 48, stride: 2}
    - conv: {name: fine2b, width: 48}
    - conv: {name: fine3, width: 96, stride: 2}
    - conv: {name: fine3b, width: 96}
    - conv: {name: fine4, width: 160, stride: 2}
    - conv: {name: fine4b, width: 160}
    - conv: {name: fine5, width: 160, stride: 2}
    - finer: {name: up4, inputs: [fine5, fine4b], width: 128}
    - finer: {name: up3, inputs: [up4, fine3b], width: 96}
    - finer: {name: up2, inputs: [up3, fine2b], width: 64}
    - finer: {name: up1, inputs: [up2, fine1], width: 48}
    - Convolution: {name: scores, num_filter: "${classes}", kernel: 1}
    - BilinearResize2D: {name: full_size, scale_height: 2, scale_width: 2, align_corners: false}
    - SoftmaxOutput: {name: pixels, multi_output: true, use_ignore: true, normalization: valid}
)";

class MaskFolders final : public Recipe {
 public:
  explicit MaskFolders(MaskFolder folder) : folder_(std::move(folder)) {}

  void Choose(const RecipeChoice& choice) override {
    choice_ = choice;
    RequireTrunk(choice, "masks");
    const io::ImageSize input = TrunkInput({folder_.height, folder_.width}, choice.input_size);
    height_ = input.height, width_ = input.width;
    const int64_t epochs = kSeenImages / std::max<int64_t>(folder_.train_images, 1) / 5 * 5;
    epochs_ = std::clamp<int64_t>(epochs, 10, 100);
    batch_ = folder_.train_images >= 80 ? 8 : 4;
  }

  std::string Text() const override {
    const bool published = choice_.net != nullptr;
    const bool weighted = published && !choice_.weights->file.empty();
    const std::string pixels =
        NormalizeText(published ? choice_.weights->facts : ZooWeights(), weighted);
    std::string text = format(
        "# A class for each pixel: written by `mxtrain init`; every line can be changed.\n"
        "#   mxtrain check {0}\n#   mxtrain train {0}\n\nname: {1}\nseed: 1\n",
        choice_.file, QuoteYaml(folder_.name));
    if (published) {
      text += format("\nnet:\n  use: {}\n", choice_.net->name);
      text += TextLine("  decoder: pyramid",
                       "scores of classes for each pixel of its layers; also deeplab, unet");
    } else {
      text += kSmallNet;
      text += "net:\n";
    }
    text += TextLine(format("  input: [3, {}, {}]", height_, width_),
                     format("sides are multiples of {}", kTrunkMultiple));
    if (!published) text += std::string("  layers:\n") + kSmallLayers;
    text += TrunkVariables(choice_);
    text += format("\ndata:\n  batch_size: {}\n{}  train:\n", batch_, ExactDecodeText());
    text += Data(pixels);
    return text + Training(weighted);
  }

  Json ToJson() const override {
    return {{"file", choice_.file},
            {"classes", folder_.classes},
            {"train", folder_.train_images},
            {"val", folder_.val_images},
            {"input_size", {height_, width_}},
            {"batch_size", batch_},
            {"epochs", epochs_}};
  }

  std::string Summary() const override {
    return format(
        "{}: masks of {} classes{}, {} images to train on, {} to validate{}\n"
        "net input 3x{}x{}, batches of {}, {} epochs\n",
        choice_.file, folder_.classes.size(), folder_.colours.empty() ? "" : " in colours",
        folder_.train_images, folder_.val_images, folder_.val.empty() ? " (a fifth, held out)" : "",
        height_, width_, batch_, epochs_);
  }

  std::string Advice() const override {
    if (choice_.net || folder_.train_images >= 2000) return "";
    return format(
        "{} are few for a net that begins with random weights; a published one needs fewer: "
        "--net efficientnet_lite0 --weights FILE (`mxtrain help fine-tuning`)",
        Counted(folder_.train_images, "image"));
  }

 private:
  std::string Data(const std::string& pixels) const {
    std::string text =
        format("    source: image_folder\n    path: {}\n    label: mask\n    targets: {}\n",
               QuoteYaml(folder_.train), QuoteYaml(folder_.train_masks));
    if (!folder_.suffix.empty())
      text += TextLine("    targets_suffix: " + QuoteYaml(folder_.suffix),
                       "of 1.jpg, 1" + folder_.suffix + ".png");
    text += TextLine("    mask_classes: " + ListText(folder_.classes),
                     folder_.named ? "" : "give them their names");
    if (!folder_.colours.empty())
      text += TextLine("    mask_colours: " + ListText(folder_.colours),
                       "of the classes, in this order");
    if (!folder_.ignored.empty())
      text += TextLine("    mask_ignore: " + ListText(folder_.ignored), "numbers beyond the names");
    if (folder_.ignored.empty() && folder_.colours.empty())
      text += TextLine("    mask_ignore: []", "numbers of no class, besides 255");
    text += "    shuffle: true\n    transforms:\n";
    text += ResizedText("random_resized_crop", height_, width_, ", area: [0.25, 1]") + "\n";
    text += TextLine("      - flip", "remove it if left and right differ in meaning");
    text += "      - brightness: 0.3\n      - contrast: 0.3\n      - saturation: 0.2\n";
    text += format("      - {}\n  val:\n", pixels);
    if (folder_.val.empty()) {
      text += TextLine(format("    split: {}", kMaskHoldout), "fraction held out for validation");
    } else {
      text += format("    source: image_folder\n    path: {}\n    targets: {}\n",
                     QuoteYaml(folder_.val), QuoteYaml(folder_.val_masks));
    }
    return text + format("    transforms:\n{}\n      - {}\n",
                         ResizedText("resize", height_, width_), pixels);
  }

  std::string Training(bool weighted) const {
    std::string text = format("\ntrain:\n  epochs: {}\n", epochs_);
    if (weighted) text += WeightsText(*choice_.weights);
    text += "  optimizer: {name: adamw, lr: 0.001, weight_decay: 0.01}\n";
    text += TextLine("  lr_schedule: {name: cosine, warmup_epochs: 1}", "");
    text += TextLine("  ema: 0.99", "validation and checkpoints use averages of the weights");
    return text + TextLine("  metrics: [mean_iou]", "of the classes, over all pixels");
  }

  const MaskFolder folder_;
  RecipeChoice choice_;
  int height_ = 0, width_ = 0;
  int64_t epochs_ = 0, batch_ = 0;
};

}  // namespace

std::unique_ptr<Recipe> RecognizeMaskFolders(const RecipeRequest& request) {
  const fs::path root = request.root;
  std::optional<Pair> train = PairOf(root, io::Split::kTrain);
  const bool parts = train.has_value();
  if (!parts) train = PairIn(root);
  if (!train) return nullptr;
  const std::optional<Pair> val = parts ? PairOf(root, io::Split::kVal) : std::nullopt;
  MaskFolder folder;
  folder.name = root.filename().string();
  const auto images = OpenImages(train->images);
  folder.train = PathInFile(train->images.string(), request.output);
  folder.train_masks = PathInFile(train->masks.string(), request.output);
  folder.train_images = images->size();
  if (val) {
    folder.val = PathInFile(val->images.string(), request.output);
    folder.val_masks = PathInFile(val->masks.string(), request.output);
    folder.val_images = OpenImages(val->images)->size();
  } else {
    if (parts && !PartOf(root, io::Split::kVal).empty())
      request.log.Write(LogLevel::kWarning, format("{} has no images beside masks, and is not used",
                                                   PartOf(root, io::Split::kVal).string()));
    folder.val_images = std::llround(kMaskHoldout * static_cast<double>(folder.train_images));
    folder.train_images -= folder.val_images;
  }
  const auto masks = OpenImages(train->masks);
  folder.suffix = SuffixOf(*images, *masks, *train, request.log);
  NameClasses(ValuesOf(*masks), root, request.log, &folder);
  if (folder.classes.size() < 2) {
    Throw(ErrorKind::kData, "the masks in {} have {}, so that there is nothing to tell apart",
          train->masks.string(), Counted(folder.classes.size(), "class"));
  }
  const io::ImageSize size = MedianSize(*images);
  folder.height = size.height, folder.width = size.width;
  return std::make_unique<MaskFolders>(std::move(folder));
}

}  // namespace mxtrain::tasks
