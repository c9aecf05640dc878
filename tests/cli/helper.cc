// SPDX-License-Identifier: Apache-2.0
// Helper of the CLI tests: generates small data and compares exactly.
//
//   helper idx DIR N SIDE                MNIST-format training and test sets of N generated images
//                                        each: bright squares, the class is the place
//   helper images DIR N                  PNG files of two classes, dark/ and light/, N each
//   helper jpeg FILE SIDE                a gray-blue JPEG of SIDE x SIDE pixels
//   helper scans FILE N                  a progressive JPEG of 16 x 16 pixels, N identical scans
//   helper digits MNIST DIR N            the first N test digits of a data set as PNG files in
//                                        class folders
//   helper crop FROM TO Y X SIDE MIRROR  SIDE x SIDE pixels at (Y, X) of every PNG in the folders
//                                        of FROM, mirrored if MIRROR is 1
//   helper again FILE TO QUALITY         an image as JPEG of that quality, half as large
//   helper turned FILE TO N              a JPEG with the EXIF orientation N
//   helper layered FILE TO               an image as PNG with an alpha channel
//   helper size FILE                     "WIDTH HEIGHT" of an image
//   helper masks FILE DIR                the masks of a COCO file as PNG files: DIR/NAME.png for
//   the
//                                        image NAME.*; for one that is refused, DIR/NAME.txt: why
//   helper compare A B                   compares two checkpoints, arrays and progress, byte for
//                                        byte; 1 if they differ
//   helper json                          stdin is JSON, one document per line; 1 if not
//   helper trace FILE KEY LAST FIRST     see trace.h; KEY and LAST: the last layer's weight and
//                                        backward, FIRST: the first layer's
//   helper overlap FILE A B              counts the operations A of a trace during which a B runs;
//                                        1 if there is none
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/train/checkpoint.h"
#include "trace.h"

namespace {

using namespace mxtrain;
namespace fs = std::filesystem;

std::string BigEndian(int64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// Ten classes: a bright square whose place tells the class, over noise of a fixed generator.
void WriteIdx(const std::string& folder, int64_t count, int64_t side) {
  fs::create_directories(folder);
  uint32_t random = 12345;
  for (const std::string set : {"train", "t10k"}) {
    std::string pixels = BigEndian(0x803) + BigEndian(count) + BigEndian(side) + BigEndian(side);
    std::string labels = BigEndian(0x801) + BigEndian(count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t k = i * 7 % 10, top = k / 5 * side / 2, left = k % 5 * side / 5;
      for (int64_t y = 0; y < side; ++y) {
        for (int64_t x = 0; x < side; ++x) {
          random = random * 1664525 + 1013904223;
          const bool bright = y >= top && y < top + side / 2 && x >= left && x < left + side / 5;
          pixels += static_cast<char>((random >> 26) + (bright ? 150 : 0));
        }
      }
      labels += static_cast<char>(k);
    }
    WriteFileAtomically(folder + "/" + set + "-images-idx3-ubyte", pixels);
    WriteFileAtomically(folder + "/" + set + "-labels-idx1-ubyte", labels);
  }
}

void WritePng(const fs::path& path, const io::Image& image) {
  fs::create_directories(path.parent_path());
  WriteFileAtomically(path.string(), io::EncodePng(image));
}

void WriteImages(const fs::path& folder, int count) {
  for (const bool light : {false, true}) {
    for (int i = 0; i < count; ++i) {
      io::Image image;
      image.Resize(12, 12, 3);
      for (size_t p = 0; p < image.pixels.size(); ++p)
        image.pixels[p] =
            static_cast<uint8_t>((light ? 180 : 20) + (p * 7 + static_cast<size_t>(i) * 13) % 40);
      WritePng(folder / (light ? "light" : "dark") / format("{:03}.png", i), image);
    }
  }
}

void WriteJpeg(const fs::path& path, int side) {
  io::Image image;
  image.Resize(side, side, 3);
  for (size_t p = 0; p < image.pixels.size(); ++p)
    image.pixels[p] = static_cast<uint8_t>(60 + p % 3 * 40 + p * 31 % 47);
  fs::create_directories(fs::absolute(path).parent_path());
  WriteFileAtomically(path.string(), io::EncodeJpeg(image));
}

// What a bomb does: each scan refines nothing, but is decoded over the whole image.
void WriteScans(const std::string& path, int64_t count) {
  const auto segment = [](char marker, const std::string& body) {
    const size_t length = body.size() + 2;
    return std::string{'\xff', marker, static_cast<char>(length >> 8),
                       static_cast<char>(length & 0xff)} +
           body;
  };
  // One code, for "nothing more".
  const std::string huffman =
      std::string("\x00\x01", 2) + std::string(15, '\0') + std::string(1, '\0');
  std::string bytes = "\xff\xd8";
  bytes += segment('\xdb', std::string(1, '\0') + std::string(64, '\x01'));  // quantisation: 1
  // Progressive, 16 x 16, gray.
  bytes += segment('\xc2', std::string("\x08\x00\x10\x00\x10\x01\x01\x11\x00", 9));
  bytes += segment('\xc4', huffman);
  const std::string scan =
      segment('\xda', std::string("\x01\x01\x00\x00\x00\x00", 6)) + std::string(1, '\x00');
  for (int64_t i = 0; i < count; ++i) bytes += scan;
  WriteFileAtomically(path, bytes + "\xff\xd9");
}

void WriteDigits(const std::string& mnist, const fs::path& folder, int64_t count) {
  const auto source = io::MakeSource("mnist", {{"path", mnist}, {"split", "test"}});
  io::Sample sample;
  for (int64_t i = 0; i < std::min(count, source->size()); ++i) {
    source->Read(i, &sample);
    io::Image image;
    image.Resize(static_cast<int>(source->data_fields()[0].shape[1]),
                 static_cast<int>(source->data_fields()[0].shape[2]), 1);
    std::copy(sample.data[0].pixels.begin(), sample.data[0].pixels.end(), image.pixels.begin());
    WritePng(folder / std::to_string(source->ClassOf(i).value()) / format("{:05}.png", i), image);
  }
}

io::Image ReadImage(const fs::path& path) {
  auto image = io::DecodeImage(ReadFile(path.string()));
  if (!image) Throw(ErrorKind::kData, "{}: {}", path.string(), image.error().reason);
  return *std::move(image);
}

void CropImages(const fs::path& from, const fs::path& to, int top, int left, int side,
                bool mirrored) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(from)) {
    if (!entry.is_regular_file()) continue;
    const io::Image whole = ReadImage(entry.path());
    io::Image cut;
    cut.Resize(side, side, whole.channels);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const uint8_t* pixel =
            whole.row(top + y) + (left + (mirrored ? side - 1 - x : x)) * whole.channels;
        std::copy_n(pixel, whole.channels, cut.row(y) + x * whole.channels);
      }
    }
    WritePng(to / fs::relative(entry.path(), from), cut);
  }
}

