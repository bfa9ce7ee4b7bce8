#include "rpc_call.h"

#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/rpc/status.pb.h>
#include <grpc/support/time.h>

#include "omnibus/base/common/log.h"
#include "omnibus/base/common/trace_context.h"

#include "http/deadline_header.h"
#include "http/request_reader.h"
#include "rpc_error.h"
#include "rpc_frame.h"

namespace omnibus {
namespace {

constexpr uint64_t kSlowestBodyBytesPerSecond = 64'000;
constexpr size_t kMaxQuotedMethod = 128;

std::string_view view(grpc::string_ref text) { return {text.data(), text.size()}; }

// Metadata that are bytes rather than text mean nothing here.
std::vector<std::pair<std::string, std::string>> headers_of(
    const grpc::GenericCallbackServerContext& context) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (const auto& [name, value] : context.client_metadata()) {
    if (!view(name).ends_with("-bin")) headers.emplace_back(view(name), view(value));
  }
  return headers;
}

// On the clock of `now`. A wait that is as good as endless is cut to the longest.
std::optional<int64_t> call_deadline(const grpc::GenericCallbackServerContext& context, MonotonicNs now) {
  const gpr_timespec deadline = context.raw_deadline();
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return std::nullopt;
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec >= kLongestWait.count()) return now + std::chrono::nanoseconds(kLongestWait).count();
  if (left.tv_sec < 0) return now;
  return now + left.tv_sec * 1'000'000'000 + left.tv_nsec;
}

std::string bytes_of(grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  buffer.Clear();
  return bytes;
}

const RpcMethod* find_method(const std::unordered_map<std::string, RpcMethod>& methods,
                             const std::string& path) {
  const auto found = methods.find(path);
  return found == methods.end() ? nullptr : &found->second;
}

Status no_method(const std::string& path) {
  const std::string asked = path.size() <= kMaxQuotedMethod ? path : path.substr(0, kMaxQuotedMethod) + "...";
  return absl::UnimplementedError("There is no method " + asked);
}

}  // namespace

RpcCall* RpcCall::open(std::shared_ptr<RpcServerState> state, grpc::GenericCallbackServerContext* context) {
  std::shared_ptr<const GrpcSite> site;
  {
    std::lock_guard lock(state->mutex);
    site = state->site;
  }
  const auto call = std::make_shared<RpcCall>(std::move(state), std::move(site), context);
  call->self_ = call;
  const Status admitted = call->admit(call->take_place());
  if (admitted.ok()) {
    call->read_request();
  } else {
    call->finish(render_rpc_error(admitted, {}));
  }
  return call.get();
}

RpcCall::RpcCall(std::shared_ptr<RpcServerState> state, std::shared_ptr<const GrpcSite> site,
                 grpc::GenericCallbackServerContext* context)
    : state_(std::move(state)), site_(std::move(site)), context_(context) {
  request_.method = "POST";
  request_.path = context_->method();
  request_.headers = headers_of(*context_);
  request_.request_id = request_id_for(request_.header("x-request-id"));
  deadline_ns_ = call_deadline(*context_, state_->engine_clock.now_ns());
  request_.deadline_ns = deadline_ns_;
  if (request_.count_header("traceparent") == 1) {
    request_.trace_id = trace_id_of(request_.header("traceparent"));
  }
  method_ = find_method(state_->own_methods, request_.path);
  if (method_ == nullptr && site_->methods) method_ = find_method(site_->methods->methods, request_.path);
  context_->AddInitialMetadata("x-request-id", request_.request_id);
}

bool RpcCall::take_place() {
  std::lock_guard lock(state_->mutex);
  const size_t taken = is_public() ? state_->public_calls : state_->calls.size() - state_->public_calls;
  state_->calls.emplace(this, self_);
  if (is_public()) ++state_->public_calls;
  return taken < static_cast<size_t>(state_->config.max_calls);
}

// What can be decided without the request's message.
Status RpcCall::admit(bool room) {
  if (!room) return rpc_overload("There are too many calls at once");
  // A method that does not exist is nobody's business without a key either.
  const Scope scope = method_ != nullptr ? method_->scope : Scope::kInference;
  OMNIBUS_ASSIGN_OR_RETURN(request_.tenant, site_->auth->check(scope, request_));
  if (method_ == nullptr) return site_->elsewhere.ok() ? no_method(request_.path) : site_->elsewhere;
  if (scope != Scope::kPublic && state_->draining.load()) {
    return rpc_unavailable("The server is shutting down");
  }
  return {};
}

