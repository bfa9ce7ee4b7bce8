"""What the suites of unmodified clients share: one real server with a key, and the texts they ask."""

import requests

from harness.server import Server, program

KEY = "sk-clients"
FRANCE = "What is the capital of France?"
MAX_MODEL_LEN = 1024
# An answer that no CPU has ready within a tenth of a second, wherever the model would end it.
LONG = {"max_tokens": 900, "ignore_eos": True}


def start_real_server(model_path, *flags):
    """The program with the default model, behind a key."""
    return Server(
        [program("omnibus"), "serve", model_path, "--max-model-len", str(MAX_MODEL_LEN), "--api-key", KEY, *flags]
    )


def model_name(server):
    """What /v1/models calls the model."""
    answer = requests.get(server.url + "/v1/models", headers={"X-Api-Key": KEY}, timeout=10)
    return answer.json()["data"][0]["id"]


def tokens_of(server, text):
    """How many tokens `text` is by itself."""
    answer = requests.post(
        server.url + "/tokenize",
        json={"prompt": text, "add_special_tokens": False},
        headers={"X-Api-Key": KEY},
        timeout=10,
    )
    return answer.json()["count"]


def tokens_of_chat(server, *messages):
    """How many tokens the conversation is, the opening of the answer included."""
    answer = requests.post(
        server.url + "/tokenize", json={"messages": list(messages)}, headers={"X-Api-Key": KEY}, timeout=10
    )
    return answer.json()["count"]
