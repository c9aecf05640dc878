# SPDX-License-Identifier: Apache-2.0
# Finds DejaVu Sans (Debian's fonts-dejavu-core), the font of the program's figures: DejaVu_SANS.
find_file(DejaVu_SANS NAMES DejaVuSans.ttf PATHS /usr/share/fonts/truetype/dejavu /usr/share/fonts/TTF /usr/share/fonts/dejavu-sans-fonts)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DejaVu REQUIRED_VARS DejaVu_SANS
  REASON_FAILURE_MESSAGE "install fonts-dejavu-core (scripts/install_deps.sh does)")
