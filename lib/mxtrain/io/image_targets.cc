// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/image_targets.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/io/example_files.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/image_formats.h"
#include "mxtrain/io/internal/image_files.h"
#include "mxtrain/io/mask_image.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

bool IsImage(const FieldSpec& field) {
  return field.kind == FieldKind::kImage;
}

class ImageTargets final : public Source {
 public:
  ImageTargets(std::shared_ptr<const Source> source, const TargetsParam& param, std::string root,
               const std::string& label_name)
      : source_(std::move(source)),
        folder_(param.targets),
        suffix_(param.targets_suffix),
        root_(std::move(root)),
        weight_(WeightField(*source_)),
        classes_(param.mask_classes) {
    notes_ = source_->notes();
    warnings_ = source_->warnings();
    losses_ = source_->losses();
    const std::vector<FieldSpec>& data = source_->data_fields();
    if (std::count_if(data.begin(), data.end(), IsImage) != 1)
      Throw(ErrorKind::kConfig, "label = {}: the examples do not have exactly one image each",
            param.label == TargetsParam::kMask ? "mask" : "image");
    image_ = static_cast<size_t>(std::find_if(data.begin(), data.end(), IsImage) - data.begin());
    labels_ = {{label_name, FieldKind::kImage, folder_.empty() ? data[image_].shape : TShape()}};
    if (!folder_.empty()) CheckFolder();
    if (param.label == TargetsParam::kMask) OpenMasks(param);
    if (weight_) labels_.push_back(source_->label_fields()[*weight_]);
  }

  int64_t size() const override { return source_->size(); }
  const std::vector<FieldSpec>& data_fields() const override { return source_->data_fields(); }
  const std::vector<FieldSpec>& label_fields() const override { return labels_; }
  void Read(int64_t index, Sample* sample) const override {
    source_->Read(index, sample);
    FieldValue weight;
    if (weight_) weight = std::move(sample->labels[*weight_]);
    sample->labels.resize(labels_.size());
    if (weight_) sample->labels[1] = std::move(weight);
    FieldValue& target = sample->labels[0];
    if (!folder_.empty()) {
      target.pixels = {}, target.values = {};
      target.encoded = ReadImageFile(TargetOf(index));
      if (code_) Decode(&target);
    } else {
      target = sample->data[image_];
    }
  }
  std::span<const float> LabelOf(int64_t index, size_t position, Sample* scratch) const override {
    return position == 1 ? source_->LabelOf(index, *weight_, scratch) : std::span<const float>();
  }
  std::span<const float> Rests(int64_t index, bool label, size_t position) const override {
    return label ? std::span<const float>() : source_->Rests(index, label, position);
  }
  std::string Name(int64_t index) const override { return source_->Name(index); }
  std::string FileOf(int64_t index) const override { return source_->FileOf(index); }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return classes_; }

 private:
  void OpenMasks(const TargetsParam& param) {
    if (folder_.empty())
      Throw(ErrorKind::kConfig, "label = mask: give the folder of the masks as targets");
    for (size_t k = 0; k < param.mask_classes.size(); ++k) {
      const std::string& name = param.mask_classes[k];
      const auto before = param.mask_classes.begin() + static_cast<std::ptrdiff_t>(k);
      if (name.empty()) Throw(ErrorKind::kConfig, "mask_classes: class {} has no name", k);
      if (std::find(param.mask_classes.begin(), before, name) != before)
        Throw(ErrorKind::kConfig, "mask_classes names '{}' twice", name);
    }
    code_.emplace(std::ssize(param.mask_classes), param.mask_colours, param.mask_ignore);
    labels_[0] = {labels_[0].name, FieldKind::kMask, TShape()};
  }

  void Decode(FieldValue* target) const {
    ImageDecoder decoder;
    if (const auto refusal = code_->Decode(target->encoded, &decoder, &target->classes))
      Throw(ErrorKind::kData, "its mask: {}", refusal->reason);
    target->encoded.clear();
  }

  void CheckFolder() const {
    std::error_code none;
    if (!fs::is_directory(folder_, none))
      Throw(ErrorKind::kFileSystem, "targets = '{}': there is no such folder", folder_);
    if (size() > 0 && source_->FileOf(0).empty()) {
      Throw(ErrorKind::kConfig,
            "targets = '{}': the images are not files of their own, so no target has the name of "
            "one; without targets each image is its own",
            folder_);
    }
  }

  std::string TargetOf(int64_t index) const {
    fs::path same = fs::path(folder_) / FileBelow(*source_, index, root_);
    if (!suffix_.empty())
      same.replace_filename(same.stem().string() + suffix_ + same.extension().string());
    std::error_code none;
    if (fs::exists(same, none)) return same.string();
    for (const ImageFormatInfo& format : ImageFormats()) {
      for (const std::string_view lower : format.endings) {
        std::string upper(lower);
        std::transform(upper.begin(), upper.end(), upper.begin(),
                       [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
        for (const std::string_view ending : {lower, std::string_view(upper)}) {
          const fs::path other = fs::path(same).replace_extension(ending);
          if (fs::exists(other, none)) return other.string();
        }
      }
    }
    Throw(ErrorKind::kData, "its target {} does not exist, nor with the ending of another image",
          same.string());
  }

  const std::shared_ptr<const Source> source_;
  const std::string folder_, suffix_, root_;
  std::optional<MaskCode> code_;        // of masks
  size_t image_ = 0;                    // of the data fields
  const std::optional<size_t> weight_;  // among the labels of the source
  std::vector<FieldSpec> labels_;       // the target; the weight, if there is one
  const std::vector<std::string> classes_;
};

}  // namespace

bool IsTargetsParam(std::string_view name) {
  const std::vector<FieldInfo> fields = TargetsParam::Describe();
  return std::any_of(fields.begin(), fields.end(),
                     [name](const FieldInfo& field) { return field.name == name; });
}

std::unique_ptr<Source> NewImageTargets(std::shared_ptr<const Source> source,
                                        const TargetsParam& param, const std::string& root,
                                        const std::string& label_name) {
  return std::make_unique<ImageTargets>(std::move(source), param, root, label_name);
}

}  // namespace mxtrain::io
