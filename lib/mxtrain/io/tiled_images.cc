// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/tiled_images.h"

#include <algorithm>
#include <exception>

namespace mxtrain::io {

TiledImages::Decoded TiledImages::Get(const Key& key, const std::function<Decoded()>& decode) {
  std::promise<Decoded> promise;
  std::shared_future<Decoded> image;
  bool is_new = false;
  {
    const MutexLock lock(mutex_);
    const auto found =
        std::ranges::find(last_, key, &std::pair<Key, std::shared_future<Decoded>>::first);
    is_new = found == last_.end();
    if (is_new) {
      image = promise.get_future().share();
      last_.emplace_back(key, image);
      if (last_.size() > kKept) last_.pop_front();
    } else {
      image = found->second;
    }
  }
  if (is_new) {
    try {
      promise.set_value(decode());
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }
  return image.get();
}

}  // namespace mxtrain::io
