// SPDX-License-Identifier: Apache-2.0
#pragma once
// The decoded images that tiles are cut from. The tiles of an image follow each other, and threads
// work on several at once: the last images are shared, so that each is decoded once. Private to io.
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "mxtrain/base/expected.h"
#include "mxtrain/base/macros.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/io/image.h"

namespace mxtrain::io {

// Thread-safe.
class MXTRAIN_API TiledImages {
 public:
  using Decoded = Expected<std::shared_ptr<const Image>, Refusal>;
  // Which image: of which example of the source that is tiled, and of which of its fields.
  struct Key {
    int64_t example = 0;
    const void* field = nullptr;
    friend bool operator==(const Key&, const Key&) = default;
  };

  // The image; `decode` makes it unless it is there, or another thread is making it, which is
  // waited for. Throws what `decode` throws.
  Decoded Get(const Key& key, const std::function<Decoded()>& decode);

 private:
  static constexpr size_t kKept = 2;  // with one of an image that begins, while another ends

  Mutex mutex_;
  std::deque<std::pair<Key, std::shared_future<Decoded>>> last_ MXTRAIN_GUARDED_BY(mutex_);
};

}  // namespace mxtrain::io
