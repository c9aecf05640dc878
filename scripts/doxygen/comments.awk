# SPDX-License-Identifier: Apache-2.0
# Turns the plain comments of a header into ones that Doxygen reads: those above a declaration become ///, those behind one ///<, and
# those below `#pragma once` describe the file. What Doxygen would take for a command or a tag in them is escaped.
function escaped(text) {
  gsub(/[\\@<>#%&"]/, "\\\\&", text)
  return text
}
/SPDX-License-Identifier/ { print ""; next }
/^#pragma once/ { print "/// @file"; next }
/^ *\/\/( |$)/ {
  at = index($0, "//")
  printf "%s/// %s\n", substr($0, 1, at - 1), escaped(substr($0, at + 3))
  next
}
/[;,{)]  \/\/ / && !/"[^"]*\/\/ / {
  at = match($0, /  \/\/ /)
  printf "%s  ///< %s\n", substr($0, 1, at - 1), escaped(substr($0, at + 5))
  next
}
{ print }
