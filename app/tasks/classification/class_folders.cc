// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/class_folders.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "app/report/output.h"
#include "app/tasks/classification/class_recipe.h"
#include "app/tasks/classification/fine_tuning.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/params.h"
#include "mxtrain/io/folder_names.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/image_archive.h"
#include "mxtrain/io/image_formats.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostProbed = 500;  // images whose size is read
constexpr int64_t kFewImages = 1000;  // of which a net learns too little from scratch
constexpr double kHoldout = 0.2;

// Whether there is an image in it, of any format.
bool HasAnyImage(const fs::path& folder) {
  std::error_code unreadable;
  fs::recursive_directory_iterator entry(folder, unreadable);
  for (; !unreadable && entry != fs::recursive_directory_iterator(); entry.increment(unreadable)) {
    const std::string name = entry->path().filename().string();
    std::error_code broken;
    if (entry->is_directory(broken)) {
      if (name.starts_with('.') || io::IsSystemFolder(name)) entry.disable_recursion_pending();
    } else if (!name.starts_with('.') &&
               (io::HasImageEnding(name) || io::HasOtherImageEnding(name))) {
      return true;
    }
  }
  return false;
}

// The folders in a folder, sorted: those with images, and others.
struct Folders {
  std::vector<std::string> with_images, without, hidden, system;
};
Folders SortFolders(const fs::path& folder) {
  Folders folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    std::error_code broken;  // a dangling link is not a folder
    if (!entry.is_directory(broken)) continue;
    std::vector<std::string>& of_kind = name.starts_with('.')       ? folders.hidden
                                        : io::IsSystemFolder(name)  ? folders.system
                                        : HasAnyImage(entry.path()) ? folders.with_images
                                                                    : folders.without;
    of_kind.push_back(std::move(name));
  }
  for (auto* names : {&folders.with_images, &folders.without, &folders.hidden, &folders.system})
    std::sort(names->begin(), names->end());
  return folders;
}

std::vector<std::string> FoldersIn(const fs::path& folder) {
  return SortFolders(folder).with_images;
}

// Where an archive was unpacked into folders of its own: the innermost folder that alone holds the
// images, and holds folders.
fs::path Unwrapped(fs::path folder) {
  for (std::vector<std::string> in = FoldersIn(folder);
       in.size() == 1 && !FoldersIn(folder / in[0]).empty(); in = FoldersIn(folder))
    folder /= in[0];
  return folder;
}

// The path as given from the working folder.
std::string Shown(const std::string& path) {
  const std::string relative = fs::path(path).lexically_relative(fs::current_path()).string();
  return relative.empty() || relative.starts_with("../..") ? path : relative;
}

// Beside the folders of the classes, and in them.
void TellSkipped(const fs::path& root, ImagePlace* place, ImageFolder* found) {
  const Folders folders = SortFolders(root);
  place->excluded = folders.without;
  for (const auto& [names, why] :
       {std::pair(&folders.hidden, "hidden"), std::pair(&folders.system, "of the system"),
        std::pair(&folders.without, "no images")}) {
    for (const std::string& name : *names) {
      std::string text = format("{} ({})", name, why);
      if (std::ranges::find(found->skipped, text) == found->skipped.end())
        found->skipped.push_back(std::move(text));
    }
  }
  for (const std::string& name : folders.with_images) {
    const fs::path inner = Unwrapped(root / name);
    const std::vector<std::string> below = FoldersIn(inner);
    if (found->nested.empty() && below.size() > 1)
      found->nested = format("{}, are parts of it; for classes of their own: mxtrain init {}",
                             FirstOf(below, 3), report::QuoteShell(Shown(inner.string())));
  }
}

// The folder of classes that holds this part of the data, by its name; of several the last one of
// the shortest; "" for none. seg_train/seg_train/, as archives hold them, is the inner one.
std::string SubFolder(const fs::path& folder, io::Split split) {
  std::string found;
  for (const std::string& name : FoldersIn(folder)) {
    if (io::SplitOf(name) != split || FoldersIn(folder / name).empty()) continue;
    if (found.empty() || name.size() <= found.size()) found = name;
  }
  if (found.empty()) return "";
  fs::path part = folder / found;
  for (std::vector<std::string> in = FoldersIn(part);
       in.size() == 1 && io::SplitOf(in[0]) == split && !FoldersIn(part / in[0]).empty();
       in = FoldersIn(part))
    part /= in[0];
  return part.string();
}

std::unique_ptr<io::Source> OpenFolder(const std::string& path,
                                       const std::vector<std::string>& classes,
                                       const ImagePlace& place) {
  return io::MakeSource("image_folder", {{"path", path},
                                         {"classes", params::Print(classes)},
                                         {"exclude", params::Print(place.excluded)}});
}

