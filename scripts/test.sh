#!/bin/sh
# Builds everything and runs every test: the C++ tests and lints (ctest), then the end-to-end, security and fault tests
# (pytest). The last line sums both: "N passed, N failed" (", N skipped" when there are any). Exit code 0 only when
# nothing failed.
# Environment: OMNIBUS_HOME (model store, default ~/.cache/omnibus), OMNIBUS_TEST_MODEL (a GGUF of the default model,
# used in place of fetching it).
set -u
PATH=/usr/bin:/bin:$PATH # Debian's python3, whose modules scripts/packages.txt names
export PYTHONDONTWRITEBYTECODE=1
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
results=out/test-results

# A step that must work before any test can run: without it there is one failure and nothing else.
step() {
  "$@" && return
  echo "test.sh: this step failed: $*" >&2
  echo "0 passed, 1 failed"
  exit 1
}

step sh scripts/install_deps.sh build test
step sh scripts/build.sh release
OMNIBUS_TEST_MODEL=$(sh scripts/default_model.sh) || step false "the default model"
export OMNIBUS_TEST_MODEL
OMNIBUS_TEMPLATES_DIR=$(sh scripts/template_corpus.sh) || step false "the corpus of chat templates"
export OMNIBUS_TEMPLATES_DIR
export OMNIBUS_BUILD_DIR="$root/build"

rm -rf "$results"
mkdir -p "$results"
failed_runners=0
ctest --test-dir out/release -j 2 --output-on-failure --timeout 300 --output-junit "$root/$results/ctest.xml" ||
  failed_runners=1

suites=
for folder in tests/e2e tests/security tests/fault; do
  [ -z "$(find $folder -name 'test_*.py' 2>/dev/null | head -n 1)" ] || suites="$suites $folder"
done
if [ -n "$suites" ]; then
  python=$(sh scripts/python_env.sh out/venv tests/e2e/requirements.txt) || step false "the Python of tests/e2e"
  # shellcheck disable=SC2086
  "$python" -m pytest -q -p no:cacheprovider --junitxml "$results/pytest.xml" $suites || failed_runners=1
fi

python3 scripts/sum_results.py "$failed_runners" "$results/ctest.xml" ${suites:+"$results/pytest.xml"}
