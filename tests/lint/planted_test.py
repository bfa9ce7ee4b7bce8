#!/usr/bin/env python3
"""Each lint rule, shown to fail: a small clean tree passes, and one violation planted in it is found and named."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import feature_pairs  # noqa: E402
import hardening  # noqa: E402
from lint import RULES, Tree  # noqa: E402

HERE = Path(__file__).parent
CLEAN = {
    "tests/lint/modules.txt": "base/common:\ncontrol/scheduler: common\ncompute/core: common\nkernels:\n",
    "tests/lint/headers.txt": "^nlohmann/ : server\n^(cuda|nccl) : kernels/cuda/* */compute/core/cuda_*\n",
    "tests/lint/allowed.txt": "",
    "src/base/common/CMakeLists.txt": "omnibus_module(base/common)\n",
    "src/base/common/id.cc": '#include "omnibus/base/common/id.h"\n#include "detail.h"\nint id() { return 1; }\n',
    "src/base/common/detail.h": "#pragma once\n",
    "include/omnibus/base/common/id.h": "#pragma once\nint id();\n",
    "src/control/scheduler/CMakeLists.txt": "omnibus_module(control/scheduler USES common)\n",
    "src/control/scheduler/s.cc": '#include "omnibus/base/common/id.h"\n',
    "include/omnibus/control/scheduler/s.h": "#pragma once\n",
    "src/compute/core/CMakeLists.txt": "omnibus_module(compute/core USES common)\n",
    "src/compute/core/t.cc": "int t() { return 0; }\n",
    "include/omnibus/compute/core/tensor.h": "#pragma once\n",
    "src/base/common/made.h.in": "#pragma once\n",
    "kernels/cpu/k.cc": "void k() {}\n",
    "kernels/cpu/k.h": "#pragma once\n",
    "tests/base/id_test.cc": '#include "omnibus/compute/core/tensor.h"\n',
}

# (rule, file, its new content or what is added to it, what the message must say)
PLANTED = [
    ("layering", "src/control/scheduler/s.cc", '+#include "omnibus/compute/core/tensor.h"\n', "may not include"),
    ("layering", "kernels/cpu/k.cc", '+#include "omnibus/base/common/id.h"\n', "kernels may not include"),
    ("layering", "src/control/scheduler/s.cc", '+#include "omnibus/no/such/x.h"\n', "may not include"),
    ("layering", "src/control/scheduler/s.cc", '+#include "detail.h"\n', "no header of control/scheduler"),
    ("layering", "kernels/cpu/k.cc", '+#include "wide.h"\n', "no header of kernels"),
    ("layering", "src/control/scheduler/s.cc", '+#include "../../base/common/detail.h"\n', "no header of"),
    ("layering", "include/omnibus/base/common/id.h", '+#include "detail.h"\n', "public header"),
    ("layering", "src/control/scheduler/s.cc", "+#include <nlohmann/json.hpp>\n", "may not be included here"),
    ("layering", "src/compute/core/t.cc", "+#include <cuda_runtime.h>\n", "may not be included here"),
    ("layering", "src/compute/core/t.cc", "+#include <nccl.h>\n", "may not be included here"),
    ("layering", "src/base/stray/x.cc", "int x;\n", "lies in no module"),
    ("layering", "tests/lint/modules.txt", "base/common: scheduler\ncontrol/scheduler: common\ncompute/core: common\nkernels:\n", "cycle"),
    ("layering", "tests/lint/modules.txt", "base/common: ghost\ncontrol/scheduler: common\ncompute/core: common\nkernels:\n", "'ghost'"),
    (
        "layering",
        "tests/lint/modules.txt",
        "base/common:\ncontrol/scheduler: common core\ncompute/core: common\nkernels:\n",
        "control and compute",
    ),
    ("layering", "src/control/scheduler/CMakeLists.txt", "omnibus_module(control/scheduler USES common core)\n", "USES core"),
    ("layering", "src/control/scheduler/CMakeLists.txt", "omnibus_module(control/scheduler)\n", "does not name it"),
    (
        "layering",
        "src/control/scheduler/CMakeLists.txt",
        "omnibus_module(control/scheduler USES common PRIVATE_LINK omnibus_core)\n",
        "USES core",
    ),
    ("layering", "src/compute/core/CMakeLists.txt", "omnibus_module(base/common)\n", "not this folder"),
    ("sizes", "src/base/common/id.cc", "+" + "int x;\n" * 600, "limit 600"),
    ("sizes", "kernels/cpu/k.cc", "+" + "int x;\n" * 800, "limit 800"),
    ("sizes", "include/omnibus/base/common/id.h", "+" + "// x\n" * 250, "limit 250"),
    ("sizes", "src/base/common/id.cc", "+void f() {\n" + "  id();\n" * 100 + "}\n", "function of 102 lines"),
    (
        "sizes",
        "src/base/common/id.cc",
        "+struct S {\n  template <typename T>\n  auto f(T x) const -> int\n  {\n" + "    if (x) { id(); }\n" * 97 + "  }\n};\n",
        "function of 101 lines",
    ),
    ("sizes", "src/base/common/id.cc", "+S::S(int x) : a_{x}, b_(x) {\n" + "  id();\n" * 100 + "}\n", "function of 102"),
    ("sizes", "src/base/common/id.cc", "+void f(int a, int b, int c, int d, int e, int f, int g) {}\n", "7 parameters"),
    (
        "sizes",
        "include/omnibus/base/common/id.h",
        "+struct I {\n  virtual std::map<int, int> f(int a, std::map<int, int> b, int c,\n"
        "    void (*d)(int, int), int e, int f, int g) const = 0;\n};\n",
        "7 parameters",
    ),
    ("bans", "src/base/common/id.cc", "+std::regex r;\n", "regex"),
    ("bans", "tests/base/id_test.cc", "+std::wregex r;\n", "regex"),
    ("bans", "src/base/common/id.cc", "+auto t = std::chrono::steady_clock::now();\n", "clock"),
    ("bans", "src/base/common/id.cc", "+auto t = std::time(nullptr);\n", "clock"),
    ("bans", "kernels/cpu/k.cc", "+int r = rand();\n", "random"),
    ("bans", "src/base/common/id.cc", "+std::random_device r;\n", "random"),
    ("bans", "tests/base/id_test.cc", "+int r = rand();\n", "rand-in-tests"),
    ("bans", "tests/base/id_test.cc", "+void f() { std::this_thread::sleep_for(x); }\n", "sleep"),
    ("bans", "src/base/common/id.cc", "+void f() { try { id(); } catch (...) { } }\n", "catch-all"),
    ("bans", "src/base/common/id.cc", "+using namespace std;\n", "using-std"),
    ("bans", "src/base/common/id.cc", "+#ifdef OMNIBUS_CUDA\n#endif\n#if defined(__AVX2__)\n#endif\n", "backend-ifdef"),
    ("bans", "src/base/common/id.cc", "+int r = std::system(x);\n", "system"),
    ("bans", "src/base/common/id.cc", "+#define OMNIBUS_WITH_MUTANTS\n", "mutants"),
    ("bans", "src/base/common/id.cc", "+// TO" + "DO: later\n", "todo"),
    ("bans", "tests/base/id_test.cc", '+auto p = "/w' + 'ork/x";\n', "path"),
    ("bans", "docs/guide.md", "Start /ho" + "me/me/omnibus.\n", "path"),
    ("bans", "scripts/run.sh", "cd /tm" + "p/x\n", "path"),
    ("bans", "include/omnibus/base/common/id.h", "int id();\n", "pragma-once"),
    ("determinism", "src/control/engine/engine_core.cc", "auto t = std::chrono::steady_clock::now();\n", "clock"),
    ("determinism", "src/control/scheduler/s.cc", "+auto t = std::chrono::steady_clock::now();\n", "clock"),
    ("determinism", "tests/sim/x.cc", "std::random_device r;\n", "random"),
    ("determinism", "tests/sim/x.cc", "std::mt19937_64 r;\n", "random"),
    ("determinism", "tests/sim/x.cc", "std::thread t;\n", "thread"),
    ("determinism", "tests/sim/x.cc", "void f() { std::this_thread::sleep_for(x); }\n", "sleep"),
    ("determinism", "include/omnibus/control/scheduler/s.h", "#pragma once\nstd::set<Sequence*> a;\n", "pointer order"),
    ("determinism", "src/control/scheduler/s.cc", "+std::map<const Sequence*, int> a;\n", "pointer order"),
    (
        "determinism",
        "src/control/scheduler/s.cc",
        "+std::unordered_map<int, int> seen_;\nvoid f() { for (auto& x : seen_) id(x); }\n",
        "unordered",
    ),
    ("determinism", "tests/sim/x.cc", "std::unordered_set<int> s;\nint f() { return *s.begin(); }\n", "unordered"),
    ("bans", "tests/lint/allowed.txt", "clock src/base/common/id.cc: not needed\n", "excuses nothing"),
]

# Looks like a violation and is none.
INNOCENT = [
    ("bans", "docs/guide.md", "Kept in ~/.cache/omnibus and $HOME/tmp/x; see https://a.example/home/x.\n"),
    ("bans", "src/base/common/id.cc", '+auto p = home + "/tmp/pull";\n'),
    ("layering", "src/control/scheduler/s.cc", '+// #include "omnibus/compute/core/tensor.h"\n'),
    ("layering", "kernels/cpu/wide/k.cc", '#include "k.h"\n'),
    ("layering", "src/base/common/id.cc", '+#include "made.h"\n'),
    ("sizes", "src/base/common/id.cc", "+void f(std::map<int, int> a, int b, int c, int d, int e, int f) {}\n"),
    ("sizes", "src/base/common/id.cc", "+namespace a {\n" + "void f() { id(); }\n" * 120 + "}\n"),
    ("sizes", "src/base/common/id.cc", "+const int kTable[] = {\n" + "  1,\n" * 120 + "};\n"),
    ("sizes", "src/base/common/id.cc", '+const char* s = R"(\n' + "{ (\n" * 120 + ')";\n'),
    ("bans", "src/base/common/id.cc", '+// std::regex is slow\nauto s = "std::random_device";\n'),
    ("bans", "src/base/common/id.cc", "+void f() {\n  try {\n  } catch (...) {  // a callback may throw anything\n  }\n}\n"),
    ("determinism", "src/control/scheduler/s.cc", "+std::unordered_map<int, int> m_;\nint f() { return m_.at(1); }\n"),
    ("determinism", "src/control/scheduler/s.cc", "+std::set<Sequence*, Before> a;\n// std::thread\n"),
    ("determinism", "src/base/common/id.cc", "+std::thread t;\n"),
    ("bans", "src/base/common/id.cc", "+boost::asio::steady_timer timer; int strand(int); int x = strand(1);\n"),
]


def found(rule, changes):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {**CLEAN, **changes}.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return list(RULES[rule](Tree(folder)))


def changed(path, text):
    return {path: CLEAN[path] + text[1:] if text.startswith("+") else text}


class Planted(unittest.TestCase):
    def test_clean_tree_passes(self):
        for rule in RULES:
            self.assertEqual(found(rule, {}), [], rule)

    def test_every_violation_is_found(self):
        for rule, path, text, says in PLANTED:
            with self.subTest(rule=rule, path=path, text=text[:60]):
                violations = found(rule, changed(path, text))
                self.assertTrue(any(says in v for v in violations), f"wanted '{says}', got {violations}")

    def test_innocent_code_is_let_be(self):
        for rule, path, text in INNOCENT:
            with self.subTest(rule=rule, path=path, text=text[:60]):
                self.assertEqual(found(rule, changed(path, text)), [])

    def test_excused_place_is_let_be_and_needs_a_reason(self):
        clock = changed("src/base/common/id.cc", "+auto t = std::time(nullptr);\n")
        allowed = "tests/lint/allowed.txt"
        self.assertEqual(found("bans", {**clock, allowed: "clock src/base/common/id.cc: the one place\n"}), [])
        with self.assertRaises(ValueError):
            found("bans", {**clock, allowed: "clock src/base/common/id.cc:\n"})


class FeaturePairs(unittest.TestCase):
    TABLE = 'features = ["a", "b", "c"]\npairs = [["a", "b"]]\n'

    def check(self, table, *tests):
        return list(feature_pairs.check(table, set(tests)))

    def test_pair_needs_its_test(self):
        self.assertEqual(self.check(self.TABLE, "feature_pair.a+b", "other"), [])
        self.assertIn("no ctest 'feature_pair.a+b'", self.check(self.TABLE, "other")[0])

    def test_test_needs_its_pair(self):
        self.assertIn("does not allow", self.check(self.TABLE, "feature_pair.a+b", "feature_pair.a+c")[0])

    def test_pairs_are_of_known_features_and_stand_once(self):
        for pairs in ('[["a", "z"]]', '[["a", "a"]]', '[["a"]]'):
            self.assertIn("is not a pair", self.check(f'features = ["a"]\npairs = {pairs}\n')[0])
        twice = self.TABLE.replace('[["a", "b"]]', '[["a", "b"], ["b", "a"]]')
        self.assertTrue(any("twice" in v for v in self.check(twice, "feature_pair.a+b", "feature_pair.b+a")))


class Hardening(unittest.TestCase):
    """A program built without each protection is found out."""

    SOURCE = "#include <cstdio>\n#include <cstring>\nint main(int n, char** v) { char b[64]; std::strcpy(b, v[n - 1]); std::puts(b); }\n"
    SAFE = ["-O2", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=3", "-fcf-protection", "-fPIE", "-pie", "-Wl,-z,relro,-z,now"]

    def protections_missing(self, flags):
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder, "x.cc"), str(Path(folder, "x"))
            source.write_text(self.SOURCE)
            subprocess.run(["g++", *flags, str(source), "-o", program], check=True, capture_output=True)
            return list(hardening.check(*hardening.read(program)))

    def test_safe_program_passes(self):
        self.assertEqual(self.protections_missing(self.SAFE), [])

    def test_each_missing_protection_is_named(self):
        for safe, unsafe, says in [
            ("-pie", "-no-pie", "position-independent"),
            ("-Wl,-z,relro,-z,now", "-Wl,-z,relro,-z,lazy", "lazy binding"),
            ("-Wl,-z,relro,-z,now", "-Wl,-z,norelro", "read-only relocations"),
            ("-fstack-protector-strong", "-fno-stack-protector", "stack protector"),
            ("-D_FORTIFY_SOURCE=3", "-D_FORTIFY_SOURCE=0", "checked libc calls"),
            ("-fcf-protection", "-fcf-protection=none", "control-flow"),
            ("-O2", "-O2 -Wl,-z,execstack", "executable"),
            ("-O2", "-O2 -Wl,-rpath,/x", "RPATH"),
        ]:
            with self.subTest(unsafe=unsafe):
                flags = [part for flag in self.SAFE for part in (unsafe if flag == safe else flag).split(" ")]
                missing = self.protections_missing(flags)
                self.assertTrue(any(says in m for m in missing), missing)

    def test_test_code_in_the_product(self):
        self.assertEqual(list(hardening.foreign_symbols("0 T omnibus::Server::run()\n")), [])
        for name in ("omnibus::ReplayWorker::prepare()", "testing::internal::X", "omnibus::(anonymous namespace)::FakeClock", "omnibus::mutant_is_on(int)"):
            self.assertEqual(len(list(hardening.foreign_symbols(f"0 T {name}\n"))), 1, name)


if __name__ == "__main__":
    unittest.main()