// Sizes and channels, from the headers of images spread over the folder; reports unreadable ones.
void Probe(const io::Source& source, ImageFolder* folder, const Logger& log) {
  std::vector<int> sides;
  const int64_t count = std::min(source.size(), kMostProbed);
  int64_t bad = 0, coloured = 0;
  std::string first_bad;
  io::Sample sample;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = i * source.size() / count;
    std::string reason;
    try {
      source.Read(index, &sample);
      const auto info = io::ProbeImage(sample.data[0].encoded);
      if (info) {
        sides.push_back(std::min(info->height, info->width));
        coloured += info->channels > 2;
        continue;
      }
      reason = info.error().reason;
    } catch (const Error& e) {
      reason = e.what();
    }
    if (bad++ == 0) first_bad = format("{}: {}", source.Name(index), reason);
  }
  if (bad > 0) {
    log.Write(
        LogLevel::kWarning,
        format(
            "{} of {} sampled images cannot be read, the first: {}; `mxtrain check` lists them all",
            bad, count, first_bad));
  }
  if (sides.empty())
    Throw(ErrorKind::kData, "none of the images can be read; the first: {}", first_bad);
  std::sort(sides.begin(), sides.end());
  folder->min_side = sides.front();
  folder->median_side = sides[sides.size() / 2];
  folder->max_side = sides.back();
  folder->channels = coloured > 0 ? 3 : 1;
}

// Refuses folders that cannot be trained on.
void Count(const io::Source& source, const std::string& given, ImageFolder* found) {
  std::vector<int64_t> counts(source.class_names().size());
  for (int64_t i = 0; i < source.size(); ++i) ++counts[static_cast<size_t>(*source.ClassOf(i))];
  for (size_t k = 0; k < counts.size(); ++k)
    found->classes.emplace_back(source.class_names()[k], counts[k]);
  found->train_images = source.size();
  if (counts.size() < 2) {
    Throw(ErrorKind::kData,
          "{} contains only one class, '{}'; at least two classes are needed, one folder each{}",
          given, source.class_names()[0],
          found->skipped.empty() ? "" : "; not read: " + FirstOf(found->skipped, 8));
  }
  std::vector<std::string> few;
  for (const auto& [name, count] : found->classes) {
    if (count == 0) few.push_back(format("class '{}' holds no images", name));
    if (count == 1) few.push_back(format("class '{}' has only one image", name));
  }
  if (few.empty()) return;
  few.insert(few.end(), source.losses().begin(), source.losses().end());
  Throw(ErrorKind::kData,
        "{}: {}; fill or remove these folders: at least 2 images are needed in "
        "each, and dozens for useful results",
        given, join(few, "; "));
}

ImageFolder Look(const RecipeRequest& request) {
  const fs::path root = Unwrapped(request.root);
  const auto warn = [&](const io::Source& source) {
    for (const std::string& text : source.remarks()) request.log.Write(LogLevel::kWarning, text);
  };
  ImageFolder found;
  if (root != request.root) found.within = Shown(root.string());
  const std::string train = SubFolder(root, io::Split::kTrain),
                    val = SubFolder(root, io::Split::kVal);
  const std::string from = train.empty() ? root.string() : train;
  TellSkipped(from, &found.train, &found);
  // With the names of the folders, so that those of unreadable images are counted, too.
  const auto source = OpenFolder(from, FoldersIn(from), found.train);
  Count(*source, request.folder, &found);
  warn(*source);
  if (!train.empty() && !val.empty()) {
    TellSkipped(val, &found.val, &found);
    std::erase_if(found.val.excluded, [&](const std::string& name) {
      return std::ranges::count(source->class_names(), name) > 0;  // a class without images there
    });
    const auto validation = OpenFolder(val, source->class_names(), found.val);
    warn(*validation);
    found.val_images = validation->size();
    found.val.path = PathInFile(val, request.output);
  } else {
    found.holdout = kHoldout;
    found.val_images = std::llround(kHoldout * static_cast<double>(found.train_images));
    found.train_images -= found.val_images;
  }
  found.train.path = PathInFile(from, request.output);
  if (const std::string test = SubFolder(root, io::Split::kTest); !train.empty() && !test.empty())
    found.test = Shown(test);
  Probe(*source, &found, request.log);
  return found;
}

std::unique_ptr<io::Source> OpenArchive(const std::string& path, const std::string& folder,
                                        const std::vector<std::string>& classes) {
  io::ImageArchiveParam param;
  param.Init({{"path", path}, {"folder", folder}, {"classes", params::Print(classes)}},
             "image_archive");
  return io::NewImageArchiveSource(param);
}

