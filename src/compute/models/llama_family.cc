#include "llama_family.h"

#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "omnibus/compute/layers/attention_layer.h"
#include "omnibus/compute/layers/decoder_scratch.h"
#include "omnibus/compute/layers/gated_mlp.h"
#include "omnibus/compute/layers/linear_layers.h"
#include "omnibus/compute/layers/rope_table.h"

#include "output_head.h"

namespace omnibus {
namespace {

struct DecoderLayer {
  AttentionLayer attention;
  GatedMlp mlp;
};

class LlamaFamilyModel final : public Model {
 public:
  explicit LlamaFamilyModel(const ModelContext& context)
      : context_(context), range_(context.parallel.layer_range(context.config.num_layers)) {
    const ModelConfig& c = context_.config;
    attention_.hidden = c.hidden_size;
    attention_.heads = c.num_heads;
    attention_.kv_heads = c.num_kv_heads;
    attention_.head_dim = c.head_dim;
    attention_.eps = static_cast<float>(c.rms_norm_eps);
    attention_.qk_norm = c.qk_norm;
    share_ = attention_share(attention_, context_.parallel);
  }

  Status load(WeightLoader& loader, Allocator& scratch) override;
  std::vector<KVGroupSpec> kv_spec() const override;
  StatusOr<KVCaches> allocate_kv(int32_t num_blocks, Allocator& allocator) const override;
  Status forward(const ForwardBatch& batch, const KVCaches& caches, IntermediateTensors* between) override;
  LogitsHead* head() override { return is_last() ? &head_ : nullptr; }

 private:
  bool is_first() const { return range_.begin == 0; }
  bool is_last() const { return range_.end == context_.config.num_layers; }
  int32_t kv_heads() const { return static_cast<int32_t>(share_.kv_heads.size()); }
  int64_t layer_block_bytes() const {
    return kv_block_bytes(context_.kv_dtype, kv_heads(), context_.config.head_dim);
  }
  Status load_weights(WeightLoader& loader);
  Status load_rope(WeightLoader& loader, Allocator& scratch);
  Status bind_scratch(Allocator& scratch);
  void skip_other_stages(StateDict& state) const;

