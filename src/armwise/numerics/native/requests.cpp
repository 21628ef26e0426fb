// JSON as most requests have it, taken apart into tokens without a Python object between (steps 1 and 2 of
// features/encoder.py).
//
// What is read here is a part of JSON: strings without escapes, whole numbers of at most 15 digits, no key twice, all
// within the bounds of features/tokens.py. Of anything else these functions say None, and features/tokens.py reads it,
// or says what is wrong with it: so a mistake is told in one place, and what both read, both read to the same bits.
#include "blake.hpp"
#include "features.hpp"
#include "modules.hpp"

#include <charconv>
#include <string>
#include <string_view>

using namespace nb::literals;
using namespace armwise;

namespace {

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
uint64_t quick(Span text) {
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

// ------------------------------------------------------------------ reading

bool is_utf8(Span text) {
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

bool to_double(const char* first, const char* last, double& number) {
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

// Whether all are known to differ. Those that whoever sent them chose to meet in the same places are not looked through.
bool all_differ(const std::vector<uint64_t>& all, std::vector<uint64_t>& room) {
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

bool read_arm(Text& text, Memory& memory) {
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
    return true;
}

bool read_arms(Text& text, Memory& memory) {
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

nb::object text_of(Span text) { return nb::steal(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), nullptr)); }

nb::object ids_of(const Memory& memory) {
    nb::object ids = nb::steal(PyTuple_New(Py_ssize_t(memory.names.size())));
    if (!ids.is_valid()) throw nb::python_error();
    for (std::size_t k = 0; k < memory.names.size(); ++k) {
        nb::object id = text_of(memory.names[k]);
        if (!id.is_valid()) throw nb::python_error();
        PyTuple_SET_ITEM(ids.ptr(), Py_ssize_t(k), id.release().ptr());
    }
    PyObject_GC_UnTrack(ids.ptr());  // texts alone: no cycle goes through it
    return ids;
}

// The array of the arms, without what stands between.
nb::bytes array_of(Memory& memory) {
    std::string& text = memory.array;
    text.assign(1, '[');
    for (const Span arm : memory.texts) text.append(arm).push_back(',');
    text.back() = ']';
    return nb::bytes(text.data(), text.size());
}

nb::bytes as_bytes(Span text) { return nb::bytes(text.data(), text.size()); }

Memory& memory_here() {
    static thread_local Memory memory;
    memory.forget();
    return memory;
}

// ------------------------------------------------------------------ a request for a decision

struct Decision {
    Span context = "{}", id, catalogue, arms;
    Index known = -1, n_keys = 0;
    bool deferred = false, has_context = false, has_id = false, has_arms = false, has_catalogue = false,
         has_deferred = false;

    bool read(Text& text, Memory& memory, nb::list others) {
        bool wrong = false;
        memory.context.assign(1, 0);
        text.space();
        if (!text.take('{')) return false;
        do {
            Span name;
            if (!text.key(name)) return false;
            const char* first = text.at();
            if (name == "context" && !has_context) {
                has_context = true;
                memory.context.clear();
                const Index before = text.n_keys;
                if (!text.part('c', memory.context)) return false;
                n_keys = text.n_keys - before;
                context = Span(first, std::size_t(text.at() - first));
            } else if (name == "arms" && !has_arms) {
                has_arms = true;
                if (!came_before(text, others) && !read_arms(text, memory)) return false;
                arms = Span(first, std::size_t(text.at() - first));
            } else if (name == "catalogue" && !has_catalogue) {
                has_catalogue = true;
                if (!text.string(catalogue) || catalogue.size() != 32) return false;
                if (catalogue.find_first_not_of("0123456789abcdef") != Span::npos) return false;
            } else if (name == "id" && !has_id) {
                has_id = true;
                if (!text.id(id)) return false;
            } else if (name == "defer" && !has_deferred) {
                has_deferred = true;
                deferred = text.word("true");
                if (!deferred && !text.word("false")) return false;
            } else
                return false;
        } while (text.another('}', wrong));
        return !wrong && text.done() && has_arms != has_catalogue;
    }

    // An array is whole when its first byte to its last are those of an array.
    bool came_before(Text& text, nb::list others) {
        Index i = 0;
        for (nb::handle other : others) {
            const Span before(PyBytes_AS_STRING(other.ptr()), std::size_t(PyBytes_GET_SIZE(other.ptr())));
            if (text.word(before)) {
                known = i;
                return true;
            }
            ++i;
        }
        return false;
    }
};

}  // namespace

void bind_requests(nb::module_& m) {
    m.doc() = "JSON as most requests have it, taken apart into tokens without a Python object between.";

    m.def("blake", [](nb::bytes token) { return blake2b_word(Span(token.c_str(), token.size())); }, "token"_a,
          R"(BLAKE2b with a digest of eight bytes, read as a little-endian integer.

>>> hex(blake(b"1"))
'0x7637ba9f0342fcf6')");

    m.def("linked", [](nb::bytes chain, uint64_t seq, uint64_t time, nb::list heads, nb::list bodies) {
        const std::size_t n = heads.size();
        require(bodies.size() == n, "there must be a body for each head");
        std::vector<std::pair<Span, Span>> texts;
        texts.reserve(n);
        double size = 0.0;
        const auto span = [](nb::handle text) {
            require(PyBytes_Check(text.ptr()), "heads and bodies must be bytes");
            return Span(PyBytes_AS_STRING(text.ptr()), std::size_t(PyBytes_GET_SIZE(text.ptr())));
        };
        for (std::size_t k = 0; k < n; ++k) {
            texts.emplace_back(span(heads[k]), span(bodies[k]));
            size += 10.0 * double(texts.back().second.size());
        }
        std::vector<std::string> chains(n, std::string(16, 0));
        {
            Unlocked unlocked(size);
            Span before(chain.c_str(), chain.size());
            for (std::size_t k = 0; k < n; ++k) {
                const uint64_t numbers[3] = {seq + k, time, texts[k].first.size()};
                Blake state(2);
                state.take(before);
                state.take(Span(reinterpret_cast<const char*>(numbers), sizeof numbers));
                state.take(texts[k].first);
                state.take(texts[k].second);
                std::memcpy(chains[k].data(), state.finish(), 16);
                before = chains[k];
            }
        }
        nb::list found;
        for (const std::string& each : chains) found.append(as_bytes(Span(each)));
        return found;
    }, nb::sig("def linked(chain: bytes, seq: int, time: int, heads: list[bytes], bodies: list[bytes]) -> list[bytes]"),
          "chain"_a, "seq"_a, "time"_a, "heads"_a, "bodies"_a,
          R"(The chain of a journal after each of some events that follow one another, all of one time, numbered from ``seq`` on.

It is BLAKE2b, 16 bytes, of the chain before, number, time and length of the head (eight bytes each), head and body.

>>> linked(b"", 1, 0, [b"shop\0create\0"], [b"{}"])[0].hex()
'00693b81b596ae070777b7fbde605f9a')");

    m.def("read_part", [](nb::bytes text, nb::bytes space) -> nb::object {
        require(space.size() == 1, "space must be one byte");
        Memory& memory = memory_here();
        Text reader(Span(text.c_str(), text.size()), memory);
        memory.context.clear();
        reader.space();
        if (!reader.part(*space.c_str(), memory.context) || !reader.done()) return nb::none();
        return nb::make_tuple(armwise::as_bytes(memory.context), reader.n_keys);
    }, nb::sig("def read_part(text: bytes, space: bytes) -> tuple[bytes, int] | None"), "text"_a, "space"_a,
          R"(The tokens of a JSON object, or of a list of them, and how many keys it has; None: this is not for here.

>>> counted, n_keys = read_part(b'{"hour": 9, "city": "Oslo"}', b"c")
>>> len(counted), n_keys
(56, 2)
>>> read_part(b'{"hour": 9, "hour": 9}', b"c") is None
True)");

    m.def("read_offered", [](nb::tuple texts) -> nb::object {
        Memory& memory = memory_here();
        Index n_keys = 0;
        for (nb::handle each : texts) {
            require(PyBytes_Check(each.ptr()), "texts must be bytes");
            const Span arm(PyBytes_AS_STRING(each.ptr()), std::size_t(PyBytes_GET_SIZE(each.ptr())));
            Text reader(arm, memory);
            if (!read_arm(reader, memory) || reader.left()) return nb::none();
            n_keys += reader.n_keys;
        }
        if (memory.names.empty() || !all_differ(memory.ids, memory.room)) return nb::none();
        return nb::make_tuple(ids_of(memory), armwise::as_bytes(memory.arms), n_keys);
    }, nb::sig("def read_offered(texts: tuple[bytes, ...]) -> tuple[tuple[str, ...], bytes, int] | None"), "texts"_a,
          R"(The ids of arms, their tokens, and how many keys they have; None: this is not for here.

>>> ids, words, n_keys = read_offered((b'"a"', b'{"id": "b", "features": {"price": 3}}'))
>>> ids, len(words), n_keys
(('a', 'b'), 56, 3))");

    m.def("distribution", [](nb::tuple ids, nb::bytes numbers) -> nb::object {
        const Span all(numbers.c_str(), numbers.size());
        std::string& text = memory_here().path;
        text.assign(1, '[');
        std::size_t at = 1;
        for (nb::handle id : ids) {
            Py_ssize_t n = 0;
            const char* first = PyUnicode_AsUTF8AndSize(id.ptr(), &n);
            if (!first) throw nb::python_error();
            const Span name(first, std::size_t(n));
            for (const char c : name)
                if (uint8_t(c) < 0x20 || c == '"' || c == '\\') return nb::none();
            const std::size_t end = all.find_first_of(",]", at);
            require(end != Span::npos, "there must be a number for each id");
            text.append("{\"arm\":\"").append(name).append("\",\"probability\":");
            text.append(all.substr(at, end - at)).append("},");
            at = end + 1;
        }
        require(at == all.size() && at > 1, "there must be an id for each number");
        text.back() = ']';
        return as_bytes(Span(text));
    }, nb::sig("def distribution(ids: tuple[str, ...], numbers: bytes) -> bytes | None"), "ids"_a, "numbers"_a,
          R"(What an answer says of each arm: JSON, from the ids and a JSON list of their probabilities, which stay as written.

None if an id has to be escaped.

>>> distribution(("a", "b"), b"[0.25,0.75]")
b'[{"arm":"a","probability":0.25},{"arm":"b","probability":0.75}]'
>>> distribution(('"',), b"[1.0]") is None
True)");

    m.def("read_decision", [](nb::bytes body, nb::list before) -> nb::object {
        Memory& memory = memory_here();
        Text reader(Span(body.c_str(), body.size()), memory);
        for (nb::handle other : before) require(PyBytes_Check(other.ptr()), "before must have bytes");
        Decision found;
        if (!found.read(reader, memory, before)) return nb::none();
        nb::object ids = nb::none(), words = nb::none(), text = nb::none();
        if (found.has_arms && found.known < 0) {
            ids = ids_of(memory);
            words = armwise::as_bytes(memory.arms);
            text = array_of(memory);
        }
        nb::object id = nb::none(), catalogue = nb::none();
        if (found.has_id && !(id = text_of(found.id)).is_valid()) throw nb::python_error();
        if (found.has_catalogue && !(catalogue = text_of(found.catalogue)).is_valid()) throw nb::python_error();
        return nb::make_tuple(as_bytes(found.context), armwise::as_bytes(memory.context), found.n_keys, id,
                              found.deferred, catalogue, found.known, ids, words, text,
                              found.known < 0 && found.arms.size() >= 8192 ? nb::object(as_bytes(found.arms))
                                                                           : nb::none());
    }, nb::sig("def read_decision(body: bytes, before: list[bytes]) -> tuple[bytes, bytes, int, str | None, bool, "
               "str | None, int, tuple[str, ...] | None, bytes | None, bytes | None, bytes | None] | None"),
          "body"_a, "before"_a,
          R"(A request for a decision: context, its tokens and keys, id, whether it is deferred, catalogue, and the arms:
which of ``before`` they are (-1: none), or their ids, tokens, array, and that as it was sent where it is long.

None: this is not for here.

>>> context, counted, n_keys, *_, ids, words, text, sent = read_decision(
...     b'{"context": {"hour": 9}, "arms": ["a", "b"]}', [])
>>> context, n_keys, ids, text
(b'{"hour": 9}', 1, ('a', 'b'), b'["a","b"]')
>>> read_decision(b'{"arms": ["a", "b"]}', [b'["a", "b"]'])[6]
0
>>> read_decision(b'{"arms": ["a", "a"]}', []) is None
True)");
}
