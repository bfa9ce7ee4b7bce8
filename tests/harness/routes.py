"""The routes of a server, as the security tests and the fuzzer walk them: each with its scope and a valid request.
A route that the server documents (/openapi.json) and this list lacks makes test_s08 fail: whoever adds one says here
who may call it."""

from dataclasses import dataclass, field

import requests

PUBLIC, INFERENCE, METRICS = "public", "inference", "metrics"

HELLO = [{"role": "user", "content": "hello"}]


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    scope: str
    body: dict = field(default=None, hash=False)  # a valid one, of a POST
    fields: tuple = ()  # names of fields that its body knows

    @property
    def pattern(self):
        """As metrics and the documentation name it."""
        for tail in ("/v1/models/", "/api/blobs/", "/slots/"):
            if self.path.startswith(tail):
                return tail + "{id}"
        return self.path


_SAMPLING = (
    "model", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty",
    "logit_bias", "seed", "n", "stop", "stop_token_ids", "allowed_token_ids", "min_tokens", "max_tokens", "ignore_eos",
    "include_stop_str_in_output", "skip_special_tokens", "spaces_between_special_tokens", "return_token_ids",
    "return_tokens_as_token_ids", "add_special_tokens", "cache_salt", "stream", "stream_options", "logprobs", "echo",
    "priority", "use_beam_search", "length_penalty", "prompt_logprobs", "truncate_prompt_tokens", "truncation_side",
    "response_format", "structured_outputs", "guided_json", "grammar", "bad_words", "logprob_token_ids", "vllm_xargs",
    "user", "request_id",
)
_CHAT = _SAMPLING + (
    "messages", "top_logprobs", "max_completion_tokens", "tools", "tool_choice", "functions", "function_call",
    "parallel_tool_calls", "reasoning_effort", "chat_template", "chat_template_kwargs", "add_generation_prompt",
    "continue_final_message", "documents", "modalities", "audio", "prediction", "web_search_options", "metadata", "store",
    "service_tier", "verbosity", "safety_identifier", "prompt_cache_key",
)
_COMPLETION = _SAMPLING + ("prompt", "suffix", "best_of")
_OLLAMA = ("model", "prompt", "suffix", "system", "template", "raw", "stream", "format", "options", "keep_alive", "think",
           "messages", "tools", "images", "context", "logprobs", "top_logprobs", "truncate")
_LLAMA_CPP = _COMPLETION + ("n_predict", "n_probs", "n_keep", "id_slot", "cache_prompt", "samplers", "input_prefix",
                            "input_suffix", "input_extra", "mirostat", "typical_p", "repeat_penalty", "return_tokens",
                            "post_sampling_probs", "t_max_predict_ms", "n_indent", "min_keep")

