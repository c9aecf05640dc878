// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/gpu_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/device/own_folder.h"

namespace mxtrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUseCpu = "run with --device cpu";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> SplitPaths(const std::string& text) {
  std::vector<std::string> paths;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) paths.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
}

// The folders in `folder` whose names start with `prefix`; none if it cannot be read.
std::vector<fs::path> FoldersIn(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with(prefix)) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Library folders of the nvidia-* packages of the Python under `prefix`.
void AddPythonFolders(const fs::path& prefix, std::vector<fs::path>* folders) {
  for (const fs::path& python : FoldersIn(prefix / "lib", "python3")) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& package : FoldersIn(python / packages / "nvidia", ""))
        folders->push_back(package / "lib");
    }
  }
}

// Prefixes of a python3 program and of each link target: a link may point into a virtual
// environment, which in turn links out of it.
void AddFoldersOfProgram(fs::path python, std::vector<fs::path>* folders) {
  constexpr int kMostLinks = 8;
  for (int i = 0; i < kMostLinks; ++i) {
    AddPythonFolders(python.parent_path().parent_path(), folders);
    std::error_code no_link;
    const fs::path target = fs::read_symlink(python, no_link);
    if (no_link) return;
    python = (python.parent_path() / target).lexically_normal();
  }
}

std::vector<fs::path> LibraryFolders() {
  std::vector<fs::path> folders;
  for (const std::string& path : SplitPaths(Environment("MXTRAIN_CUDA_PATH")))
    folders.emplace_back(path);
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string home = Environment(name); !home.empty())
      folders.push_back(fs::path(home) / "lib64");
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = Environment(name); !prefix.empty())
      AddPythonFolders(prefix, &folders);
  }
  for (const std::string& programs : SplitPaths(Environment("PATH"))) {
    std::error_code ignored;
    if (fs::exists(fs::path(programs) / "python3", ignored))
      AddFoldersOfProgram(fs::path(programs) / "python3", &folders);
  }
  AddPythonFolders("/usr/local", &folders);
  if (const std::string home = Environment("HOME"); !home.empty())
    AddPythonFolders(fs::path(home) / ".local", &folders);
  return folders;
}

// The library that the loader did not find: its message is "libcudnn.so.9: cannot open shared
// object file: ...".
std::optional<std::string> MissingLibrary(const std::string& message, const std::string& opened) {
  const size_t colon = message.find(": cannot open shared object file");
  if (colon == std::string::npos) return std::nullopt;
  std::string name = message.substr(0, colon);
  return name == opened ? std::nullopt : std::optional(std::move(name));
}

// Once a library of that name is loaded, the loader uses it for all dependents. Null: not in any of
// the folders.
void* LoadFrom(const std::vector<fs::path>& folders, const std::string& name) {
  for (const fs::path& folder : folders) {
    if (void* handle = dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

}  // namespace

std::string GpuLibraryPath() {
  return BesideThisLibrary("libmxtrain_cuda.so");
}

bool HasGpuDriver() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver) dlclose(driver);
  return driver;
}

GpuLibrary OpenGpuLibrary() {
  GpuLibrary library;
  library.path = GpuLibraryPath();
  if (library.path.empty()) {
    library.why_absent = format("this build of mxtrain supports only the CPU; {}", kUseCpu);
    return library;
  }
  std::vector<fs::path> folders;
  std::string last_missing;
  while (!library.handle) {
    library.handle = dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library.handle) break;
    const char* text = dlerror();
    const std::string message = text ? text : "unknown error";
    const auto missing = MissingLibrary(message, library.path);
    if (!missing || *missing == last_missing) {
      library.why_absent =
          format("cannot load the CUDA backend of mxtrain ({}); {}", message, kUseCpu);
      return library;
    }
    last_missing = *missing;
    if (folders.empty()) folders = LibraryFolders();
    if (!LoadFrom(folders, *missing)) {
      library.why_absent = format(
          "{} was not found; install CUDA's libraries and cuDNN, or add their folders to "
          "MXTRAIN_CUDA_PATH, or {}",
          *missing, kUseCpu);
      return library;
    }
  }
  return library;
}

void* OpenCudaLibrary(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  return handle ? handle : LoadFrom(LibraryFolders(), name);
}

}  // namespace mxtrain
