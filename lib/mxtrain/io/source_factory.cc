// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/source_factory.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/format.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/example_files.h"
#include "mxtrain/io/image_targets.h"
#include "mxtrain/io/internal/holdout_source.h"
#include "mxtrain/io/subset.h"

namespace mxtrain::io {
namespace {

SourceTable& TheSources() {
  static SourceTable sources = [] {
    SourceTable table;
    RegisterSources(table);
    return table;
  }();
  return sources;
}

// Removes the parameters of Param from `kwargs`.
template <typename Param>
Param Take(Kwargs* kwargs) {
  const std::vector<FieldInfo> fields = Param::Describe();
  const auto ours = std::stable_partition(kwargs->begin(), kwargs->end(), [&](const auto& item) {
    return std::none_of(fields.begin(), fields.end(),
                        [&](const FieldInfo& field) { return field.name == item.first; });
  });
  Param param;
  param.Init(Kwargs(ours, kwargs->end()), "data");
  kwargs->erase(ours, kwargs->end());
  return param;
}

// A model stores the names of its classes as text.
void RequireText(const Source& source, const Kwargs& kwargs) {
  std::vector<std::string> names = source.class_names();
  for (const auto& [key, value] : source.found()) names.push_back(value);
  const auto bad =
      std::find_if_not(names.begin(), names.end(), [](const auto& name) { return IsUtf8(name); });
  if (bad == names.end()) return;
  const auto path = std::find_if(kwargs.begin(), kwargs.end(),
                                 [](const auto& item) { return item.first == "path"; });
  Throw(ErrorKind::kData,
        "{}: the class name '{}' is not UTF-8, so a model of it could not be used; rename the "
        "folder, or save the file as UTF-8",
        path == kwargs.end() ? "data" : path->second, Shortened(EscapedBytes(*bad)));
}

// Whether the masks are those of the kind's own files. Throws kConfig for parameters of others.
bool HasOwnMasks(const SourceKind& kind, const TargetsParam& targets) {
  if (targets.label != TargetsParam::kMask || !targets.targets.empty()) return false;
  if (!kind.make_masks)
    Throw(ErrorKind::kConfig,
          "label = mask: {} has no masks of its own; give the folder of the masks as targets",
          kind.name);
  if (!targets.targets_suffix.empty() || !targets.mask_classes.empty() ||
      !targets.mask_colours.empty() || !targets.mask_ignore.empty()) {
    Throw(ErrorKind::kConfig,
          "targets_suffix, mask_classes, mask_colours and mask_ignore are for masks in files of "
          "their own (targets); those of {} have the names in classes",
          kind.name);
  }
  return true;
}

}  // namespace

const FieldInfo* SourceKind::Parameter(std::string_view parameter) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const FieldInfo& f) { return f.name == parameter; });
  return found == parameters.end() ? nullptr : &*found;
}

bool SourceKind::NamesClasses(const Kwargs& kwargs) const {
  return names_classes ? names_classes(kwargs) : Parameter("classes") != nullptr;
}

void SourceTable::Add(SourceKind kind) {
  if (Find(kind.name))
    Throw(ErrorKind::kConfig, "there are two data sources of the name '{}'", kind.name);
  const FieldInfo* const path = kind.Parameter("path");
  if (kind.in_configurations && (!path || path->type != "path" || path->internal))
    Throw(ErrorKind::kConfig, "the data source '{}' has no path", kind.name);
  const auto behind = std::find_if(kinds_.begin(), kinds_.end(),
                                   [&](const SourceKind& k) { return k.name > kind.name; });
  kinds_.insert(behind, std::move(kind));
}

const SourceKind* SourceTable::Find(std::string_view name) const {
  const auto found = std::find_if(kinds_.begin(), kinds_.end(),
                                  [&](const SourceKind& kind) { return kind.name == name; });
  return found == kinds_.end() ? nullptr : &*found;
}

const SourceTable& Sources() {
  return TheSources();
}

void RegisterSource(SourceKind kind) {
  TheSources().Add(std::move(kind));
}

std::unique_ptr<Source> MakeSource(std::string_view kind, const Kwargs& kwargs) {
  const SourceKind* const found = Sources().Find(kind);
  if (!found) {
    std::vector<std::string> names;
    for (const SourceKind& known : Sources().kinds()) names.push_back(known.name);
    Throw(ErrorKind::kConfig, "there is no data source '{}'{}; known are {}", kind,
          DidYouMean(kind, names), join(names, ", "));
  }
  Kwargs own = kwargs;
  const auto holdout = Take<HoldoutParam>(&own);
  const auto targets = Take<TargetsParam>(&own);
  if (targets.label != TargetsParam::kMask &&
      !(targets.mask_classes.empty() && targets.mask_colours.empty() &&
        targets.mask_ignore.empty()))
    Throw(ErrorKind::kConfig, "mask_classes, mask_colours and mask_ignore need label = mask");
  const bool own_masks = HasOwnMasks(*found, targets);
  const bool unlabelled =
      targets.label != TargetsParam::kGiven && !own_masks && found->make_unlabelled;
  std::unique_ptr<Source> whole = own_masks    ? found->make_masks(own)
                                  : unlabelled ? found->make_unlabelled(own)
                                               : found->make(own);
  RequireText(*whole, own);
  if (targets.label != TargetsParam::kGiven && !own_masks) {
    whole = NewImageTargets(std::move(whole), targets, RootOf(own));
  } else if (!targets.targets.empty()) {
    Throw(ErrorKind::kConfig, "targets = '{}' needs label = image or mask", targets.targets);
  }
  if (holdout.holdout == 0 && holdout.holdout_folds == 0) return whole;
  std::vector<int64_t> indices = HoldoutIndices(*whole, holdout, RootOf(own));
  return NewSubset(std::move(whole), std::move(indices));
}

RecognizedSource RecognizeSource(const std::string& path, std::string_view preferred) {
  const bool standard_input = path == "-";
  const std::string file = standard_input ? "/dev/stdin" : path;
  RecognizedSource possible;
  for (const SourceKind& kind : Sources().kinds()) {
    std::optional<Recognition> found = kind.recognize ? kind.recognize(file) : std::nullopt;
    if (!found) continue;
    const bool certain = found->certain;
    if (certain || !possible.kind || kind.name == preferred) possible = {&kind, std::move(*found)};
    if (certain) break;
  }
  if (!possible.kind || !possible.kind->Parameter("root")) return possible;
  // What a pipe names has no folder of its own.
  Kwargs& params = possible.recognition.params;
  const bool rooted = std::any_of(params.begin(), params.end(),
                                  [](const auto& param) { return param.first == "root"; });
  std::error_code none;
  if (!rooted && (standard_input || !std::filesystem::is_regular_file(file, none)) &&
      !std::filesystem::is_directory(file, none))
    params.emplace_back("root", ".");
  return possible;
}

}  // namespace mxtrain::io
