// One worker without scheduler or server: prefill and decode speed of a model file.
//   bench_step MODEL.gguf [--threads N] [--prompt N] [--tokens N] [--sequences N] [--cpu-isa ISA] [--numerics
//   f32]
// Wall rates are what a user sees; CPU rates (tokens per second of CPU time and thread) compare builds on a
// busy box.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "omnibus/compute/ops/device_ops.h"
#include "omnibus/compute/worker/worker.h"

namespace omnibus {
namespace {

struct Options {
  std::string model, isa = "auto", numerics = "fast";
  int32_t threads = 0, prompt = 512, tokens = 128, sequences = 1;
};

struct Clock2 {
  std::chrono::steady_clock::time_point wall = std::chrono::steady_clock::now();
  double cpu = cpu_seconds();

  static double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  void print(const char* what, int64_t tokens, int32_t threads) const {
    const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
    const double cpu_s = (cpu_seconds() - cpu) / threads;
    const auto n = static_cast<double>(tokens);
    fmt::print("{}: {} tokens, {:.1f} tok/s wall, {:.1f} tok/s by CPU time\n", what, tokens, n / wall_s,
               n / cpu_s);
  }
};

Status run_step(WorkerBase& worker, SchedulerOutput plan, std::vector<std::vector<TokenId>>& known) {
  const StepId id = plan.id;
  OMNIBUS_RETURN_IF_ERROR(worker.prepare(std::move(plan)).get().status());
  OMNIBUS_ASSIGN_OR_RETURN(const ModelRunnerOutput output, worker.commit(id).get());
  for (size_t i = 0; i < output.rows.size(); ++i) {
    for (const TokenId token : output.rows[i].tokens) known[i].push_back(token);
  }
  return {};
}

// All prompts in one step (they are one chunk each), then `tokens` steps of one token per sequence.
Status run_sequences(WorkerBase& worker, const Options& o, int32_t threads, uint64_t& seq) {
  const int32_t blocks = (o.prompt + o.tokens) / kTokensPerBlock + 1;
  std::vector<std::vector<TokenId>> known(static_cast<size_t>(o.sequences));
  SchedulerOutput first;
  first.id = {1, ++seq};
  for (int32_t s = 0; s < o.sequences; ++s) {
    Request request;
    request.id = seq * 1000 + static_cast<RequestId>(s);
    SamplingParams sampling;
    sampling.temperature = 0;
    sampling.ignore_eos = true;
    sampling.max_tokens = o.tokens + 1;
    request.params = sampling;
    for (int32_t i = 0; i < o.prompt; ++i) request.prompt_token_ids.push_back(100 + (i * 37 + s * 11) % 5000);
    known[static_cast<size_t>(s)] = request.prompt_token_ids;
    ScheduledRow row;
    row.id = request.id;
    row.n_tokens = o.prompt;
    row.samples = true;
    row.new_blocks.resize(1);
    for (int32_t b = 0; b < blocks; ++b) row.new_blocks[0].push_back(s * blocks + b);
    first.new_requests.push_back({request, {}});
    first.rows.push_back(row);
  }
  std::vector<ScheduledRow> rows = first.rows;
  const Clock2 prefill;
  OMNIBUS_RETURN_IF_ERROR(run_step(worker, first, known));
  prefill.print("prefill", int64_t{o.prompt} * o.sequences, threads);
  const Clock2 decode;
  for (int32_t t = 0; t < o.tokens; ++t) {
    SchedulerOutput plan;
    plan.id = {1, ++seq};
    for (ScheduledRow& row : rows) {
      row.base_computed = o.prompt + t;
      row.n_tokens = 1;
      row.new_blocks = {{}};
      plan.rows.push_back(row);
    }
    OMNIBUS_RETURN_IF_ERROR(run_step(worker, std::move(plan), known));
  }
  decode.print("decode", int64_t{o.tokens} * o.sequences, threads);
  SchedulerOutput end;
  end.id = {1, ++seq};
  for (const ScheduledRow& row : rows) end.finished.push_back(row.id);
  return run_step(worker, std::move(end), known);
}

Status run(const Options& o) {
  WorkerConfig config;
  OMNIBUS_ASSIGN_OR_RETURN(config.model, GgufFile::open(o.model));
  OMNIBUS_ASSIGN_OR_RETURN(config.cpu_isa, parse_cpu_isa(o.isa));
  config.numerics = o.numerics == "f32" ? Numerics::kF32 : Numerics::kFast;
  config.threads = o.threads;
  config.max_model_len = o.prompt + o.tokens + kTokensPerBlock;
  config.max_num_seqs = o.sequences;
  config.max_num_batched_tokens = o.prompt * o.sequences;
  OMNIBUS_ASSIGN_OR_RETURN(const auto worker, make_worker(config));
  OMNIBUS_ASSIGN_OR_RETURN(const MemoryPlan plan, worker->capacity());
  OMNIBUS_RETURN_IF_ERROR(worker->init());
  OMNIBUS_RETURN_IF_ERROR(worker->load());
  OMNIBUS_RETURN_IF_ERROR(worker->allocate_kv(plan.kv));
  OMNIBUS_RETURN_IF_ERROR(worker->join({1, {0}, {}}));
  uint64_t seq = 0;
  const int32_t threads = o.threads > 0 ? o.threads : available_cores();
  for (int32_t repeat = 0; repeat < 3; ++repeat) {
    OMNIBUS_RETURN_IF_ERROR(run_sequences(*worker, o, threads, seq));
  }
  return {};
}

}  // namespace
}  // namespace omnibus

int main(int argc, char** argv) {
  omnibus::Options options;
  CLI::App app("prefill and decode speed of one worker");
  app.add_option("model", options.model, "GGUF file")->required();
  app.add_option("--threads", options.threads, "compute threads; 0: available cores");
  app.add_option("--prompt", options.prompt, "prompt tokens per sequence");
  app.add_option("--tokens", options.tokens, "decoded tokens per sequence");
  app.add_option("--sequences", options.sequences, "sequences at a time");
  app.add_option("--cpu-isa", options.isa, "auto, generic, avx2 or avx512");
  app.add_option("--numerics", options.numerics, "fast or f32")->check(CLI::IsMember({"fast", "f32"}));
  CLI11_PARSE(app, argc, argv);
  const omnibus::Status status = omnibus::run(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", omnibus::status_message(status).c_str());
  return status.ok() ? 0 : 1;
}