void WriteAgain(const fs::path& from, const fs::path& to, int quality) {
  const io::Image whole = ReadImage(from);
  io::Image half;
  half.Resize(whole.height / 2, whole.width / 2, whole.channels);
  for (int y = 0; y < half.height; ++y) {
    for (int i = 0; i < half.width * half.channels; ++i) {
      const int left = i / half.channels * 2 * half.channels + i % half.channels,
                right = left + half.channels;
      const uint8_t *upper = whole.row(2 * y), *lower = whole.row(2 * y + 1);
      half.row(y)[i] =
          static_cast<uint8_t>((upper[left] + upper[right] + lower[left] + lower[right] + 2) / 4);
    }
  }
  WriteFileAtomically(to.string(), io::EncodeJpeg(half, quality));
}

// A segment APP1 with a directory of one entry (CIPA DC-008), directly after the start of the
// image.
void WriteTurned(const fs::path& from, const fs::path& to, char orientation) {
  const std::string exif =
      std::string("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 25) + orientation +
      std::string(6, '\0');
  const std::string jpeg = ReadFile(from.string());
  const std::string segment =
      std::string{'\xff', '\xe1', '\0', static_cast<char>(exif.size() + 2)} + exif;
  WriteFileAtomically(to.string(), jpeg.substr(0, 2) + segment + jpeg.substr(2));
}

void WriteLayered(const fs::path& from, const fs::path& to) {
  const io::Image image = ReadImage(from);
  io::Image layered;
  layered.Resize(image.height, image.width, image.channels + 1);
  for (size_t i = 0; i < layered.pixels.size(); ++i) {
    const size_t channels = static_cast<size_t>(layered.channels), pixel = i / channels,
                 channel = i % channels;
    layered.pixels[i] =
        channel + 1 == channels ? 255 : image.pixels[pixel * (channels - 1) + channel];
  }
  WritePng(to, layered);
}

bool SameBytes(const NDArray& a, const NDArray& b) {
  const std::vector<float> x = a.ToVector(), y = b.ToVector();
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

bool SameArrays(const std::string& what, const std::map<std::string, NDArray>& a,
                const std::map<std::string, NDArray>& b) {
  bool same = a.size() == b.size();
  if (!same) std::cout << format("{}: {} and {} arrays\n", what, a.size(), b.size());
  for (const auto& [name, array] : a) {
    const auto other = b.find(name);
    const bool equal = other != b.end() && array.shape() == other->second.shape() &&
                       SameBytes(array, other->second);
    if (!equal) std::cout << format("{} '{}' differs\n", what, name);
    same = same && equal;
  }
  return same;
}

bool SameCheckpoints(const std::string& a_file, const std::string& b_file) {
  Runtime runtime({}, BuiltinOperators());
  const Checkpoint a = LoadCheckpoint(runtime, a_file), b = LoadCheckpoint(runtime, b_file);
  bool same = SameArrays("parameter", a.args, b.args);
  same = SameArrays("auxiliary", a.auxs, b.auxs) && same;
  same = SameArrays("optimizer state", a.optimizer, b.optimizer) && same;
  same = SameArrays("average", a.averages, b.averages) && same;
  same = SameArrays("residual", a.residuals, b.residuals) && same;
  if (a.args.empty()) std::cout << "no parameters\n";
  if (a.state.step != b.state.step || a.state.epoch != b.state.epoch) {
    std::cout << format("step {} of epoch {} against step {} of epoch {}\n", a.state.step,
                        a.state.epoch, b.state.step, b.state.epoch);
    return false;
  }
  return same && !a.args.empty();
}

void WriteMasks(const std::string& file, const std::string& folder) {
  fs::create_directories(folder);
  const auto source = io::MakeSource("coco", {{"path", file}, {"label", "mask"}});
  io::Sample sample;
  for (int64_t i = 0; i < source->size(); ++i) {
    const std::string to = (fs::path(folder) / fs::path(source->Name(i)).stem()).string();
    try {
      source->Read(i, &sample);
      WritePng(to + ".png", sample.labels[0].classes);
    } catch (const Error& error) {
      WriteFileAtomically(to + ".txt", error.what());
    }
  }
}

bool StdinIsJson() {
  int64_t lines = 0;
  for (std::string line; std::getline(std::cin, line); ++lines) {
    if (Json::accept(line)) continue;
    std::cout << "not JSON: " << line << "\n";
    return false;
  }
  return lines > 0;
}

int Run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  if (command == "idx" && words.size() == 4)
    return WriteIdx(words[1], std::stoll(words[2]), std::stoll(words[3])), 0;
  if (command == "images" && words.size() == 3)
    return WriteImages(words[1], std::stoi(words[2])), 0;
  if (command == "jpeg" && words.size() == 3) return WriteJpeg(words[1], std::stoi(words[2])), 0;
  if (command == "scans" && words.size() == 3) return WriteScans(words[1], std::stoll(words[2])), 0;
  if (command == "digits" && words.size() == 4)
    return WriteDigits(words[1], words[2], std::stoll(words[3])), 0;
  if (command == "crop" && words.size() == 7) {
    return CropImages(words[1], words[2], std::stoi(words[3]), std::stoi(words[4]),
                      std::stoi(words[5]), words[6] == "1"),
           0;
  }
  if (command == "again" && words.size() == 4)
    return WriteAgain(words[1], words[2], std::stoi(words[3])), 0;
  if (command == "turned" && words.size() == 4)
    return WriteTurned(words[1], words[2], static_cast<char>(std::stoi(words[3]))), 0;
  if (command == "layered" && words.size() == 3) return WriteLayered(words[1], words[2]), 0;
  if (command == "size" && words.size() == 2) {
    const io::Image image = ReadImage(words[1]);
    std::cout << image.width << " " << image.height << "\n";
    return 0;
  }
  if (command == "masks" && words.size() == 3) return WriteMasks(words[1], words[2]), 0;
  if (command == "compare" && words.size() == 3) return SameCheckpoints(words[1], words[2]) ? 0 : 1;
  if (command == "trace" && words.size() == 5) {
    test::TraceNames names;
    names.last_key = std::stoi(words[2]);
    names.last_backward = words[3];
    names.first_backward = words[4];
    return test::CheckTrace(words[1], names) ? 0 : 1;
  }
  if (command == "overlap" && words.size() == 4)
    return test::CountOverlaps(words[1], words[2], words[3]) > 0 ? 0 : 1;
  if (command == "json" && words.size() == 1) return StdinIsJson() ? 0 : 1;
  std::cerr << "usage: helper idx | images | jpeg | scans | digits | crop | again | turned | "
               "layered | size | masks | compare | json | trace | overlap, see helper.cc\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
