// BLAKE2b (RFC 7693) without a key: what names hash to, and what links a journal's events.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace armwise {

// Takes text in pieces; `words` of it are asked for at the end, eight bytes each.
class Blake {
  public:
    explicit Blake(int words) {
        std::memcpy(h_, IV, sizeof h_);
        h_[0] ^= 0x01010000u ^ uint64_t(8 * words);
    }

    void take(std::string_view text) {
        while (filled_ + text.size() > SIZE) {  // the last block, full or not, waits for the end
            if (filled_ == 0) {
                compress(text.data(), count_ += SIZE, 0);
                text.remove_prefix(SIZE);
                continue;
            }
            const std::size_t n = SIZE - filled_;
            std::memcpy(block_ + filled_, text.data(), n);
            compress(block_, count_ += SIZE, 0);
            filled_ = 0;
            text.remove_prefix(n);
        }
        if (!text.empty()) std::memcpy(block_ + filled_, text.data(), text.size());
        filled_ += text.size();
    }

    const uint64_t* finish() {
        std::memset(block_ + filled_, 0, SIZE - filled_);
        compress(block_, count_ + filled_, ~uint64_t(0));
        return h_;
    }

  private:
    static constexpr std::size_t SIZE = 128;
    static constexpr uint64_t IV[8] = {0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu,
                                       0xa54ff53a5f1d36f1u, 0x510e527fade682d1u, 0x9b05688c2b3e6c1fu,
                                       0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u};
    static constexpr int SIGMA[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};
    uint64_t h_[8], count_ = 0;
    char block_[SIZE];
    std::size_t filled_ = 0;

    static uint64_t rotated(uint64_t x, int n) { return (x >> n) | (x << (64 - n)); }

    static void mix(uint64_t& a, uint64_t& b, uint64_t& c, uint64_t& d, uint64_t x, uint64_t y) {
        a += b + x, d = rotated(d ^ a, 32), c += d, b = rotated(b ^ c, 24);
        a += b + y, d = rotated(d ^ a, 16), c += d, b = rotated(b ^ c, 63);
    }

    // One round; which words it takes is known when it is compiled, so that they stay in registers.
    template <int R> static void round(uint64_t (&v)[16], const uint64_t (&m)[16]) {
        constexpr auto& s = SIGMA[R % 10];
        mix(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
        mix(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
        mix(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
        mix(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
        mix(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
        mix(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
        mix(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
        mix(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
    }

    void compress(const char* block, uint64_t count, uint64_t last) {
        uint64_t v[16], m[16];
        std::memcpy(m, block, SIZE);  // little-endian, like everything that is packed here
        for (int i = 0; i < 8; ++i) v[i] = h_[i], v[i + 8] = IV[i];
        v[12] ^= count;
        v[14] ^= last;
        round<0>(v, m), round<1>(v, m), round<2>(v, m), round<3>(v, m), round<4>(v, m), round<5>(v, m);
        round<6>(v, m), round<7>(v, m), round<8>(v, m), round<9>(v, m), round<10>(v, m), round<11>(v, m);
        for (int i = 0; i < 8; ++i) h_[i] ^= v[i] ^ v[i + 8];
    }
};

// A digest of eight bytes, read as a little-endian integer.
inline uint64_t blake2b_word(std::string_view text) {
    Blake state(1);
    state.take(text);
    return state.finish()[0];
}

}  // namespace armwise
