#!/usr/bin/env python3
"""Writes tests/data/goldens/gguf/{small,quants}.gguf with the `gguf` package, and golden.json with what the package
reads back from them and with its table of block sizes. Read by tests/store/model_files/gguf_golden_test.cc.

usage: gguf_goldens.py [OUTPUT_FOLDER]          needs numpy, gguf (see requirements.txt)"""
import json
import sys
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

SEED = 7
QUANTIZED_BY_PACKAGE = [Q.F16, Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0]
RANDOM_BLOCKS = [Q.Q2_K, Q.Q3_K, Q.Q4_K, Q.Q5_K, Q.Q6_K]


def write_small(path):
    """Every scalar type, every array type, odd alignment."""
    w = gguf.GGUFWriter(path, "llama")
    w.add_custom_alignment(64)
    w.add_uint8("t.u8", 200)
    w.add_int8("t.i8", -100)
    w.add_uint16("t.u16", 60000)
    w.add_int16("t.i16", -30000)
    w.add_uint32("t.u32", 4000000000)
    w.add_int32("t.i32", -2000000000)
    w.add_uint64("t.u64", 2**64 - 1)
    w.add_int64("t.i64", -(2**63))
    w.add_float32("t.f32", 0.1)
    w.add_float64("t.f64", 0.1)
    w.add_bool("t.yes", True)
    w.add_bool("t.no", False)
    w.add_string("t.text", "naïve 漢字 \u0000 \n end")
    w.add_array("t.strings", ["", "ß", "two words", "🚌"])
    w.add_array("t.ints", [-1, 0, 2**31 - 1])
    w.add_array("t.floats", [0.5, -2.25])
    w.add_array("t.bools", [True, False, True])
    rng = np.random.default_rng(SEED)
    w.add_tensor("one", rng.standard_normal(5, dtype=np.float32))
    w.add_tensor("two.weight", rng.standard_normal((3, 7), dtype=np.float32))
    w.add_tensor("three", rng.standard_normal((2, 3, 4)).astype(np.float16))
    w.add_tensor("ints", np.arange(-3, 3, dtype=np.int32).reshape(2, 3))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_quants(path):
    """One tensor of every block type."""
    rng = np.random.default_rng(SEED)
    w = gguf.GGUFWriter(path, "llama")
    for t in QUANTIZED_BY_PACKAGE:
        w.add_tensor(t.name, gguf.quantize(rng.standard_normal((2, 64), dtype=np.float32), t), raw_dtype=t)
    for t in RANDOM_BLOCKS:
        data = rng.integers(0, 256, (2, gguf.GGML_QUANT_SIZES[t][1]), dtype=np.uint8)
        w.add_tensor(t.name, data, raw_dtype=t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def describe(path):
    reader = gguf.GGUFReader(path)
    pairs = {}
    for key, field in reader.fields.items():
        if key.startswith("GGUF."):
            continue
        value = field.contents()
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)  # JSON numbers of other readers end at 2^53
        pairs[key] = {"types": [t.name for t in field.types], "value": value}
    tensors = [
        {
            "name": t.name,
            "type": t.tensor_type.name,
            "dims": [int(d) for d in t.shape],
            "offset": int(t.data_offset - reader.data_offset),
            "hex": t.data.tobytes().hex(),
        }
        for t in reader.tensors
    ]
    return {"version": int(reader.fields["GGUF.version"].contents()), "pairs": pairs, "tensors": tensors}


def main():
    default = Path(__file__).resolve().parent.parent / "data/goldens/gguf"
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    out.mkdir(parents=True, exist_ok=True)
    write_small(str(out / "small.gguf"))
    write_quants(str(out / "quants.gguf"))
    from importlib.metadata import version

    golden = {
        "made_by": "tests/oracles/gguf_goldens.py",
        "versions": {"gguf": version("gguf"), "numpy": np.__version__},
        "seed": SEED,
        "sizes": {t.name: [int(t), *gguf.GGML_QUANT_SIZES[t]] for t in Q},
        "files": {name: describe(str(out / name)) for name in ("small.gguf", "quants.gguf")},
    }
    (out / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
