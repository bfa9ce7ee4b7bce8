// pull, list, show: the models on disk.
#include <fmt/format.h>

#include "omnibus/base/config/option_set.h"
#include "omnibus/store/model_files/gguf.h"
#include "omnibus/store/model_files/model_config.h"
#include "omnibus/store/model_files/tokenizer_spec.h"
#include "omnibus/store/model_store/model_store.h"

#include "commands.h"
#include "progress_bar.h"
#include "text_layout.h"

namespace omnibus {
namespace {

const char* phase_title(PullProgress::Phase phase) {
  switch (phase) {
    case PullProgress::Phase::kDownload:
      return "downloading";
    case PullProgress::Phase::kUnpack:
      return "unpacking";
    default:
      return "checking";
  }
}

StatusOr<ModelStore> open_store() {
  OMNIBUS_ASSIGN_OR_RETURN(std::string home, ModelStore::default_home(process_environment()));
  return ModelStore(std::move(home));
}

Status pull(const PullConfig& config) {
  OMNIBUS_ASSIGN_OR_RETURN(const ModelStore store, open_store());
  ProgressBar bar(phase_title(PullProgress::Phase::kDownload));
  PullOptions options;
  options.on_progress = [&bar](const PullProgress& progress) {
    bar.set_title(phase_title(progress.phase));
    bar.update(static_cast<int64_t>(progress.done_bytes), static_cast<int64_t>(progress.total_bytes));
  };
  OMNIBUS_ASSIGN_OR_RETURN(const StoredModel model, store.pull(config.model, options));
  fmt::print("{} is there: {}, {}\n", model.name, mebibytes(static_cast<int64_t>(model.bytes)),
             model.license);
  return {};
}

Status list() {
  OMNIBUS_ASSIGN_OR_RETURN(const ModelStore store, open_store());
  OMNIBUS_ASSIGN_OR_RETURN(const std::vector<StoredModel> models, store.list());
  if (models.empty()) {
    fmt::print("No models in {}. To fetch one: omnibus pull {}\n", store.home(), kDefaultModel);
    return {};
  }
  std::vector<std::vector<std::string>> rows = {{"NAME", "ALIASES", "SIZE", "DIGEST", "LICENSE"}};
  for (const StoredModel& model : models) {
    rows.push_back({model.name, fmt::format("{}", fmt::join(model.aliases, " ")),
                    mebibytes(static_cast<int64_t>(model.bytes)), model.digest.substr(0, 12), model.license});
  }
  fmt::print("{}", format_table(rows));
  return {};
}

std::string token_name(const TokenizerSpec& spec, TokenId id) {
  if (id == kNoToken) return "(none)";
  return fmt::format("{} ({})", spec.tokens[static_cast<size_t>(id)], id);
}

Status show(const ShowConfig& config) {
  OMNIBUS_ASSIGN_OR_RETURN(const ModelStore store, open_store());
  OMNIBUS_ASSIGN_OR_RETURN(const ResolvedModel resolved, store.resolve(config.model));
  OMNIBUS_ASSIGN_OR_RETURN(const std::shared_ptr<const GgufFile> file, GgufFile::open(resolved.path));
  OMNIBUS_ASSIGN_OR_RETURN(const ModelConfig model, read_model_config(*file));
  OMNIBUS_ASSIGN_OR_RETURN(const TokenizerSpec spec, read_tokenizer_spec(*file));
  const auto number = [](int64_t value) { return std::to_string(value); };
  fmt::print(
      "{}",
      format_table(
          {{"name", resolved.name},
           {"file", resolved.path},
           {"digest", resolved.digest.empty() ? "(not in the store)" : "sha256:" + resolved.digest},
           {"size", mebibytes(model.file_bytes)},
           {"format", fmt::format("GGUF version {}, {} tensors", file->version(), file->tensors().size())},
           {"title", model.name},
           {"architecture", model.architecture},
           {"parameters", short_count(model.parameters)},
           {"quantization", model.quantization},
           {"context", number(model.context_length) + " tokens"},
           {"layers", number(model.num_layers)},
           {"hidden size", number(model.hidden_size)},
           {"MLP size", number(model.intermediate_size)},
           {"heads", fmt::format("{} (KV {}), {} wide", model.num_heads, model.num_kv_heads, model.head_dim)},
           {"rope base", fmt::format("{}", model.rope.freq_base)},
           {"output head", model.tied_head ? "tied to the embedding" : "of its own"},
           {"vocabulary", fmt::format("{} tokens, {} ({})", model.vocab_size, spec.model, spec.pre)},
           {"BOS", token_name(spec, spec.bos)},
           {"EOS", token_name(spec, spec.eos)},
           {"chat template", spec.chat_template.empty()
                                 ? "(none: ChatML is used)"
                                 : number(static_cast<int64_t>(spec.chat_template.size())) + " bytes"}}));
  return {};
}

int finish(const Status& status) { return status.ok() ? kExitOk : report_failure(status); }

}  // namespace

int pull_command(const PullConfig& config) { return finish(pull(config)); }
int list_command(const ListConfig& /*config*/) { return finish(list()); }
int show_command(const ShowConfig& config) { return finish(show(config)); }

}  // namespace omnibus
