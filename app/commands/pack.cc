// SPDX-License-Identifier: Apache-2.0
// mxtrain pack DATA OUT.rec
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <map>
#include <span>

#include "app/commands/command_list.h"
#include "app/config/near_file.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/boxes.h"
#include "mxtrain/io/class_names.h"
#include "mxtrain/io/example_files.h"
#include "mxtrain/io/folder_names.h"
#include "mxtrain/io/image_record.h"
#include "mxtrain/io/record_file.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kShownEvery = 100;  // images between two states of the progress bar

// Images that can be packed, with a class or boxes each.
struct PackedData {
  std::unique_ptr<io::Source> source;
  std::string root;  // the folder that their files are in
  bool boxes = false;
};

// A file for training must not hold what validates: the folders train and val, perhaps of images.
void CheckNoParts(const std::string& data) {
  std::map<io::Split, fs::path> parts;
  std::error_code none;
  for (const fs::path& folder : {fs::path(data), fs::path(data) / "images"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
      const io::Split split = io::SplitOf(entry.path().filename().string());
      if (split != io::Split::kNone && entry.is_directory(none)) parts.emplace(split, entry.path());
    }
  }
  if (parts.size() < 2) return;
  std::vector<std::string> names;
  for (const auto& [split, folder] : parts) names.push_back(folder.filename().string());
  Throw(ErrorKind::kUsage, "{} has the parts {}; pack each into a file of its own: mxtrain pack {}",
        data, join(names, ", "),
        report::QuoteShell(parts.begin()->second.string()) + " " + names[0] + ".rec");
}

PackedData OpenPackedData(const std::string& data, const std::string& classes_file) {
  if (!fs::exists(data))
    Throw(ErrorKind::kFileSystem, "there is no file or folder {}{}", data,
          config::DidYouMeanFile(data, config::NearFiles::kData));
  CheckNoParts(data);
  const io::RecognizedSource found = io::RecognizeSource(data, "");
  if (!found.kind)
    Throw(ErrorKind::kUsage, "{} is no folder of images, no list and no other data set", data);
  Kwargs kwargs = found.recognition.params;
  if (!classes_file.empty()) {
    if (!found.kind->NamesClasses(kwargs))
      Throw(ErrorKind::kUsage, "--classes: the classes of {} are given ({})", data,
            found.kind->help);
    const std::vector<std::string> names = io::ReadClassNames(classes_file);
    if (names.empty()) Throw(ErrorKind::kData, "{} names no class", classes_file);
    kwargs.emplace_back("classes", params::Print(names));
  }
  PackedData packed{io::MakeSource(found.kind->name, kwargs), io::RootOf(kwargs)};
  const io::Source& source = *packed.source;
  if (source.data_fields().size() != 1 || source.data_fields()[0].kind != io::FieldKind::kImage) {
    Throw(ErrorKind::kUsage, "{} has no images ({}); only image files can be packed", data,
          found.kind->help);
  }
  const std::vector<io::FieldSpec>& labels = source.label_fields();
  packed.boxes = labels.size() == 1 && labels[0].kind == io::FieldKind::kBoxes;
  if (!packed.boxes && (source.size() == 0 || !source.ClassOf(0))) {
    Throw(ErrorKind::kUsage,
          "the labels of {} are neither classes nor boxes ({}); others cannot be packed", data,
          found.kind->help);
  }
  return packed;
}

