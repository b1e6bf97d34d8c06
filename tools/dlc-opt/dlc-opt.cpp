// Runs passes and phases of the compiler on text: dlc-opt --phase-fused file.mlir
#include "compiler/api/OptMain.h"

int main(int argc, char **argv) { return dlc::compiler::optMain(argc, argv); }