void RpcCall::read_request() {
  {
    std::lock_guard lock(mutex_);
    reading_ = true;
    if (!requested_) {  // between the requests of one call a client may take its time
      wait_limit_ = state_->config.body_timeout;
      // Nothing tells how much of a message is there. Public ones are short.
      if (!is_public())
        wait_limit_ += std::chrono::seconds(state_->config.max_message_bytes / kSlowestBodyBytesPerSecond);
      waits_since_ = state_->clock.now();
    }
  }
  StartRead(&read_buffer_);
}

void RpcCall::OnReadDone(bool ok) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    reading_ = false;
    waits_since_.reset();
    first = !std::exchange(requested_, requested_ || ok);
    awaited_ = ok;
    if (!ok && !first) ended_ = true;  // the client has no more requests
  }
  if (ok) {
    handle(bytes_of(read_buffer_));
  } else if (first) {
    finish(render_rpc_error(absl::InvalidArgumentError("The call brought no request"), {}));
  } else {
    pump();
  }
}

void RpcCall::handle(std::string body) {
  const auto reply = std::make_shared<RpcReply>(self_);
  const auto lease = std::make_shared<BodyLease>(state_->bodies);
  if (!lease->grow_to(body.size())) {
    reply->send(render_rpc_error(rpc_unavailable("There are too many requests at once"), {}));
    return;
  }
  HttpRequest request = method_->many_requests ? request_ : std::move(request_);
  request.body = std::move(body);
  request.body_lease = lease;
  try {
    method_->handler(std::move(request), reply);
  } catch (const std::exception& error) {
    log_error("handler of {}: {}", method_->path, error.what());
    reply->send(render_rpc_error(absl::InternalError("The server failed on this request"), {}));
  }
}

void RpcCall::finish(const HttpResponse& error) {
  {
    std::lock_guard lock(mutex_);
    if (ended_ || gone_) return;
    add_headers(error);
    set_outcome(error.body);
    ended_ = true;
    awaited_ = false;
  }
  pump();
}

void RpcCall::send(HttpResponse response) {
  {
    std::lock_guard lock(mutex_);
    if (!awaited_ || begun_ || ended_ || gone_) return;
    awaited_ = false;
    add_headers(response);
    if (response.status != 200) {
      set_outcome(response.body);
      ended_ = true;
    } else {
      take_frames(response.body);
      read_next_ = method_->many_requests;
      ended_ = !read_next_;
    }
  }
  pump();
}

void RpcCall::begin(HttpResponse head) {
  {
    std::lock_guard lock(mutex_);
    if (!awaited_ || begun_ || ended_ || gone_) return;
    begun_ = true;
    add_headers(head);
    take_frames(head.body);
  }
  pump();
}

void RpcCall::write(std::string frames) {
  {
    std::lock_guard lock(mutex_);
    if (!begun_ || ended_ || gone_) return;
    take_frames(frames);
  }
  pump();
}

void RpcCall::end() {
  {
    std::lock_guard lock(mutex_);
    if (!begun_ || ended_) return;
    ended_ = true;
    awaited_ = false;
  }
  pump();
}

// The maker of the answer is gone without having completed it.
void RpcCall::abandon() {
  {
    std::lock_guard lock(mutex_);
    if (!awaited_) return;
    awaited_ = false;
    if (ended_ || gone_) return;
    set_outcome(rpc_status_bytes(absl::InternalError("The server gave no answer")));
    ended_ = true;
  }
  pump();
}

size_t RpcCall::backlog() const {
  std::lock_guard lock(mutex_);
  return queued_bytes_ + in_flight_bytes_;
}

