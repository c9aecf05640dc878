// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/segmentation/mask_folders.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include "app/tasks/recipe_text.h"
#include "app/tasks/segmentation/mask_recipe.h"
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

constexpr int64_t kMostMasks = 200;  // that are read
constexpr size_t kMostColours = 64;  // of masks in colours

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

// How the masks say classes.
struct MaskFolder {
  std::string train, train_masks;    // folders
  std::string suffix;                // of the masks' names
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

// Of data.train, as the configuration names the data.
std::string TrainLines(const MaskFolder& folder) {
  std::string text =
      format("    source: image_folder\n    path: {}\n    label: mask\n    targets: {}\n",
             QuoteYaml(folder.train), QuoteYaml(folder.train_masks));
  if (!folder.suffix.empty())
    text += TextLine("    targets_suffix: " + QuoteYaml(folder.suffix),
                     "of 1.jpg, 1" + folder.suffix + ".png");
  text += TextLine("    mask_classes: " + ListText(folder.classes),
                   folder.named ? "" : "give them their names");
  if (!folder.colours.empty())
    text +=
        TextLine("    mask_colours: " + ListText(folder.colours), "of the classes, in this order");
  if (!folder.ignored.empty())
    text += TextLine("    mask_ignore: " + ListText(folder.ignored), "numbers beyond the names");
  if (folder.ignored.empty() && folder.colours.empty())
    text += TextLine("    mask_ignore: []", "numbers of no class, besides 255");
  return text;
}

}  // namespace

std::unique_ptr<Recipe> RecognizeMaskFolders(const RecipeRequest& request) {
  const fs::path root = request.root;
  std::optional<Pair> train = PairOf(root, io::Split::kTrain);
  const bool parts = train.has_value();
  if (!parts) train = PairIn(root);
  if (!train) return nullptr;
  const std::optional<Pair> val = parts ? PairOf(root, io::Split::kVal) : std::nullopt;
  MaskFolder folder;
  MaskData data;
  const auto images = OpenImages(train->images);
  folder.train = PathInFile(train->images.string(), request.output);
  folder.train_masks = PathInFile(train->masks.string(), request.output);
  data.train_images = images->size();
  if (val) {
    data.val = format("    source: image_folder\n    path: {}\n    targets: {}\n",
                      QuoteYaml(PathInFile(val->images.string(), request.output)),
                      QuoteYaml(PathInFile(val->masks.string(), request.output)));
    data.val_images = OpenImages(val->images)->size();
  } else {
    if (parts && !PartOf(root, io::Split::kVal).empty())
      request.log.Write(LogLevel::kWarning, format("{} has no images beside masks, and is not used",
                                                   PartOf(root, io::Split::kVal).string()));
    data.HoldOut();
  }
  const auto masks = OpenImages(train->masks);
  folder.suffix = SuffixOf(*images, *masks, *train, request.log);
  NameClasses(ValuesOf(*masks), root, request.log, &folder);
  if (folder.classes.size() < 2) {
    Throw(ErrorKind::kData, "the masks in {} have {}, so that there is nothing to tell apart",
          train->masks.string(), folder.classes.empty() ? "no class" : "one class");
  }
  data.size = MedianSize(*images);
  data.train = TrainLines(folder);
  data.classes = folder.classes;
  if (!folder.colours.empty()) data.form = " in colours";
  return NewMaskRecipe(std::move(data));
}

}  // namespace mxtrain::tasks
