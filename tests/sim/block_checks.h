// BlockChecks: the block ledger of the KV cache against the tables that the workers were told of.
//   I1  used + free + cached = total; the used ones are those that tables hold, the cached ones full and held
//       by nobody
//   I2  a block's reference count is the number of tables that hold it; who waits or has ended holds none
#pragma once

#include <vector>

#include "omnibus/control/scheduler/scheduler.h"

#include "sim/clients.h"
#include "sim/scenario.h"
#include "sim/sim_worker.h"
#include "sim/verdict.h"

namespace omnibus::sim {

class BlockChecks {
 public:
  BlockChecks(const Scenario& scenario, const Scheduler* scheduler, const SimWorker* worker,
              const Clients* clients, Verdict* verdict)
      : scenario_(scenario), scheduler_(scheduler), worker_(worker), clients_(clients), verdict_(verdict) {}

  // While the engine waits: its scheduler and the workers know of the same plans.
  void check();

 private:
  void count_holders();
  void judge_tables_of_the_rest();
  void judge_pools();

  const Scenario& scenario_;
  const Scheduler* const scheduler_;
  const SimWorker* const worker_;
  const Clients* const clients_;
  Verdict* const verdict_;
  std::vector<std::vector<int32_t>> holders_;  // by pool and block
};

}  // namespace omnibus::sim
