#include "generation.h"

#include <utility>

#include "omnibus/base/common/log.h"
#include "omnibus/contract/request/merge_timeline.h"

#include "best_choices.h"

namespace omnibus {
namespace {

// The engine knows a prompt, not what the client called it.
Status name_param(const Status& error, const std::string& param) {
  ErrorDetail detail = error_detail(error);
  if (detail.http != 400 || (!detail.param.empty() && detail.param != "prompt")) return error;
  detail.param = param;
  return with_detail(error, detail);
}

void name_group(std::vector<GenerateRequest>& requests) {
  int64_t sequences = 0;
  int64_t prompt_tokens = 0;
  for (const GenerateRequest& request : requests) {
    sequences += request.n;
    prompt_tokens += static_cast<int64_t>(request.prompt_token_ids.size());
  }
  for (GenerateRequest& request : requests) {
    request.group_sequences = sequences;
    request.group_prompt_tokens = prompt_tokens;
  }
}

}  // namespace

Generation::Generation(AsyncEngine* engine, ReplyPtr reply, std::unique_ptr<AnswerFormat> format,
                       GenerationOptions options, size_t prompts)
    : engine_(engine),
      reply_(std::move(reply)),
      format_(std::move(format)),
      options_(std::move(options)),
      choices_(prompts * static_cast<size_t>(options_.choices_per_prompt)),
      held_(choices_.size()),
      usage_(choices_.size()),
      open_(choices_.size()) {}

void Generation::start(AsyncEngine* engine, ReplyPtr reply, std::unique_ptr<AnswerFormat> format,
                       GenerationOptions options, std::vector<GenerateRequest> requests) {
  auto self = std::make_shared<Generation>(engine, std::move(reply), std::move(format), std::move(options),
                                           requests.size());
  self->reply_->on_gone([weak = std::weak_ptr<Generation>(self)] {
    if (auto generation = weak.lock()) generation->client_gone();
  });
  self->submit_all(std::move(requests));
}

void Generation::submit_all(std::vector<GenerateRequest> requests) {
  if (requests.size() > 1) name_group(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    auto submitted = engine_->submit(
        std::move(requests[i]),
        [self = shared_from_this(), i](RequestOutput output) { self->on_output(i, std::move(output)); });
    bool closed = false;
    {
      std::lock_guard lock(mutex_);
      if (submitted.ok()) ids_.push_back(*submitted);
      if (!submitted.ok() && !closed_) fail(name_param(submitted.status(), options_.param));
      closed = closed_;
    }
    if (closed) {
      cancel_all();
      return;
    }
  }
}

void Generation::on_output(size_t prompt, RequestOutput output) {
  bool cancel = false;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    const auto choice = static_cast<int32_t>(prompt) * options_.choices_per_prompt + output.index;
    if (!output.status.ok()) {
      fail(name_param(output.status, options_.param));
      cancel = true;
    } else {
      cancel = !deliver(choice, std::move(output));
    }
  }
  if (cancel) cancel_all();
}

// The functions below are called with the lock held.

// False: the answer could not be made, and the client knows.
bool Generation::deliver(int32_t choice, RequestOutput output) {
  if (options_.prompt_only) {
    output.text.clear();
    output.token_ids.clear();
    output.logprobs.clear();
    output.usage.completion_tokens = 0;
    output.stop_cause = {};
    if (output.finish_reason) output.finish_reason = FinishReason::kLength;
  }
  add_usage(choice, output.usage);
  if (output.finish_reason) {
    --open_;
    merge_timeline(totals_.timeline, output.timeline);
  }
  try {
    if (options_.stream) {
      stream(choice, std::move(output));
    } else {
      gather(choice, std::move(output));
    }
    return true;
  } catch (const std::exception& error) {  // memory, or a bug of ours in a format
    log_error("cannot write an answer: {}", error.what());
    fail(absl::InternalError("The server failed on this request"));
    return false;
  }
}

void Generation::add_usage(int32_t choice, const RequestUsage& usage) {
  RequestUsage& known = usage_[static_cast<size_t>(choice)];
  totals_.completion_tokens += usage.completion_tokens - known.completion_tokens;
  totals_.reasoning_tokens += usage.reasoning_tokens - known.reasoning_tokens;
  if (choice % options_.choices_per_prompt == 0) {
    totals_.prompt_tokens += usage.prompt_tokens - known.prompt_tokens;
    totals_.cached_tokens += usage.cached_tokens - known.cached_tokens;
  }
  known = usage;
}

void Generation::stream(int32_t choice, RequestOutput output) {
  const auto slot = static_cast<size_t>(choice);
  if (held_[slot]) {
    merge_output(choices_[slot], std::move(output));
    output = std::exchange(choices_[slot], {});
    held_[slot] = false;
  }
  // A slow reader gets fewer and larger events; nothing is lost and nobody waits.
  if (!output.finish_reason && reply_->backlog() > kOutboxBytes) {
    choices_[slot] = std::move(output);
    held_[slot] = true;
    return;
  }
  if (!begun_) {
    begun_ = true;
    HttpResponse head = format_->stream_head();
    head.headers.insert(head.headers.end(), options_.headers.begin(), options_.headers.end());
    reply_->begin(std::move(head));
  }
  std::string events = format_->stream_update(choice, output, totals_);
  if (open_ == 0) events += format_->stream_end(totals_);
  if (!events.empty()) reply_->write(std::move(events));
  if (open_ == 0) close();
}

void Generation::gather(int32_t choice, RequestOutput output) {
  merge_output(choices_[static_cast<size_t>(choice)], std::move(output));
  if (open_ > 0) return;
  if (options_.choices_kept > 0) {
    choices_ = best_choices(std::move(choices_), options_.choices_per_prompt, options_.choices_kept);
  }
  HttpResponse response = format_->whole(choices_, totals_);
  response.headers.insert(response.headers.end(), options_.headers.begin(), options_.headers.end());
  reply_->send(std::move(response));
  closed_ = true;
}

void Generation::fail(const Status& error) {
  if (!begun_) {
    reply_->send(format_->error(error));
    closed_ = true;
    return;
  }
  reply_->write(format_->stream_error(error));
  close();
}

void Generation::close() {
  reply_->end();
  closed_ = true;
}

void Generation::client_gone() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  cancel_all();
}

void Generation::cancel_all() {
  std::vector<RequestId> ids;
  {
    std::lock_guard lock(mutex_);
    ids = ids_;
  }
  for (const RequestId id : ids) engine_->cancel(id);
}

}  // namespace omnibus
