// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which numbers of a net's inputs are codes: of categories, words or ids, that choose rows of a
// weight, so that a mean of them says nothing.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/config/net.h"

namespace mxtrain::session {

struct CodeColumns {
  // By number of an example: codes are below; 0: it is a number. Of several layers the fewest rows.
  std::vector<int64_t> rows;
  // A layer of codes that reads numbers computed from the input, or cut out of it in a way that is
  // not followed; "" if there is none. Which of its numbers are codes is not known then.
  std::string unclear;

  bool any() const;
};

// By input, of those of known shape. Embedding, EmbeddingBag and one_hot read codes; followed are
// operators that only move or convert numbers (Reshape, Flatten, Cast, ...), slice_axis and
// SliceChannel of lists.
std::map<std::string, CodeColumns> FindCodeColumns(const config::Net& net);

}  // namespace mxtrain::session