// The same for an archive. A part for tests is left to the user: `eval` takes an archive whole.
ImageFolder LookIntoArchive(const RecipeRequest& request) {
  ImageFolder found;
  const io::ArchiveParts parts = io::PartsOf(io::ImageArchive(request.root));
  found.train = {PathInFile(request.root, request.output), true, parts.train};
  const auto source = OpenArchive(request.root, parts.train, {});
  Count(*source, request.folder, &found);
  for (const std::string& text : source->remarks()) request.log.Write(LogLevel::kWarning, text);
  if (!parts.train.empty() && !parts.val.empty()) {
    found.val = found.train;
    found.val.folder = parts.val;
    found.val_images = OpenArchive(request.root, parts.val, source->class_names())->size();
  } else {
    found.holdout = kHoldout;
    found.val_images = std::llround(kHoldout * static_cast<double>(found.train_images));
    found.train_images -= found.val_images;
  }
  Probe(*source, &found, request.log);
  return found;
}

class ClassFolders final : public Recipe {
 public:
  ClassFolders(ImageFolder folder, std::string given)
      : folder_(std::move(folder)), given_(std::move(given)) {}

  void Choose(const RecipeChoice& choice) override {
    choice_ = choice;
    training_ = choice.net ? ChooseFineTuning(folder_, *choice.net, *choice.weights)
                           : ChooseTraining(folder_, choice.input_size);
  }

  std::string Text() const override {
    return choice_.net
               ? RecipeText(folder_, *choice_.net, *choice_.weights, training_, choice_.file)
               : ConfigText(folder_, training_, choice_.file);
  }

  Json ToJson() const override {
    Json classes = Json::object();
    for (const auto& [name, count] : folder_.classes) classes[name] = count;
    return {{"file", choice_.file},
            {"classes", classes},
            {"train", folder_.train_images},
            {"val", folder_.val_images},
            {"skipped", folder_.skipped},
            {"channels", Channels()},
            {"median_side", folder_.median_side},
            {"input_size", training_.input_size},
            {"batch_size", training_.batch_size},
            {"epochs", training_.epochs}};
  }

  std::string Summary() const override {
    std::string text =
        format("{}: {} classes, {} images to train on, {} to validate{}\n", choice_.file,
               folder_.classes.size(), folder_.train_images, folder_.val_images,
               folder_.val.empty() ? " (a fifth of each class, held out)" : "");
    constexpr size_t kShown = 8;
    std::vector<std::string> names;
    for (const auto& [name, count] : folder_.classes) names.push_back(report::Printable(name));
    text += format("classes: {}\n", FirstOf(names, kShown)) + WhatIsRead();
    if (!folder_.test.empty())
      text += format("{0} is for the final test: mxtrain eval runs/latest {0}\n",
                     report::QuoteShell(folder_.test));
    return text + format("net input {}x{}x{}{}, batches of {}, {} epochs\n", Channels(),
                         training_.input_size, training_.input_size, SizesOfNet(),
                         training_.batch_size, training_.epochs);
  }

  std::string Advice() const override {
    if (choice_.net || folder_.train_images >= kFewImages) return "";
    return format(
        "{} are few for a net that begins with random weights; a published one "
        "needs fewer: mxtrain init {} --net NAME --weights FILE (`mxtrain help "
        "fine-tuning`)",
        Counted(folder_.train_images, "image"), report::QuoteShell(given_));
  }

 private:
  // Lines of what may be a surprise.
  std::string WhatIsRead() const {
    std::string text;
    if (!folder_.skipped.empty()) text += format("not read: {}\n", FirstOf(folder_.skipped, 8));
    if (!folder_.within.empty())
      text += format("the folders of the classes are in {}\n", folder_.within);
    if (!folder_.nested.empty())
      text += format("folders in the folder of a class, such as {}\n", folder_.nested);
    return text;
  }

  int Channels() const { return choice_.net ? 3 : folder_.channels; }  // published nets take RGB

  // "" if images always have the size that the net is made for.
  std::string SizesOfNet() const {
    if (!choice_.net) return "";
    const ZooNet& net = *choice_.net;
    if (net.train_size == net.native && net.val_size == net.native) return "";
    const std::string later =
        choice_.weights->head_only
            ? ""
            : format(" in training, {0}x{0} in validation and prediction", net.val_size);
    return format("{} ({} is made for {}x{}{})", later, net.name, net.native, net.native,
                  net.any_size ? "; --size is that of training" : "");
  }

  const ImageFolder folder_;
  const std::string given_;  // the folder, as the user gave it
  RecipeChoice choice_;
  TrainingChoice training_;
};

}  // namespace

std::unique_ptr<Recipe> RecognizeClassFolders(const RecipeRequest& request) {
  if (io::IsImageArchive(request.root))
    return std::make_unique<ClassFolders>(LookIntoArchive(request), request.folder);
  if (!fs::is_directory(request.root) || FoldersIn(request.root).empty()) return nullptr;
  return std::make_unique<ClassFolders>(Look(request), request.folder);
}

}  // namespace mxtrain::tasks
