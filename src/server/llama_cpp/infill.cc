#include "infill.h"

#include <initializer_list>

#include <fmt/format.h>

#include "api/prompt.h"
#include "llama_cpp_error.h"
#include "native_prompt.h"

namespace omnibus {
namespace {

using Ids = std::vector<TokenId>;

struct FimTokens {
  TokenId prefix = kNoToken, suffix = kNoToken, middle = kNoToken;  // needed
  TokenId repository = kNoToken, separator = kNoToken;              // for input_extra
};

TokenId first_of(const Tokenizer& tokenizer, std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts) {
    if (const TokenId id = tokenizer.find_token(text); id != kNoToken) return id;
  }
  return kNoToken;
}

// Under the names that the families of code models gave them.
FimTokens find_fim_tokens(const Tokenizer& tokenizer) {
  FimTokens fim;
  fim.prefix = first_of(tokenizer, {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>",
                                    "▁<PRE>", "<|code_prefix|>", "[PREFIX]"});
  fim.suffix = first_of(tokenizer, {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>",
                                    "▁<SUF>", "<|code_suffix|>", "[SUFFIX]"});
  fim.middle = first_of(tokenizer, {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>",
                                    "▁<MID>", "<|code_middle|>", "[MIDDLE]"});
  fim.repository =
      first_of(tokenizer, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<reponame>", "<repo_name>"});
  fim.separator = first_of(tokenizer, {"<|file_sep|>", "<|file_separator|>"});
  return fim;
}

Status missing(const std::string& place) {
  return invalid_field(place, fmt::format("Missing required parameter: '{}'", place),
                       "missing_required_parameter");
}

Status check_extra(const Json& extra) {
  for (size_t i = 0; i < extra.size(); ++i) {
    const std::string place = fmt::format("input_extra[{}]", i);
    if (!extra[i].is_object()) {
      return invalid_field(place, fmt::format("Invalid '{}': must be an object", place), "invalid_type");
    }
    const auto text = extra[i].find("text");
    if (text == extra[i].end() || text->is_null()) return missing(place + ".text");
    for (const char* key : {"text", "filename"}) {
      const auto it = extra[i].find(key);
      if (it == extra[i].end() || it->is_null() || it->is_string()) continue;
      return invalid_field(
          place + "." + key,
          fmt::format("Invalid '{}.{}': must be a string, got {}", place, key, quote_value(*it)),
          "invalid_type");
    }
  }
  return {};
}

// Of an element that has passed check_extra.
std::string name_of(const Json& file) {
  const auto it = file.find("filename");
  return it == file.end() || it->is_null() ? "file" : it->get<std::string>();
}

Status check_inputs(const NativeFields& f) {
  if (f.input_prefix.is_null()) return missing("input_prefix");
  if (f.input_suffix.is_null()) return missing("input_suffix");
  if (!f.prompt.is_null() && !f.prompt.is_string()) {
    return invalid_field("prompt", "Invalid 'prompt': must be a string, got " + quote_value(f.prompt),
                         "invalid_type");
  }
  OMNIBUS_RETURN_IF_ERROR(check_extra(f.input_extra));
  size_t bytes = f.input_prefix.get_ref<const std::string&>().size() +
                 f.input_suffix.get_ref<const std::string&>().size();
  if (f.prompt.is_string()) bytes += f.prompt.get_ref<const std::string&>().size();
  for (const Json& file : f.input_extra) {
    bytes += name_of(file).size() + file["text"].get_ref<const std::string&>().size();
  }
  if (bytes <= kMaxPromptBytes) return {};
  return with_detail(
      absl::InvalidArgumentError(
          fmt::format("the text to be filled in is longer than {} MiB", kMaxPromptBytes >> 20)),
      ErrorDetail{.http = 413, .type = {}, .code = "string_above_max_length", .param = "input_prefix"});
}

class InfillWriter {
 public:
  explicit InfillWriter(const ApiContext& context) : context_(context) {}

  void token(TokenId id) { ids_.push_back(id); }
  // Inside a prompt a control token is spelled by the client's code only by chance: it stays text.
  void text(const std::string& text) {
    const Ids more = context_.tokenizer().encode(text, /*trusted=*/false, EncodeOptions{});
    ids_.insert(ids_.end(), more.begin(), more.end());
  }
  // Other files of the project; with a separator, the name of each and of the one at hand.
  void extra(const FimTokens& fim, const Json& files) {
    if (files.empty()) return;
    const bool separated = fim.separator != kNoToken;
    if (fim.repository != kNoToken && separated) {
      token(fim.repository);
      text("project\n");
    }
    for (const Json& file : files) {
      if (separated) token(fim.separator);
      text((separated ? "" : "\n\n--- ") + name_of(file) + "\n" + file["text"].get<std::string>());
    }
    if (!separated) return;
    token(fim.separator);
    text("filename\n");
  }
  Ids take() { return std::move(ids_); }

 private:
  const ApiContext& context_;
  Ids ids_;
};

}  // namespace

StatusOr<Ids> encode_infill(const ApiContext& context, const NativeFields& f) {
  OMNIBUS_RETURN_IF_ERROR(check_inputs(f));
  const FimTokens fim = find_fim_tokens(context.tokenizer());
  if (fim.prefix == kNoToken || fim.suffix == kNoToken || fim.middle == kNoToken) {
    return not_supported("Infill is not supported by this model: it has no tokens for filling in the middle");
  }
  const TokenizerSpec& spec = context.tokenizer().spec();
  InfillWriter out(context);
  if (spec.add_bos && spec.bos != kNoToken) out.token(spec.bos);
  out.extra(fim, f.input_extra);
  out.token(fim.prefix);
  out.text(f.input_prefix.get<std::string>() + (f.prompt.is_string() ? f.prompt.get<std::string>() : ""));
  out.token(fim.suffix);
  out.text(f.input_suffix.get<std::string>());
  out.token(fim.middle);
  return out.take();
}

}  // namespace omnibus
