// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of the configurations that recipes write.
#include <string>
#include <vector>

#include "app/tasks/recipe.h"
#include "mxtrain/io/source.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::tasks {

// A line of YAML with its comment in a column of its own; "" for none.
std::string TextLine(std::string text, const std::string& comment);

// The line data.exact_decode: what an exported model gives is then what `infer` gives.
std::string ExactDecodeText();

// A transform to this size, with the filter that an exported model has, too; `more`: parameters
// behind it.
std::string ResizedText(const std::string& transform, int height, int width,
                        const std::string& more = "");

// The transform `normalize` as a net with published weights needs it; as most need it, for a net
// without (`from_weights` false).
std::string NormalizeText(const ZooWeights& weights, bool from_weights);

// "[a, b]", each quoted.
std::string ListText(const std::vector<std::string>& texts);

// Behind "no such column": "; did you mean 'price'?" or, if none is near, "; it has size, price".
std::string NearOrAll(const std::string& name, const std::vector<std::string>& names);

// Throws kUsage for --head-only; `what`: the data has, of which more layers are to learn.
void RequireAllLayers(const RecipeChoice& choice, const std::string& what);

// --- nets whose layers a decoder takes
// Throws kUsage for a choice that has no such net; `what`: the decoder makes.
void RequireTrunk(const RecipeChoice& choice, const std::string& what);
// The net's input for images of this size, with sides that are multiples of kTrunkMultiple: the
// shorter one as asked for or, with 0, the longer one at most 384.
inline constexpr int kTrunkMultiple = 32;
io::ImageSize TrunkInput(const io::ImageSize& images, int shorter_side);
// The epochs, a multiple of 5, in which a net for `input` sees `seen` images; up to four times as
// many where it is smaller than 128x128, and they cost less.
int64_t EpochsOf(int64_t seen, int64_t train_images, const io::ImageSize& input);
// What a summary says of an edge length that the user asked for and that is rounded to `input`; ""
// if it is not.
std::string RoundingText(const RecipeChoice& choice, const io::ImageSize& input);
// The section `vars`, beginning with an empty line, with no random depth, and what else the weights
// were trained with; "" for none.
std::string TrunkVariables(const RecipeChoice& choice);
// The lines of `train` that name the weights.
std::string WeightsText(const WeightsChoice& weights);

// The medians of the heights and widths of images, of some of many. Throws kData if none can be
// read.
io::ImageSize MedianSize(const io::Source& images);

}  // namespace mxtrain::tasks
