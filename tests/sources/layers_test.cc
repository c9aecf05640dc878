// SPDX-License-Identifier: Apache-2.0
// The layering: includes only descend, third-party headers are confined to the places that
// lib/docs/architecture.md names, builds differ by files and not by `#if`.
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

#include "mxtrain/base/file.h"
#include "mxtrain/base/glob.h"
#include "tests/support/build_paths.h"

namespace mxtrain::test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SourceDir();

struct SourceFile {
  std::string path;                                // "lib/mxtrain/engine/engine.h"
  std::string module;                              // "engine"; outside the modules "app", "tests"
  std::vector<std::pair<int, std::string>> lines;  // preprocessor directives with their numbers
  bool is_test() const { return path.ends_with("_test.cc"); }
  bool is_header() const { return path.ends_with(".h") || path.ends_with(".cuh"); }
};

std::vector<SourceFile> SourcesIn(const std::vector<std::string>& tops) {
  std::vector<SourceFile> files;
  for (const std::string& top : tops) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cc" && extension != ".cu" && extension != ".cuh")
        continue;
      SourceFile file;
      file.path = entry.path().lexically_relative(kRoot).generic_string();
      const fs::path below = entry.path().lexically_relative(kRoot / top);
      file.module = top == "lib/mxtrain" ? below.begin()->string() : top;
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

// What the rules about modules concern.
std::vector<SourceFile> AllSources() {
  return SourcesIn({"lib/mxtrain", "app"});
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

// A row of the table of third-party packages in lib/docs/architecture.md.
struct Package {
  std::string name, needed;
  std::vector<std::string> debian, headers, places;
};

// Items in backticks.
std::vector<std::string> Quoted(const std::string& cell) {
  std::vector<std::string> items;
  static const std::regex pattern("`([^`]+)`");
  for (std::sregex_iterator at(cell.begin(), cell.end(), pattern), end; at != end; ++at)
    items.push_back((*at)[1]);
  return items;
}

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::vector<Package> PackagesIn(const std::string& markdown) {
  std::vector<Package> packages;
  std::istringstream lines(markdown);
  std::string line;
  while (std::getline(lines, line) && !line.starts_with("| package | Debian package |")) {
  }
  std::getline(lines, line);  // |---|---|
  while (std::getline(lines, line) && line.starts_with('|')) {
    std::vector<std::string> cells;
    std::istringstream row(line.substr(1));
    for (std::string cell; std::getline(row, cell, '|');) cells.push_back(Trimmed(cell));
    CAPTURE(line);
    REQUIRE(cells.size() == 6);
    packages.push_back({cells[0], cells[5], Quoted(cells[1]), Quoted(cells[2]), Quoted(cells[3])});
  }
  return packages;
}

std::vector<Package> AllPackages() {
  return PackagesIn(ReadFile((kRoot / "lib/docs/architecture.md").string()));
}

// Whether a pattern of the table ("app/config/", "io/*_test.cc") covers a path.
bool Covers(const std::string& pattern, const std::string& path) {
  return GlobMatches(pattern.ends_with('/') ? pattern + "*" : pattern, path);
}

bool AnyCovers(const std::vector<std::string>& patterns, const std::string& path) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return Covers(pattern, path); });
}

// The packages that install_deps.sh installs: the words of its arrays.
std::set<std::string> InstalledPackages(const std::string& script) {
  std::set<std::string> packages;
  static const std::regex array(R"((?:^|\n)(?:packages|development)=\(([^)]*)\))"),
      comment("#[^\n]*");
  for (std::sregex_iterator at(script.begin(), script.end(), array), end; at != end; ++at) {
    std::istringstream words(std::regex_replace((*at)[1].str(), comment, ""));
    for (std::string word; words >> word;) packages.insert(word);
  }
  return packages;
}

