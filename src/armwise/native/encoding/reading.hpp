// Reads JSON as most requests have it: strings, numbers, the tokens of a context or an arm (steps 1 and 2 of
// features/encoder.py).
//
// What is read here is a part of JSON: strings without escapes, whole numbers of at most 15 digits, no key twice, all
// within the bounds of features/tokens.py. Of anything else these functions say no, and features/tokens.py reads it,
// or says what is wrong with it: so a mistake is told in one place, and what both read, both read to the same bits.
#pragma once

#include "remembered.hpp"

#include <charconv>

namespace armwise {

inline bool is_utf8(Span text) {
    const auto* at = reinterpret_cast<const uint8_t*>(text.data());
    const uint8_t* end = at + text.size();
    while (at < end) {
        if (*at < 0x80) {
            ++at;
            continue;
        }
        const int more = *at >= 0xF0 ? 3 : *at >= 0xE0 ? 2 : 1;
        if (*at < 0xC2 || *at > 0xF4 || end - at <= more) return false;
        // The second byte tells of overlong forms, of halves of surrogate pairs, and of what is beyond U+10FFFF.
        const uint8_t low = *at == 0xE0 ? 0xA0 : *at == 0xF0 ? 0x90 : 0x80;
        const uint8_t high = *at == 0xED ? 0x9F : *at == 0xF4 ? 0x8F : 0xBF;
        if (at[1] < low || at[1] > high) return false;
        for (int k = 2; k <= more; ++k)
            if ((at[k] & 0xC0) != 0x80) return false;
        at += more + 1;
    }
    return true;
}

inline bool to_double(const char* first, const char* last, double& number) {
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
    const auto [end, error] = std::from_chars(first, last, number);
    return error == std::errc() && end == last;
#else
    char* end = nullptr;
    const std::string text(first, last);
    number = PyOS_string_to_double(text.c_str(), &end, nullptr);
    if (PyErr_Occurred()) PyErr_Clear();
    return end == text.c_str() + text.size();
#endif
}

// Reads a text from its beginning; every function says whether what is there can be read here.
class Text {
  public:
    Index n_keys = 0;

    Text(Span text, Memory& memory)
        : at_(text.data()), end_(at_ + text.size()), memory_(memory), to_hash_(MOST_HASHED * text.size()) {}

    const char* at() const { return at_; }
    std::size_t left() const { return std::size_t(end_ - at_); }
    void skip(std::size_t n) { at_ += n; }

    void space() {
        while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    }
    bool is(char c) const { return at_ < end_ && *at_ == c; }
    bool take(char c) {
        if (!is(c)) return false;
        ++at_;
        return true;
    }
    bool done() {
        space();
        return at_ == end_;
    }
    bool word(Span expected) {
        if (left() < expected.size() || std::memcmp(at_, expected.data(), expected.size()) != 0) return false;
        at_ += expected.size();
        return true;
    }

    bool string(Span& found) {
        if (!take('"')) return false;
        const char* first = at_;
        bool plain = true;
        for (; at_ < end_ && *at_ != '"'; ++at_) {
            const auto byte = uint8_t(*at_);
            if (byte < 0x20 || byte == '\\') return false;
            plain &= byte < 0x80;
        }
        found = Span(first, std::size_t(at_ - first));
        return take('"') && found.size() <= MOST_TEXT && (plain || is_utf8(found));
    }

    // A string of any length in which there is nothing but ASCII.
    bool plain(Span& found) {
        if (!take('"')) return false;
        const char* first = at_;
        for (; at_ < end_ && *at_ != '"'; ++at_)
            if (uint8_t(*at_) < 0x20 || uint8_t(*at_) > 0x7e || *at_ == '\\') return false;
        found = Span(first, std::size_t(at_ - first));
        return take('"');
    }

    // A name and the colon after it.
    bool key(Span& name) {
        space();
        if (!string(name)) return false;
        space();
        if (!take(':')) return false;
        ++n_keys;
        space();
        return true;
    }

    bool id(Span& found) {
        return string(found) && !found.empty() && found.size() <= MOST_ID && found.find('\x7f') == Span::npos;
    }

    // Whether another member follows; `wrong` if neither that nor the end is there.
    bool another(char closing, bool& wrong) {
        space();
        if (take(',')) {
            space();
            return true;
        }
        wrong = !take(closing);
        return false;
    }

