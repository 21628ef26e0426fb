// What a thread that reads requests keeps from one to the next: hashes of tokens, arms, and room.
#pragma once

#include "blake.hpp"
#include "features.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace armwise {

using Span = std::string_view;

constexpr std::size_t MOST_TEXT = 4000;   // bytes of a string or a path; tokens.py takes as many characters and more
constexpr std::size_t MOST_TOKENS = 4000;  // of a context or an arm
constexpr std::size_t MOST_ID = 256;       // bytes of an id; arms.py takes as many characters
constexpr int MOST_NESTED = 24;
constexpr std::size_t MOST_HASHED = 32;     // bytes of tokens for each byte of a text: a path is hashed for each value
constexpr std::size_t MOST_STEPS = 8;       // for each of the hashes that must differ
constexpr std::size_t MOST_KEPT = 1 << 20;  // words, texts or bytes that wait for the next request

// ------------------------------------------------------------------ hashes of tokens

// A quick hash, to find what is the same: texts that differ may have the same, texts that are the same have.
inline uint64_t quick(Span text) {
    uint64_t h = text.size() * 0x9E3779B97F4A7C15u;
    const char* at = text.data();
    std::size_t left = text.size();
    for (uint64_t word; left >= 8; at += 8, left -= 8) {
        std::memcpy(&word, at, 8);
        h = (h ^ word) * 0xBF58476D1CE4E5B9u;
        h ^= h >> 32;
    }
    uint64_t word = 0;
    std::memcpy(&word, at, left);
    h = (h ^ word) * 0x94D049BB133111EBu;
    return h ^ (h >> 29);
}

// What tokens hash to: of those that came last, each in the one place that is its own.
class Tokens {
  public:
    Tokens() : places_(SIZE) {}

    uint64_t hash(Span token) {
        if (token.size() > sizeof(Place::text)) return blake2b_word(token);
        Place& place = places_[quick(token) % SIZE];
        if (place.size != token.size() || std::memcmp(place.text, token.data(), token.size()) != 0) {
            place.hash = blake2b_word(token);
            place.size = uint8_t(token.size());
            std::memcpy(place.text, token.data(), token.size());
        }
        return place.hash;
    }

  private:
    static constexpr std::size_t SIZE = 4096;
    struct Place {
        uint64_t hash = 0;
        uint8_t size = 0;  // no token is empty
        char text[55] = {};
    };
    std::vector<Place> places_;
};

// ------------------------------------------------------------------ arms

// Arms as they stood in a text, with what was read from them: those of a catalogue come again and again. Each has the one
// place that its id leads to, and only the very same text is taken for it.
class Arms {
  public:
    struct Place {
        std::string text;
        std::vector<uint64_t> words;
        Index n_keys = 0;
    };

    Arms() : places_(SIZE) {}

    // The arm with which a text goes on; null if it did not come before.
    const Place* find(Span id, Span text) {
        const Place& place = places_[quick(id) % SIZE];
        const std::size_t size = place.text.size();
        if (!size || text.size() < size || std::memcmp(place.text.data(), text.data(), size) != 0) return nullptr;
        strange_ = 0;
        return &place;
    }

    // Where all are new, as those are that tell of whoever asks, few are kept: it would be for nothing.
    void put(Span id, Span text, const uint64_t* words, std::size_t n_words, Index n_keys) {
        if (text.size() > MOST_BYTES || n_words > MOST_WORDS || (++strange_ > SIZE && strange_ % 16)) return;
        Place& place = places_[quick(id) % SIZE];
        place.text.assign(text);
        place.words.assign(words, words + n_words);
        place.n_keys = n_keys;
    }

  private:
    static constexpr std::size_t SIZE = 2048, MOST_BYTES = 1024, MOST_WORDS = 192;
    std::vector<Place> places_;
    std::size_t strange_ = 0;  // arms in a row that did not come before
};

// ------------------------------------------------------------------ room

// Whether all are known to differ. Those that whoever sent them chose to meet in the same places are not looked through.
inline bool all_differ(const std::vector<uint64_t>& all, std::vector<uint64_t>& room) {
    if (all.size() <= 24) {
        for (std::size_t i = 1; i < all.size(); ++i)
            for (std::size_t k = 0; k < i; ++k)
                if (all[i] == all[k]) return false;
        return true;
    }
    std::size_t size = 64, steps = 0;
    while (size < 2 * all.size()) size *= 2;
    room.assign(size, 0);
    for (const uint64_t one : all) {
        std::size_t i = mix(one, 0) & (size - 1);
        for (; room[i] && room[i] != one; ++steps) i = (i + 1) & (size - 1);
        if (steps > MOST_STEPS * all.size()) return false;
        if (room[i] == one) return false;  // and of 0 it is not known
        room[i] = one;
    }
    return true;
}

// A member of an object: its name up to the value as it stands in the text, and what that hashes to.
struct Member {
    Span text;
    uint64_t quick, hash;
};

// What a thread keeps from request to request: it is asked for once.
struct Memory {
    Tokens tokens;
    Arms known;
    std::vector<uint64_t> context, arms, ids, room, distinct;
    std::vector<std::vector<uint64_t>> keys;  // of the objects that are open
    std::vector<Span> names, texts;  // of the arms: their ids, and each as it came
    std::vector<Member> members;     // of the arm before
    std::string path, array;

    Memory() : keys(MOST_NESTED + 2) {}

    // What a request left; the room of a large one is given back.
    void forget() {
        empty(arms), empty(ids), empty(room), empty(names), empty(texts), empty(members), empty(path), empty(array);
    }

  private:
    template <class T> static void empty(T& kept) {
        if (kept.capacity() > MOST_KEPT) T().swap(kept);
        kept.clear();
    }
};

inline Memory& memory_here() {
    static thread_local Memory memory;
    memory.forget();
    return memory;
}

}  // namespace armwise
