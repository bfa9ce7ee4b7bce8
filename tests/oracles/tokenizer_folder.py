"""The folder that Hugging Face's AutoTokenizer loads, made from a GGUF file: tokenizer.json, tokenizer_config.json.

  tokenizer_folder.py --gguf FILE --out DIR
"""

import argparse
import json
import os

import tokenizer_json


def token_at(spec, index):
    return spec["tokens"][index] if 0 <= index < len(spec["tokens"]) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()

    import gguf

    template = gguf.GGUFReader(arguments.gguf).get_field("tokenizer.chat_template")
    spec = tokenizer_json.read_gguf(arguments.gguf)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": token_at(spec, spec["bos"]),
        "eos_token": token_at(spec, spec["eos"]),
        "clean_up_tokenization_spaces": False,
        "chat_template": None if template is None else template.contents(),
    }
    os.makedirs(arguments.out, exist_ok=True)
    for name, value in (("tokenizer", tokenizer_json.tokenizer_json(spec, trusted=True)), ("tokenizer_config", config)):
        with open(os.path.join(arguments.out, name + ".json"), "w", encoding="utf-8") as file:
            json.dump({k: v for k, v in value.items() if v is not None or name == "tokenizer"}, file, ensure_ascii=False)


if __name__ == "__main__":
    main()
