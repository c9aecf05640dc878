// SPDX-License-Identifier: Apache-2.0
// The layering: includes only descend, third-party headers are confined to their modules, builds
// differ by files and not by `#if`.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/build_paths.h"

namespace mxtrain::test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SourceDir();

struct SourceFile {
  std::string path;                                // "lib/mxtrain/engine/engine.h"
  std::string module;                              // "engine"; "app" for the program
  std::vector<std::pair<int, std::string>> lines;  // preprocessor directives with their numbers
  bool is_test() const { return path.ends_with("_test.cc"); }
  bool is_header() const { return path.ends_with(".h") || path.ends_with(".cuh"); }
};

std::vector<SourceFile> AllSources() {
  std::vector<SourceFile> files;
  for (const char* top : {"lib/mxtrain", "app"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cc" && extension != ".cu" && extension != ".cuh")
        continue;
      SourceFile file;
      file.path = entry.path().lexically_relative(kRoot).generic_string();
      const fs::path below = entry.path().lexically_relative(kRoot / top);
      file.module = std::string(top) == "app" ? "app" : below.begin()->string();
      std::ifstream in(entry.path());
      std::string line;
      for (int number = 1; std::getline(in, line); ++number) {
        const size_t first = line.find_first_not_of(" \t");
        if (first != std::string::npos && line[first] == '#')
          file.lines.emplace_back(number, line.substr(first));
      }
      files.push_back(std::move(file));
    }
  }
  return files;
}

// "module: dependency dependency..." a line each, written by the build.
std::map<std::string, std::set<std::string>> DeclaredEdges() {
  std::map<std::string, std::set<std::string>> edges;
  std::ifstream in(BinaryDir() / "modules.txt");
  REQUIRE(in.good());
  std::string line;
  while (std::getline(in, line)) {
    const size_t colon = line.find(':');
    REQUIRE(colon != std::string::npos);
    std::istringstream words(line.substr(colon + 1));
    std::set<std::string>& depends = edges[line.substr(0, colon)];
    for (std::string word; words >> word;) depends.insert(word);
  }
  for (const auto& [module, depends] : edges) edges["app"].insert(module);
  edges["app"].erase("operators");  // only the generated list of registrations names it
  return edges;
}

// Where the headers of a library may be included: prefixes of paths.
struct Home {
  std::string header;  // prefix of the name in angle brackets
  std::vector<std::string> paths;
};
const std::vector<Home> kHomes = {
    {"CLI/", {"app/commands/arguments.cc"}},
    {"yaml-cpp/", {"app/config/"}},
    {"fmt/", {"lib/mxtrain/base/format", "lib/mxtrain/base/log"}},
    {"nlohmann/", {"lib/mxtrain/base/json"}},
    {"libdeflate.h", {"lib/mxtrain/base/"}},
    {"zlib.h", {"lib/mxtrain/io/"}},
    {"xxhash.h", {"lib/mxtrain/base/"}},
    {"hwy/", {"lib/mxtrain/operators/", "lib/mxtrain/io/"}},
    {"jpeglib.h", {"lib/mxtrain/io/image"}},
    {"turbojpeg.h", {"lib/mxtrain/io/image_test.cc", "lib/mxtrain/io/crop_resize_test.cc"}},
    {"png.h", {"lib/mxtrain/io/image"}},
    {"stb_image_write.h", {"lib/mxtrain/io/image"}},
    {"stb_truetype.h", {"app/report/plot/font.cc"}},
    {"opencv2/", {"lib/mxtrain/io/"}},
    {"oneapi/dnnl/", {"lib/mxtrain/device/cpu/onednn/"}},
    {"cuda", {"lib/mxtrain/device/cuda/"}},
    {"cublas", {"lib/mxtrain/device/cuda/"}},
    {"cudnn", {"lib/mxtrain/device/cuda/"}},
    {"nccl", {"lib/mxtrain/device/cuda/"}},
    {"cub/", {"lib/mxtrain/device/cuda/", "lib/mxtrain/operators/"}},
    {"omp.h", {"lib/mxtrain/device/cpu/", "lib/mxtrain/operators/"}},
};

