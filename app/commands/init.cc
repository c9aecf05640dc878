// SPDX-License-Identifier: Apache-2.0
// mxtrain init FOLDER: scans a folder of images, or a table, and writes a configuration that trains
// on it: a small net from scratch, or, with --net, one that comes with the program, from published
// weights.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "app/commands/command_list.h"
#include "app/commands/pretrained.h"
#include "app/commands/zoo_choice.h"
#include "app/config/address.h"
#include "app/config/name_list.h"
#include "app/config/near_file.h"
#include "app/fetch/sha256.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "app/session/device_choice.h"
#include "app/session/open_runtime.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

// For data that `init` has no recipe for: the lines of a configuration that name it, if its files
// tell its kind; else "".
std::string LinesFor(const fs::path& path) {
  const io::RecognizedSource found = io::RecognizeSource(path.string(), "");
  if (!found.kind || !found.recognition.certain) return "";
  return format("; for {} write data: {{train: {{source: {}, path: {}}}}} into a configuration",
                found.kind->help, found.kind->name, tasks::QuoteYaml(path.string()));
}

// The tasks that have recipes.
std::vector<std::string> RecipeTasks() {
  std::vector<std::string> names;
  for (const tasks::TaskKind& kind : tasks::Tasks().kinds()) {
    if (kind.recognize) names.push_back(kind.name);
  }
  return names;
}

constexpr const char* kOutput = "--output FILE";  // what changes where it is written

class Init final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add(
        "init", "write a commented, ready-to-train configuration for images, tables or text");
    arguments
        .Option(
            "folder", &folder_,
            "folder with one sub-folder of images per class, or with such folders in train/, "
            "val/ and test/ (used only by eval), or named alike: Training, seg_test; images with "
            "masks or boxes; a tar or zip archive of such folders of classes; a text file, or a "
            "folder of them; a table or JSON lines of texts with "
            "a label each; a table (CSV) of numbers and words")
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
        .Within(16, 2048);
    arguments
        .Option("--task", &task_,
                format("what is learned from it: {}; default: told by what lies in the folder",
                       join(RecipeTasks(), ", ")))
        .OneOf(RecipeTasks());
    arguments
        .Option(
            "--target", &target_,
            "of a table: the column to predict; default: one named target, label, class, price, "
            "..., else the last")
        .Takes("COLUMN");
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
        "  mxtrain init houses.csv --target price\n"
        "  mxtrain init photos --net efficientnet_lite0 --weights efficientnet_lite0.pth");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    CheckFlags();
    const std::unique_ptr<tasks::Recipe> recipe = Look(console);
    // Before a download.
    report::RequireFree(std::array{output_}, std::array{folder_, weights_}, overwrite_, kOutput);
    std::optional<ZooNet> net;
    WeightsChoice weights;
    if (!net_.empty()) {
      net = LookAtNet(net_, size_);
      if (net->finds_boxes() && !recipe->has_boxes()) {
        Throw(ErrorKind::kUsage,
              "--net {} finds boxes of objects, which {} does not have; choose another net "
              "(`mxtrain nets`)",
              net->name, folder_);
      }
      if (!weights_.empty()) weights = ReadWeights(*net, flags, console);
      weights.head_only = head_only_;
    }
    recipe->Choose({.input_size = size_,
                    .net = net ? &*net : nullptr,
                    .weights = &weights,
                    .file = output_ == "-" ? "FILE" : output_});
    if (output_ == "-") {
      std::cout << recipe->Text();
      return 0;
    }
    WriteText(recipe->Text());
    if (flags.json) {
      std::cout << report::JsonText(recipe->ToJson()) << std::endl;
    } else {
      std::cout << recipe->Summary()
                << format("next: mxtrain check {0}, then mxtrain train {0}\n",
                          report::QuoteShell(output_));
    }
    if (const std::string advice = recipe->Advice(); !advice.empty())
      console.Message(LogLevel::kInfo, advice);
    return 0;
  }

 private:
  void WriteText(const std::string& text) const {
    try {
      if (const fs::path parent = fs::path(output_).parent_path(); !parent.empty())
        MakeFolders(parent.string());
      WriteFileAtomically(output_, text);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kFileSystem) throw;
      Throw(error.kind(), "{}; write elsewhere with {}, or to stdout with --output -", error.what(),
            kOutput);
    }
  }

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
                            console::Console& console) const {
    CheckFamily(net);
    const std::string local = LocalWeights(weights_, console);
    WeightsChoice choice;
    choice.state = state_;
    if (config::IsAddress(weights_)) {
      choice.file = config::SplitPin(weights_).file;
      choice.sha256 = fetch::Sha256OfFile(local);
    } else {
      choice.file =
          tasks::PathInFile(fs::absolute(FollowLink(local)).lexically_normal().string(), output_);
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

  // The recipe of the first task whose data lies in the folder.
  std::unique_ptr<tasks::Recipe> Look(console::Console& console) {
    const bool file = fs::is_regular_file(folder_);
    if (!fs::is_directory(folder_) && !file) {
      const std::string guess = config::DidYouMeanFile(folder_, config::NearFiles::kData);
      Throw(ErrorKind::kFileSystem, "{} {}", folder_,
            fs::exists(folder_) ? "is not a folder"
            : guess.empty()
                ? "does not exist; give a folder with one sub-folder of images per class"
                : "does not exist" + guess);
    }
    fs::path root = fs::absolute(folder_).lexically_normal();
    if (!root.has_filename()) root = root.parent_path();  // a slash at the end
    if (!IsUtf8(root.string())) {
      Throw(ErrorKind::kData,
            "the name of {} is not UTF-8, which a configuration cannot hold; rename it, or give a "
            "link to it: ln -s NAME LINK",
            folder_);
    }
    if (output_.empty()) output_ = (file ? NameOf(root) : root.filename().string()) + ".yaml";
    const tasks::RecipeRequest request{folder_, root.string(), output_, console.logger(), target_};
    for (const bool any : {false, true}) {
      for (const tasks::TaskKind& kind : tasks::Tasks().kinds()) {
        const bool asked = kind.recognize && kind.recognizes_any == any &&
                           (!file || kind.recognizes_files) &&
                           (task_.empty() || kind.name == task_);
        if (!asked) continue;
        if (std::unique_ptr<tasks::Recipe> recipe = kind.recognize(request)) return recipe;
      }
    }
    if (file) {
      const std::string lines = LinesFor(folder_);
      Throw(ErrorKind::kFileSystem, "{} is not a folder{}", folder_,
            lines.empty() ? ", and no archive of images (.tar, .zip), no text file (.txt), nor a "
                            "table (.tsv, .csv) with names of its columns in the first line, or "
                            "JSON lines (.jsonl) of texts with a label each: the columns or "
                            "keys text and label, or others with three words or more in most texts "
                            "and few different labels"
                          : lines);
    }
    Throw(ErrorKind::kData,
          "{} contains no folders; put the images of each class into a folder named after the "
          "class: {}/cat, {}/dog{}",
          folder_, folder_, folder_, LinesFor(root));
  }

  // Of the default output: photos of photos.tar.gz.
  static std::string NameOf(const fs::path& file) {
    fs::path name = file.stem();
    if (Lower(name.extension().string()) == ".tar") name = name.stem();
    return name.string();
  }

  std::string folder_, output_, task_, target_, net_, weights_, family_, state_;
  int size_ = 0;
  bool head_only_ = false, overwrite_ = false;
};

}  // namespace

MXTRAIN_COMMAND(init, list) {
  list.Add(HelpGroup::kModel, 10, std::make_unique<Init>());
}

}  // namespace mxtrain::commands
