// SPDX-License-Identifier: Apache-2.0
// engine_example FOLDER: one line for every file of a folder, in the order of their names: size,
// lines, FNV-1a hash, name.
//
// File processing as functions on variables. A slot is a buffer with its variable: reading a file
// into it, digesting it and appending its line to the summary are three functions that share the
// slot, so each file's run in order, while files in different slots overlap: the disk reads ahead
// of the computation by as many files as there are slots, and memory is bounded by them. All lines
// go to one variable, the summary, and so appear in push order.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/engine/engine.h"

namespace {

using namespace mxtrain;
using engine::Engine;
using engine::FnProperty;
using engine::VarHandle;

constexpr int kSlots = 8;

struct Slot {
  VarHandle var = nullptr;
  std::string bytes;
  std::string line;
};

void Read(const std::string& path, Slot& slot) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Throw(ErrorKind::kFileSystem, "cannot be read");
  slot.bytes.assign(std::istreambuf_iterator<char>(file), {});
}

void Digest(const std::string& path, Slot& slot) {
  // FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/.
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (unsigned char byte : slot.bytes) hash = (hash ^ byte) * 0x100000001b3ULL;
  const auto lines = std::count(slot.bytes.begin(), slot.bytes.end(), '\n');
  slot.line = format("{} bytes, {} lines, {:016x}  {}\n", slot.bytes.size(), lines, hash,
                     std::filesystem::path(path).filename().string());
}

std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Summarize(Engine& engine, const std::vector<std::string>& paths) {
  std::vector<Slot> slots(kSlots);
  for (Slot& slot : slots) slot.var = engine.NewVar();
  VarHandle summary_var = engine.NewVar();
  std::string summary;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    Slot& slot = slots[i % kSlots];
    const VarHandle var[] = {slot.var}, target[] = {summary_var};
    engine.PushSync([&](RunContext) { Read(path, slot); }, {}, var,
                    {.property = FnProperty::kIO, .name = path.c_str()});
    engine.PushSync([&](RunContext) { Digest(path, slot); }, {}, var, {.name = "digest"});
    engine.PushSync([&](RunContext) { summary += slot.line; }, var, target,
                    {.priority = 1, .name = "append"});
  }
  engine.WaitToRead(summary_var);  // throws what went wrong on the way, with the file's name
  for (Slot& slot : slots) engine.DeleteVariable(slot.var, {}, Context::cpu());
  engine.DeleteVariable(summary_var, {}, Context::cpu());
  engine.WaitForAll();
  return summary;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: engine_example FOLDER\n");
    return 2;
  }
  try {
    const std::vector<std::string> paths = FilesOf(argv[1]);
    auto engine = engine::Create({.cpu_workers = 2});
    std::fputs(Summarize(*engine, paths).c_str(), stdout);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine_example: %s\n", error.what());
    return 1;
  }
}