ROUTES = [
    Route("GET", "/", PUBLIC),
    Route("GET", "/health", PUBLIC),
    Route("GET", "/v1/health", PUBLIC),
    Route("GET", "/livez", PUBLIC),
    Route("GET", "/readyz", PUBLIC),
    Route("GET", "/ping", PUBLIC),
    Route("POST", "/ping", PUBLIC, {}),
    Route("GET", "/metrics", METRICS),
    Route("GET", "/version", INFERENCE),
    Route("GET", "/v1/models", INFERENCE),
    Route("GET", "/v1/models/replay", INFERENCE),
    Route("POST", "/v1/chat/completions", INFERENCE, {"messages": HELLO, "max_tokens": 3}, _CHAT),
    Route("POST", "/v1/completions", INFERENCE, {"prompt": "hello", "max_tokens": 3}, _COMPLETION),
    Route("POST", "/tokenize", INFERENCE, {"prompt": "hello"},
          ("prompt", "messages", "add_special_tokens", "return_token_strs", "add_generation_prompt", "chat_template",
           "chat_template_kwargs", "tools", "continue_final_message", "model")),
    Route("POST", "/detokenize", INFERENCE, {"tokens": [104, 105]}, ("tokens", "model")),
    Route("POST", "/v1/chat/completions/render", INFERENCE, {"messages": HELLO, "max_tokens": 3}, _CHAT),
    Route("POST", "/v1/completions/render", INFERENCE, {"prompt": "hello", "max_tokens": 3}, _COMPLETION),
    Route("GET", "/openapi.json", INFERENCE),
    Route("GET", "/docs", INFERENCE),
    # Ollama's
    Route("GET", "/api/version", INFERENCE),
    Route("GET", "/api/tags", INFERENCE),
    Route("GET", "/api/ps", INFERENCE),
    Route("POST", "/api/show", INFERENCE, {"model": "replay"}, ("model", "name", "verbose")),
    Route("POST", "/api/generate", INFERENCE, {"model": "replay", "prompt": "hello", "options": {"num_predict": 3}}, _OLLAMA),
    Route("POST", "/api/chat", INFERENCE, {"model": "replay", "messages": HELLO, "options": {"num_predict": 3}}, _OLLAMA),
    Route("POST", "/api/copy", INFERENCE, {"source": "replay", "destination": "other"}, ("source", "destination")),
    Route("DELETE", "/api/delete", INFERENCE, {"model": "other"}, ("model", "name")),
    Route("HEAD", "/api/blobs/sha256:" + "a" * 64, INFERENCE),
    Route("POST", "/api/blobs/sha256:" + "a" * 64, INFERENCE, {}),
    *[Route("POST", "/api/" + name, INFERENCE, {"model": "replay"})
      for name in ("embed", "embeddings", "create", "pull", "push")],
    # llama.cpp's
    Route("POST", "/completion", INFERENCE, {"prompt": "hello", "n_predict": 3}, _LLAMA_CPP),
    Route("POST", "/completions", INFERENCE, {"prompt": "hello", "n_predict": 3}, _LLAMA_CPP),
    Route("POST", "/infill", INFERENCE, {"input_prefix": "a", "input_suffix": "b", "n_predict": 3}, _LLAMA_CPP),
    Route("POST", "/chat/completions", INFERENCE, {"messages": HELLO, "max_tokens": 3}, _CHAT),
    *[Route("POST", path, INFERENCE, {"messages": HELLO}, _CHAT)
      for path in ("/chat/completions/input_tokens", "/v1/chat/completions/input_tokens")],
    Route("POST", "/apply-template", INFERENCE, {"messages": HELLO}, ("messages", "chat_template_kwargs", "tools")),
    *[Route("GET", path, INFERENCE) for path in ("/props", "/slots", "/models", "/lora-adapters")],
    *[Route("POST", path, INFERENCE, {}) for path in ("/props", "/slots/0", "/lora-adapters", "/embedding", "/embeddings",
                                                      "/rerank", "/reranking", "/v1/rerank", "/v1/reranking")],
]

# On the admin listener, beside the probes and /metrics; nowhere else.
ADMIN_ROUTES = [("GET", "/status"), *[("POST", path) for path in ("/drain", "/reload", "/reset_prefix_cache", "/log_level")]]

# Whose errors have llama.cpp's form.
LLAMA_CPP_ERRORS = ("/completion", "/completions", "/infill", "/props", "/apply-template", "/slots", "/slots/{id}")


def documented(server, **kwargs):
    """{(method, pattern)} of /openapi.json."""
    answer = requests.get(server.url + "/openapi.json", timeout=10, **kwargs)
    assert answer.status_code == 200, answer.text
    return {
        (method.upper(), path)
        for path, methods in answer.json()["paths"].items()
        for method in methods
        if method in ("get", "post", "put", "delete", "patch")
    }


def served(server, **kwargs):
    """ROUTES that this server has; all of them, or it is not whole."""
    return [r for r in ROUTES if requests.request("OPTIONS", server.url + r.path, timeout=10, **kwargs).status_code == 204]
