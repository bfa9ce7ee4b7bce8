#include "start_table.h"

#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "text_layout.h"
#include "version.h"

namespace omnibus {

void print_start_table(const AsyncEngine& engine, const ServedModel& model, const Listeners& listeners) {
  const EngineConfig& limits = engine.config();
  const MemoryPlan& plan = engine.memory_plan();
  std::vector<std::vector<std::string>> rows = {
      {"omnibus", version()},
      {"model", fmt::format("{} ({})", model.name, model.description)},
      {"context", fmt::format("{} tokens, up to {} requests at once, {} tokens a step", limits.max_model_len,
                              limits.max_num_seqs, limits.max_num_batched_tokens)}};
  for (const ArenaPlan& arena : plan.arenas) {
    rows.push_back({"memory", fmt::format("{:>12}  {}{}", mebibytes(arena.bytes), arena.name,
                                          arena.note.empty() ? "" : " (" + arena.note + ")")});
  }
  std::string limit;
  if (plan.memory_limit > 0) limit = " of " + mebibytes(plan.memory_limit);
  rows.push_back({"", fmt::format("{:>12}  in all{}", mebibytes(plan.total()), limit)});
  rows.push_back({"KV cache", fmt::format("{} blocks of {} tokens", plan.kv.num_blocks, kTokensPerBlock)});
  rows.push_back({"address", listeners.main_url()});
  if (!listeners.ollama_url().empty()) rows.push_back({"Ollama", listeners.ollama_url()});
  if (!listeners.grpc_address().empty()) rows.push_back({"gRPC", listeners.grpc_address()});
  rows.push_back({"admin", listeners.admin_place().empty() ? "off" : listeners.admin_place()});
  const std::string table = format_table(rows);
  std::fputs(table.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace omnibus
