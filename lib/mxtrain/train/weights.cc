// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/ndarray/safetensors.h"
#include "mxtrain/ndarray/safetensors_shards.h"
#include "mxtrain/ndarray/torch_file.h"
#include "mxtrain/text/substitution.h"
#include "mxtrain/train/model.h"

namespace mxtrain {
namespace {

constexpr size_t kBeginBytes = 512;

// Files of PyTorch and checkpoints are recognized by their contents; others with names that PyTorch
// uses are read as its files for the error.
bool IsTorch(const std::string& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return false;
  FileReader reader(file);
  std::string begin(kBeginBytes, '\0');
  begin.resize(reader.Read(begin));
  if (IsTorchFile(begin)) return true;
  if (IsCheckpoint(file)) return false;
  const std::string ending = std::filesystem::path(file).extension().string();
  return ending == ".pt" || ending == ".pth" || ending == ".bin" || ending == ".pkl" ||
         ending == ".ckpt";
}

// Whether it is safetensors under another name, as some servers give it: the length of the header
// in eight bytes, lowest first, then an object of JSON.
bool BeginsAsSafetensors(const std::string& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return false;
  FileReader reader(file);
  std::array<char, 9> begin{};
  if (reader.Read(begin) != begin.size() || begin[8] != '{') return false;
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(begin[i]);
  return length <= reader.size() - 8;
}

std::map<std::string, NDArray> ByName(const NamedArrays& arrays) {
  std::map<std::string, NDArray> result;
  for (size_t i = 0; i < arrays.names.size(); ++i) {
    const std::string& name = arrays.names[i];
    result[name.starts_with("arg:") || name.starts_with("aux:") ? name.substr(4) : name] =
        arrays.arrays[i];
  }
  return result;
}

// Of files that hold one set of arrays.
std::map<std::string, NDArray> ReadArrays(Runtime& runtime, const std::string& file,
                                          UnreadArrays* unread, int depth) {
  if (IsSafetensorsIndex(file)) return ByName(LoadSafetensorsShards(runtime, file, unread));
  if (file.ends_with(".safetensors") || BeginsAsSafetensors(file))
    return ByName(DeserializeSafetensors(runtime, ReadFile(file), file, unread));
  if (file.ends_with(".params")) return ByName(LoadArrays(runtime, file));
  const std::string checkpoint = CheckpointOf(file);
  if (checkpoint.empty()) return ByName(LoadArrays(runtime, ReferenceParamsFile(file)));
  Checkpoint c = LoadCheckpoint(runtime, checkpoint);
  MergeLora(runtime, checkpoint, &c, depth);
  c.averages.merge(c.args);  // adds only those without an average
  c.averages.merge(c.auxs);
  return std::move(c.averages);
}

// Whether the net's array can take the elements unchanged.
bool Fits(const TShape& file, const TShape& net) {
  return file == net ||
         (file.ndim() > 0 && net.ndim() > 0 && file[0] == net[0] && file.Size() == net.Size());
}

constexpr size_t kMostOfKind = 6;    // names
constexpr size_t kMostWrappers = 4;  // one around another

// The prefixes up to a dot that at least half of the names have, each beginning with the one
// before.
std::vector<std::string> SharedPrefixes(const std::map<std::string, NDArray>& arrays) {
  std::vector<std::string> prefixes;
  std::string prefix;
  while (prefixes.size() < kMostWrappers) {
    std::map<std::string, size_t> next;
    for (const auto& [name, array] : arrays) {
      if (!name.starts_with(prefix)) continue;
      if (const size_t dot = name.find('.', prefix.size()); dot != std::string::npos)
        ++next[name.substr(0, dot + 1)];
    }
    const auto most =
        std::ranges::max_element(next, {}, [](const auto& one) { return one.second; });
    if (most == next.end() || 2 * most->second < arrays.size()) break;
    prefix = most->first;
    prefixes.push_back(prefix);
  }
  return prefixes;
}

std::string Without(const std::string& prefix, const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

[[noreturn]] void ThrowUnread(const std::string& name, const std::string& why,
                              const std::string& file) {
  Throw(ErrorKind::kData, "{}: array '{}': {}", file, name, why);
}

// Of plain arrays on the CPU.
bool AreEqual(const NDArray& a, const NDArray& b) {
  if (a.empty() || b.empty() || a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  a.WaitToRead(), b.WaitToRead();
  const TBlob first = a.data(), second = b.data();
  return std::memcmp(first.data, second.data,
                     static_cast<size_t>(a.shape().Size() * SizeOf(a.dtype()))) == 0;
}

// How many of the wanted names the arrays get; 0 if two get the same, unless they are equal arrays
// that both have the prefix.
size_t CountWanted(const std::map<std::string, NDArray>& arrays, const std::string& prefix,
                   const NameMap& map, const std::set<std::string>& wanted) {
  struct Taken {
    const NDArray* array;
    bool has_prefix;
  };
  std::map<std::string, Taken> taken;
  size_t count = 0;
  for (const auto& [name, array] : arrays) {
    const std::optional<std::string> becomes = map.Apply(Without(prefix, name));
    if (!becomes) continue;
    const bool has_prefix = name.starts_with(prefix);
    const auto [place, is_new] = taken.emplace(*becomes, Taken{&array, has_prefix});
    const Taken& first = place->second;
    if (!is_new && (first.has_prefix != has_prefix || !AreEqual(*first.array, array))) return 0;
    count += is_new && wanted.contains(*becomes);
  }
  return count;
}

}  // namespace

NDArray TransposedMatrix(const NDArray& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  const std::vector<float> from = matrix.ToVector();
  std::vector<float> to(from.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      to[static_cast<size_t>(c * rows + r)] = from[static_cast<size_t>(r * columns + c)];
  }
  return NDArray::FromVector(matrix.runtime(), {columns, rows}, to, Context::cpu());
}

struct NameMap::Compiled {
  text::Substitution substitution;
  bool drops;  // the array; the result does not count
  bool transpose;
};

namespace {

// Other programs write groups as \1 or \g<1>, which would be taken as plain letters here.
void RefuseBackslashes(const std::string& replacement) {
  for (size_t at = replacement.find('\\'); at != std::string::npos;
       at = replacement.find('\\', at + 1)) {
    const std::string_view rest = std::string_view(replacement).substr(at + 1);
    const bool digit = !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
    if (!digit && !rest.starts_with("g<")) continue;
    Throw(ErrorKind::kConfig,
          "the replacement '{}': write groups of the pattern as $1, $2, not as {}",
          Shortened(replacement), digit ? "\\" + std::string(1, rest[0]) : "\\g<1>");
  }
}

}  // namespace

NameMap::NameMap(const std::vector<Rule>& rules) : given_(rules) {
  auto compiled = std::make_shared<std::vector<Compiled>>();
  for (const Rule& rule : rules) {
    if (rule.replacement) RefuseBackslashes(*rule.replacement);
    try {
      compiled->push_back({text::Substitution(rule.pattern, rule.replacement.value_or("")),
                           !rule.replacement, rule.transpose});
    } catch (const Error& e) {
      Throw(ErrorKind::kConfig, "{}", e.what());
    }
  }
  rules_ = std::move(compiled);
}

NameMap::Mapped NameMap::Map(const std::string& name) const {
  std::string result = name;
  bool transpose = false;
  if (!rules_) return {result};
  for (const Compiled& rule : *rules_) {
    std::optional<std::string> renamed = rule.substitution.Apply(result);
    if (!renamed) continue;
    if (rule.drops) return {};
    transpose = transpose != rule.transpose;
    result = std::move(*renamed);
  }
  return {result, transpose};
}

WeightsFile ReadWeights(Runtime& runtime, const std::string& file, const std::string& state,
                        int depth) {
  WeightsFile read;
  if (IsTorch(file)) {
    read.arrays = ByName(DeserializeTorchFile(runtime, ReadFile(file), file, state, &read.states));
    return read;
  }
  if (!state.empty())
    Throw(ErrorKind::kConfig, "{} is not a file of PyTorch, so it has no state dict '{}' to choose",
          file, state);
  read.arrays = ReadArrays(runtime, file, &read.unread, depth);
  return read;
}

std::map<std::string, NDArray> LoadWeights(Runtime& runtime, const std::string& file,
                                           const NameMap& map) {
  const WeightsFile read = ReadWeights(runtime, file);
  for (const auto& [name, why] : read.unread) {
    if (map.Apply(name)) ThrowUnread(name, why, file);
  }
  return Renamed(read.arrays, map, file);
}

void RequireRead(const UnreadArrays& unread, const std::string& prefix, const NameMap& map,
                 const std::set<std::string>& wanted, const std::string& file) {
  for (const auto& [name, why] : unread) {
    const std::optional<std::string> becomes = map.Apply(Without(prefix, name));
    if (becomes && wanted.contains(*becomes)) ThrowUnread(name, why, file);
  }
}

std::string WrapperPrefix(const std::map<std::string, NDArray>& arrays, const NameMap& map,
                          const std::set<std::string>& wanted) {
  std::string best;
  size_t most = CountWanted(arrays, best, map, wanted);
  for (const std::string& prefix : SharedPrefixes(arrays)) {
    const size_t count = CountWanted(arrays, prefix, map, wanted);
    if (count <= most) continue;
    most = count;
    best = prefix;
  }
  return best;
}

std::map<std::string, NDArray> WithoutPrefix(std::map<std::string, NDArray> arrays,
                                             const std::string& prefix) {
  if (prefix.empty()) return arrays;
  std::map<std::string, NDArray> result;
  for (const auto& [name, array] : arrays) result[Without(prefix, name)] = array;
  return result;
}

std::map<std::string, NDArray> Renamed(const std::map<std::string, NDArray>& arrays,
                                       const NameMap& map, const std::string& file) {
  std::map<std::string, NDArray> result;
  std::map<std::string, std::string> origin;
  for (const auto& [name, array] : arrays) {
    const auto [becomes, transpose] = map.Map(name);
    if (!becomes || array.empty()) continue;
    const auto [place, is_new] = origin.emplace(*becomes, name);
    if (transpose && array.shape().ndim() != 2) {
      Throw(ErrorKind::kData, "{}: '{}' is {}, but the name map transposes it; it is not a matrix",
            file, name, array.shape().ToString());
    }
    if (is_new) {
      result[*becomes] = transpose ? TransposedMatrix(array) : array;
    } else if (!AreEqual(arrays.at(place->second), array)) {
      Throw(ErrorKind::kData,
            "{}: '{}' and '{}' both become '{}', and differ; correct the name map", file,
            place->second, name, *becomes);
    }
  }
  return result;
}

std::string WeightsAccount::Text() const {
  std::vector<std::string> missing, other_shape;
  for (const Reset& r : reset) {
    if (r.in_file) {
      other_shape.push_back(
          format("{} {} ({} in the file)", r.name, r.shape.ToString(), r.in_file->ToString()));
    } else {
      missing.push_back(r.name);
    }
  }
  std::string text = format("{} arrays taken", taken.size());
  const auto add = [&text](const std::vector<std::string>& names, const char* what) {
    if (!names.empty())
      text += format("; {} {}: {}", names.size(), what, FirstOf(names, kMostOfKind));
  };
  add(other_shape, "are re-initialized, their shape differs");
  add(missing, "are re-initialized, not in the file");
  add(unused, "of the file are unused");
  return text;
}

WeightsAccount TakeWeights(const std::map<std::string, NDArray>& from,
                           const std::map<std::string, NDArray>& to) {
  WeightsAccount account;
  for (const auto& [name, target] : to) {
    const auto found = from.find(name);
    if (found == from.end() || !Fits(found->second.shape(), target.shape())) {
      account.reset.push_back(
          {name, target.shape(),
           found == from.end() ? std::nullopt : std::optional(found->second.shape())});
      continue;
    }
    const NDArray& array = found->second;
    NDArray(target).CopyFrom(array.dtype() == target.dtype()
                                 ? array.Reshape(target.shape())
                                 : NDArray::FromVector(target.runtime(), target.shape(),
                                                       array.ToVector(), Context::cpu()));
    account.taken.push_back(name);
  }
  for (const auto& [name, array] : from) {
    if (!to.contains(name)) account.unused.push_back(name);
  }
  return account;
}

}  // namespace mxtrain