    // The tokens of a context or of an arm's features (its space is the first byte of every path): the number of them,
    // then three words for each.
    bool part(char space, std::vector<uint64_t>& words) {
        memory_.path.assign(1, space);
        words_ = &words;
        first_ = words.size();
        words.push_back(0);
        if (is('[')) {  // of objects
            bool wrong = false;
            take('[');
            this->space();
            if (!take(']')) {
                std::size_t n = 0;
                do {
                    if (++n > MOST_TOKENS || !is('{') || !value(false, 2)) return false;
                } while (another(']', wrong));
                if (wrong) return false;
            }
        } else if (!is('{') || !value(false, 1))
            return false;
        words[first_] = (words.size() - first_ - 1) / 3;
        return true;
    }

    bool number(double& found) {
        const char* first = at_;
        const bool negative = take('-');
        uint64_t digits = 0;
        int n = 0, scale = 0, power = 0;
        if (take('0')) {
            if (at_ < end_ && *at_ >= '0' && *at_ <= '9') return false;
        } else
            for (; at_ < end_ && *at_ >= '0' && *at_ <= '9'; ++at_, ++n) digits = 10 * digits + uint64_t(*at_ - '0');
        if (at_ == first + negative) return false;
        if (!is('.') && !is('e') && !is('E')) {  // as an int and then a float: -0 is 0
            found = negative ? -double(digits) : double(digits);
            return n <= 15 && (digits || !negative);
        }
        if (take('.')) {
            const char* begin = at_;
            for (; at_ < end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
                digits = 10 * digits + uint64_t(*at_ - '0');
                n += digits != 0;
            }
            scale = int(at_ - begin);
            if (!scale) return false;
        }
        if (is('e') || is('E')) {
            ++at_;
            const bool small = is('-');
            if (is('-') || is('+')) ++at_;
            const char* begin = at_;
            for (; at_ < end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
                if (at_ - begin > 3) return false;
                power = 10 * power + (*at_ - '0');
            }
            if (at_ == begin) return false;
            power = small ? -power : power;
        }
        power -= scale;
        static constexpr double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
        if (n <= 15 && power >= -22 && power <= 22) {  // both are exact, so one rounding is all there is
            found = power < 0 ? double(digits) / TENS[-power] : double(digits) * TENS[power];
            found = negative ? -found : found;
        } else if (!to_double(first, at_, found))
            return false;
        return found > -1e150 && found < 1e150;
    }

  private:
    const char *at_, *end_;
    Memory& memory_;
    std::size_t hashed_ = 0, to_hash_;  // bytes
    std::vector<uint64_t>* words_ = nullptr;
    std::size_t first_ = 0;

    bool is_number() const { return at_ < end_ && (*at_ == '-' || (*at_ >= '0' && *at_ <= '9')); }

    uint64_t hash_path() {
        hashed_ += memory_.path.size();
        return memory_.tokens.hash(memory_.path);
    }

    bool token_of(uint64_t hash, double number, bool scaled) {
        uint64_t token[3] = {hash, 0, scaled};
        std::memcpy(token + 1, &number, 8);
        if (words_->size() - first_ > 3 * MOST_TOKENS || hashed_ > to_hash_) return false;
        words_->insert(words_->end(), token, token + 3);
        return true;
    }

    bool flag(Span kind, Span text) {
        std::string& path = memory_.path;
        const std::size_t size = path.size();
        path.append(kind).append(text);
        const bool read = token_of(hash_path(), 1.0, false);
        path.resize(size);
        return read;
    }

    // A value, under the path that stands in the memory; `apart` if a key is put apart from what is before it.
    bool value(bool apart, int depth) {
        if (depth > MOST_NESTED || at_ >= end_ || memory_.path.size() > MOST_TEXT) return false;
        switch (*at_) {
        case '{': return object(apart, depth);
        case '[': return list(apart, depth);
        case '"': {
            Span text;
            return string(text) && flag(Span("\x1es", 2), text);
        }
        case 't': return word("true") && flag(Span("\x1e" "btrue", 6), "");
        case 'f': return word("false") && flag(Span("\x1e" "bfalse", 7), "");
        case 'n': return word("null");
        default: {
            double found;
            return number(found) && token_of(hash_path(), found, true);
        }
        }
    }

