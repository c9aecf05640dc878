// SPDX-License-Identifier: Apache-2.0
#pragma once
// The binary files of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html): records
// of the label (CIFAR-100: coarse, then fine) and 3072 bytes, the red, green and blue planes of
// 32x32 pixels, row by row.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct CifarParam : Parameter<CifarParam> {
  enum Split { kTrain, kTest };
  std::string path;
  int split;
  static void Declare(Fields<CifarParam>& f) {
    f.Add("path", &CifarParam::path)
        .IsPath()
        .Required()
        .Help("folder with the binary files (data_batch_1.bin ..., or train.bin)");
    f.Add("split", &CifarParam::split)
        .Enum({{"train", kTrain}, {"test", kTest}})
        .Default(kTrain)
        .Help("which of the two sets to read");
  }
};

// Hold all images in memory. Fields: data [3, 32, 32], softmax_label (). Class names come from
// batches.meta.txt (fine_label_names.txt) next to the data if present, else they are numbers. Throw
// kFileSystem for a missing file, kData for a file size that is not a multiple of the record size
// and for a label out of range.
//
// data_batch_1.bin ... data_batch_5.bin | test_batch.bin.
MXTRAIN_API std::unique_ptr<Source> NewCifar10Source(const CifarParam& param);
// train.bin | test.bin; the fine labels.
MXTRAIN_API std::unique_ptr<Source> NewCifar100Source(const CifarParam& param);

}  // namespace mxtrain::io
