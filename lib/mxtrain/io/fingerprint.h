#pragma once
// What a collection of records is known by again: a run that goes on, or a model that is measured, on other data than it was says so.
#include <string>

#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Text of a number of records and a checksum: of the class names, and for evenly spread records (all of them up to 10,000) of the last two
// parts of the name ("cat/17.jpg": a folder may move), the class, and the size of the file that the name is, or the values where the record
// has no picture. Pictures are not read. Equal texts mean the same data as far as that shows.
MXTRAIN_API std::string Fingerprint(const Source& source);

}  // namespace mxtrain::io
