#!/bin/sh
# The long runs, whose bars of time are judged: hours in all.
#   soak.sh [PART...]      default: all of them
#     faults    the fault tests in their long forms, ten thousand mixed requests, a hundred thousand bent ones
#     seeds     100,000 simulation seeds (OMNIBUS_SOAK_SEEDS for another number, OMNIBUS_SOAK_FIRST_SEED for other ones)
#     identity  500 random requests on the default model: alone = on servers of all kinds, bit for bit
#     fuzz      two minutes for each fuzz target
#     valgrind  the unit tests under valgrind
# Needs a machine of its own: what others compute at the same time shows in the figures, which are printed at the end and lie in
# out/test-results/faults.txt. The last line sums: "N passed, N failed". Exit code 0 only when nothing failed.
set -u
PATH=/usr/bin:/bin:$PATH
export PYTHONDONTWRITEBYTECODE=1
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
results=out/soak-results
all="faults seeds identity fuzz valgrind"
for part in "$@"; do
  case " $all " in
    *" $part "*) ;;
    *)
      echo "soak.sh: there is no part '$part': $all" >&2
      exit 2
      ;;
  esac
done
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $all

step() {
  "$@" && return
  echo "soak.sh: this step failed: $*" >&2
  echo "0 passed, 1 failed"
  exit 1
}

# run NAME COMMAND...: one result for a command that is no test runner.
run() {
  name=$1
  shift
  if "$@"; then outcome=; else outcome='<failure message="see above"/>'; failed_runners=1; fi
  printf '<testsuite><testcase classname="soak" name="%s">%s</testcase></testsuite>\n' "$name" "$outcome" > "$results/$name.xml"
}

# suite NAME FILE...: tests of pytest.
suite() {
  name=$1
  shift
  "$python" -m pytest -q -p no:cacheprovider --junitxml "$results/$name.xml" "$@" || failed_runners=1
}

soak_faults() {
  step sh scripts/install_deps.sh soak
  export OMNIBUS_SOAK=1 OMNIBUS_TEST_MIXED_REQUESTS=10000 OMNIBUS_TEST_FUZZ_REQUESTS=100000 OMNIBUS_TEST_LABEL_REQUESTS=100000
  suite faults tests/fault tests/security/test_s05_inputs.py tests/security/test_s15_prefix_cache.py \
    tests/security/test_s16_isolation.py tests/security/test_s17_leaks.py
}

soak_seeds() {
  step sh scripts/build.sh release omnibus_sim_program
  run seeds out/release/tests/sim/omnibus-sim --seeds "${OMNIBUS_SOAK_SEEDS:-100000}" --first "${OMNIBUS_SOAK_FIRST_SEED:-10000}"
}

soak_identity() {
  OMNIBUS_IDENTITY_MODEL=$OMNIBUS_TEST_MODEL
  export OMNIBUS_IDENTITY_MODEL
  suite identity tests/e2e/laws/test_one_answer.py
}

soak_fuzz() {
  run fuzz sh scripts/fuzz.sh 120
}

soak_valgrind() {
  step sh scripts/install_deps.sh soak
  # shellcheck disable=SC2044
  for program in $(find out/release/tests -type f -perm -u+x -name 'test_*'); do
    run "valgrind_${program##*/test_}" env -u OMNIBUS_TEST_MODEL valgrind --quiet --error-exitcode=9 --leak-check=full \
      --errors-for-leak-kinds=definite "$program" --gtest_brief=1
  done
}

step sh scripts/install_deps.sh build test
step sh scripts/build.sh release
python=$(sh scripts/python_env.sh out/venv tests/e2e/requirements.txt) || step false "the Python of tests/e2e"
OMNIBUS_TEST_MODEL=$(sh scripts/default_model.sh) || step false "the default model"
OMNIBUS_TEMPLATES_DIR=$(sh scripts/template_corpus.sh) || step false "the corpus of chat templates"
export OMNIBUS_TEST_MODEL OMNIBUS_TEMPLATES_DIR OMNIBUS_BUILD_DIR="$root/build"

rm -rf "$results" out/test-results/faults.txt
mkdir -p "$results"
failed_runners=0
for part in "$@"; do
  echo "== $part" >&2
  "soak_$part"
done
[ ! -f out/test-results/faults.txt ] || cat out/test-results/faults.txt
python3 scripts/sum_results.py "$failed_runners" "$results"/*.xml