void RpcCall::on_gone(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!gone_) {
      on_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

// Before the first message: metadata come first on the wire. A retry's time goes behind.
void RpcCall::add_headers(const HttpResponse& response) {
  for (const auto& [name, value] : response.headers) {
    if (name == "grpc-retry-pushback-ms") {
      context_->AddTrailingMetadata(name, value);
    } else if (queue_.empty() && !writing_) {
      context_->AddInitialMetadata(name, value);
    }
  }
}

void RpcCall::take_frames(std::string_view frames) {
  while (const auto frame = take_frame(frames)) {
    if (frame->kind == RpcFrameKind::kError) {
      set_outcome(frame->payload);
      continue;
    }
    queue_.emplace_back(frame->payload);
    queued_bytes_ += frame->payload.size();
  }
}

void RpcCall::set_outcome(std::string_view status_bytes) {
  google::rpc::Status status;
  const bool parsed = status.ParseFromArray(status_bytes.data(), static_cast<int>(status_bytes.size()));
  const auto code = parsed ? static_cast<grpc::StatusCode>(status.code()) : grpc::StatusCode::INTERNAL;
  outcome_ = grpc::Status(code, status.message(), std::string(status_bytes));
}

void RpcCall::pump() {
  enum class Step { kNone, kRead, kWrite, kWriteLast, kFinish } step = Step::kNone;
  {
    std::lock_guard lock(mutex_);
    if (writing_ || finishing_ || (reading_ && !ended_ && !gone_)) return;
    if (gone_) {
      outcome_ = grpc::Status(grpc::StatusCode::CANCELLED, "The client left");
      step = Step::kFinish;
    } else if (!queue_.empty()) {
      const grpc::Slice slice(queue_.front());
      write_buffer_ = grpc::ByteBuffer(&slice, 1);
      in_flight_bytes_ = queue_.front().size();
      queued_bytes_ -= in_flight_bytes_;
      queue_.pop_front();
      step = ended_ && queue_.empty() ? Step::kWriteLast : Step::kWrite;
    } else if (ended_) {
      step = Step::kFinish;
    } else if (std::exchange(read_next_, false)) {
      step = Step::kRead;
    }
    writing_ = step == Step::kWrite || step == Step::kWriteLast;
    finishing_ = step == Step::kFinish || step == Step::kWriteLast;
    if (writing_ || finishing_) {
      waits_since_ = state_->clock.now();
      wait_limit_ = state_->config.stall_timeout;
    }
  }
  // Outside the lock: what gRPC calls back for one operation may come before it returns. No buffer hints:
  // gRPC 1.51 never completes a first message that carries one, and the call hangs.
  switch (step) {
    case Step::kNone:
      return;
    case Step::kRead:
      return read_request();
    case Step::kWrite:
      return StartWrite(&write_buffer_);
    case Step::kWriteLast:
      return StartWriteAndFinish(&write_buffer_, grpc::WriteOptions(), outcome_);
    case Step::kFinish:
      return Finish(outcome_);
  }
}

void RpcCall::OnWriteDone(bool ok) {
  {
    std::lock_guard lock(mutex_);
    writing_ = false;
    waits_since_.reset();
    in_flight_bytes_ = 0;
  }
  if (!ok) return OnCancel();
  pump();
}

void RpcCall::OnCancel() {
  std::function<void()> callback;
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(gone_, true) && (!ended_ || !queue_.empty()))
      callback = std::exchange(on_gone_, nullptr);
    queue_.clear();
    queued_bytes_ = 0;
    awaited_ = false;
  }
  if (callback) callback();
  pump();
}

void RpcCall::OnDone() {
  {
    std::lock_guard lock(state_->mutex);
    state_->calls.erase(this);
    if (is_public()) --state_->public_calls;
  }
  {
    std::lock_guard lock(mutex_);
    done_ = true;
    on_gone_ = nullptr;
    const bool late = deadline_ns_ && state_->engine_clock.now_ns() >= *deadline_ns_;
    const auto code = !gone_ ? outcome_.error_code()
                      : late ? grpc::StatusCode::DEADLINE_EXCEEDED
                             : grpc::StatusCode::CANCELLED;
    state_->metrics.count(method_ != nullptr ? std::string_view(method_->path).substr(1) : "none", code);
  }
  method_ = nullptr;
  site_.reset();
  const auto last = std::move(self_);
}

void RpcCall::check_progress(AwakeClock::TimePoint now) {
  std::lock_guard lock(mutex_);
  if (done_ || !waits_since_ || now - *waits_since_ < wait_limit_) return;
  waits_since_.reset();
  // OnDone waits for the lock, so the context is still there.
  context_->TryCancel();
}

}  // namespace omnibus