    bool object(bool apart, int depth) {
        std::string& path = memory_.path;
        std::vector<uint64_t>& keys = memory_.keys[std::size_t(depth)];
        keys.clear();
        take('{');
        space();
        if (take('}')) return true;
        const std::size_t size = path.size();
        const bool remember = depth == 1 && path[0] == 'a';
        bool wrong = false;
        do {
            if (keys.size() > MOST_TOKENS) return false;
            Member member;
            if (!remember || !same_member(keys.size(), member)) {
                Span name;
                const char* first = at_;
                if (!key(name)) return false;
                member = {Span(first, std::size_t(at_ - first)), quick(name), 0};
                if (apart) path.push_back('\x1f');
                path.append(name);
                member.hash = is_number() || remember ? hash_path() : 0;
                if (remember) memory_.members.resize(keys.size()), memory_.members.push_back(member);
            } else if (!is_number())
                path.append(Span(member.text.data() + 1, member.text.find('"', 1) - 1));
            keys.push_back(member.quick);
            if (is_number()) {
                double found;
                if (!number(found) || !token_of(member.hash, found, true)) return false;
            } else if (!value(true, depth + 1))
                return false;
            path.resize(size);
        } while (another('}', wrong));
        if (wrong) return false;
        if (keys == memory_.distinct) return true;  // arms have mostly the same names in the same order
        if (!all_differ(keys, memory_.room)) return false;
        memory_.distinct = keys;
        return true;
    }

    // The next member of an arm's features, if it has the name that the arm before had in its place.
    bool same_member(std::size_t i, Member& member) {
        if (i >= memory_.members.size()) return false;
        member = memory_.members[i];
        if (!word(member.text)) return false;
        ++n_keys;
        return true;
    }

    bool list(bool apart, int depth) {
        std::string& path = memory_.path;
        take('[');
        space();
        if (take(']')) return true;
        const std::size_t size = path.size();
        bool wrong = false;
        std::size_t i = 0;
        do {
            if (i > MOST_TOKENS) return false;
            if (is_number()) {
                path.push_back('\x1f');
                path.append(std::to_string(i));
            }
            if (!value(apart, depth + 1)) return false;
            path.resize(size);
            ++i;
        } while (another(']', wrong));
        return !wrong;
    }
};

// ------------------------------------------------------------------ arms

// An arm whose text is that of one that came before, which then need not be read.
inline bool known_arm(Text& text, Memory& memory) {
    Text ahead = text;
    Span name, id;
    if (!ahead.take('{') || !ahead.key(name) || name != "id" || !ahead.id(id)) return false;
    const Arms::Place* arm = memory.known.find(id, Span(text.at(), text.left()));
    if (!arm) return false;
    memory.arms.insert(memory.arms.end(), arm->words.begin(), arm->words.end());
    memory.ids.push_back(arm->words[0]);
    memory.names.push_back(id);
    text.n_keys += arm->n_keys;
    text.skip(arm->text.size());
    return true;
}

inline bool read_arm(Text& text, Memory& memory) {
    if (text.is('{') && known_arm(text, memory)) return true;
    const char* begin = text.at();
    const Index keys = text.n_keys;
    std::vector<uint64_t>& words = memory.arms;
    const std::size_t first = words.size();
    words.push_back(0);
    Span id;
    bool features = false;
    if (text.is('"')) {
        if (!text.id(id)) return false;
    } else {
        bool wrong = false;
        if (!text.take('{')) return false;
        do {
            Span name;
            if (!text.key(name)) return false;
            if (name == "id" && id.empty()) {
                if (!text.id(id)) return false;
            } else if (name == "features" && !features) {
                features = true;
                if (!text.part('a', words)) return false;
            } else
                return false;
        } while (text.another('}', wrong));
        if (wrong || id.empty()) return false;
    }
    if (!features) words.push_back(0);
    memory.path.assign("a\x1ei", 3).append(id);
    words[first] = memory.tokens.hash(memory.path);
    memory.ids.push_back(words[first]);
    memory.names.push_back(id);
    if (features)
        memory.known.put(id, Span(begin, std::size_t(text.at() - begin)), words.data() + first, words.size() - first,
                         text.n_keys - keys);
    return true;
}

inline bool read_arms(Text& text, Memory& memory) {
    bool wrong = false;
    if (!text.take('[')) return false;
    text.space();
    do {
        const char* first = text.at();
        if (!read_arm(text, memory)) return false;
        memory.texts.emplace_back(first, std::size_t(text.at() - first));
    } while (text.another(']', wrong));
    return !wrong && all_differ(memory.ids, memory.room);
}

}  // namespace armwise
