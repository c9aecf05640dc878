// SPDX-License-Identifier: Apache-2.0
#pragma once
// A move-only std::function (C++23's std::move_only_function), for closures that own arrays or
// promises. Small closures (48 bytes) are stored inside the object, so pushing one allocates
// nothing.
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace mxtrain {

template <typename>
class UniqueFunction;

template <typename R, typename... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  template <typename F>
  requires(!std::is_same_v<std::decay_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>) UniqueFunction(F&& function) {
    using Stored = std::decay_t<F>;
    if constexpr (kInline<Stored>) {
      new (storage_) Stored(std::forward<F>(function));
    } else {
      *reinterpret_cast<Stored**>(storage_) = new Stored(std::forward<F>(function));
    }
    table_ = &kTable<Stored>;
  }
  UniqueFunction(UniqueFunction&& other) noexcept { Take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this != &other) {
      Reset();
      Take(other);
    }
    return *this;
  }
  ~UniqueFunction() { Reset(); }

  R operator()(Args... args) { return table_->call(storage_, std::forward<Args>(args)...); }
  explicit operator bool() const { return table_ != nullptr; }

 private:
  static constexpr size_t kInlineBytes = 48;
  template <typename F>
  static constexpr bool kInline =
      sizeof(F) <= kInlineBytes &&
      alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;

  struct Table {
    R (*call)(void*, Args&&...);
    void (*move)(void* from, void* to);  // leaves `from` without a value
    void (*destroy)(void*);
  };
  template <typename F>
  static F& Get(void* storage) {
    if constexpr (kInline<F>) {
      return *std::launder(reinterpret_cast<F*>(storage));
    } else {
      return **reinterpret_cast<F**>(storage);
    }
  }
  template <typename F>
  static constexpr Table kTable = {[](void* storage, Args&&... args) -> R {
                                     return Get<F>(storage)(std::forward<Args>(args)...);
                                   },
                                   [](void* from, void* to) {
                                     if constexpr (kInline<F>) {
                                       new (to) F(std::move(Get<F>(from)));
                                       Get<F>(from).~F();
                                     } else {
                                       *reinterpret_cast<F**>(to) = *reinterpret_cast<F**>(from);
                                     }
                                   },
                                   [](void* storage) {
                                     if constexpr (kInline<F>) {
                                       Get<F>(storage).~F();
                                     } else {
                                       delete *reinterpret_cast<F**>(storage);
                                     }
                                   }};

  void Take(UniqueFunction& other) {
    table_ = std::exchange(other.table_, nullptr);
    if (table_) table_->move(other.storage_, storage_);
  }
  void Reset() {
    if (table_) std::exchange(table_, nullptr)->destroy(storage_);
  }

  const Table* table_ = nullptr;
  alignas(std::max_align_t) unsigned char storage_[kInlineBytes];
};

}  // namespace mxtrain
