#include <algorithm>
#include <atomic>

#include "cpu_ops.h"

namespace omnibus::cpu {
namespace {

using kernels::kAttentionRows;
using kernels::kAttentionSegment;

constexpr int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Fewer tiles than this: tiles alone would leave threads idle, so segments of a tile are dealt too.
int64_t split_below(const OpContext& ctx) { return std::max<int64_t>(2 * int64_t{ctx.threads()}, 16); }

int64_t state_floats(int32_t head_dim) { return int64_t{kAttentionRows} * (div_up(head_dim, 16) * 16 + 16); }

// One step's tiles in order: sequence, kv head, tile of up to 8 (token, head) rows.
class Tiles {
 public:
  explicit Tiles(const AttentionParams& p)
      : p_(p), group_(p.heads / p.kv.kv_heads), sequences_(p.metadata->n_sequences) {
    for (int32_t i = 0; i < sequences_; ++i) {
      total_ += tiles_of(i);
      max_segments_ = std::max(max_segments_, div_up(p.metadata->sequences[i].context, kAttentionSegment));
    }
  }

  int64_t total() const { return total_; }
  int64_t max_segments() const { return max_segments_; }

  // A place in the list; moving it is cheap in either direction.
  struct Cursor {
    int32_t sequence = 0;
    int64_t first = 0;  // index of the sequence's first tile
  };
  kernels::AttentionTile tile(int64_t index, Cursor& at) const {
    while (index < at.first) at.first -= tiles_of(--at.sequence);
    while (index >= at.first + tiles_of(at.sequence)) at.first += tiles_of(at.sequence++);
    const AttentionSequence& s = p_.metadata->sequences[at.sequence];
    const int64_t per_head = tiles_per_head(s);
    const int64_t local = index - at.first;
    const KVCacheView& kv = p_.kv;
    kernels::AttentionTile t{};
    t.token_stride = int64_t{p_.heads} * kv.head_dim;
    t.q = p_.q + s.first_row * t.token_stride;
    t.kv = static_cast<const uint8_t*>(kv.data);
    t.kv_f32 = kv.dtype == DType::kF32;
    t.block_bytes = kv.block_bytes;
    t.block_table = s.block_table;
    t.head_dim = kv.head_dim;
    t.kv_head = static_cast<int32_t>(local / per_head);
    t.group = group_;
    t.row_begin = static_cast<int32_t>(local % per_head) * kAttentionRows;
    t.rows = std::min(kAttentionRows, s.n_query * group_ - t.row_begin);
    t.first_position = s.context - s.n_query;
    t.context = s.context;
    t.window = p_.metadata->window;
    t.scale = p_.scale;
    const int32_t first_token = t.first_position + t.row_begin / group_;
    const int32_t last_token = t.first_position + (t.row_begin + t.rows - 1) / group_;
    const int32_t first_seen = t.window > 0 ? std::max(first_token - t.window + 1, 0) : 0;
    t.segment_begin = first_seen / kAttentionSegment;
    t.segment_end = last_token / kAttentionSegment + 1;
    return t;
  }
  // Where row r of the tile goes in [m, heads, head_dim].
  int64_t out_offset(const kernels::AttentionTile& t, const Cursor& at, int32_t r) const {
    const int32_t row = t.row_begin + r;
    const int32_t token = p_.metadata->sequences[at.sequence].first_row + row / group_;
    return (int64_t{token} * p_.heads + t.kv_head * group_ + row % group_) * t.head_dim;
  }

 private:
  int64_t tiles_per_head(const AttentionSequence& s) const {
    return div_up(int64_t{s.n_query} * group_, kAttentionRows);
  }
  int64_t tiles_of(int32_t sequence) const {
    return p_.kv.kv_heads * tiles_per_head(p_.metadata->sequences[sequence]);
  }

  const AttentionParams& p_;
  const int32_t group_;
  const int32_t sequences_;
  int64_t total_ = 0;
  int64_t max_segments_ = 0;
};

struct Step {
  const OpContext& ctx;
  const AttentionParams& params;
  const Tiles tiles;
  float* out;       // [m, heads * head_dim]
  float* partials;  // split: [tile][segment][state]
  std::atomic<int64_t> next{0};

