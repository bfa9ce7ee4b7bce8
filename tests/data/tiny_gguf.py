"""GGUF writer, block formats and random numbers of the tiny models. NumPy only, and the same bytes with any version of
it: the numbers come from integer arithmetic, never from NumPy's own generators."""
import struct

import numpy as np

ALIGNMENT = 32
F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, BF16 = 0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 30
NAMES = {F32: "F32", F16: "F16", BF16: "BF16", Q4_0: "Q4_0", Q4_1: "Q4_1", Q5_0: "Q5_0", Q5_1: "Q5_1", Q8_0: "Q8_0",
         Q2_K: "Q2_K", Q3_K: "Q3_K", Q4_K: "Q4_K", Q5_K: "Q5_K", Q6_K: "Q6_K"}
# Block of 256: bytes, then per f16 field its place and its size relative to the wanted spread of weights. The factors
# centre the values (dmin against d) and bring their spread near 1 for random bits elsewhere in the block.
K_BLOCKS = {
    Q2_K: (84, ((80, 1 / 8.5), (82, 1.5 / 8.5))),
    Q3_K: (110, ((108, 1 / 43.0),)),
    Q4_K: (144, ((0, 1 / 215.0), (2, 7.5 / 215.0))),
    Q5_K: (176, ((0, 1 / 430.0), (2, 15.5 / 430.0))),
    Q6_K: (210, ((208, 1 / 1370.0),)),
}


class Random:
    """SplitMix64 as a counter: draw i is a pure function of (seed, i)."""

    def __init__(self, seed):
        self.seed = np.uint64(seed)
        self.next = 0

    def bits(self, count):
        i = np.arange(self.next + 1, self.next + 1 + count, dtype=np.uint64)
        self.next += count
        z = self.seed + i * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def normal(self, *shape):
        """Nearly normal, mean 0, spread 1: the sum of four uniform 16-bit numbers. Exact in float64."""
        z = self.bits(int(np.prod(shape)))
        total = sum(((z >> np.uint64(s)) & np.uint64(0xFFFF)).astype(np.int64) for s in (0, 16, 32, 48))
        return ((total - 131070) / 37837.0).astype(np.float32).reshape(shape)

    def octets(self, count):
        return self.bits((count + 7) // 8).view(np.uint8)[:count].copy()


def half(values):
    return np.asarray(values, np.float32).astype(np.float16)


def packed(columns):
    return np.concatenate([np.ascontiguousarray(c).view(np.uint8) for c in columns], axis=1)


def nibbles(q):
    """Element i in the low half of byte i, element i + 16 in the high half."""
    return (q[:, :16] | (q[:, 16:] << 4)).astype(np.uint8)


def fifth_bits(q):
    weights = np.uint32(1) << np.arange(32, dtype=np.uint32)
    return (((q >> 4) & 1).astype(np.uint32) * weights).sum(axis=1, dtype=np.uint32)[:, None]


def quantized(rows, kind):
    """Blocks of 32 for a float32 matrix, as bytes."""
    x = rows.reshape(-1, 32).astype(np.float32)
    low, high = x.min(axis=1, keepdims=True), x.max(axis=1, keepdims=True)
    if kind in (Q4_1, Q5_1):
        levels = 15 if kind == Q4_1 else 31
        d, m = half((high - low) / np.float32(levels)), half(low)
        q = np.clip(np.rint((x - m.astype(np.float32)) / np.maximum(d.astype(np.float32), 1e-8)), 0, levels).astype(np.uint8)
        return packed([d, m, nibbles(q)] if kind == Q4_1 else [d, m, fifth_bits(q), nibbles(q & 15)])
    if kind == Q8_0:
        d = half(np.abs(x).max(axis=1, keepdims=True) / np.float32(127))
        q = np.clip(np.rint(x / np.maximum(d.astype(np.float32), 1e-8)), -127, 127).astype(np.int8)
        return packed([d, q])
    middle = 8 if kind == Q4_0 else 16
    extreme = np.where(-low > high, low, high)
    d = half(extreme / np.float32(-middle))
    scale = d.astype(np.float32)
    q = np.clip(np.rint(x / np.where(scale == 0, np.float32(1), scale)) + middle, 0, 2 * middle - 1).astype(np.uint8)
    return packed([d, nibbles(q)] if kind == Q4_0 else [d, fifth_bits(q), nibbles(q & 15)])


def random_blocks(random, shape, kind, spread):
    """Any bits are a valid block once its scales are finite."""
    size, fields = K_BLOCKS[kind]
    count = int(np.prod(shape)) // 256
    blocks = random.octets(count * size).reshape(count, size)
    sign = np.where(random.bits(count) & np.uint64(1), 1, -1).astype(np.float32)
    for place, factor in fields:
        blocks[:, place : place + 2] = half(sign * np.float32(factor * spread))[:, None].view(np.uint8)
    return blocks


def encoded(array, kind):
    if kind == F32:
        return array.astype("<f4").tobytes()
    if kind == F16:
        return array.astype("<f2").tobytes()
    if kind == BF16:  # rounded half up in the last kept bit
        return ((array.astype(np.float32).view(np.uint32) + np.uint32(0x8000)) >> np.uint32(16)).astype("<u2").tobytes()
    return quantized(array, kind).tobytes()


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def typed(value):
    """Type id and bytes of a metadata value."""
    if isinstance(value, bool):
        return 7, struct.pack("<B", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, text(value)
    if isinstance(value[0], str):
        return 9, struct.pack("<IQ", 8, len(value)) + b"".join(text(v) for v in value)
    kind, code = (5, "<i4") if isinstance(value[0], int) else (6, "<f4")
    return 9, struct.pack("<IQ", kind, len(value)) + np.array(value, code).tobytes()


def write(path, metadata, tensors):
    """tensors: (name, shape with the row length last, type id, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        kind, data = typed(value)
        head += text(key) + struct.pack("<I", kind) + data
    offset = 0
    for name, shape, kind, data in tensors:
        head += text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", n) for n in reversed(shape)) + struct.pack("<IQ", kind, offset)
        offset += len(data) + -len(data) % ALIGNMENT
    with open(path, "wb") as out:
        out.write(head + bytes(-len(head) % ALIGNMENT))
        for _, _, _, data in tensors:
            out.write(data + bytes(-len(data) % ALIGNMENT))
