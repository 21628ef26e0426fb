// Tokens of named values (steps 1 and 2 of features/encoding/encoder.py): a depth-first walk over Python objects, decoded
// from JSON or given by callers.
#include "features.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

#include <string>
#include <unordered_map>
#include <vector>

using namespace nb::literals;
using namespace armwise;

namespace {

constexpr std::size_t MAX_CACHED = 1 << 16;     // tokens with cached hashes
constexpr std::size_t MAX_CACHED_BYTES = 128;   // of a cached token
constexpr std::size_t MAX_MEMBERS = 64;         // numbers of a value whose names are compared with those of the next value

// Python's hash of bytes, which is keyed: clients choose the tokens and could make them collide.
struct Keyed {
    std::size_t operator()(const std::string& text) const {
        static const auto hash = PyHash_GetFuncDef()->hash;
        return std::size_t(hash(text.data(), Py_ssize_t(text.size())));
    }
};
using Cache = std::unordered_map<std::string, uint64_t, Keyed>;

// Hashes of tokens by their bytes, guarded by the GIL; a full cache is emptied.
Cache& cache() {
    static auto* cached = new Cache;
    return *cached;
}

struct Limits {
    std::size_t tokens, text, path;
    int depth;
};

[[noreturn]] void refuse(const std::string& reason) { throw nb::value_error(reason.c_str()); }

std::string_view utf8(PyObject* text) {
    Py_ssize_t n = 0;
    const char* first = PyUnicode_AsUTF8AndSize(text, &n);
    if (!first) throw nb::python_error();
    return {first, std::size_t(n)};
}

bool is_number(PyObject* value) { return PyFloat_CheckExact(value) || PyLong_CheckExact(value); }

// Walk values without calling Python, which could change a dictionary meanwhile; `resolve` then hashes the tokens that are
// not cached.
class Walk {
  public:
    std::vector<uint64_t> words;
    Index n_keys = 0;
    bool flat = true;  // the values hold only texts, booleans, and numbers of 64 bits
    uint64_t kinds = 0;  // tells integers from floats, to compare batches

    Walk(char space, const Limits& limits) : path_(1, space), limits_(limits) {}

    // Appends the number of a value's tokens, and the tokens; `without` is a key that is left out (nullptr: none).
    void value(PyObject* value, PyObject* without) {
        const std::size_t at = words.size();
        words.push_back(0);
        first_ = at + 1, without_ = without, member_ = 0;
        walk(value, true, 0);
        words[at] = n_tokens();
    }

    void resolve() {
        if (unknown_.empty()) return;
        static const nb::object* blake2b = new nb::object(nb::module_::import_("hashlib").attr("blake2b"));
        if (cache().size() + unknown_.size() > MAX_CACHED) cache().clear();
        for (auto& [place, token] : unknown_) {
            const nb::object hash = (*blake2b)(nb::bytes(token.data(), token.size()), "digest_size"_a = 8);
            const nb::bytes digest = nb::cast<nb::bytes>(hash.attr("digest")());
            require(digest.size() == 8, "a digest must have 8 bytes");
            std::memcpy(&words[place], digest.c_str(), 8);
            if (token.size() <= MAX_CACHED_BYTES) cache().emplace(std::move(token), words[place]);
        }
    }

  private:
    struct Member {
        std::string path;
        uint64_t hash;
    };

    std::string path_;
    const Limits& limits_;
    PyObject* without_ = nullptr;
    std::size_t first_ = 0, member_ = 0;
    std::vector<std::pair<std::size_t, std::string>> unknown_;
    std::vector<Member> members_;  // numbers of the previous value: most arms have the same names in the same order

    std::size_t n_tokens() const { return (words.size() - first_) / 3; }

    void token(double number, bool scaled) {
        words.push_back(0);
        uint64_t bits;
        std::memcpy(&bits, &number, 8);
        words.push_back(bits), words.push_back(scaled);
    }

    // Set the hash of the token just added, that of `path_`; return whether it is cached.
    bool hash_token() {
        const auto found = cache().find(path_);
        if (found == cache().end()) {
            unknown_.emplace_back(words.size() - 3, path_);
            return false;
        }
        words[words.size() - 3] = found->second;
        return true;
    }

    void text_token(const char* kind, std::string_view text) {
        const std::size_t size = path_.size();
        path_.append("\x1e").append(kind).append(text);
        token(1.0, false);
        hash_token();
        path_.resize(size);
    }

