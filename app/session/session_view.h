// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the parts of a session (session.h) read: the configuration and its net as they are now, and
// where to report. All of it outlives them.
#include "app/config/load.h"
#include "app/config/net.h"
#include "mxtrain/base/log.h"

namespace mxtrain::session {

struct SessionView {
  const config::LoadedConfig& loaded;
  const config::Net& net;
  config::Diagnostics& diagnostics;
  Logger log;

  const config::Config& config() const { return loaded.config; }
};

}  // namespace mxtrain::session
