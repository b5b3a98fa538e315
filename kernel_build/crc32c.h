/* CRC-32C: with the instruction of the processor if it has one, else with tables.

   The instruction takes eight bytes and returns its result three cycles later, but a new one can begin in every cycle. So a range is cut
   into three parts of equal length, which are summed side by side and joined at the end. To join two parts, the sum of the first is moved
   over the bytes of the second: a product of polynomials over two elements, modulo that of the checksum. With P the polynomial of the
   checksum, a part of n words, and bits in the order of the checksum (the lowest bit is the highest power):

       after n more words      sum * x^(64 n) mod P
       the instruction         state, word -> (state * x^64 + word * x^32) mod P
       product of two sums     a * b * x, as a word: one bit of the 64 is left over

   so instruction(0, product(sum, x^(64 n - 33) mod P)) moves a sum by n words, and one table of these powers serves every length. */
#ifndef EXHUME_CRC32C_H
#define EXHUME_CRC32C_H

#define CRC_POLYNOMIAL 0x82F63B78U
/* The longest part in words. With longer parts, the three places of memory are so distant that the processor does not prefetch them. */
#define CRC_LONGEST_PART 32
/* Some processors do not prefetch three near places either, so the code fetches the bytes at this distance ahead. */
#define CRC_AHEAD_BYTES 4096
/* With fewer words, joining the parts takes longer than summing them. */
#define CRC_SHORTEST_RUN 24

static unsigned int crc_tables[8][256];
static unsigned int crc_powers[2 * CRC_LONGEST_PART + 1];

static void crc_prepare(void) {
  for (unsigned int byte = 0; byte < 256; byte++) {
    unsigned int crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
    crc_tables[0][byte] = crc;
  }
  for (int table = 1; table < 8; table++)
    for (int byte = 0; byte < 256; byte++) {
      unsigned int crc = crc_tables[table - 1][byte];
      crc_tables[table][byte] = crc >> 8 ^ crc_tables[0][crc & 255];
    }
  unsigned int crc = 1; /* x^31 */
  for (int n = 1; n <= 2 * CRC_LONGEST_PART; n++) {
    crc_powers[n] = crc;
    crc = crc_tables[7][crc & 255] ^ crc_tables[6][crc >> 8 & 255] ^ crc_tables[5][crc >> 16 & 255] ^ crc_tables[4][crc >> 24];
  }
}

static unsigned int crc_by_tables(const unsigned char* at, const unsigned char* end) {
  unsigned int crc = 0xFFFFFFFFU;
  for (; end - at >= 8; at += 8)
    crc = crc_tables[7][(crc ^ at[0]) & 255] ^ crc_tables[6][(crc >> 8 ^ at[1]) & 255] ^ crc_tables[5][(crc >> 16 ^ at[2]) & 255] ^
          crc_tables[4][(crc >> 24 ^ at[3]) & 255] ^ crc_tables[3][at[4]] ^ crc_tables[2][at[5]] ^ crc_tables[1][at[6]] ^ crc_tables[0][at[7]];
  for (; at < end; at++) crc = crc >> 8 ^ crc_tables[0][(crc ^ *at) & 255];
  return crc ^ 0xFFFFFFFFU;
}

#if defined(__x86_64__)
#include <immintrin.h>
#define CRC_CODE __attribute__((target("sse4.2,pclmul")))
CRC_CODE static inline unsigned int crc_word(unsigned int crc, unsigned long long word) { return (unsigned int)_mm_crc32_u64(crc, word); }
CRC_CODE static inline unsigned long long crc_product(unsigned int left, unsigned int right) {
  return (unsigned long long)_mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_cvtsi32_si128((int)left), _mm_cvtsi32_si128((int)right), 0));
}
static int crc_has_instructions(void) { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"); }
#elif defined(__aarch64__) && defined(__LITTLE_ENDIAN__) || defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_acle.h>
#include <arm_neon.h>
#define CRC_CODE __attribute__((target("+crc+aes")))
CRC_CODE static inline unsigned int crc_word(unsigned int crc, unsigned long long word) { return __crc32cd(crc, word); }
CRC_CODE static inline unsigned long long crc_product(unsigned int left, unsigned int right) {
  return (unsigned long long)vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64((poly64_t)left, (poly64_t)right)), 0);
}
#if defined(__linux__)
#include <sys/auxv.h>
static int crc_has_instructions(void) {
  unsigned long has = getauxval(AT_HWCAP);
  return (has & (1UL << 7)) && (has & (1UL << 4)); /* HWCAP_CRC32, HWCAP_PMULL */
}
#else
static int crc_has_instructions(void) { return 1; } /* Every arm64 Mac has them. */
#endif
#endif

#ifdef CRC_CODE
static inline unsigned long long crc_load(const unsigned char* at) {
  unsigned long long word;
  memcpy(&word, at, 8);
  return word;
}

CRC_CODE static unsigned int crc_by_instructions(const unsigned char* at, const unsigned char* end) {
  unsigned int crc = 0xFFFFFFFFU;
  while (end - at >= 8 * CRC_SHORTEST_RUN) {
    long long words = MIN((end - at) / 24, CRC_LONGEST_PART), size = 8 * words;
    for (long long ahead = 0; ahead < 3 * size; ahead += 64) __builtin_prefetch(at + CRC_AHEAD_BYTES + ahead);
    unsigned int second = 0, third = 0;
    for (const unsigned char* stop = at + size; at < stop; at += 8) {
      crc = crc_word(crc, crc_load(at));
      second = crc_word(second, crc_load(at + size));
      third = crc_word(third, crc_load(at + 2 * size));
    }
    unsigned long long moved = crc_product(crc, crc_powers[2 * words]) ^ crc_product(second, crc_powers[words]);
    crc = third ^ crc_word(0, moved);
    at += 2 * size;
  }
  for (; end - at >= 8; at += 8) crc = crc_word(crc, crc_load(at));
  for (; at < end; at++) crc = crc >> 8 ^ crc_tables[0][(crc ^ *at) & 255];
  return crc ^ 0xFFFFFFFFU;
}
#endif

/* 0 before the tables are made, then 1 for tables and 2 for instructions. */
static int crc_way;

static inline unsigned int native_crc32c(Bytes buffer, long long start, long long end) {
  const unsigned char* data = buffer.data;
  start = AT(start, end + 1), end = AT(end, buffer.size + 1);
#ifdef CRC_CODE
  if (crc_way == 2) return crc_by_instructions(data + start, data + end);
#endif
  return crc_by_tables(data + start, data + end);
}

static inline unsigned int native_with_tables(Bytes buffer, long long start, long long end) {
  return crc_by_tables(buffer.data + start, buffer.data + end);
}

/* The module calls this when Python loads it, before any kernel runs. */
static int prepare_crc32c(void) {
  crc_prepare();
  crc_way = 1;
#ifdef CRC_CODE
  if (crc_has_instructions()) crc_way = 2;
#endif
  return crc_way;
}

#endif