// System headers other than the C++ library's, by path prefix.
const std::vector<Home> kSystem = {
    {"execinfo.h", {"app/main.cc"}},
    {"unistd.h", {"lib/mxtrain/", "app/"}},
    {"fcntl.h", {"lib/mxtrain/", "app/"}},
    {"poll.h", {"lib/mxtrain/base/"}},
    {"sched.h", {"lib/mxtrain/device/", "lib/mxtrain/engine/"}},
    {"dlfcn.h",
     {"lib/mxtrain/operator/", "lib/mxtrain/device/gpu_", "lib/mxtrain/device/cuda/nccl/"}},
    {"signal.h", {"lib/mxtrain/base/"}},
    {"sys/", {"lib/mxtrain/", "app/"}},
};

// Exceptions, each with its reason.
struct Exception {
  std::string path, text, reason;
};
const std::vector<Exception> kAllowedConditions = {
    {"lib/mxtrain/base/macros.h", "#if", "the one home of what compilers and targets differ in"},
    {"lib/mxtrain/operators/", "#if HWY_ONCE",
     "Highway's guard of what a file compiled per target says once"},
    {"lib/mxtrain/io/", "#if HWY_ONCE",
     "Highway's guard of what a file compiled per target says once"},
};

bool Matches(const std::vector<Exception>& exceptions, const std::string& path,
             const std::string& text) {
  return std::any_of(exceptions.begin(), exceptions.end(), [&](const Exception& e) {
    return path.starts_with(e.path) && text.starts_with(e.text);
  });
}

bool HasHome(const std::vector<Home>& homes, const std::string& path, const std::string& header,
             bool* known) {
  for (const Home& home : homes) {
    if (!header.starts_with(home.header)) continue;
    *known = true;
    if (std::any_of(home.paths.begin(), home.paths.end(),
                    [&](const std::string& p) { return path.starts_with(p); }))
      return true;
  }
  return false;
}

// Files of the CUDA backend: only these include CUDA and the headers of device/cuda.
bool OfGpu(const std::string& path) {
  static const std::regex pattern(
      R"(.*(\.cu|\.cuh|_cuda\.cc|_cudnn\.cc|_cuda_test\.cc)|lib/mxtrain/device/cuda/.*)");
  return std::regex_match(path, pattern);
}

// Headers in a folder internal/ belong to their module alone and are not installed.
bool IsInternal(const std::string& path) {
  return path.find("/internal/") != std::string::npos;
}

// The violation of one include, if any.
std::optional<std::string> ProblemOfQuoted(
    const SourceFile& file, const std::string& header,
    const std::map<std::string, std::set<std::string>>& edges) {
  if (header.starts_with("tests/support/"))
    return file.is_test() ? std::nullopt : std::optional("only tests may see tests/support");
  if (header.starts_with("app/"))
    return file.module == "app" ? std::nullopt
                                : std::optional("the library may not see the program");
  if (!header.starts_with("mxtrain/"))
    return "includes begin with mxtrain/, app/ or tests/support/";
  if ((header.starts_with("mxtrain/device/cuda/") || header.ends_with(".cuh")) &&
      !OfGpu(file.path)) {
    return "the CUDA backend is in *_cuda.cu, *_cuda.cc, *_cudnn.cc, *.cuh and device/cuda";
  }
  const std::string rest = header.substr(8), target = rest.substr(0, rest.find('/'));
  if (IsInternal(header)) {
    if (target != file.module) return "this header is internal to module " + target;
    if (file.is_header() && !IsInternal(file.path))
      return "a public header may not include an internal one, which is not installed";
  }
  if (target == file.module) return std::nullopt;
  const auto found = edges.find(file.module);
  if (found == edges.end())
    return "module " + file.module + " is not declared in lib/CMakeLists.txt";
  if (found->second.contains(target)) return std::nullopt;
  return "module " + file.module + " does not declare that it depends on " + target;
}

std::optional<std::string> ProblemOfAngled(const SourceFile& file, const std::string& header) {
  if (header.starts_with("doctest/"))
    return file.is_test() ? std::nullopt : std::optional("doctest is for tests");
  const bool plain = header.find('/') == std::string::npos && header.find('.') == std::string::npos;
  if (plain) return std::nullopt;
  bool known = false;
  if (HasHome(kHomes, file.path, header, &known) || HasHome(kSystem, file.path, header, &known))
    return std::nullopt;
  return known ? "this header has its home elsewhere"
               : "this header is in no list; give its library a home";
}

