// SPDX-License-Identifier: Apache-2.0
// mxtrain init FOLDER: scans a folder of images and writes a configuration that trains on it: a
// small net from scratch, or, with --net, one that comes with the program, from published weights.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/commands/fine_tuning.h"
#include "app/commands/init_config.h"
#include "app/commands/pretrained.h"
#include "app/config/address.h"
#include "app/config/name_list.h"
#include "app/config/near_file.h"
#include "app/fetch/sha256.h"
#include "app/report/output.h"
#include "app/session/device_choice.h"
#include "app/session/open_runtime.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/params.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/folder_names.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostProbed = 500;  // images whose size is read
constexpr int64_t kFewImages = 1000;  // of which a net learns too little from scratch
constexpr double kHoldout = 0.2;

// Sorted, without hidden ones.
std::vector<std::string> FoldersIn(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    std::error_code broken;  // a dangling link is not a folder
    if (entry.is_directory(broken) && !name.starts_with('.') && !io::IsSystemFolder(name))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
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
                                       const std::vector<std::string>& classes) {
  return io::MakeSource("image_folder", {{"path", path}, {"classes", params::Print(classes)}});
}

// Sizes and channels, from the headers of images spread over the folder; reports unreadable ones.
void Probe(const io::Source& source, ImageFolder* folder, report::Console& console) {
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
    console.Message(
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

// For data that `init` has no recipe for: the lines of a configuration that name it, if its files
// tell its kind; else "".
std::string LinesFor(const fs::path& path) {
  const io::RecognizedSource found = io::RecognizeSource(path.string(), "");
  if (!found.kind || !found.recognition.certain) return "";
  return format("; for {} write data: {{train: {{source: {}, path: {}}}}} into a configuration",
                found.kind->help, found.kind->name, QuoteYaml(path.string()));
}

class Init final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("init", "write a commented, ready-to-train configuration for a folder of images");
    arguments
        .Option("folder", &folder_,
                "folder with one sub-folder of images per class, or with such folders in train/, "
                "val/ and test/ (used only by eval), or named alike: Training, seg_test")
        .Required()
        .Takes("FOLDER");
    arguments
        .Option("--output", &output_,
                "file to write, - for stdout; default: FOLDER.yaml in the working folder")
        .Takes("FILE");
    arguments
        .Option("--size", &size_,
                "edge length of the net's input in pixels; default: chosen from the images, with "
                "--net from the net")
        .Within(16, 512);
    arguments
        .Option("--net", &net_,
                "a net that comes with the program (`mxtrain nets`) in place of a small one")
        .Takes("NAME");
    arguments
        .Option("--weights", &weights_,
                "with --net: begin with these weights, of a file, a run, https://... or "
                "hf://OWNER/REPO/FILE")
        .Takes("FILE");
    arguments
        .Option(
            "--weights-family", &family_,
            "who published them, which decides how images are prepared: torchvision, timm, ...; "
            "default: told by the names in the file")
        .Takes("NAME");
    arguments
        .Option("--weights-state", &state_,
                "which of several state dicts in a file of PyTorch, by its key, as "
                "train.weights.state")
        .Takes("KEY");
    arguments.Flag(
        "--head-only", &head_only_,
        "with --weights: train only the new head, on features that the net computes once "
        "for each image: seconds for an epoch, and less accurate");
    arguments.Flag("--overwrite", &overwrite_, "replace an existing file");
    arguments.Examples(
        "  mxtrain init photos\n  mxtrain init photos --output config.yaml --size 96\n"
        "  mxtrain init photos --net efficientnet_lite0 --weights efficientnet_lite0.pth");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    CheckFlags();
    const ImageFolder folder = Look(console);
    // Before a download.
    if (output_ != "-" && fs::exists(output_) && !overwrite_) {
      Throw(ErrorKind::kFileSystem,
            "{} exists already; use --overwrite to replace it, or --output FILE to write another",
            output_);
    }
    TrainingChoice choice;
    const std::string text = Text(folder, flags, console, &choice);
    if (output_ == "-") {
      std::cout << text;
      return 0;
    }
    if (const fs::path parent = fs::path(output_).parent_path(); !parent.empty())
      MakeFolders(parent.string());
    WriteFileAtomically(output_, text);
    Report(flags, folder, choice);
    if (net_.empty() && folder.train_images < kFewImages) {
      console.Message(
          LogLevel::kInfo,
          format("{} are few for a net that begins with random weights; a published one "
                 "needs fewer: mxtrain init {} --net NAME --weights FILE (`mxtrain help "
                 "fine-tuning`)",
                 Counted(folder.train_images, "image"), report::QuoteShell(folder_)));
    }
    return 0;
  }

 private:
  void CheckFlags() const {
    if (net_.empty() && !weights_.empty()) {
      Throw(ErrorKind::kUsage,
            "--weights needs --net NAME, the net that they are for; `mxtrain nets` lists them");
    }
    if (weights_.empty() && head_only_)
      Throw(ErrorKind::kUsage, "--head-only needs --weights FILE, those of the layers before it");
    if (weights_.empty() && !family_.empty())
      Throw(ErrorKind::kUsage, "--weights-family needs --weights FILE");
    if (weights_.empty() && !state_.empty())
      Throw(ErrorKind::kUsage, "--weights-state needs --weights FILE");
  }

  std::string Text(const ImageFolder& folder, const CommonFlags& flags, report::Console& console,
                   TrainingChoice* choice) {
    const std::string file = output_ == "-" ? "FILE" : output_;
    if (net_.empty()) {
      *choice = ChooseTraining(folder, size_);
      return ConfigText(folder, *choice, file);
    }
    const ZooNet net = LookAtNet(net_, size_);
    WeightsChoice weights;
    if (!weights_.empty()) weights = ReadWeights(net, flags, console);
    weights.head_only = head_only_;
    *choice = ChooseFineTuning(folder, net, weights);
    channels_ = 3;  // as the net takes them
    sizes_ = SizesOf(net);
    return RecipeText(folder, net, weights, *choice, file);
  }

  // "" if images always have the size that the net is made for.
  std::string SizesOf(const ZooNet& net) const {
    if (net.train_size == net.native && net.val_size == net.native) return "";
    const std::string later =
        head_only_ ? ""
                   : format(" in training, {0}x{0} in validation and prediction", net.val_size);
    return format("{} ({} is made for {}x{}{})", later, net.name, net.native, net.native,
                  net.any_size ? "; --size is that of training" : "");
  }

  // What can be known before a download.
  void CheckFamily(const ZooNet& net) const {
    if (family_.empty() || net.names.empty()) return;
    std::vector<std::string> known;
    for (const config::WeightsFamily& f : config::ReadNameList(net.names, net.name).families) {
      if (f.name == family_) return CheckSizes(net, f);
      known.push_back(f.name);
    }
    Throw(ErrorKind::kUsage, "--weights-family {}: the names of {} are known for {}", family_,
          net.name, join(known, ", "));
  }

  void CheckSizes(const ZooNet& net, const config::WeightsFamily& family) const {
    const bool pads = std::any_of(family.vars.begin(), family.vars.end(),
                                  [](const auto& var) { return var.first == "same_padding"; });
    if (!pads || (net.train_size % 32 == 0 && net.val_size % 32 == 0)) return;
    Throw(ErrorKind::kUsage,
          "--size {}: weights of {} need a multiple of 32, for which their padding is the same "
          "in every layer",
          size_, family.name);
  }

  WeightsChoice ReadWeights(const ZooNet& net, const CommonFlags& flags,
                            report::Console& console) const {
    CheckFamily(net);
    const std::string local = LocalWeights(weights_, console);
    WeightsChoice choice;
    choice.state = state_;
    if (config::IsAddress(weights_)) {
      choice.file = config::SplitPin(weights_).file;
      choice.sha256 = fetch::Sha256OfFile(local);
    } else {
      choice.file = Written(fs::absolute(FollowLink(local)).lexically_normal().string());
      choice.sha256 = config::SplitPin(weights_).sha256;
    }
    const auto runtime = session::MakeRuntime(session::WithoutAutoGpu(flags), 0,
                                              session::MakeRegistry({}), console.log());
    choice.facts = LookAtWeights(*runtime, net, local, family_, state_);
    const ZooWeights& found = choice.facts;
    std::string text = format("{}: {} {} arrays before the head of {} fit", weights_,
                              found.fits == found.wanted ? "all" : format("{} of the", found.fits),
                              found.wanted, net.name);
    if (found.of_run) {
      text += ", of a run: `vars` and `normalize` as there";
    } else if (found.family) {
      const std::string more =
          found.candidates.empty()
              ? ""
              : format(", or by {} (--weights-family says which)", join(found.candidates, ", "));
      text += format(", named as by {}{}: images are prepared as for those weights",
                     found.family->name, more);
    } else {
      text += format(", with {} names: check that `vars` and `normalize` are those of its training",
                     found.own_names ? "its own" : "unknown");
    }
    console.Message(LogLevel::kInfo, text);
    if (found.fits < found.wanted) {
      console.Message(
          LogLevel::kWarning,
          format("{} arrays of {} are not in {}, and start from random values ({})",
                 found.wanted - found.fits, net.name, weights_, FirstOf(found.missing, 3)));
    }
    if (found.family) CheckSizes(net, *found.family);
    return choice;
  }

  ImageFolder Look(report::Console& console) {
    if (!fs::is_directory(folder_)) {
      const std::string guess = config::DidYouMeanFile(folder_);
      Throw(ErrorKind::kFileSystem, "{} {}", folder_,
            fs::exists(folder_) ? "is not a folder" + LinesFor(folder_)
            : guess.empty()
                ? "does not exist; give a folder with one sub-folder of images per class"
                : "does not exist" + guess);
    }
    fs::path root = fs::absolute(folder_).lexically_normal();
    if (!root.has_filename()) root = root.parent_path();  // a slash at the end
    if (FoldersIn(root).empty()) {
      Throw(ErrorKind::kData,
            "{} contains no folders; put the images of each class into a folder named after the "
            "class: {}/cat, {}/dog{}",
            folder_, folder_, folder_, LinesFor(root));
    }
    if (!IsUtf8(root.string())) {
      Throw(ErrorKind::kData,
            "the name of {} is not UTF-8, which a configuration cannot hold; rename it, or give a "
            "link to it: ln -s NAME LINK",
            folder_);
    }
    ImageFolder found;
    found.name = root.filename().string();
    if (output_.empty()) output_ = found.name + ".yaml";
    const std::string train = SubFolder(root, io::Split::kTrain),
                      val = SubFolder(root, io::Split::kVal);
    const std::string from = train.empty() ? root.string() : train;
    // With the names of the folders, so that empty ones are counted, too.
    const auto source = OpenFolder(from, FoldersIn(from));
    Count(*source, &found);
    for (const std::string& text : source->remarks()) console.Message(LogLevel::kWarning, text);
    if (!train.empty() && !val.empty()) {
      const auto validation = OpenFolder(val, source->class_names());
      for (const std::string& text : validation->remarks())
        console.Message(LogLevel::kWarning, text);
      found.val_images = validation->size();
      found.val = Written(val);
    } else {
      found.holdout = kHoldout;
      found.val_images = std::llround(kHoldout * static_cast<double>(found.train_images));
      found.train_images -= found.val_images;
    }
    found.train = Written(from);
    if (const std::string test = SubFolder(root, io::Split::kTest); !train.empty() && !test.empty())
      found.test = Shown(test);
    Probe(*source, &found, console);
    return found;
  }

  // Refuses folders that cannot be trained on.
  void Count(const io::Source& source, ImageFolder* found) const {
    std::vector<int64_t> counts(source.class_names().size());
    for (int64_t i = 0; i < source.size(); ++i) ++counts[static_cast<size_t>(*source.ClassOf(i))];
    for (size_t k = 0; k < counts.size(); ++k)
      found->classes.emplace_back(source.class_names()[k], counts[k]);
    found->train_images = source.size();
    if (counts.size() < 2) {
      Throw(ErrorKind::kData,
            "{} contains only one class, '{}'; at least two classes are needed, one folder each",
            folder_, source.class_names()[0]);
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
          folder_, join(few, "; "));
  }

  // A path as written to the file: relative if it is below the working folder, else absolute.
  std::string Written(const std::string& path) const {
    const fs::path base = output_ == "-" ? fs::current_path()
                                         : fs::absolute(output_).lexically_normal().parent_path();
    const std::string relative = fs::path(path).lexically_relative(base).string();
    return relative.empty() || relative.starts_with("../..") ? path : relative;
  }

  // The path as given from the working folder.
  static std::string Shown(const std::string& path) {
    const std::string relative = fs::path(path).lexically_relative(fs::current_path()).string();
    return relative.empty() || relative.starts_with("../..") ? path : relative;
  }

  int Channels(const ImageFolder& f) const { return channels_ > 0 ? channels_ : f.channels; }

  void Report(const CommonFlags& flags, const ImageFolder& f, const TrainingChoice& c) const {
    if (flags.json) {
      Json classes = Json::object();
      for (const auto& [name, count] : f.classes) classes[name] = count;
      std::cout << report::JsonText({{"file", output_},
                                     {"classes", classes},
                                     {"train", f.train_images},
                                     {"val", f.val_images},
                                     {"channels", Channels(f)},
                                     {"median_side", f.median_side},
                                     {"input_size", c.input_size},
                                     {"batch_size", c.batch_size},
                                     {"epochs", c.epochs}})
                << std::endl;
      return;
    }
    std::cout << format("{}: {} classes, {} images to train on, {} to validate{}\n", output_,
                        f.classes.size(), f.train_images, f.val_images,
                        f.val.empty() ? " (a fifth of each class, held out)" : "");
    if (!f.test.empty())
      std::cout << format("{0} is for the final test: mxtrain eval runs/latest {0}\n",
                          report::QuoteShell(f.test));
    std::cout << format("net input {}x{}x{}{}, batches of {}, {} epochs\n", Channels(f),
                        c.input_size, c.input_size, sizes_, c.batch_size, c.epochs);
    std::cout << format("next: mxtrain check {0}, then mxtrain train {0}\n",
                        report::QuoteShell(output_));
  }

  std::string folder_, output_, net_, weights_, family_, state_;
  int size_ = 0;
  int channels_ = 0;   // of the net's input, if it is not that of the images
  std::string sizes_;  // " in training, ...": others of a net by name
  bool head_only_ = false, overwrite_ = false;
};

}  // namespace

MXTRAIN_COMMAND(init, list) {
  list.Add(HelpGroup::kModel, 10, std::make_unique<Init>());
}

}  // namespace mxtrain::commands