  const kernels::CpuTable& table() const { return *ctx.table->cpu; }
  void finish(const kernels::AttentionTile& t, const Tiles::Cursor& at, const float* state) const {
    const int64_t stride = state_floats(t.head_dim) / kAttentionRows;
    for (int32_t r = 0; r < t.rows; ++r) {
      table().attention_finish(state + r * stride, t.head_dim, out + tiles.out_offset(t, at, r));
    }
  }
};

// Tiles are claimed one by one, the last and longest first. Who takes which does not change a bit.
void run_tiles(Step& step) {
  alignas(64) float state[kAttentionRows * (kernels::kMaxHeadDim + 16)];
  Tiles::Cursor at;
  for (;;) {
    const int64_t claimed = step.next.fetch_add(1, std::memory_order_relaxed);
    if (claimed >= step.tiles.total()) return;
    kernels::AttentionTile t = step.tiles.tile(step.tiles.total() - 1 - claimed, at);
    t.state = state;
    step.table().attention(t);
    step.finish(t, at, state);
  }
}

// Few tiles: every (tile, segment) is a work item; then each tile's partials are merged in ascending order.
void run_split(Step& step, int32_t thread, int32_t threads) {
  const int64_t segments = step.tiles.max_segments();
  const int64_t floats = state_floats(step.params.kv.head_dim);
  Tiles::Cursor at;
  for (;;) {
    const int64_t item = step.next.fetch_add(1, std::memory_order_relaxed);
    if (item >= step.tiles.total() * segments) break;
    kernels::AttentionTile t = step.tiles.tile(item / segments, at);
    const auto segment = static_cast<int32_t>(item % segments);
    if (segment < t.segment_begin || segment >= t.segment_end) continue;
    t.segment_begin = segment;
    t.segment_end = segment + 1;
    t.state = step.partials + item * floats;
    step.table().attention(t);
  }
  step.ctx.pool->barrier(thread);
  for (int64_t i = thread; i < step.tiles.total(); i += threads) {
    const kernels::AttentionTile t = step.tiles.tile(i, at);
    float* state = step.partials + (i * segments + t.segment_begin) * floats;
    for (int32_t s = t.segment_begin + 1; s < t.segment_end; ++s) {
      step.table().attention_merge(state, step.partials + (i * segments + s) * floats, t.rows, t.head_dim);
    }
    step.finish(t, at, state);
  }
}

}  // namespace

void attention(const OpContext& ctx, const AttentionParams& params) {
  const int32_t m = params.metadata->m;
  const int64_t width = int64_t{params.heads} * params.kv.head_dim;
  float* out = params.scratch;
  Step step{ctx, params, Tiles(params), out, out + (m * width + 15) / 16 * 16};
  const bool split = step.tiles.total() < split_below(ctx);
  const kernels::ActStore store = act_store(*params.out);
  ctx.pool->parallel([&](int32_t thread, int32_t threads) {
    if (split) {
      run_split(step, thread, threads);
    } else {
      run_tiles(step);
    }
    ctx.pool->barrier(thread);
    const ThreadRange rows = thread_range(m, thread, threads);
    for (auto row = static_cast<int32_t>(rows.begin); row < rows.end; ++row) {
      ctx.table->cpu->store_row(out + row * width, row, store);
    }
  });
}

}  // namespace omnibus::cpu

namespace omnibus {

int64_t attention_scratch_floats(const OpContext& ctx, int32_t max_m, int32_t heads, int32_t head_dim,
                                 int32_t max_context) {
  const int64_t out = (int64_t{max_m} * heads * head_dim + 15) / 16 * 16;
  const int64_t segments = cpu::div_up(max_context, kernels::kAttentionSegment);
  return out + cpu::split_below(ctx) * segments * cpu::state_floats(head_dim);
}

}  // namespace omnibus