TEST_CASE("includes descend along declared edges, and third-party headers stay at home") {
  const auto edges = DeclaredEdges();
  const std::vector<SourceFile> files = AllSources();
  CHECK(files.size() > 100);
  const std::regex include(R"(#\s*include\s*([<"])([^>"]+)[>"].*)");
  int seen = 0;
  for (const SourceFile& file : files) {
    for (const auto& [number, line] : file.lines) {
      std::smatch match;
      if (!std::regex_match(line, match, include)) continue;
      ++seen;
      const std::string header = match[2];
      const auto problem =
          match[1] == "<" ? ProblemOfAngled(file, header) : ProblemOfQuoted(file, header, edges);
      if (problem) FAIL_CHECK(file.path << ":" << number << ": " << line << ": " << *problem);
    }
  }
  CHECK(seen > 500);
}

TEST_CASE("declared edges form no cycle") {
  const auto edges = DeclaredEdges();
  std::map<std::string, int> depth;  // known once all dependencies have theirs
  for (size_t round = 0; round <= edges.size(); ++round) {
    for (const auto& [module, depends] : edges) {
      if (std::all_of(depends.begin(), depends.end(),
                      [&](const std::string& d) { return depth.contains(d); }))
        depth.emplace(module, round);
    }
  }
  CHECK(depth.size() == edges.size());
}

TEST_CASE("builds differ by files: `#if` is used only where necessary") {
  for (const SourceFile& file : AllSources()) {
    for (const auto& [number, line] : file.lines) {
      if (!line.starts_with("#if") && !line.starts_with("#elif")) continue;
      if (!Matches(kAllowedConditions, file.path, line))
        FAIL_CHECK(file.path << ":" << number << ": " << line
                             << ": put the difference into a file of its own");
    }
  }
}

TEST_CASE("the rules detect violations") {
  const auto edges = DeclaredEdges();
  const SourceFile engine{"lib/mxtrain/engine/x.cc", "engine", {}},
      test{"lib/mxtrain/engine/x_test.cc", "engine", {}};
  CHECK_FALSE(ProblemOfQuoted(engine, "mxtrain/base/error.h", edges));
  CHECK_FALSE(ProblemOfQuoted(engine, "mxtrain/engine/engine.h", edges));
  CHECK(ProblemOfQuoted(engine, "mxtrain/ndarray/ndarray.h", edges));
  CHECK(ProblemOfQuoted(engine, "app/config/config.h", edges));
  CHECK(ProblemOfQuoted(engine, "tests/support/temp_dir.h", edges));
  CHECK_FALSE(ProblemOfQuoted(test, "tests/support/temp_dir.h", edges));
  CHECK(ProblemOfQuoted(engine, "engine.h", edges));
  const SourceFile header{"lib/mxtrain/engine/x.h", "engine", {}},
      inside{"lib/mxtrain/engine/internal/x.h", "engine", {}},
      other{"lib/mxtrain/ndarray/x.cc", "ndarray", {}};
  CHECK_FALSE(ProblemOfQuoted(engine, "mxtrain/engine/internal/task.h", edges));
  CHECK_FALSE(ProblemOfQuoted(test, "mxtrain/engine/internal/task.h", edges));
  CHECK_FALSE(ProblemOfQuoted(inside, "mxtrain/engine/internal/task.h", edges));
  CHECK(ProblemOfQuoted(header, "mxtrain/engine/internal/task.h", edges));
  CHECK(ProblemOfQuoted(other, "mxtrain/engine/internal/task.h", edges));
  CHECK(ProblemOfAngled(engine, "zlib.h"));
  CHECK(ProblemOfAngled(engine, "boost/any.hpp"));
  const SourceFile kernel{"lib/mxtrain/operators/x/x_cuda.cu", "operators", {}},
      plain{"lib/mxtrain/operators/x/x_cpu.cc", "operators", {}};
  CHECK_FALSE(ProblemOfQuoted(kernel, "mxtrain/device/cuda/stream.h", edges));
  CHECK_FALSE(ProblemOfQuoted(kernel, "mxtrain/operator/kernel.cuh", edges));
  CHECK(ProblemOfQuoted(plain, "mxtrain/device/cuda/stream.h", edges));
  CHECK(ProblemOfQuoted(plain, "mxtrain/operator/kernel.cuh", edges));
  CHECK(ProblemOfAngled(plain, "cuda_runtime.h"));
  CHECK(ProblemOfAngled(kernel, "cudnn.h"));
  CHECK(ProblemOfAngled(engine, "doctest/doctest.h"));
  CHECK_FALSE(ProblemOfAngled(engine, "vector"));
}

}  // namespace
}  // namespace mxtrain::test
