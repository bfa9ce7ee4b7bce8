#!/bin/sh
# Builds with sanitizers and runs tests on that build; every report is a failure, whatever the test says.
#   sanitize.sh asan [FILE...]    AddressSanitizer with leaks, and UBSan: all C++ tests, and pytest on scripted models
#   sanitize.sh tsan [FILE...]    ThreadSanitizer: the C++ tests with threads, and pytest on what runs beside the engine
# FILEs: these files of pytest in place of the usual ones, and no C++ tests.
# The default model is too slow here: its tests are skipped. Reports lie in out/PRESET/results. The last line sums:
# "N passed, N failed". Exit code 0 only when nothing failed.
set -u
PATH=/usr/bin:/bin:$PATH
export PYTHONDONTWRITEBYTECODE=1
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
preset=${1-}
case $preset in
  asan | tsan) shift ;;
  *)
    echo "usage: sanitize.sh asan|tsan [FILE...]" >&2
    exit 2
    ;;
esac
results=$root/out/$preset/results

step() {
  "$@" && return
  echo "sanitize.sh: this step failed: $*" >&2
  echo "0 passed, 1 failed"
  exit 1
}

# A report names its place and goes into a file of its own; the process goes on, and ends with code 66.
common="exitcode=66 halt_on_error=0 log_path=$results/report"
# No detect_stack_use_after_return: its frames are not aligned for vectors of 64 bytes (GCC bug 110027, in GCC 12).
# Many servers run at once: what was freed is kept for a while, in little memory.
export ASAN_OPTIONS="$common detect_leaks=1 detect_stack_use_after_return=0 quarantine_size_mb=16"
export UBSAN_OPTIONS="$common print_stacktrace=1"
export TSAN_OPTIONS="$common second_deadlock_stack=1 suppressions=$root/tests/sanitizers/tsan.supp"
export OMNIBUS_TEST_SANITIZER="$preset" # bars of memory are not judged: sanitizers use much of it themselves
unset OMNIBUS_TEST_MODEL

if [ "$preset" = tsan ]; then
  # Everything that has threads. Communicators: the kinds whose code is ours.
  programs="test_common test_comm test_engine test_executor test_scheduler test_kv_cache test_worker test_server_http
    test_server_api test_client"
  targets="omnibus_program omnibus_replay_program $programs" # the former for tests of the command line alone
  files="tests/fault tests/e2e/test_admin.py tests/e2e/test_chat_shape.py tests/e2e/test_deadline.py
    tests/e2e/test_drain.py tests/e2e/test_grpc.py tests/e2e/test_observability.py tests/e2e/test_priority.py
    tests/e2e/test_reload.py tests/e2e/test_stop_strings.py tests/security/test_s13_http.py
    tests/security/test_s16_isolation.py"
else
  targets=
  files="tests/e2e tests/security tests/fault"
fi

step sh scripts/install_deps.sh build test
# shellcheck disable=SC2086
step sh scripts/build.sh "$preset" $targets
python=$(sh scripts/python_env.sh out/venv tests/e2e/requirements.txt) || step false "the Python of tests/e2e"
OMNIBUS_TEMPLATES_DIR=$(sh scripts/template_corpus.sh) || step false "the corpus of chat templates"
export OMNIBUS_TEMPLATES_DIR
export OMNIBUS_BUILD_DIR="$root/out/$preset/programs"

rm -rf "$results"
mkdir -p "$results"
failed_runners=0
if [ $# -gt 0 ]; then
  files=$*
elif [ "$preset" = tsan ]; then
  for name in $programs; do
    echo "== $name" >&2
    # shellcheck disable=SC2046
    $(find "out/$preset/tests" -type f -name "$name") --gtest_brief=1 --gtest_output="xml:$results/$name.xml" ||
      failed_runners=1
  done
else
  # Lints look at files.
  ctest --test-dir "out/$preset" -j 2 -LE lint --output-on-failure --timeout 900 --output-junit "$results/ctest.xml" ||
    failed_runners=1
fi
# Without the tests that bound the address space, which sanitizers take without bounds, or load a library before theirs.
pytest() {
  name=$1
  shift
  "$python" -m pytest -q -p no:cacheprovider --junitxml "$results/$name.xml" \
    --deselect tests/fault/test_f18_resources.py::test_f18_out_of_memory \
    --deselect tests/fault/test_f19_clocks.py::test_f19_the_wall_clock_jumps "$@" || failed_runners=1
}
# shellcheck disable=SC2086
pytest pytest $files
if [ "$preset" = tsan ] && [ $# -eq 0 ]; then
  # Steps that are planned while one runs: another thread to disagree with. Scripts of several tokens a step refuse it.
  # shellcheck disable=SC2046,SC2086
  OMNIBUS_ASYNC_SCHEDULING=true pytest pytest_async $(echo $files | sed 's#tests/e2e/test_stop_strings.py##')
fi

# One result for each report.
reports=0
for report in "$results"/report.*; do
  [ -f "$report" ] || continue
  reports=$((reports + 1))
  cat "$report" >&2
  printf '<testsuite><testcase classname="%s" name="%s"><failure message="see there"/></testcase></testsuite>\n' \
    "$preset" "${report##*/}" > "$results/report$reports.xml"
done
[ $reports -gt 0 ] ||
  printf '<testsuite><testcase classname="%s" name="no_reports"/></testsuite>\n' "$preset" > "$results/report.xml"
python3 scripts/sum_results.py "$failed_runners" "$results"/*.xml