// System headers other than the C++ library's, and where they may be included.
struct Home {
  std::string header;
  std::vector<std::string> places;
};
const std::vector<Home> kSystem = {
    {"dirent.h", {"tests/"}},
    {"dlfcn.h",
     {"lib/mxtrain/operator/", "lib/mxtrain/device/gpu_*", "lib/mxtrain/device/mpi_library.cc",
      "lib/mxtrain/device/own_folder.cc", "lib/mxtrain/device/cuda/nccl/",
      "lib/mxtrain/device/cuda/device_scope.cc", "lib/mxtrain/io/image_archive.cc",
      "app/fetch/with_curl/", "tests/"}},
    {"execinfo.h", {"app/main.cc"}},
    {"fcntl.h", {"lib/mxtrain/", "app/", "tests/"}},
    {"malloc.h", {"tests/"}},
    {"poll.h", {"lib/mxtrain/base/", "tests/"}},
    {"pthread.h", {"tests/"}},
    {"sched.h", {"lib/mxtrain/base/", "lib/mxtrain/device/", "lib/mxtrain/engine/", "tests/"}},
    {"signal.h", {"lib/mxtrain/base/", "tests/"}},
    {"sys/", {"lib/mxtrain/", "app/", "tests/"}},
    {"time.h", {"tests/"}},
    {"ucontext.h", {"tests/"}},
    {"unistd.h", {"lib/mxtrain/", "app/", "tests/"}},
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

// The folders of the program: what each may include of the others. commands/ and main.cc may
// include all.
const std::map<std::string, std::set<std::string>> kRooms = {
    {"config", {}},
    {"report", {"config"}},
    {"tasks", {"config", "report"}},
    {"session", {"config", "report", "tasks"}},
    {"inference", {"config", "report", "tasks", "session"}},
    {"console", {"config", "report"}},
    {"fetch", {"config", "report", "console"}}};

// "config" of app/config/config.h.
std::string RoomOf(const std::string& path) {
  const size_t begin = path.find('/') + 1;
  return path.substr(begin, path.find('/', begin) - begin);
}

std::optional<std::string> ProblemOfRooms(const SourceFile& file, const std::string& header) {
  const std::string from = RoomOf(file.path), to = RoomOf(header);
  const auto found = kRooms.find(from);
  if (found == kRooms.end() || from == to || found->second.contains(to)) return std::nullopt;
  return "app/" + from + " may not include app/" + to;
}

// The violation of one include, if any.
std::optional<std::string> ProblemOfQuoted(
    const SourceFile& file, const std::string& header,
    const std::map<std::string, std::set<std::string>>& edges) {
  // The sources of tests/package are built outside the tree, and some also here.
  if (header.starts_with("tests/support/") || header.starts_with("tests/package/"))
    return file.is_test() ? std::nullopt : std::optional("only tests may see tests/");
  if (header.starts_with("app/"))
    return file.module == "app" ? ProblemOfRooms(file, header)
                                : std::optional<std::string>("the library may not see the program");
  if (!header.starts_with("mxtrain/"))
    return "includes begin with mxtrain/, app/, tests/support/ or tests/package/";
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

std::optional<std::string> ProblemOfAngled(const SourceFile& file, const std::string& header,
                                           const std::vector<Package>& packages) {
  const bool plain = header.find('/') == std::string::npos && header.find('.') == std::string::npos;
  if (plain) return std::nullopt;
  bool known = false;
  for (const Package& package : packages) {
    if (!AnyCovers(package.headers, header)) continue;
    if (AnyCovers(package.places, file.path)) return std::nullopt;
    known = true;
  }
  for (const Home& home : kSystem) {
    if (!Covers(home.header, header)) continue;
    if (AnyCovers(home.places, file.path)) return std::nullopt;
    known = true;
  }
  return known ? "this header has its home elsewhere; see the table in lib/docs/architecture.md"
               : "this header is in no list; give its package a row in lib/docs/architecture.md";
}

// Calls visit(file, number, line, header, angled) for each #include.
template <typename Visit>
void ForEachInclude(const std::vector<SourceFile>& files, Visit visit) {
  static const std::regex include(R"(#\s*include\s*([<"])([^>"]+)[>"].*)");
  for (const SourceFile& file : files) {
    for (const auto& [number, line] : file.lines) {
      std::smatch match;
      if (std::regex_match(line, match, include))
        visit(file, number, line, match[2].str(), match[1] == "<");
    }
  }
}

TEST_CASE("includes descend along declared edges") {
  const auto edges = DeclaredEdges();
  const std::vector<SourceFile> files = AllSources();
  CHECK(files.size() > 100);
  int seen = 0;
  ForEachInclude(files, [&](const SourceFile& file, int number, const std::string& line,
                            const std::string& header, bool angled) {
    ++seen;
    if (angled) return;
    if (const auto problem = ProblemOfQuoted(file, header, edges))
      FAIL_CHECK(file.path << ":" << number << ": " << line << ": " << *problem);
  });
  CHECK(seen > 500);
}

TEST_CASE("third-party headers are those of the table of packages, at the places that it names") {
  const std::vector<Package> packages = AllPackages();
  std::set<std::pair<std::string, std::string>> used;  // package and place
  const auto visit = [&](const SourceFile& file, int number, const std::string& line,
                         const std::string& header, bool angled) {
    if (!angled) return;
    if (const auto problem = ProblemOfAngled(file, header, packages))
      FAIL_CHECK(file.path << ":" << number << ": " << line << ": " << *problem);
    for (const Package& package : packages) {
      if (!AnyCovers(package.headers, header)) continue;
      for (const std::string& place : package.places) {
        if (Covers(place, file.path)) used.emplace(package.name, place);
      }
    }
  };
  ForEachInclude(SourcesIn({"lib/mxtrain", "lib/examples", "app", "tests"}), visit);
  for (const Package& package : packages) {
    CAPTURE(package.name);
    CHECK_FALSE(package.needed.empty());
    REQUIRE_FALSE(package.places.empty());
    for (const std::string& place : package.places) {
      CAPTURE(place);
      if (package.headers.empty())
        CHECK(fs::exists(kRoot / place));
      else
        CHECK_MESSAGE(used.contains({package.name, place}), "no file there includes its headers");
    }
  }
}

TEST_CASE("the table of packages and install_deps.sh name the same Debian packages") {
  const std::set<std::string> installed =
      InstalledPackages(ReadFile((kRoot / "scripts/install_deps.sh").string()));
  CHECK(installed.size() > 15);
  std::set<std::string> documented;
  for (const Package& package : AllPackages())
    documented.insert(package.debian.begin(), package.debian.end());
  for (const std::string& name : installed)
    CHECK_MESSAGE(documented.contains(name), name, " has no row in lib/docs/architecture.md");
  for (const std::string& name : documented)
    CHECK_MESSAGE(installed.contains(name), name, " is not installed by scripts/install_deps.sh");
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
  const SourceFile session{"app/session/x.cc", "app", {}}, command{"app/commands/x.cc", "app", {}};
  CHECK_FALSE(ProblemOfQuoted(session, "app/session/session.h", edges));
  CHECK_FALSE(ProblemOfQuoted(session, "app/config/config.h", edges));
  CHECK(ProblemOfQuoted(session, "app/commands/command.h", edges));
  CHECK(ProblemOfQuoted(session, "app/console/console.h", edges));
  CHECK_FALSE(ProblemOfQuoted(command, "app/console/console.h", edges));
  const SourceFile header{"lib/mxtrain/engine/x.h", "engine", {}},
      inside{"lib/mxtrain/engine/internal/x.h", "engine", {}},
      other{"lib/mxtrain/ndarray/x.cc", "ndarray", {}};
  CHECK_FALSE(ProblemOfQuoted(engine, "mxtrain/engine/internal/task.h", edges));
  CHECK_FALSE(ProblemOfQuoted(test, "mxtrain/engine/internal/task.h", edges));
  CHECK_FALSE(ProblemOfQuoted(inside, "mxtrain/engine/internal/task.h", edges));
  CHECK(ProblemOfQuoted(header, "mxtrain/engine/internal/task.h", edges));
  CHECK(ProblemOfQuoted(other, "mxtrain/engine/internal/task.h", edges));
  const SourceFile kernel{"lib/mxtrain/operators/x/x_cuda.cu", "operators", {}},
      plain{"lib/mxtrain/operators/x/x_cpu.cc", "operators", {}};
  CHECK_FALSE(ProblemOfQuoted(kernel, "mxtrain/device/cuda/stream.h", edges));
  CHECK_FALSE(ProblemOfQuoted(kernel, "mxtrain/operator/kernel.cuh", edges));
  CHECK(ProblemOfQuoted(plain, "mxtrain/device/cuda/stream.h", edges));
  CHECK(ProblemOfQuoted(plain, "mxtrain/operator/kernel.cuh", edges));
  const std::vector<Package> packages = AllPackages();
  CHECK(ProblemOfAngled(engine, "xxhash.h", packages));
  CHECK(ProblemOfAngled(engine, "boost/any.hpp", packages));
  CHECK(ProblemOfAngled(plain, "cuda_runtime.h", packages));
  CHECK(ProblemOfAngled(kernel, "cudnn.h", packages));
  CHECK(ProblemOfAngled(engine, "doctest/doctest.h", packages));
  CHECK_FALSE(ProblemOfAngled(test, "doctest/doctest.h", packages));
  CHECK(ProblemOfAngled(engine, "dirent.h", packages));
  CHECK_FALSE(ProblemOfAngled(engine, "sys/stat.h", packages));
  CHECK_FALSE(ProblemOfAngled(engine, "vector", packages));
}

TEST_CASE("the table of packages and the lists of install_deps.sh are read") {
  const std::vector<Package> packages = PackagesIn(R"(Text

| package | Debian package | headers | where | for | needed |
|---|---|---|---|---|---|
| A and B | `liba-dev` `libb-dev` | `a/` `b*.h` | `app/x.cc` `lib/*_test.cc` | all | always |
| C | NVIDIA's | | `CMakeLists.txt` | `c` | build |

| D | `d` | | `d` | d | d |
)");
  REQUIRE(packages.size() == 2);
  CHECK(packages[0].name == "A and B");
  CHECK(packages[0].debian == std::vector<std::string>{"liba-dev", "libb-dev"});
  CHECK(packages[0].headers == std::vector<std::string>{"a/", "b*.h"});
  CHECK(packages[0].places == std::vector<std::string>{"app/x.cc", "lib/*_test.cc"});
  CHECK(packages[0].needed == "always");
  CHECK(packages[1].debian.empty());
  CHECK(packages[1].headers.empty());
  CHECK(AnyCovers(packages[0].headers, "a/b/c.h"));
  CHECK(AnyCovers(packages[0].headers, "b2.h"));
  CHECK_FALSE(AnyCovers(packages[0].headers, "c/a/b.h"));
  CHECK(AnyCovers(packages[0].places, "lib/io/x_test.cc"));
  CHECK_FALSE(AnyCovers(packages[0].places, "lib/io/x.cc"));
  const std::string script =
      "packages=(\n  a b-dev  # c\n)\ndevelopment=(d e)\nothers=(f)\ncase $1 in\n"
      "  --development) packages+=(\"${development[@]}\") ;;\n";
  CHECK(InstalledPackages(script) == std::set<std::string>{"a", "b-dev", "d", "e"});
}

}  // namespace
}  // namespace mxtrain::test
