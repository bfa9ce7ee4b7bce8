#!/bin/sh
# Makes every golden anew from its oracle and fails when one differs from what is committed.
# Needs the network once, for out/oracles. The goldens of tiny models also need torch and transformers, which
# requirements.txt leaves out: install them into out/oracles to have these made, too.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
export PYTHONDONTWRITEBYTECODE=1
sh scripts/install_deps.sh build test
[ -x out/oracles/bin/python ] || python3 -m venv out/oracles
out/oracles/bin/pip install --quiet --disable-pip-version-check -r tests/oracles/requirements.txt
oracle() {
  script=$1
  shift
  echo "$script $*" >&2
  out/oracles/bin/python "tests/oracles/$script" "$@"
}

oracle gguf_goldens.py
oracle sampler_goldens.py tests/data/goldens/sampler.txt
oracle tokenizer_goldens.py --out tests/text/tokenizer/goldens
sh scripts/build.sh release omnibus
OMNIBUS_TEST_MODEL=$(sh scripts/default_model.sh)
oracle default_model_goldens.py "$OMNIBUS_TEST_MODEL" tests/data/goldens
if out/oracles/bin/python -c 'import torch, transformers' 2>/dev/null; then
  out/oracles/bin/python tests/data/make_tiny_models.py out/tiny_models
  oracle transformers_goldens.py out/tiny_models
else
  echo "not made anew: tests/data/goldens/tiny (needs torch and transformers)" >&2
fi
git diff --exit-code --stat -- tests
