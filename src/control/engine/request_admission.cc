#include "request_admission.h"

#include <utility>

#include "submit_checks.h"

namespace omnibus {
namespace {

constexpr int64_t kWaitingPromptPerKv = 4;  // prompt tokens that may wait by default, in KV capacities

}  // namespace

StatusOr<std::unique_ptr<EngineCommand>> RequestAdmission::admit(GenerateRequest request, OutputSink sink) {
  const auto prompt_tokens = static_cast<int64_t>(request.prompt_token_ids.size());
  OMNIBUS_RETURN_IF_ERROR(p_.scheduler->can_serve(prompt_tokens));
  const TokenizerSpec& spec = p_.tokenizer->spec();
  OMNIBUS_RETURN_IF_ERROR(check_request(request, p_.tokenizer->vocab_size(), spec.end_of_generation));
  if (request.group_sequences > 0) {
    OMNIBUS_RETURN_IF_ERROR(p_.ledger->check_group({request.group_sequences, request.group_prompt_tokens}));
  }
  auto parent = std::make_shared<ParentRequest>();
  parent->id = next_id_.fetch_add(static_cast<RequestId>(request.n));
  parent->n = request.n;
  parent->prompt_tokens = static_cast<int32_t>(prompt_tokens);
  parent->sampling = request.sampling;
  parent->stops = std::make_shared<StopAutomaton>(request.sampling.stop);
  parent->reasoning = request.reasoning;
  parent->tenant = request.tenant;
  parent->log_id = request.log_id;
  parent->trace_id = request.trace_id;
  parent->sink = std::move(sink);
  SubmitCommand command;
  command.choices = fan_out(request, parent->id, p_.scheduler->max_output_tokens(prompt_tokens),
                            spec.end_of_generation, p_.clock->now_ns());
  parent->max_tokens = command.choices.front().sampling().max_tokens;
  const std::vector<Digest256> keys = p_.scheduler->make_prefix_keys(command.choices.front());
  for (Request& choice : command.choices) choice.prefix_keys = keys;
  command.parent = parent;
  auto boxed = std::make_unique<EngineCommand>(std::move(command));
  // Last: whatever threw before has left nothing open, and nothing behind it allocates.
  OMNIBUS_RETURN_IF_ERROR(p_.ledger->open(parent->id, parent->n, parent->prompt_tokens));
  return boxed;
}

RequestLimits ledger_limits(const EngineConfig& config, const Scheduler& scheduler) {
  const int64_t capacity = scheduler.kv().capacity_tokens();
  const int64_t waiting =
      config.max_waiting_tokens > 0 ? config.max_waiting_tokens : kWaitingPromptPerKv * capacity;
  return {int64_t{config.max_num_seqs} + config.max_waiting_requests, capacity + waiting};
}

}  // namespace omnibus
