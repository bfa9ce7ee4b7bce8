#include "mutant_switch.h"

#ifndef OMNIBUS_WITH_MUTANTS
#error "only for the build with mutants"
#endif
#include "omnibus/base/common/mutant.h"

namespace omnibus {
namespace {

int on = 0;

}  // namespace

bool mutant_is_on(int n) { return n == on; }

namespace sim {

void turn_on_mutant(int n) { on = n; }

}  // namespace sim
}  // namespace omnibus
