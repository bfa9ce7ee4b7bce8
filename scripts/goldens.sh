#!/bin/sh
# Makes every golden anew from its oracle and fails when one differs from what is committed.
# The goldens of tiny models also need torch and transformers, which tests/oracles/requirements.txt leaves out: install
# them into out/oracles to have these made, too.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
export PYTHONDONTWRITEBYTECODE=1
sh scripts/install_deps.sh build test
sh scripts/build.sh release omnibus_program
python=$(sh scripts/oracle_python.sh)
model=$(sh scripts/default_model.sh)
oracle() {
  script=$1
  shift
  echo "$script $*" >&2
  "$python" "tests/oracles/$script" "$@"
}

oracle gguf_goldens.py
oracle sampler_goldens.py tests/data/goldens/sampler.txt
oracle tokenizer_goldens.py --out tests/text/tokenizer/goldens
oracle dequant_goldens.py tests/data/dequant.golden
templates=tests/data/goldens/template
oracle template_goldens.py expressions $templates/expressions.json
oracle template_goldens.py unicode $templates/unicode.json # by Python 3.11's Unicode tables
oracle template_goldens.py templates tests/data/templates $templates/templates.json
oracle template_goldens.py corpus "$(sh scripts/template_corpus.sh)" $templates/corpus.json "$model"
oracle default_model_goldens.py "$model" tests/data/goldens
if "$python" -c 'import torch, transformers' 2>/dev/null; then
  oracle continue_goldens.py tests/data/templates $templates/continue.json
  "$python" tests/data/make_tiny_models.py out/tiny_models
  oracle transformers_goldens.py out/tiny_models
else
  echo "not made anew: tests/data/goldens/tiny, $templates/continue.json (need torch and transformers)" >&2
fi
git diff --exit-code --stat -- tests
