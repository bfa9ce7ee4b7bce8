#include "omnibus_kernels/dequant.h"

#include "dequant_impl.h"

namespace omnibus::kernels {
namespace {

// Types that exist but have no decoder yet: named, so that a refusal can say which it is.
struct TypeName {
  uint32_t ggml_type;
  const char* name;
};
constexpr TypeName kOtherTypes[] = {
    {9, "Q8_1"},    {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},      {25, "I16"},
    {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},  {34, "TQ1_0"},   {35, "TQ2_0"},
    {39, "MXFP4"},  {40, "NVFP4"}, {41, "Q1_0"},    {42, "Q2_0"},
};

}  // namespace

BlockLayout block_layout(uint32_t ggml_type) {
  const Decoder* d = find_decoder(ggml_type);
  return d != nullptr ? d->layout : BlockLayout{0, 0};
}

const char* ggml_type_name(uint32_t ggml_type) {
  if (const Decoder* d = find_decoder(ggml_type)) return d->name;
  for (const TypeName& t : kOtherTypes) {
    if (t.ggml_type == ggml_type) return t.name;
  }
  return "unknown";
}

void dequantize_blocks(uint32_t ggml_type, const uint8_t* src, int64_t blocks, float* out) {
  decode_row(ggml_type, src, blocks, out);
}

}  // namespace omnibus::kernels
