"""Random requests of all kinds that repeat exactly, and answers in a form that can be compared: whole and streamed."""

import json
import random

from harness.sse import parse_events

LETTERS = range(97, 109)


class Mix:
    """What a model's vocabulary and texts allow. `ids`: tokens for bias, allowed and stop ids; `stops`: stop strings."""

    def __init__(self, ids=LETTERS, stops=("ab", "c", "lk", "da"), most_tokens=40, most_top=3):
        self.ids, self.stops, self.most_tokens, self.most_top = list(ids), list(stops), most_tokens, most_top

    def sampling(self, rng):
        """Fields that the doors of chat and completions share; with a seed, so that the answer is always the same."""
        ids = self.ids
        body = {"max_tokens": rng.randrange(1, self.most_tokens), "seed": rng.randrange(2**63),
                "temperature": rng.choice([0, 0.5, 1, 2]), "return_token_ids": True}
        options = {
            "top_k": lambda: rng.choice([-1, 1, 3]), "top_p": lambda: rng.choice([0.3, 0.9]), "min_p": lambda: 0.05,
            "logit_bias": lambda: {str(rng.choice(ids)): rng.choice([-100, 5, 100])},
            "allowed_token_ids": lambda: sorted(rng.sample(ids, len(ids) // 2)), "repetition_penalty": lambda: 1.3,
            "frequency_penalty": lambda: rng.choice([-2, 1.5]), "presence_penalty": lambda: rng.choice([-1, 2]),
            "stop": lambda: rng.sample(self.stops, 2), "stop_token_ids": lambda: [rng.choice(ids)],
            "min_tokens": lambda: rng.randrange(body["max_tokens"] + 1), "ignore_eos": lambda: True,
            "n": lambda: rng.randrange(1, 4), "cache_salt": lambda: rng.choice("xyz"),
            "include_stop_str_in_output": lambda: True,
        }
        for name in rng.sample(sorted(options), rng.randrange(6)):
            body[name] = options[name]()
        return body

    def request(self, rng, text):
        """(route, body) for a prompt, half of them chats."""
        body = self.sampling(rng)
        if rng.random() < 0.5:
            if rng.random() < 0.4:
                body |= {"logprobs": True, "top_logprobs": rng.randrange(self.most_top + 1)}
            return "/v1/chat/completions", body | {"messages": [{"role": "user", "content": text}]}
        if rng.random() < 0.4:
            body |= {"logprobs": rng.randrange(self.most_top + 1), "echo": rng.random() < 0.3}
        return "/v1/completions", body | {"prompt": text}


def essence(answer):
    """All of an answer that must repeat: not its id and time, nor how much of its prompt was cached."""
    usage = {key: value for key, value in (answer["usage"] or {}).items() if key != "prompt_tokens_details"}
    return [_without_nothing(choice) for choice in answer["choices"]], usage


def _without_nothing(value):
    """Without members that say nothing: a stream leaves them out where a whole answer has null or an empty list."""
    if isinstance(value, dict):
        kept = {key: _without_nothing(member) for key, member in value.items()}
        return {key: member for key, member in kept.items() if member not in (None, [], {})}
    return value


_REPLACED = ("role", "finish_reason", "stop_reason", "index")


def _merge(into, more):
    """Adds a piece of a choice to what came before: texts and lists grow, other values are replaced."""
    for key, value in more.items():
        if value is None:
            continue
        if key not in into:
            into[key] = {} if isinstance(value, dict) else value
            if isinstance(value, dict):
                _merge(into[key], value)
        elif key in _REPLACED:
            into[key] = value
        elif isinstance(value, dict):
            _merge(into[key], value)
        elif isinstance(value, (str, list)):
            into[key] = into[key] + value
        else:
            into[key] = value
    return into


def whole_of(events):
    """The answer that a stream of either door adds up to."""
    choices, usage, prompt_ids = {}, None, None
    for event in events:
        usage = event.get("usage") or usage
        prompt_ids = event.get("prompt_token_ids") or prompt_ids
        for choice in event["choices"]:
            piece = {("message" if key == "delta" else key): value for key, value in choice.items()}
            _merge(choices.setdefault(choice["index"], {}), piece)
    for choice in choices.values():
        if "message" in choice:
            choice["message"].setdefault("content", "")
    out = {"choices": [choices[i] for i in sorted(choices)], "usage": usage}
    return out | ({"prompt_token_ids": prompt_ids} if prompt_ids else {})


def ask_stream(server, route, body, **kwargs):
    """The answer of a streamed request, added up."""
    body = body | {"stream": True, "stream_options": {"include_usage": True}}
    answer = server.post(route, body, timeout=120, **kwargs)
    assert answer.status_code == 200, (body, answer.text)
    return whole_of(parse_events(answer.content.decode()))


def difference(wanted, got):
    """Where two essences differ, in short."""
    for i, (a, b) in enumerate(zip(wanted[0], got[0])):
        for key in sorted(set(a) | set(b)):
            if a.get(key) != b.get(key):
                return f"choice {i}, {key}: wanted {json.dumps(a.get(key))[:600]}, got {json.dumps(b.get(key))[:600]}"
    return f"choices {len(wanted[0])} and {len(got[0])}, usage {wanted[1]} and {got[1]}"


def words(rng, count):
    """Text of small words."""
    return " ".join(rng.choice(["bus", "stop", "the", "sea", "is", "wide", "two", "and", "four", "Paris", "cat"]) for _ in range(count))


def seeded(printed="seed"):
    """A fresh generator whose seed is printed."""
    seed = random.randrange(2**32)
    print(printed, seed)
    return seed, random.Random(seed)
