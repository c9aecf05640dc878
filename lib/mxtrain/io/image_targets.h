// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images as labels: what a net that makes images (a denoiser, an autoencoder) learns to make, or
// the classes of pixels.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Parameters that every kind of source takes besides its own (MakeSource).
struct TargetsParam : Parameter<TargetsParam> {
  enum Label { kGiven, kImage, kMask };
  int label;
  std::string targets, targets_suffix;
  std::vector<std::string> mask_classes, mask_colours, mask_ignore;
  static void Declare(Fields<TargetsParam>& f) {
    f.Add("label", &TargetsParam::label)
        .Enum({{"given", kGiven}, {"image", kImage}, {"mask", kMask}})
        .Default(kGiven)
        .Help(
            "what a net is to answer: the labels of the data, an image, or a class for each pixel");
    f.Add("targets", &TargetsParam::targets)
        .IsPath()
        .Default("")
        .Help("folder of the images or masks; default: of images, the example's own");
    f.Add("targets_suffix", &TargetsParam::targets_suffix)
        .Default("")
        .Help("what the name of a target has after that of its example's file: _mask");
    f.Add("mask_classes", &TargetsParam::mask_classes)
        .Default({})
        .Help("names of the classes, in the order of their numbers in the masks, from 0");
    f.Add("mask_colours", &TargetsParam::mask_colours)
        .Default({})
        .Help("of masks in colours: #rrggbb of each class");
    f.Add("mask_ignore", &TargetsParam::mask_ignore)
        .Default({})
        .Help("numbers or colours of pixels of no class; 255 always is one, unless it is a class");
  }
};

// Whether it is a parameter of TargetsParam.
MXTRAIN_API bool IsTargetsParam(std::string_view name);

// The examples of a source with one label field instead of its own, `label_name`: an image of the
// size of the example's image (FieldKind::kImage), or its classes (kMask), as `param.label` says.
// Without a folder, `targets`: the example's image itself. Else the file in the folder whose path
// is that of the example's file below `root`, with the suffix before the ending, which is that of
// any image format; one that is missing makes a bad example, which is named with the file looked
// for. Classes are those of `mask_classes`. Throws kConfig unless the examples have one image and,
// with a folder, are files, for masks without a folder, and as MaskCode; kFileSystem if there is no
// such folder.
MXTRAIN_API std::unique_ptr<Source> NewImageTargets(std::shared_ptr<const Source> source,
                                                    const TargetsParam& param,
                                                    const std::string& root,
                                                    const std::string& label_name = "label");

}  // namespace mxtrain::io