// The label of boxes in the form of MXNet's ImageDetRecordIter: the sizes of this header and of an
// object, and for each object its class, edges as shares of the image's size, and BoxUse.
std::vector<float> BoxesAsShares(std::span<const float> rows, int64_t columns,
                                 const std::string& image, const std::string& name) {
  std::vector<float> label = {2, static_cast<float>(io::kBoxColumns)};
  if (rows.empty()) return label;
  const auto size = io::ProbeImage(image);
  if (!size) {
    Throw(ErrorKind::kData, "{}: {}, so its boxes cannot be written as shares of its size", name,
          size.error().reason);
  }
  const auto share = [&name](float edge, int whole) {
    const double part = static_cast<double>(edge) / whole;
    if (part >= -1 && part <= 2) return static_cast<float>(part);
    Throw(ErrorKind::kData,
          "{}: the edge {} of a box is more than an image away from the image, of {} pixels; "
          "correct the box",
          name, edge, whole);
  };
  for (size_t i = 0; i < rows.size(); i += static_cast<size_t>(columns)) {
    const io::BoxRow box(&rows[i]);
    for (const float number :
         {box.label, share(box.left, size->width), share(box.top, size->height),
          share(box.right, size->width), share(box.bottom, size->height), box.use})
      label.push_back(number);
  }
  return label;
}

// A line of im2rec's list.
std::string PackedListLine(int64_t index, const std::vector<float>& labels,
                           const std::string& path) {
  if (path.find_first_of("\t\r\n") != std::string::npos) {
    Throw(ErrorKind::kData, "{}: a list cannot have tabs and line breaks in paths; rename the file",
          report::Printable(path));
  }
  std::string line = format("{}", index);
  for (const float label : labels) line += format("\t{:f}", label);
  return line + "\t" + path + "\n";
}

