// Which planted defect (OMNIBUS_MUTANT) is on; linked into the mutants' programs alone.
#pragma once

namespace omnibus::sim {

void turn_on_mutant(int n);  // 0: none

}  // namespace omnibus::sim
