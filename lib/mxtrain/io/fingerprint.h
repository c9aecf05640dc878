// SPDX-License-Identifier: Apache-2.0
#pragma once
// Identifies a data set: resuming a run or evaluating a model on other data is reported.
#include <string>

#include "mxtrain/io/source.h"

namespace mxtrain::io {

// The number of records and a checksum, as text. The checksum covers the class names and, for
// evenly spaced records (all, up to 10,000), the last two components of the name ("cat/17.jpg": a
// folder may move), the class, and the file size, or the values if the record has no image. Images
// are not read. Equal texts mean the same data up to these properties.
MXTRAIN_API std::string Fingerprint(const Source& source);

}  // namespace mxtrain::io
