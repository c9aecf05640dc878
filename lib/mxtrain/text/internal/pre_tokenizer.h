// SPDX-License-Identifier: Apache-2.0
#pragma once
// How tokenizer.json splits text into the pieces that its model encodes.
#include <memory>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/text/internal/json_node.h"

namespace mxtrain::text {

class MXTRAIN_API PieceSink {
 public:
  virtual ~PieceSink() = default;
  virtual void Put(std::string_view piece) = 0;  // not empty; holds during the call
};

// Immutable: any thread may split.
class MXTRAIN_API PreTokenizer {
 public:
  class Step {
   public:
    virtual ~Step() = default;
    // Puts the pieces of valid text, in order.
    virtual void Split(std::string_view text, PieceSink* sink) const = 0;
    // As PreTokenizer::EndsPieceAtLine.
    virtual bool EndsPieceAtLine() const { return false; }
  };

  PreTokenizer() = default;  // a text is one piece
  // Of the value of "pre_tokenizer". Throws kData for a kind that is not covered, by its name.
  explicit PreTokenizer(const JsonNode& node);

  // Whether the model gets bytes in GPT-2's alphabet: the last step is ByteLevel.
  bool byte_level() const { return byte_level_; }
  void Split(std::string_view text, PieceSink* sink) const;
  // Whether a piece ends before every newline that follows a visible character of ASCII, and the
  // pieces on both sides do not depend on each other.
  bool EndsPieceAtLine() const { return steps_.size() == 1 && steps_[0]->EndsPieceAtLine(); }

 private:
  void AddSteps(const JsonNode& node);
  void AddByteLevel(const JsonNode& node);

  std::vector<std::unique_ptr<const Step>> steps_;
  bool byte_level_ = false;
};

}  // namespace mxtrain::text
