// SPDX-License-Identifier: Apache-2.0
#pragma once
// A data set of the configuration as parameters of io::MakeSource, with the fields that a net
// reads.
#include <optional>
#include <string>
#include <vector>

#include "app/config/net.h"
#include "mxtrain/io/source.h"

namespace mxtrain::session {

// Whether its examples are rows of a table; false without a source.
bool IsTable(const config::SourceConfig& c);
// Whether a column is the weight of an example: it has that name, and the net has no input and no
// label of it.
bool IsWeight(const config::Column& column, const config::Net& net);
// Whether the data say the class of each pixel themselves, without files of masks. `label`: what
// labels are, as SourceConfig::label.
bool HasOwnMasks(const config::SourceConfig& c, const std::string& label);
// Whether its examples are lists as long as the net's input, since it does not say how long.
bool TakesLengthOfNet(const config::SourceConfig& c);
// Whether its examples are rows of several documents (io/token_position.h).
bool PacksDocuments(const config::SourceConfig& c);
// In the order of its kind's parameters. `classes`: names that the source must use, in this order,
// if its kind takes names; empty: those that it finds.
// `label`: what labels are, as SourceConfig::label.
Kwargs SourceParams(const config::SourceConfig& c, const config::Net& net,
                    const std::vector<std::string>& classes, const std::string& label);
// Those of the table's labels only, for a net that is not built yet: columns of what `inputs` (of
// the configuration) does not name. `net`: as far as IsWeight needs it. None if there are no
// labels.
std::optional<Kwargs> LabelParams(const config::SourceConfig& c, const config::Value& inputs,
                                  const config::Net& net);

// Whether the column names image files: one column for an input of channels, height and width.
bool IsImage(const config::Column& column, const std::vector<config::NetInput>& inputs);
// How many channels the net expects in its images; none if it reads no images.
std::optional<int64_t> ImageChannels(const io::Source& source,
                                     const std::vector<config::NetInput>& inputs);

}  // namespace mxtrain::session
