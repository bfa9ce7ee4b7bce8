#!/bin/sh
# Runs the suites of unmodified clients against the real program: those of `make test`, a long run of schemathesis, and
# in tests/clients those that are too heavy for `make test` (aiperf). Installs into out/venv and out/clients from the
# requirements beside the tests.
set -eu
PATH=/usr/bin:/bin:$PATH
export PYTHONDONTWRITEBYTECODE=1
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
sh scripts/install_deps.sh build test
sh scripts/build.sh release omnibus_program omnibus_replay_program
OMNIBUS_TEST_MODEL=$(sh scripts/default_model.sh)
export OMNIBUS_TEST_MODEL OMNIBUS_BUILD_DIR="$root/build"
light=$(sh scripts/python_env.sh out/venv tests/e2e/requirements.txt)
heavy=$(sh scripts/python_env.sh out/clients tests/clients/requirements.txt)
failed=0
"$light" -m pytest -q -p no:cacheprovider tests/e2e/test_clients_*.py tests/e2e/test_*_client.py tests/e2e/test_curl.py || failed=1
OMNIBUS_SCHEMATHESIS_EXAMPLES=${OMNIBUS_SCHEMATHESIS_EXAMPLES:-100} \
  "$light" -m pytest -q -s -p no:cacheprovider tests/e2e/test_schemathesis.py || failed=1
"$heavy" -m pytest -q -p no:cacheprovider tests/clients || failed=1
exit $failed
