// The omnibus program.
#include "omnibus/cli/run_program.h"

int main(int argc, char** argv) { return omnibus::run_program({argv + 1, argv + argc}); }
