// Four-wide integer dot products of 16 rows in plain C++. Include after vec_generic.h.
#pragma once

namespace omnibus::kernels {
namespace {

constexpr int32_t kLanes = 16;
constexpr int32_t kTileRows = 4;
constexpr int kRowsInFlight = 1;
template <Form>
constexpr bool kSignedBytes = false;  // weights stay unsigned, the zero point sits in the correction

struct Weight {
  uint8_t v[64];
};
using Dot = I;
using Sum = F;

template <Form kForm>
inline void load_weights(const uint8_t* record, int32_t /*part*/, Weight* w) {
  for (int i = 0; i < 8; ++i) {
    if constexpr (kForm == Form::kS8) {
      std::memcpy(w[i].v, record + 64 * i, 64);
      continue;
    }
    const uint8_t* pair = record + 64 * (i / 2);
    for (int b = 0; b < 64; ++b) w[i].v[b] = i % 2 == 0 ? pair[b] & 15 : pair[b] >> 4;
    if constexpr (kForm == Form::kU5 || kForm == Form::kU5M) {
      const uint8_t* mask = record + 256 + 8 * i;
      for (int b = 0; b < 64; ++b) {
        w[i].v[b] = static_cast<uint8_t>(w[i].v[b] + (((mask[b / 8] >> (b % 8)) & 1) << 4));
      }
    }
  }
}

template <Form>
inline Dot dot(const Dot& d, const Weight& w, const int8_t* a) {
  Dot r;
  for (int i = 0; i < 16; ++i) {
    r.v[i] =
        d.v[i] + w.v[4 * i] * a[0] + w.v[4 * i + 1] * a[1] + w.v[4 * i + 2] * a[2] + w.v[4 * i + 3] * a[3];
  }
  return r;
}
inline Dot dot_add(const Dot& a, const Dot& b) { return add_i(a, b); }
inline Dot dot_zero() { return set1_i(0); }
inline Dot dot_set1(int32_t x) { return set1_i(x); }

inline Sum sum_of(const Dot& d) { return to_float(d); }
inline Sum sum_zero() { return set1(0.0F); }
inline Sum sum_set1(float x) { return set1(x); }
inline Sum sum_add(const Sum& a, const Sum& b) { return add(a, b); }
inline Sum sum_mul(const Sum& a, const Sum& b) { return mul(a, b); }
inline Sum sum_fma(const Sum& a, const Sum& b, const Sum& c) { return fma(a, b, c); }
inline Sum sum_load_half(const uint8_t* p) { return load_half(p); }
inline Sum sum_load_part(const float* p, int32_t n) {
  Sum r = sum_zero();
  for (int i = 0; i < n; ++i) r.v[i] = p[i];
  return r;
}
inline void sum_store_part(float* p, const Sum& a, int32_t n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}

}  // namespace
}  // namespace omnibus::kernels
