// Rounding for people.
#include "analysis/report/numbers.h"

#include "analysis/report/kernel_name.h"

#include <gtest/gtest.h>

namespace idlescope::report {
namespace {

TEST(Duration, ThreeDigitsInTheUnitThatFits) {
  EXPECT_EQ(duration(0), "0 ns");
  EXPECT_EQ(duration(812), "812 ns");
  EXPECT_EQ(duration(4'000), "4 us");
  EXPECT_EQ(duration(2'310'000), "2.31 ms");
  EXPECT_EQ(duration(54'500'000), "54.5 ms");
  EXPECT_EQ(duration(212'400'000), "212 ms");
  EXPECT_EQ(duration(999'600), "1 ms");
  EXPECT_EQ(duration(999'000'000), "999 ms");
  EXPECT_EQ(duration(1'142'000'000), "1.14 s");
  EXPECT_EQ(duration(6'000'000'000), "6 s");
  EXPECT_EQ(duration(12'340'000'000), "12.3 s");
  EXPECT_EQ(duration(1'062'000'000'000), "17.7 min");
  EXPECT_EQ(duration(4 * 3'600'000'000'000), "4 h");
}

TEST(TimeScale, PartsShareUnitAndDecimals) {
  const TimeScale scale(54'500'000);
  EXPECT_EQ(scale.with_unit(53'000'000), "53 ms");
  EXPECT_EQ(scale.with_unit(840'000), "0.8 ms");
  EXPECT_EQ(scale.number(1'250), "0");
  EXPECT_EQ(scale.with_unit(1'250), "1.25 us") << "something is not nothing";
  EXPECT_EQ(scale.with_unit(0), "0 ms");
  EXPECT_EQ(TimeScale(212'000'000).number(80'600'000), "81");
}

TEST(Percent, SaysNoMoreThanItKnows) {
  EXPECT_EQ(percent(0), "0 %");
  EXPECT_EQ(percent(0.382), "38 %");
  EXPECT_EQ(percent(0.0234), "2.3 %");
  EXPECT_EQ(percent(0.0005), "0.05 %");
  EXPECT_EQ(percent(0.9967), "99.7 %");
  EXPECT_EQ(percent(1), "100 %");
  EXPECT_EQ(percent(0.0999), "10 %");
  EXPECT_EQ(percent(2.5), "250 %");
}

TEST(Others, Words) {
  EXPECT_EQ(speedup(1.606), "1.61x");
  EXPECT_EQ(speedup(59.6), "59.6x");
  EXPECT_EQ(bytes(9'600'000), "9.6 MB");
  EXPECT_EQ(bytes(12), "12 B");
  EXPECT_EQ(bytes(154'140'672), "154 MB");
  EXPECT_EQ(bytes(UINT64_MAX), "18.4 EB");
  EXPECT_EQ(count(9999), "9999");
  EXPECT_EQ(count(12450), "12 450");
  EXPECT_EQ(count(1234567), "1 234 567");
  EXPECT_EQ(count(123456), "123 456");
  EXPECT_EQ(decimal(1.50, 2), "1.5");
  EXPECT_EQ(decimal(-0.001, 1), "0");
}

TEST(KernelName, IsDemangledWhereItIsMangled) {
  EXPECT_EQ(plain_kernel_name("_Z4gemmPf"), "gemm(float*)");
  EXPECT_EQ(plain_kernel_name("ncclDevKernel_AllReduce"), "ncclDevKernel_AllReduce");
  EXPECT_EQ(plain_kernel_name("_Zbroken"), "_Zbroken");
  EXPECT_EQ(plain_kernel_name(""), "");
}

TEST(KernelName, ShortForATable) {
  EXPECT_EQ(short_kernel_name("void at::native::vectorized_elementwise_kernel<4, at::native::"
                              "FillFunctor<float>, std::array<char*, 1ul> >(int, float)"),
            "vectorized_elementwise_kernel");
  EXPECT_EQ(short_kernel_name("void at::native::(anonymous namespace)::max_pool<float>(int)"),
            "max_pool");
  EXPECT_EQ(short_kernel_name("ampere_sgemm_128x64_nn"), "ampere_sgemm_128x64_nn");
  EXPECT_EQ(short_kernel_name("Memcpy HtoD (Pageable -> Device)"),
            "Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(short_kernel_name("<>::"), "<>::");
  EXPECT_EQ(short_kernel_name(""), "");
}

TEST(CallName, WithoutTheVersionOfItsSymbol) {
  EXPECT_EQ(plain_call_name("cudaStreamSynchronize_v3020"), "cudaStreamSynchronize");
  EXPECT_EQ(plain_call_name("cuMemAlloc_v2"), "cuMemAlloc");
  EXPECT_EQ(plain_call_name("my_v2"), "my_v2");
  EXPECT_EQ(plain_call_name("cuda_v"), "cuda_v");
}

}  // namespace
}  // namespace idlescope::report
