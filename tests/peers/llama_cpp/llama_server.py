#!/usr/bin/env python3
"""Stands where the peer's tests look for llama-server: maps its flags to those of `omnibus serve` and becomes that.

Environment: OMNIBUS_PROGRAM, OMNIBUS_PEER_MODEL (the model served, whatever repository is asked for). A flag that is not
in one of the tables below ends the start: nothing is left out unseen."""
import json
import os
import sys
import tempfile

# Same meaning, other name.
RENAMED = {
    "--host": "--host",
    "--port": "--port",
    "--seed": "--seed",
    "--api-key": "--api-key",
    "--parallel": "--max-num-seqs",
    "--n-predict": "--default-max-tokens",
    "--chat-template-file": "--chat-template",
}
SWITCHES = {"--slots": "--slots", "--no-slots": "--no-slots"}
# Where the model comes from: always OMNIBUS_PEER_MODEL.
MODEL = {"--model", "--hf-repo", "--hf-file"}
# How llama.cpp computes and what it prints; without meaning here, or always so.
WITHOUT_MEANING = {"--offline", "--cont-batching", "--jinja", "--no-jinja", "--kv-unified", "--verbose", "--metrics",
                   "--no-cache-idle-slots", "--backend_sampling"}
WITHOUT_MEANING_VALUED = {"--threads", "--cache-ram", "--ubatch-size", "--temp"}
# Templates that llama.cpp knows by name; formats, in our words.
TEMPLATES = {
    "chatml": "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "llama3": "{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content|trim "
              "+ '<|eot_id|>' }}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
    "command-r": "{% for m in messages %}{{ '<|START_OF_TURN_TOKEN|><|' + {'system': 'SYSTEM', 'user': 'USER', "
                 "'assistant': 'CHATBOT'}[m.role] + '_TOKEN|>' + m.content|trim + '<|END_OF_TURN_TOKEN|>' }}{% endfor %}"
                 "{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}",
}


def template_file(text):
    """--chat-template is a name or the template itself."""
    handle, path = tempfile.mkstemp(suffix=".jinja")
    with os.fdopen(handle, "w") as out:
        out.write(TEMPLATES.get(text, text))
    return path


def read_flags(words):
    """(flag, value or None) pairs."""
    words = list(words)
    while words:
        flag = words.pop(0)
        valued = flag not in SWITCHES and flag not in WITHOUT_MEANING
        yield flag, words.pop(0) if valued and words else None


def translate(words):
    # llama-server answers to any model name, and goes on with an assistant's message.
    out = ["--max-num-batched-tokens", "512", "--any-model", "--prefill-assistant"]
    context, slots, batch, shared = 0, 1, 512, "--kv-unified" in words
    for flag, value in read_flags(words):
        if flag in RENAMED:
            if flag == "--parallel":
                slots = int(value)
            if flag == "--n-predict" and int(value) < 0:
                continue  # no limit, as without the flag
            out += [RENAMED[flag], value]
        elif flag in SWITCHES:
            out.append(SWITCHES[flag])
        elif flag == "--ctx-size":
            context = int(value)
        elif flag == "--batch-size":
            batch = int(value)
        elif flag == "--alias":
            for name in value.split(","):
                out += ["--served-model-name", name]
        elif flag == "--chat-template":
            out += ["--chat-template", template_file(value)]
        elif flag == "--reasoning":
            # llama-server tells every template; "auto" leaves it to the template whether it can.
            out += ["--default-chat-template-kwargs", json.dumps({"enable_thinking": value != "off"})]
        elif flag == "--cors-origins":
            out += ["--allowed-origins", value]
        elif flag not in MODEL | WITHOUT_MEANING | WITHOUT_MEANING_VALUED:
            sys.exit(f"llama_server.py: no counterpart of {flag}")
    out[1] = str(max(batch, slots))
    if slots == 1 and "--max-num-seqs" not in out:
        out += ["--max-num-seqs", "1"]
    if context:
        # Of its context a slot has an equal share, or all share one.
        out += ["--max-model-len", str(context if shared else context // slots)]
    return out


def main():
    program = os.environ["OMNIBUS_PROGRAM"]
    command = [program, "serve", os.environ["OMNIBUS_PEER_MODEL"], *translate(sys.argv[1:])]
    # The tests' own variables are no options of omnibus.
    os.execve(program, command, {k: v for k, v in os.environ.items() if not k.startswith("OMNIBUS_")})


if __name__ == "__main__":
    main()
