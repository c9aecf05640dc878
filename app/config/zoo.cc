// SPDX-License-Identifier: Apache-2.0
#include "app/config/zoo.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cctype>

#include "mxtrain/base/error.h"
#include "mxtrain/base/params.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"

namespace mxtrain::config {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNetFolders[] = {"imagenet", "detection"};

// Where the program expects its configurations, seen from its own file; empty if that is not known.
fs::path ConfigsFolder() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) {  // no /proc: the path by which the kernel was told to start it
    const auto* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    program = started ? fs::canonical(started, error) : fs::path();
  }
  if (program.empty()) return {};
  // From the folder of the program to that of configurations, in a build and as installed.
  const fs::path folder = program.parent_path(), built = folder / MXTRAIN_PROGRAMS_TO_CONFIGS;
  return (fs::exists(built, error) ? built : folder / MXTRAIN_INSTALLED_TO_CONFIGS)
      .lexically_normal();
}

// `name`: of those, or decoders.
fs::path Folder(const char* name) {
  std::error_code error;
  const fs::path configs = ConfigsFolder();
  if (configs.empty()) {
    Throw(ErrorKind::kFileSystem,
          "cannot find the nets that come with the program, since its own path is unknown; name "
          "the file of a net with `include`");
  }
  const fs::path folder = configs / name;
  if (!fs::is_directory(folder, error)) {
    Throw(ErrorKind::kFileSystem,
          "the nets that come with the program are not in {}; install it with its configurations, "
          "or name the file of a net with `include`",
          folder.string());
  }
  return folder;
}

// Whether the letters and digits of the word are in the name, in this order: effnet, in
// efficientnet_b0.
bool IsWithin(std::string_view word, std::string_view name) {
  size_t at = 0;
  for (const char c : word) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) continue;
    at = name.find(c, at);
    if (at == std::string_view::npos) return false;
    ++at;
  }
  return true;
}

// "; did you mean 'resnet50'?": the nearest name; else those that shorten to the word.
std::string DidYouMeanNet(const std::string& name, const std::vector<std::string>& names) {
  constexpr size_t kLeast = 4;  // letters, which fit too many names
  if (const std::string typo = DidYouMean(name, names); !typo.empty()) return typo;
  const std::string word = Lower(name);
  std::vector<std::string> longer;
  for (const std::string& other : names) {
    if (word.size() >= kLeast && word[0] == other[0] && IsWithin(word, other))
      longer.push_back(other);
  }
  return longer.empty() ? "" : format("; did you mean {}?", join(longer, ", "));
}

// The members of a map that are among these keys.
Value Only(const Value& map, std::initializer_list<std::string_view> keys) {
  Value kept = Value::Map({}, map.place);
  for (const Member& member : map.members) {
    if (std::find(keys.begin(), keys.end(), member.key) != keys.end())
      kept.members.push_back(member);
  }
  return kept;
}

// Of the configurations in a folder, sorted.
std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> NetNames() {
  std::vector<std::string> names;
  for (const char* folder : kNetFolders) {
    for (std::string& name : NamesIn(Folder(folder))) names.push_back(std::move(name));
  }
  return names;
}

fs::path NetFile(const std::string& name) {
  for (const char* folder : kNetFolders) {
    const std::vector<std::string> names = NamesIn(Folder(folder));
    if (std::find(names.begin(), names.end(), name) != names.end())
      return Folder(folder) / (name + ".yaml");
  }
  const std::string guess = DidYouMeanNet(name, NetNames());
  Throw(ErrorKind::kConfig, "there is no net '{}'{} `mxtrain nets` lists them", name,
        guess.empty() ? ";" : guess);
}

fs::path DecoderFile(const std::string& name) {
  const fs::path folder = Folder("decoders");
  const std::vector<std::string> names = NamesIn(folder);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    Throw(ErrorKind::kConfig, "there is no decoder '{}'{}; known are {}", name,
          DidYouMean(name, names), join(names, ", "));
  }
  return folder / (name + ".yaml");
}

std::optional<fs::path> ShippedFile(const std::string& path) {
  std::error_code none;
  const fs::path asked = fs::path(path).lexically_normal();
  if (asked.empty() || asked.is_absolute() || *asked.begin() != "configs" || fs::exists(path, none))
    return std::nullopt;
  const fs::path configs = ConfigsFolder();
  const fs::path file = configs / asked.lexically_relative("configs");
  if (configs.empty() || !fs::is_regular_file(file, none)) return std::nullopt;
  return file;
}

Value NetWithoutRecipe(const Value& config) {
  Value parts = Only(config, {"net", "blocks", "vars"});
  if (Member* vars = parts.Find("vars"); vars && vars->value.is_map()) {
    if (Member* classes = vars->value.Find("classes"))
      classes->value = Value{};  // null leaves ${classes} to the data
  }
  const Value* train = config.Get("train");
  if (!train || !train->is_map()) return parts;
  Value kept = Only(*train, {"initializer", "initializers"});
  if (const Value* weights = train->Get("weights"); weights && weights->is_map())
    kept.members.push_back({"weights", weights->place, Only(*weights, {"map"})});
  parts.members.push_back({"train", train->place, std::move(kept)});
  return parts;
}

}  // namespace mxtrain::config