class Pack final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("pack", "pack images and labels into one file of records (RecordIO)");
    arguments
        .Option("data", &data_,
                "a folder with one folder per class, a list, images with boxes (YOLO, Pascal VOC, "
                "COCO, a table); with --verify a .rec file")
        .Required()
        .Takes("DATA");
    arguments
        .Option("output", &output_,
                "the file to write, OUT.rec; beside it OUT.idx, OUT.lst, OUT.rec.sums (checksums) "
                "and OUT.classes (the names of the classes)")
        .Takes("OUT.rec");
    arguments
        .Option("--classes", &classes_,
                "number the classes as this file names them, a line each: train.classes, for "
                "validation data")
        .Takes("FILE");
    arguments.Flag("--overwrite", &overwrite_, "replace existing files");
    arguments.Flag("--verify", &verify_,
                   "instead of packing, read every record of a .rec file and say what is damaged");
    arguments.Examples(
        "  mxtrain pack photos/train train.rec\n"
        "  mxtrain pack photos/val val.rec --classes train.classes\n"
        "  mxtrain pack --verify train.rec");
  }
  bool Computes() const override { return false; }

  int Run(const CommonFlags& flags, console::Console& console) override {
    CheckArguments();
    CatchSignals();
    return verify_ ? Verify(flags, console) : Write(flags, console);
  }

 private:
  void CheckArguments() const {
    if (verify_) {
      if (!output_.empty() || !classes_.empty() || overwrite_)
        Throw(ErrorKind::kUsage, "--verify reads one file, and writes nothing: give OUT.rec alone");
      return;
    }
    if (Lower(fs::path(output_).extension().string()) != ".rec") {
      Throw(ErrorKind::kUsage, "give the file to write, with the ending .rec: mxtrain pack {} {}",
            report::QuoteShell(data_),
            output_.empty() ? "OUT.rec" : report::QuoteShell(output_ + ".rec"));
    }
  }

  // All that is written but the records.
  std::string ListFile() const { return io::BesideRecords(output_, ".lst"); }
  std::string ClassesFile() const { return io::BesideRecords(output_, ".classes"); }

  void RequireFree() const {
    report::RequireFree(std::array{output_, io::BesideRecords(output_, ".idx"), ListFile(),
                                   io::SumsOfRecords(output_), ClassesFile()},
                        std::array{data_, classes_}, overwrite_);
  }

  int Write(const CommonFlags& flags, console::Console& console) const {
    RequireFree();
    const PackedData packed = OpenPackedData(data_, classes_);
    const io::Source& source = *packed.source;
    for (const std::string& text : source.notes()) console.Message(LogLevel::kInfo, text);
    for (const std::string& text : source.remarks()) console.Message(LogLevel::kWarning, text);
    const std::string classes = io::ClassNameLines(source.class_names());
    io::RecordWriter writer(output_);
    std::string list;
    for (int64_t i = 0; i < source.size(); ++i) {
      if (StopFlag() == 1) return 128 + StopSignal();
      if (console.bar() && i % kShownEvery == 0)
        console.ShowBar(format("{} of {}", i, Counted(source.size(), "image")));
      AddImage(packed, i, &writer, &list);
    }
    console.ShowBar("");
    WriteFileAtomically(ClassesFile(), classes);
    WriteFileAtomically(ListFile(), list);
    writer.Commit();
    Report(flags, source, writer.bytes());
    return 0;
  }

  static void AddImage(const PackedData& packed, int64_t index, io::RecordWriter* writer,
                       std::string* list) {
    io::Sample sample;
    packed.source->Read(index, &sample);
    const std::string& image = sample.data[0].encoded;
    const std::string name = packed.source->Name(index);
    if (!sample.data[0].pixels.empty()) {
      Throw(ErrorKind::kUsage,
            "{}: its pixels are stored without an image file; only image files can be packed",
            name);
    }
    const std::span<const float> values = sample.labels[0].values;
    const std::vector<float> labels =
        packed.boxes ? BoxesAsShares(values, packed.source->label_fields()[0].shape[1], image, name)
                     : std::vector<float>(values.begin(), values.end());
    writer->Write(io::ImageRecordBytes({labels, static_cast<uint64_t>(index), 0, image}));
    const std::string below = io::FileBelow(*packed.source, index, packed.root);
    *list += PackedListLine(index, labels, below.empty() ? name : below);
  }

  void Report(const CommonFlags& flags, const io::Source& source, uint64_t bytes) const {
    if (flags.json) {
      std::cout << report::JsonText({{"file", output_},
                                     {"images", source.size()},
                                     {"bytes", bytes},
                                     {"classes", source.class_names()}})
                << std::endl;
      return;
    }
    std::cout << format(
        "{}: {}, {}; {}\n", report::Printable(output_), Counted(source.size(), "image"),
        FormatBytes(static_cast<int64_t>(bytes)),
        source.num_classes() == 1 ? "1 class" : format("{} classes", source.num_classes()));
  }

  int Verify(const CommonFlags& flags, console::Console& console) const {
    const io::RecordDamages found = io::VerifyRecords(
        data_,
        [](std::string_view bytes, const auto& place) { io::ParseImageRecord(bytes, place); },
        [] { return StopFlag() == 1; });
    if (StopFlag() == 1) return 128 + StopSignal();
    if (flags.json) {
      std::cout << report::JsonText({{"file", data_},
                                     {"records", found.records},
                                     {"checksums", found.has_sums},
                                     {"damages", found.damages}})
                << std::endl;
    } else {
      for (const std::string& damage : found.damages)
        std::cout << report::Printable(damage) << "\n";
      if (found.damages.empty())
        std::cout << format("{}: {}, none damaged\n", report::Printable(data_),
                            Counted(found.records, "record"));
    }
    if (!found.has_sums) {
      console.Message(LogLevel::kWarning,
                      format("{} has no checksums ({}): headers and lengths were checked, but not "
                             "the bytes of images",
                             data_, io::SumsOfRecords(data_)));
    }
    if (found.damages.empty()) return 0;
    console.Message(LogLevel::kError,
                    format("{}: {} in {}", data_, Counted(found.damages.size(), "problem"),
                           Counted(found.records, "record")));
    return static_cast<int>(ErrorKind::kData);
  }

  std::string data_, output_, classes_;
  bool overwrite_ = false, verify_ = false;
};

}  // namespace

MXTRAIN_COMMAND(pack, list) {
  list.Add(HelpGroup::kReference, 45, std::make_unique<Pack>());
}

}  // namespace mxtrain::commands
