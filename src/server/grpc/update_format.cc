#include "update_format.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <omnibus/v1/inference.pb.h>

#include "omnibus/base/common/clock.h"

#include "rpc_error.h"
#include "rpc_frame.h"

namespace omnibus {
namespace {

// Clients take messages of 4 MiB unless told otherwise: a long list of logprobs is dealt out over several.
constexpr size_t kMaxLogprobBytes = 1 << 20;

v1::FinishReason finish_reason_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
    default:  // becomes the status of the call
      return v1::FINISH_REASON_UNSPECIFIED;
  }
}

void set_token(v1::TokenLogprob& out, const TokenLogprob& token, const std::string& bytes) {
  out.set_id(token.id);
  out.set_logprob(token.logprob);
  out.set_token(bytes);
}

v1::PositionLogprobs position_of(const PositionLogprobs& position, size_t most_alternatives) {
  v1::PositionLogprobs out;
  if (position.sampled.id == kNoToken) return out;
  set_token(*out.mutable_token(), position.sampled, position.token_bytes);
  out.set_rank(position.rank);
  for (size_t i = 0; i < std::min(position.top.size(), most_alternatives); ++i) {
    set_token(*out.add_top(), position.top[i], position.top_bytes[i]);
  }
  return out;
}

void set_timings(v1::Timings& out, const RequestTimeline& timeline) {
  const auto milliseconds = [](int64_t ns) { return static_cast<double>(ns) / 1e6; };
  out.set_queue_ms(milliseconds(timeline.queue_ns()));
  out.set_prefill_ms(milliseconds(timeline.prefill_ns()));
  out.set_decode_ms(milliseconds(timeline.decode_ns()));
  out.set_e2e_ms(milliseconds(timeline.e2e_ns()));
  out.set_preemptions(timeline.preemptions);
}

class UpdateFormat final : public AnswerFormat {
 public:
  explicit UpdateFormat(UpdateFormatOptions options) : options_(std::move(options)) {}

  HttpResponse stream_head() override {
    HttpResponse head;
    head.content_type.clear();
    return head;
  }
  std::string stream_update(int32_t index, const RequestOutput& output, const UsageTotals& usage) override;
  std::string stream_end(const UsageTotals& usage) override;
  std::string stream_error(const Status& error) override;
  HttpResponse whole(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) override;
  HttpResponse error(const Status& error) override { return render_rpc_error(error, {}); }

 private:
  void append(std::string& out, v1::GenerationUpdate& update);
  // Appends `position` to `list` of `update`, which goes out first when it is full.
  void add_position(std::string& out, v1::GenerationUpdate& update, size_t& bytes,
                    v1::PositionLogprobs position, bool of_prompt);

  const UpdateFormatOptions options_;
  bool begun_ = false;
};

void UpdateFormat::append(std::string& out, v1::GenerationUpdate& update) {
  if (!std::exchange(begun_, true)) {
    update.set_id(random_id(options_.id_prefix.c_str()));
    update.set_model(options_.model);
    update.set_created(wall_clock_seconds());
    update.mutable_prompt_token_ids()->Add(options_.prompt_token_ids.begin(),
                                           options_.prompt_token_ids.end());
  }
  append_frame(out, RpcFrameKind::kMessage, update.SerializeAsString());
}

void UpdateFormat::add_position(std::string& out, v1::GenerationUpdate& update, size_t& bytes,
                                v1::PositionLogprobs position, bool of_prompt) {
  const size_t size = position.ByteSizeLong();
  if (bytes > 0 && bytes + size > kMaxLogprobBytes) {
    append(out, update);
    const int64_t index = update.choice().index();
    update.Clear();
    update.mutable_choice()->set_index(index);
    bytes = 0;
  }
  bytes += size;
  v1::ChoiceUpdate& choice = *update.mutable_choice();
  *(of_prompt ? choice.add_prompt_logprobs() : choice.add_logprobs()) = std::move(position);
}

std::string UpdateFormat::stream_update(int32_t index, const RequestOutput& output,
                                        const UsageTotals& /*usage*/) {
  std::string out;
  v1::GenerationUpdate update;
  v1::ChoiceUpdate* choice = update.mutable_choice();
  choice->set_index(index);
  size_t bytes = 0;
  for (const PositionLogprobs& position : output.prompt_logprobs) {
    const auto most = static_cast<size_t>(options_.prompt_logprobs);
    add_position(out, update, bytes, position_of(position, most), true);
  }
  if (options_.logprobs) {
    for (const PositionLogprobs& position : output.logprobs) {
      add_position(out, update, bytes, position_of(position, position.top.size()), false);
    }
  }
  choice = update.mutable_choice();
  choice->set_text(output.text);
  if (options_.include_reasoning) choice->set_reasoning(output.reasoning);
  choice->mutable_token_ids()->Add(output.token_ids.begin(), output.token_ids.end());
  if (output.finish_reason) choice->set_finish_reason(finish_reason_of(*output.finish_reason));
  if (const auto* text = std::get_if<std::string>(&output.stop_cause)) choice->set_stop_string(*text);
  if (const auto* id = std::get_if<TokenId>(&output.stop_cause)) choice->set_stop_token_id(*id);
  append(out, update);
  return out;
}

std::string UpdateFormat::stream_end(const UsageTotals& totals) {
  v1::GenerationUpdate update;
  v1::Usage& usage = *update.mutable_usage();
  usage.set_prompt_tokens(totals.prompt_tokens);
  usage.set_completion_tokens(totals.completion_tokens);
  usage.set_cached_tokens(totals.cached_tokens);
  usage.set_reasoning_tokens(totals.reasoning_tokens);
  if (options_.include_timings) set_timings(*usage.mutable_timings(), totals.timeline);
  std::string out;
  append(out, update);
  return out;
}

std::string UpdateFormat::stream_error(const Status& error) {
  std::string out;
  append_frame(out, RpcFrameKind::kError, rpc_status_bytes(error));
  return out;
}

HttpResponse UpdateFormat::whole(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) {
  HttpResponse response = stream_head();
  for (size_t i = 0; i < choices.size(); ++i) {
    response.body += stream_update(static_cast<int32_t>(i), choices[i], usage);
  }
  response.body += stream_end(usage);
  return response;
}

}  // namespace

std::unique_ptr<AnswerFormat> make_update_format(UpdateFormatOptions options) {
  return std::make_unique<UpdateFormat>(std::move(options));
}

}  // namespace omnibus
