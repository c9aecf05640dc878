// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images as labels: what a net that makes images (a denoiser, an autoencoder) learns to make.
#include <memory>
#include <string>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Parameters that every kind of source takes besides its own (MakeSource).
struct TargetsParam : Parameter<TargetsParam> {
  enum Label { kGiven, kImage };
  int label;
  std::string targets;
  static void Declare(Fields<TargetsParam>& f) {
    f.Add("label", &TargetsParam::label)
        .Enum({{"given", kGiven}, {"image", kImage}})
        .Default(kGiven)
        .Help("what a net is to answer: the labels of the data, or an image");
    f.Add("targets", &TargetsParam::targets)
        .IsPath()
        .Default("")
        .Help("with label = image: folder of the images; default: the example's own image");
  }
};

// The examples of a source with one label field instead of its own, `label_name`: an image of the
// size of the example's image (FieldKind::kImage). `folder` empty: the example's image itself.
// Else the file in `folder` whose path is that of the example's file below `root`, with the ending
// of any image format; one that is missing makes a bad example, which is named with the file looked
// for. There are no classes. Throws kConfig unless the examples have one image and, with a folder,
// are files, and kFileSystem if there is no such folder.
MXTRAIN_API std::unique_ptr<Source> NewImageTargets(std::shared_ptr<const Source> source,
                                                    const std::string& folder,
                                                    const std::string& root,
                                                    const std::string& label_name = "label");

}  // namespace mxtrain::io