  const ModelContext context_;
  const Range range_;
  AttentionLayerSpec attention_;
  AttentionShare share_;
  VocabParallelEmbedding embedding_;
  std::vector<DecoderLayer> layers_;
  OutputHead head_;
  RopeTable rope_;
  DecoderScratch scratch_;
};

// Tensors that belong to other pipeline stages.
void LlamaFamilyModel::skip_other_stages(StateDict& state) const {
  for (int32_t layer = 0; layer < context_.config.num_layers; ++layer)
    if (layer < range_.begin || layer >= range_.end) state.skip(fmt::format("blk.{}.", layer));
  if (!is_first() && !(is_last() && context_.config.tied_head)) state.skip("token_embd.");
  if (!is_last()) {
    state.skip("output.");
    state.skip("output_norm.");
  }
}

Status LlamaFamilyModel::load_weights(WeightLoader& loader) {
  const ModelConfig& c = context_.config;
  const bool embeds = is_first() || (is_last() && c.tied_head);
  if (embeds)
    OMNIBUS_RETURN_IF_ERROR(
        embedding_.load(loader, "token_embd", c.vocab_size, c.hidden_size, context_.parallel));
  GatedMlpSpec mlp;
  mlp.hidden = c.hidden_size;
  mlp.ffn = c.intermediate_size;
  mlp.eps = static_cast<float>(c.rms_norm_eps);
  layers_.resize(static_cast<size_t>(range_.size()));
  for (int64_t layer = range_.begin; layer < range_.end; ++layer) {
    DecoderLayer& l = layers_[static_cast<size_t>(layer - range_.begin)];
    const std::string prefix = fmt::format("blk.{}.", layer);
    OMNIBUS_RETURN_IF_ERROR(l.attention.load(loader, prefix, attention_, context_.parallel));
    OMNIBUS_RETURN_IF_ERROR(l.mlp.load(loader, prefix, mlp, context_.parallel));
  }
  if (!is_last()) return absl::OkStatus();
  return head_.load(loader, context_, c.tied_head ? &embedding_.weight() : nullptr);
}

Status LlamaFamilyModel::load_rope(WeightLoader& loader, Allocator& scratch) {
  const RopeConfig& rope = context_.config.rope;
  RopeSpec spec;
  spec.dims = rope.dims;
  spec.positions = context_.max_model_len;
  spec.freq_base = rope.freq_base;
  if (rope.scaling == RopeScaling::kLinear) spec.linear_factor = rope.factor;
  spec.neox = rope.style == RopeStyle::kNeox;
  if (rope.has_freq_factors) {
    const int64_t half = rope.dims / 2;
    OMNIBUS_ASSIGN_OR_RETURN(const float* factors, loader.vector("rope_freqs.weight", half, {0, half}));
    spec.freq_factors = {factors, factors == nullptr ? 0 : static_cast<size_t>(half)};
  }
  OMNIBUS_ASSIGN_OR_RETURN(rope_, build_rope_table(context_.ops, spec, scratch));
  return absl::OkStatus();
}

Status LlamaFamilyModel::bind_scratch(Allocator& scratch) {
  const ModelConfig& c = context_.config;
  const ActivationMode mode = context_.ops.mode;
  DecoderScratchSpec spec;
  spec.max_rows = context_.max_rows;
  spec.max_context = context_.max_model_len;
  spec.hidden = c.hidden_size;
  spec.heads = static_cast<int32_t>(share_.heads.size());
  spec.kv_heads = kv_heads();
  spec.head_dim = c.head_dim;
  spec.ffn = static_cast<int32_t>(ffn_share(c.intermediate_size, context_.parallel).size());
  spec.tensor_parallel = context_.parallel.tp_size > 1;
  for (const DecoderLayer& layer : layers_) {
    spec.attn_in = spec.attn_in | layer.attention.input_needs(mode);
    spec.attn_out = spec.attn_out | layer.attention.output_needs(mode);
    spec.ffn_in = spec.ffn_in | layer.mlp.input_needs(mode);
    spec.ffn_act = spec.ffn_act | layer.mlp.output_needs(mode);
  }
  OMNIBUS_ASSIGN_OR_RETURN(scratch_, DecoderScratch::allocate(context_.ops, spec, scratch));
  for (DecoderLayer& layer : layers_) {
    layer.attention.bind(context_.ops, scratch_, rope_);
    layer.mlp.bind(context_.ops, scratch_);
  }
  return is_last() ? head_.allocate(context_, scratch_.residual, scratch) : absl::OkStatus();
}

Status LlamaFamilyModel::load(WeightLoader& loader, Allocator& scratch) {
  OMNIBUS_RETURN_IF_ERROR(load_weights(loader));
  OMNIBUS_RETURN_IF_ERROR(load_rope(loader, scratch));
  OMNIBUS_RETURN_IF_ERROR(bind_scratch(scratch));
  skip_other_stages(loader.state());
  return loader.state().check_all_claimed();
}

std::vector<KVGroupSpec> LlamaFamilyModel::kv_spec() const {
  KVGroupSpec group;
  for (int64_t layer = range_.begin; layer < range_.end; ++layer)
    group.layers.push_back(static_cast<int32_t>(layer));
  group.bytes_per_block = layer_block_bytes() * range_.size();
  return {group};
}

StatusOr<KVCaches> LlamaFamilyModel::allocate_kv(int32_t num_blocks, Allocator& allocator) const {
  KVCaches caches;
  KVCacheView view;
  view.dtype = context_.kv_dtype;
  view.kv_heads = kv_heads();
  view.head_dim = context_.config.head_dim;
  view.block_bytes = layer_block_bytes();
  view.num_blocks = num_blocks;
  for (int64_t i = 0; i < range_.size(); ++i) {
    OMNIBUS_ASSIGN_OR_RETURN(const Buffer buffer,
                             allocator.allocate(static_cast<size_t>(view.block_bytes * num_blocks)));
    view.data = buffer.data;
    caches.layers.push_back(view);
  }
  return caches;
}

Status LlamaFamilyModel::forward(const ForwardBatch& batch, const KVCaches& caches,
                                 IntermediateTensors* between) {
  const OpContext& ops = context_.ops;
  const size_t bytes =
      static_cast<size_t>(batch.rows()) * static_cast<size_t>(context_.config.hidden_size) * sizeof(float);
  if (is_first()) {
    OMNIBUS_RETURN_IF_ERROR(embedding_.forward(ops, batch, scratch_.residual));
  } else {
    std::memcpy(scratch_.residual, between->residual, bytes);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    OMNIBUS_RETURN_IF_ERROR(layers_[i].attention.forward(ops, batch, caches.layers[i]));
    OMNIBUS_RETURN_IF_ERROR(layers_[i].mlp.forward(ops, batch));
  }
  if (!is_last()) {
    std::memcpy(between->residual, scratch_.residual, bytes);
    between->rows = batch.rows();
    between->width = context_.config.hidden_size;
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Model> make_llama_family(const ModelContext& context) {
  return std::make_unique<LlamaFamilyModel>(context);
}

}  // namespace omnibus