    void number_token(PyObject* value) {
        double number;
        if (PyFloat_CheckExact(value)) {
            number = PyFloat_AS_DOUBLE(value);
            kinds = mix(kinds, 1);
            if (std::isnan(number)) {  // a missing value
                flat = false;
                return;
            }
        } else {
            kinds = mix(kinds, 2);
            int overflow = 0;
            PyLong_AsLongLongAndOverflow(value, &overflow);
            flat &= overflow == 0;
            number = PyLong_AsDouble(value);
            if (number == -1.0 && PyErr_Occurred()) {
                PyErr_Clear();
                number = HUGE_VAL;
            }
        }
        if (!(number > -1e150 && number < 1e150)) refuse("a number beyond 1e150 in magnitude");
        token(number, true);
        const std::size_t k = member_++;
        if (k < members_.size() && members_[k].path == path_) {
            words[words.size() - 3] = members_[k].hash;
            return;
        }
        if (hash_token() && k < MAX_MEMBERS) {
            if (k >= members_.size()) members_.resize(k + 1);
            members_[k] = {path_, words[words.size() - 3]};
        }
    }

    // Add an outermost number if its name has the same place as in the previous value, as most names of a batch have.
    bool as_before(std::string_view name, double number) {
        if (member_ >= members_.size() || n_tokens() >= limits_.tokens) return false;
        const Member& before = members_[member_];
        if (before.path.size() != name.size() + 1 || std::memcmp(before.path.data() + 1, name.data(), name.size()) ||
            !(number > -1e150 && number < 1e150))
            return false;
        kinds = mix(kinds, 1);
        token(number, true);
        words[words.size() - 3] = before.hash;
        ++member_;
        return true;
    }

    void walk(PyObject* value, bool outermost, int depth) {
        if (value == Py_None) {
            flat = false;
            return;
        }
        const bool is_dict = PyDict_CheckExact(value), is_list = PyList_CheckExact(value);
        const std::size_t size = is_dict ? std::size_t(PyDict_GET_SIZE(value))
                                 : is_list ? std::size_t(PyList_GET_SIZE(value)) : 1;
        if (n_tokens() + (size > limits_.tokens ? size : 1) > limits_.tokens) {
            const std::string most = std::to_string(limits_.tokens);
            refuse("more than " + most + " features; at most " + most + " are accepted");
        }
        if (path_.size() > limits_.path)
            refuse("keys of " + std::to_string(path_.size()) + " bytes on the way to one value; at most " +
                   std::to_string(limits_.path) + " are accepted");
        if (is_dict || is_list) {
            flat &= depth == 0;
            if (depth >= limits_.depth)
                refuse("nested " + std::to_string(depth + 1) + " deep; at most " + std::to_string(limits_.depth) +
                       " is accepted");
        }
        if (is_dict)
            members(value, outermost, depth);
        else if (is_list)
            items(value, outermost, depth);
        else if (PyUnicode_CheckExact(value)) {
            check_length(value, "a string");
            text_token("s", utf8(value));
        } else if (PyBool_Check(value))
            text_token("b", value == Py_True ? "true" : "false");
        else if (is_number(value))
            number_token(value);
        else
            throw nb::type_error("not a value of JSON");
    }

    void members(PyObject* value, bool outermost, int depth) {
        const std::size_t size = path_.size();
        PyObject *key, *item;
        Py_ssize_t position = 0;
        while (PyDict_Next(value, &position, &key, &item)) {
            if (!PyUnicode_CheckExact(key)) throw nb::type_error("not a key of JSON");
            ++n_keys;
            if (without_ && depth == 0 && PyUnicode_Compare(key, without_) == 0) continue;
            check_length(key, "a key");
            const std::string_view name = utf8(key);
            if (outermost && PyFloat_CheckExact(item) && as_before(name, PyFloat_AS_DOUBLE(item))) continue;
            if (!outermost) path_.push_back('\x1f');
            path_.append(name);
            walk(item, false, depth + 1);
            path_.resize(size);
        }
    }

    void items(PyObject* value, bool outermost, int depth) {
        const std::size_t size = path_.size();
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) {
            PyObject* item = PyList_GET_ITEM(value, i);
            if (is_number(item)) path_.append("\x1f").append(std::to_string(i));
            walk(item, outermost, depth + 1);
            path_.resize(size);
        }
    }

