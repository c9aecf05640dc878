// SPDX-License-Identifier: Apache-2.0
// mxtrain synth DIR
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/commands/synth_image.h"
#include "app/report/output.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

constexpr int kMinSize = 24, kMaxSize = 1024;
constexpr int64_t kMaxCount = 1'000'000;
constexpr const char* kUnfinished = ".unfinished";

class Synth final : public Command {
 public:
  void Declare(CommandLine& line) override {
    const int all = static_cast<int>(ShapeNames().size());
    Arguments arguments = line.Add(
        "synth",
        "generate a small image data set of shapes, one folder per class in train/ and val/");
    arguments.Option("dir", &dir_, "folder to create; must not exist, or be empty")
        .Required()
        .Takes("DIR");
    arguments.Option("--count", &count_, "total number of images")
        .Within(int64_t{4}, kMaxCount)
        .ShowsDefault();
    arguments
        .Option("--classes", &classes_,
                format("number of classes, from: {}", join(ShapeNames(), ", ")))
        .Within(2, all)
        .ShowsDefault();
    arguments.Option("--size", &size_, "size in pixels; sides are between 3/4 and 3/2 of it")
        .Within(kMinSize, kMaxSize)
        .ShowsDefault();
    arguments.Option("--val", &val_, "fraction of the images in val/")
        .Within(0.0, 0.9)
        .ShowsDefault();
    arguments.Examples(
        "  mxtrain synth data/shapes\n  mxtrain synth data/shapes --count 800 --classes 3 --size "
        "96 --seed 7");
  }

  int Run(const CommonFlags& flags, report::Console&) override {
    const int64_t of_class = count_ / classes_;
    const int64_t val_of_class =
        val_ > 0 ? std::max<int64_t>(std::llround(static_cast<double>(of_class) * val_), 1) : 0;
    if (of_class < 2 || val_of_class >= of_class) {
      Throw(ErrorKind::kUsage,
            "--count {} leaves {} images for each of {} classes; at least 2 are needed", count_,
            of_class, classes_);
    }
    if (fs::exists(dir_) && !fs::is_directory(dir_))
      Throw(ErrorKind::kFileSystem, "{} is a file; give a folder that does not exist yet", dir_);
    if (fs::exists(dir_) && !fs::is_empty(dir_)) {
      Throw(ErrorKind::kFileSystem, "{} is not empty; choose another folder, or remove it first",
            dir_);
    }
    // Created under a temporary name, so that a folder with this name is complete.
    fs::path target = fs::path(dir_).lexically_normal();
    if (!target.has_filename()) target = target.parent_path();  // a slash at the end
    const fs::path made = target.string() + kUnfinished;
    CatchSignals();
    try {
      fs::remove_all(made);
      for (int64_t i = 0; i < of_class; ++i) {
        for (int k = 0; k < classes_; ++k)
          WriteOne(flags.seed.value_or(0), k, i, made / (i < val_of_class ? "val" : "train"));
        if (StopFlag() == 1) break;
      }
      if (StopFlag() == 1) {
        fs::remove_all(made);
        return 128 + StopSignal();
      }
      fs::rename(made, target);
    } catch (const fs::filesystem_error& e) {
      Throw(ErrorKind::kFileSystem, "cannot create {}: {}", dir_, e.code().message());
    }
    Report(flags, of_class, val_of_class);
    return 0;
  }

 private:
  void WriteOne(uint64_t seed, int shape, int64_t number, const fs::path& part) const {
    const SynthImage image = DrawSynthImage(seed, static_cast<size_t>(shape), number, size_);
    const fs::path folder = part / ShapeNames()[static_cast<size_t>(shape)];
    if (number == 0 || !fs::exists(folder)) MakeFolders(folder.string());
    const fs::path file = folder / format("{:06}{}", number, image.jpeg ? ".jpg" : ".png");
    const std::string bytes =
        image.jpeg ? io::EncodeJpeg(image.image, image.quality) : io::EncodePng(image.image);
    FileAppender(file.string(), FileAppender::Begin::kNew).Append(bytes);
  }

  void Report(const CommonFlags& flags, int64_t of_class, int64_t val_of_class) const {
    const std::vector<std::string> names(ShapeNames().begin(), ShapeNames().begin() + classes_);
    const int64_t train = (of_class - val_of_class) * classes_, val = val_of_class * classes_;
    if (flags.json) {
      std::cout << report::JsonText(
                       {{"folder", dir_}, {"classes", names}, {"train", train}, {"val", val}})
                << std::endl;
    } else {
      std::cout << format("{}: {} images in train, {} in val; classes {}\n", dir_, train, val,
                          join(names, ", "));
    }
  }

  std::string dir_;
  int64_t count_ = 4000;
  int classes_ = 6, size_ = 64;
  double val_ = 0.2;
};

}  // namespace

MXTRAIN_COMMAND(synth, list) {
  list.Add(HelpGroup::kReference, 40, std::make_unique<Synth>());
}

}  // namespace mxtrain::commands
