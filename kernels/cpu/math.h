// Elementary functions on 16 lanes. Include after a vec_*.h.
#pragma once

namespace omnibus::kernels {
namespace {

// e^x, about 1 ulp: x = n ln 2 + r, |r| <= ln 2 / 2, Taylor polynomial of degree 7 in r. Below -86 the result
// is 0 (so that a masked score of -inf gives exactly 0); overflow gives +inf; NaN stays NaN.
inline F exp_f32(F x) {
  const F low = set1(-86.0F);
  const F t = max(low, min(set1(89.0F), x));
  const F n = round_even(mul(t, set1(0x1.715476p+0F)));
  F r = fma(n, set1(-0x1.62E400p-1F), t);  // ln 2, high bits: n * high is exact
  r = fma(n, set1(-0x1.7F7D1Cp-20F), r);
  F p = set1(1.0F / 5040);
  p = fma(p, r, set1(1.0F / 720));
  p = fma(p, r, set1(1.0F / 120));
  p = fma(p, r, set1(1.0F / 24));
  p = fma(p, r, set1(1.0F / 6));
  p = fma(p, r, set1(0.5F));
  p = fma(p, r, set1(1.0F));
  p = fma(p, r, set1(1.0F));
  // n reaches 128: half of the result always has an exponent, and doubling it overflows as it should.
  const F half = scale_by_power(p, to_int(sub(n, set1(1.0F))));
  return zero_where_less(add(half, half), x, low);
}

// x / (1 + e^-x)
inline F silu(F x) { return div(x, add(set1(1.0F), exp_f32(sub(set1(0.0F), x)))); }

// The tanh form of GELU (Hendrycks and Gimpel 2016): 0.5 x (1 + tanh u) = x / (1 + e^-2u),
// u = sqrt(2 / pi) (x + 0.044715 x^3).
inline F gelu_tanh(F x) {
  const F cube = mul(mul(x, x), x);
  const F u = mul(set1(0.7978845608028654F), fma(set1(0.044715F), cube, x));
  return div(x, add(set1(1.0F), exp_f32(mul(set1(-2.0F), u))));
}

}  // namespace
}  // namespace omnibus::kernels
