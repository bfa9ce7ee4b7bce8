// omnibus-sim: runs seeds of the simulation. A failing seed prints what it drew, the end of its trace and the
// invariant; the same seed gives the same run, always.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/base/common/log.h"

#include "sim/world.h"
#ifdef OMNIBUS_WITH_MUTANTS
#include "sim/mutant_switch.h"
#endif

namespace omnibus::sim {
namespace {

constexpr const char* kUsage =
    "usage: omnibus-sim [--seeds N] [--first S] [--file F] [--twice] [--trace] [--mutant M] [--help]\n"
    "  --seeds N    how many (1000)\n"
    "  --first S    the first one (0)\n"
    "  --file F     the seeds in this file instead, one a line; # begins a comment\n"
    "  --twice      each seed runs twice, and both traces must be equal\n"
    "  --trace      prints every event\n"
    "  --mutant M   with this planted defect on; then a violation is what is wanted (omnibus-sim-mutants)\n";

struct Options {
  int64_t seeds = 1000;
  int64_t first = 0;
  std::string file;
  bool twice = false;
  bool trace = false;
  bool help = false;
  int64_t mutant = 0;
};

bool parse_number(const char* text, int64_t& value) {
  const char* end = text + std::strlen(text);
  return std::from_chars(text, end, value).ptr == end && value >= 0;
}

std::optional<Options> parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--help") {
      o.help = true;
    } else if (name == "--twice") {
      o.twice = true;
    } else if (name == "--trace") {
      o.trace = true;
    } else if (name == "--file") {
      o.file = value;
      ++i;
    } else if (name == "--seeds" || name == "--first" || name == "--mutant") {
      int64_t& target = name == "--seeds" ? o.seeds : name == "--first" ? o.first : o.mutant;
      if (!parse_number(value, target)) {
        std::fprintf(stderr, "omnibus-sim: %s wants a number, not '%s'\n", name.c_str(), value);
        return std::nullopt;
      }
      ++i;
    } else {
      std::fprintf(stderr, "omnibus-sim: unknown option '%s'\n%s", name.c_str(), kUsage);
      return std::nullopt;
    }
  }
  if (o.seeds == 0) {
    std::fprintf(stderr, "omnibus-sim: --seeds 0 runs nothing\n");
    return std::nullopt;
  }
  return o;
}

std::optional<std::vector<uint64_t>> seeds_of(const Options& o) {
  std::vector<uint64_t> seeds;
  if (o.file.empty()) {
    for (int64_t i = 0; i < o.seeds; ++i) seeds.push_back(static_cast<uint64_t>(o.first + i));
    return seeds;
  }
  std::ifstream in(o.file);
  for (std::string line; std::getline(in, line);) {
    line = line.substr(0, line.find('#'));
    line = line.substr(0, line.find_last_not_of(" \t") + 1);
    int64_t seed = 0;
    if (line.empty()) continue;
    if (!parse_number(line.c_str(), seed)) {
      std::fprintf(stderr, "omnibus-sim: %s: '%s' is no seed\n", o.file.c_str(), line.c_str());
      return std::nullopt;
    }
    seeds.push_back(static_cast<uint64_t>(seed));
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "omnibus-sim: %s holds no seeds\n", o.file.c_str());
    return std::nullopt;
  }
  return seeds;
}

void print_violation(uint64_t seed, const RunResult& result, bool with_trace) {
  if (with_trace)
    for (const std::string& line : result.trace_tail) std::printf("%s\n", line.c_str());
  std::printf("%s\n", describe(draw_scenario(seed)).c_str());
  std::printf("FAILED seed %llu: %s does not hold: %s\n", static_cast<unsigned long long>(seed),
              result.violation->invariant.c_str(), result.violation->what.c_str());
}

// What the runs came to; a run of nothing but refusals would prove nothing.
struct Sum {
  int64_t runs = 0, events = 0, accepted = 0, refused = 0;
  double simulated_s = 0;
  SimWorker::Counts counts;
  std::map<std::string, int64_t> happened;

  void add(const RunResult& r) {
    ++runs;
    events += r.events;
    accepted += r.accepted;
    refused += r.refused;
    simulated_s += static_cast<double>(r.simulated_ns) / 1e9;
    counts.steps += r.counts.steps;
    counts.tokens += r.counts.tokens;
    counts.prefix_hits += r.counts.prefix_hits;
    counts.cached_tokens += r.counts.cached_tokens;
    counts.preemptions += r.counts.preemptions;
    counts.from_step_rows += r.counts.from_step_rows;
    counts.accepted_drafts += r.counts.accepted_drafts;
    for (const auto& [what, times] : r.happened) happened[what] += times;
  }
  void print(double cpu_s) const {
    const auto n = [](int64_t value) { return static_cast<long long>(value); };
    std::printf("%lld runs, %.0f seeds/s, %.0f simulated s per CPU s, %.0f events/s\n", n(runs),
                static_cast<double>(runs) / cpu_s, simulated_s / cpu_s, static_cast<double>(events) / cpu_s);
    std::printf(
        "%lld accepted, %lld refused, %lld steps, %lld tokens, %lld prefix hits (%lld tokens), %lld "
        "preemptions, "
        "%lld rows FromStep, %lld drafts accepted\n",
        n(accepted), n(refused), n(counts.steps), n(counts.tokens), n(counts.prefix_hits),
        n(counts.cached_tokens), n(counts.preemptions), n(counts.from_step_rows), n(counts.accepted_drafts));
    for (const auto& [what, times] : happened) std::printf("%s: %lld  ", what.c_str(), n(times));
    std::printf("\n");
  }
};

// 0: as it should be.
int run(const Options& o) {
  const auto seeds = seeds_of(o);
  if (!seeds) return 2;
  Sum sum;
  const std::clock_t began = std::clock();
  for (uint64_t seed : *seeds) {
    const RunResult result = run_seed(seed, o.trace);
    sum.add(result);
    if (result.violation && o.mutant > 0) {
      std::printf("mutant M%lld is killed at seed %llu by %s: %s\n", static_cast<long long>(o.mutant),
                  static_cast<unsigned long long>(seed), result.violation->invariant.c_str(),
                  result.violation->what.c_str());
      return 0;
    }
    if (result.violation) {
      print_violation(seed, result, !o.trace);
      return 1;
    }
    if (!o.twice || run_seed(seed).trace_hash == result.trace_hash) continue;
    std::printf("FAILED seed %llu: two runs of it differ\n", static_cast<unsigned long long>(seed));
    return 1;
  }
  sum.print(static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
  if (o.mutant == 0) return 0;
  std::printf("FAILED: mutant M%lld survives %zu seeds\n", static_cast<long long>(o.mutant), seeds->size());
  return 1;
}

}  // namespace
}  // namespace omnibus::sim

int main(int argc, char** argv) {
  const auto options = omnibus::sim::parse(argc, argv);
  if (!options) return 2;
  if (options->help) {
    std::fputs(omnibus::sim::kUsage, stdout);
    return 0;
  }
#ifdef OMNIBUS_WITH_MUTANTS
  omnibus::sim::turn_on_mutant(static_cast<int>(options->mutant));
#else
  if (options->mutant != 0) {
    std::fprintf(stderr, "omnibus-sim: this program has no mutants; omnibus-sim-mutants does\n");
    return 2;
  }
#endif
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  omnibus::init_log(omnibus::LogLevel::kError, omnibus::LogFormat::kText);
  return omnibus::sim::run(*options);
}
