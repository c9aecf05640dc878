// SPDX-License-Identifier: Apache-2.0
// The source of the targets that own precompiled headers (MxtrainShareHeaders.cmake).
int main() {}
