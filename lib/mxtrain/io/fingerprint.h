// SPDX-License-Identifier: Apache-2.0
#pragma once
// Identifies a data set: resuming a run or evaluating a model on other data is reported.
#include <string>

#include "mxtrain/io/source.h"

namespace mxtrain::io {

// The number of records and a checksum, as text. The checksum covers the class names and, for
// evenly spaced records (all, up to 10,000), what does not depend on where the data are: of an
// image the name of its file, the class, and the file size; of a record without an image its
// values. Images are not read. Equal texts mean the same data up to these properties.
MXTRAIN_API std::string Fingerprint(const Source& source);

// Whether two fingerprints may be of the same data. The first may be of an older version, which
// covered folders and the names of tables: of such a one only the number of records is compared.
MXTRAIN_API bool MayBeSameData(const std::string& before, const std::string& now);

}  // namespace mxtrain::io
