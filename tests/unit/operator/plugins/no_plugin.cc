// SPDX-License-Identifier: Apache-2.0
// A shared object that is not a plug-in.
extern "C" int no_plugin() {
  return 0;
}
