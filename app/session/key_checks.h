// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keys whose validity or default depends on the net, checked once it is built.
#include "app/session/session_view.h"

namespace mxtrain::session {

// Images are channels first; most other tools write channels last. Throws DiagnosticError.
void CheckInputOrder(const SessionView& session);
// Reports shapes that contradict each other or are unknown (config/net_shapes.h), for one batch.
void CheckNetShapes(const SessionView& session);
// Reports layers of net.carry that are none, and what does not go with them.
void CheckCarry(const SessionView& session, const OperatorRegistry& operators);
// Checks parameter name patterns against the parameters of the net.
void CheckPatterns(const SessionView& session);
// Keys of train.kvstore that the type does not have.
void CheckKVStore(const SessionView& session);
// Warns of layers with parameters that are not frozen and that no loss's gradient reaches.
void WarnOfUntrained(const SessionView& session);
// Warns of losses that have no value in reports, since the net computes their labels.
void WarnOfUnreported(const SessionView& session);
// A label that label_delim makes a set of classes needs LogisticRegressionOutput.
void CheckLabelSets(const SessionView& session);
// If train.metrics is not given, uses the defaults of the first loss; the resolved configuration
// names them. `loaded` is that of the session.
void ChooseMetrics(const SessionView& session, config::LoadedConfig* loaded);

}  // namespace mxtrain::session
