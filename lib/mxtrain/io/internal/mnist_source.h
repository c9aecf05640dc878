// SPDX-License-Identifier: Apache-2.0
#pragma once
// The IDX files of MNIST and its relatives (Fashion-MNIST, EMNIST, KMNIST): unsigned bytes, plain
// or gzip.
//
// Format (http://yann.lecun.com/exdb/mnist): big-endian magic 0x0000 08 NN (unsigned byte, NN
// dimensions), a 32-bit size per dimension, elements in row-major order. Images become floats as
// pixel / 255 (MXNet divides by 256).
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct MnistParam : Parameter<MnistParam> {
  enum Split { kTrain, kTest };
  std::string path;
  int split;
  static void Declare(Fields<MnistParam>& f) {
    f.Add("path", &MnistParam::path)
        .IsPath()
        .Required()
        .Help("folder with the four IDX files, plain or .gz");
    f.Add("split", &MnistParam::split)
        .Enum({{"train", kTrain}, {"test", kTest}})
        .Default(kTrain)
        .Help("which of the two sets to read");
  }
};

// Reads both files once; an example is a view into them. Fields: data [1, H, W], softmax_label ().
// Throws kFileSystem for a missing file, kData if one is damaged or their counts differ.
MXTRAIN_API std::unique_ptr<Source> NewMnistSource(const MnistParam& param);

}  // namespace mxtrain::io
