// OMNIBUS_MUTANT(n): a planted defect (docs/testing.md, Mutants). The constant `false` in every program but
// the mutants' build of the simulator, whose invariants must find each.
#pragma once

#ifdef OMNIBUS_WITH_MUTANTS
namespace omnibus {
bool mutant_is_on(int n);  // tests/sim
}  // namespace omnibus
#define OMNIBUS_MUTANT(n) (::omnibus::mutant_is_on(n))
#else
#define OMNIBUS_MUTANT(n) false
#endif