    void check_length(PyObject* text, const char* what) const {
        const auto n = std::size_t(PyUnicode_GET_LENGTH(text));
        if (n > limits_.text)
            refuse(std::string(what) + " of " + std::to_string(n) + " characters; at most " +
                   std::to_string(limits_.text) + " are accepted");
    }
};

// The hashes of arms, one after the other, from the words of their tokens.
class ArmHashes {
  public:
    explicit ArmHashes(const nb::bytes& words) : reader_(as_words(words)) {}
    uint64_t next() {
        const uint64_t hash = reader_.word();
        reader_.tokens(reader_.count());
        return hash;
    }

  private:
    Reader reader_;
};

}  // namespace

void bind_tokens(nb::module_& m) {
    m.doc() = "Tokens of named values: Python objects, as JSON decodes to or as callers have them.";

    m.def("tokens", [](nb::list values, nb::bytes space, nb::handle without,
                       const std::tuple<std::size_t, std::size_t, std::size_t, int>& limits) {
        require(space.size() == 1, "space must be one byte");
        const auto [most, text, path, depth] = limits;
        const Limits all{most, text, path, depth};
        Walk walk(*space.c_str(), all);
        std::vector<std::size_t> ends;
        ends.reserve(values.size());
        walk.words.reserve(64 * values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            walk.value(PyList_GET_ITEM(values.ptr(), Py_ssize_t(i)), without.is_none() ? nullptr : without.ptr());
            ends.push_back(walk.words.size());
        }
        walk.resolve();
        nb::list found;
        const char* words = reinterpret_cast<const char*>(walk.words.data());
        std::size_t start = 0;
        for (const std::size_t end : ends) {
            found.append(nb::bytes(words + 8 * start, 8 * (end - start)));
            start = end;
        }
        return nb::make_tuple(found, walk.n_keys, walk.flat ? nb::object(nb::int_(walk.kinds)) : nb::none());
    }, nb::sig("def tokens(values: list[typing.Any], space: bytes, without: str | None, "
               "limits: tuple[int, int, int, int]) "
               "-> tuple[list[bytes], int, int | None]"),
          "values"_a, "space"_a, "without"_a.none(), "limits"_a,
          R"(The tokens of dictionaries, or of lists of them: for each value how many there are, then three words for each.

It also returns the number of keys and, if all values are flat (only texts, booleans, and numbers of 64 bits under their
keys), a number: batches with the same tokens and the same number are the same JSON. The key ``without`` is left out;
``limits`` are the largest numbers of tokens of a value, characters of a text, bytes of a path, and levels. Beyond a limit
it raises ValueError, for a type that JSON lacks TypeError. NaN is a missing value.

>>> found, n_keys, kinds = tokens([{"hour": 9, "city": "Oslo"}], b"c", None, (9, 9, 9, 9))
>>> len(found[0]), n_keys, kinds is None
(56, 2, False))");

    m.def("arm_hash", [](nb::bytes arms, Index arm) {
        ArmHashes hashes(arms);
        require(arm >= 0, "arm must be the index of an arm");
        for (; arm > 0; --arm) hashes.next();
        return hashes.next();
    }, "arms"_a, "arm"_a, R"(The hash of one arm's id, from the words of the arms' tokens.

>>> arm_hash(np.array([7, 0, 8, 0], np.uint64).tobytes(), 1)
8)");

    m.def("found_by_arm", [](nb::dict values, nb::bytes arms, Index K) {
        ArmHashes hashes(arms);
        nb::list found;
        for (Index k = 0; k < K; ++k) {
            const nb::int_ hash(hashes.next());
            PyObject* value = PyDict_GetItemWithError(values.ptr(), hash.ptr());
            if (!value && PyErr_Occurred()) throw nb::python_error();
            found.append(value ? nb::borrow(value) : nb::object(nb::int_(0)));
        }
        return found;
    }, nb::sig("def found_by_arm(values: dict[int, int], arms: bytes, K: int) -> list[int]"), "values"_a, "arms"_a, "K"_a,
          R"(The value of each arm: that of its id's hash in ``values``, else 0.

>>> found_by_arm({8: 3}, np.array([7, 0, 8, 0], np.uint64).tobytes(), 2)
[0, 3])");
}
