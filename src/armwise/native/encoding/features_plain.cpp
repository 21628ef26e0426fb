// Dictionaries and arms as people have them, taken apart into tokens without a JSON text between (steps 1 and 2 of
// features/encoder.py).
#include "features.hpp"
#include "modules.hpp"

using namespace nb::literals;
using namespace armwise;

namespace {

// What a dictionary has under a key, or nullptr; borrowed.
PyObject* found_in(PyObject* dictionary, PyObject* key) {
    PyObject* found = PyDict_GetItemWithError(dictionary, key);
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
}

bool has_size(PyObject* object, Py_ssize_t size) {
    return object && PyBytes_CheckExact(object) && PyBytes_GET_SIZE(object) == size;
}

// A number that tokens carry; false if it is beyond what JSON's readers or squares take, or NaN.
bool as_double(PyObject* value, double& number) {
    if (PyFloat_CheckExact(value))
        number = PyFloat_AS_DOUBLE(value);
    else {
        int overflow = 0;
        const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow) return false;
        number = double(whole);
    }
    return number > -1e150 && number < 1e150;
}

// The token of a text or a boolean under a name, if it is known; borrowed.
PyObject* row_of(PyObject* name, PyObject* value, PyObject* texts) {
    if (!PyUnicode_CheckExact(value) && !PyBool_Check(value)) return nullptr;
    PyObject* known = found_in(texts, name);
    PyObject* found = known && PyDict_CheckExact(known) ? found_in(known, value) : nullptr;
    return has_size(found, 24) ? found : nullptr;
}

// Appends the token of a name and its value; false if it is not known, or not of a kind that is read here.
bool add_token(PyObject* name, PyObject* value, PyObject* heads, PyObject* texts, std::vector<uint64_t>& words) {
    PyObject* head = found_in(heads, name);
    if (!has_size(head, 8)) return false;
    uint64_t row[3] = {0, 0, 1};
    if (PyFloat_CheckExact(value) || PyLong_CheckExact(value)) {
        double number;
        if (PyFloat_CheckExact(value) && std::isnan(PyFloat_AS_DOUBLE(value))) return true;  // a missing value
        if (!as_double(value, number)) return false;
        std::memcpy(row, PyBytes_AS_STRING(head), 8);
        std::memcpy(row + 1, &number, 8);
    } else {
        if (value == Py_None) return true;
        PyObject* found = row_of(name, value, texts);
        if (!found) return false;
        std::memcpy(row, PyBytes_AS_STRING(found), 24);
    }
    words.insert(words.end(), row, row + 3);
    return true;
}

bool same_text(PyObject* a, PyObject* b) {
    if (a == b) return true;
    const Py_ssize_t n = PyUnicode_GET_LENGTH(a);
    const auto kind = PyUnicode_KIND(a);  // texts are kept in the narrowest kind that has their characters
    return n == PyUnicode_GET_LENGTH(b) && kind == PyUnicode_KIND(b) &&
           std::memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), std::size_t(n) * std::size_t(kind)) == 0;
}

// Appends the number of a dictionary's tokens, and the tokens; what is under `except` is left out.
bool add_tokens(PyObject* names, PyObject* except, PyObject* heads, PyObject* texts, std::vector<uint64_t>& words) {
    const std::size_t at = words.size();
    words.push_back(0);
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(names, &position, &name, &value)) {
        if (!PyUnicode_CheckExact(name)) return false;
        if (except && same_text(name, except)) continue;
        if (!add_token(name, value, heads, texts, words)) return false;
    }
    words[at] = (words.size() - at - 1) / 3;
    return true;
}

// Whether two values are the same, to their type.
bool same_value(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (PyFloat_CheckExact(a)) {
        const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return std::memcmp(&x, &y, sizeof x) == 0;
    }
    if (PyUnicode_CheckExact(a)) return same_text(a, b);
    if (PyLong_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
    return false;  // None and the booleans are the same object or not the same
}

// Arms as they were: the names of each (None: the arm is its id), and all values in turn.
struct Shape {
    PyObject *names, *values;

    // Calls `visit(name, value, before)` for all values of arms that have these names in this order, the name nullptr for
    // an arm that is its id, until it says false; whether it never did, and the arms are so.
    template <class Begin, class Visit> bool walk(PyObject* arms, Begin begin, Visit visit) const {
        const Py_ssize_t K = PySequence_Fast_GET_SIZE(arms), total = PyTuple_GET_SIZE(values);
        if (K != PyTuple_GET_SIZE(names)) return false;
        Py_ssize_t at = 0;
        for (Py_ssize_t i = 0; i < K; ++i) {
            PyObject *arm = PySequence_Fast_GET_ITEM(arms, i), *own = PyTuple_GET_ITEM(names, i);
            begin();
            if (!PyDict_CheckExact(arm)) {
                if (own != Py_None || at >= total || !visit(nullptr, arm, PyTuple_GET_ITEM(values, at))) return false;
                ++at;
                continue;
            }
            if (!PyTuple_CheckExact(own) || PyTuple_GET_SIZE(own) != PyDict_GET_SIZE(arm)) return false;
            if (at + PyTuple_GET_SIZE(own) > total) return false;
            PyObject *name, *value;
            Py_ssize_t position = 0, k = 0;
            while (PyDict_Next(arm, &position, &name, &value)) {
                PyObject* wanted = PyTuple_GET_ITEM(own, k++);
                if (!PyUnicode_CheckExact(name) || !PyUnicode_CheckExact(wanted) || !same_text(name, wanted)) return false;
                if (!visit(wanted, value, PyTuple_GET_ITEM(values, at++))) return false;
            }
        }
        return at == total;
    }
};

bool is_missing(PyObject* value) {
    return value == Py_None || (PyFloat_CheckExact(value) && std::isnan(PyFloat_AS_DOUBLE(value)));
}

bool is_number(PyObject* value) { return PyFloat_CheckExact(value) || PyLong_CheckExact(value); }

nb::object fast(nb::handle arms) {
    nb::object found = nb::steal(PySequence_Fast(arms.ptr(), "arms must be a sequence"));
    if (!found.is_valid()) throw nb::python_error();
    return found;
}

}  // namespace

void bind_plain(nb::module_& m) {
    m.doc() = "Dictionaries and arms as people have them, taken apart into tokens without a JSON text between.";

    m.def("flat", [](nb::dict names, nb::dict heads, nb::dict texts) -> nb::object {
        std::vector<uint64_t> words;
        words.reserve(std::size_t(1 + 3 * PyDict_GET_SIZE(names.ptr())));
        if (!add_tokens(names.ptr(), nullptr, heads.ptr(), texts.ptr(), words)) return nb::none();
        return as_bytes(words);
    }, nb::sig("def flat(names: dict[object, object], heads: dict[str, bytes], "
               "texts: dict[str, dict[str | bool, bytes]]) -> bytes | None"),
          "names"_a, "heads"_a, "texts"_a,
          R"(The tokens of a flat dictionary: how many, then three words for each.

``heads`` has the hash under each name, ``texts`` under each name and text (or boolean) the row; None if one is missing,
or if there is anything else in the dictionary.

>>> len(flat({"hour": 9, "vip": None}, {"hour": b"12345678", "vip": b"abcdefgh"}, {}))
32
>>> flat({"city": "Oslo"}, {}, {}) is None
True)");

    m.def("ids_of", [](nb::tuple arms, nb::str id) -> nb::object {
        nb::list ids;
        for (nb::handle arm : arms) {
            PyObject* found = PyDict_CheckExact(arm.ptr()) ? found_in(arm.ptr(), id.ptr()) : arm.ptr();
            if (!found || !PyUnicode_CheckExact(found)) return nb::none();
            ids.append(nb::handle(found));
        }
        return nb::tuple(ids);
    }, nb::sig("def ids_of(arms: tuple[object, ...], id: str) -> tuple[str, ...] | None"), "arms"_a, "id"_a,
          R"(What arms are called, texts or dictionaries with a text under ``id``; None if one is anything else.

>>> ids_of(("a", {"id": "b", "price": 3}), "id")
('a', 'b'))");

    m.def("shape_of", [](nb::tuple arms) {
        nb::object names = nb::steal(PyTuple_New(Py_ssize_t(arms.size())));
        nb::list values;
        if (!names.is_valid()) throw nb::python_error();
        for (std::size_t i = 0; i < arms.size(); ++i) {
            PyObject* arm = nb::handle(arms[i]).ptr();
            PyObject* own = Py_None;
            if (PyDict_CheckExact(arm)) {
                own = PyTuple_New(PyDict_GET_SIZE(arm));
                if (!own) throw nb::python_error();
                PyObject *name, *value;
                Py_ssize_t position = 0, k = 0;
                while (PyDict_Next(arm, &position, &name, &value)) {
                    PyTuple_SET_ITEM(own, k++, Py_NewRef(name));
                    values.append(nb::handle(value));
                }
            } else {
                Py_INCREF(own);
                values.append(nb::handle(arm));
            }
            PyTuple_SET_ITEM(names.ptr(), Py_ssize_t(i), own);
        }
        return nb::make_tuple(names, nb::tuple(values));
    }, nb::sig("def shape_of(arms: tuple[object, ...]) -> tuple[tuple[object, ...], tuple[object, ...]]"), "arms"_a,
          R"(Arms as they are now, whatever becomes of them: the names of each, None for one that is its id, and all values.

>>> shape_of(("a", {"id": "b", "price": 3}))
((None, ('id', 'price')), ('a', 'b', 3)))");

    m.def("revalued", [](nb::object given, nb::tuple names, nb::tuple values, nb::bytes words, nb::str id,
                         nb::dict texts) -> nb::object {
        const nb::object arms = fast(given);
        const Shape shape{names.ptr(), values.ptr()};
        if (shape.walk(arms.ptr(), [] {}, [](PyObject*, PyObject* value, PyObject* before) {
                return same_value(value, before);
            }))
            return values;
        const Hashes old = as_words(words);
        nb::object fresh = nb::steal(PyBytes_FromStringAndSize(words.c_str(), Py_ssize_t(words.size())));
        nb::object kept = nb::steal(PyTuple_New(Py_ssize_t(values.size())));
        if (!fresh.is_valid() || !kept.is_valid()) throw nb::python_error();
        auto* to = reinterpret_cast<uint64_t*>(PyBytes_AS_STRING(fresh.ptr()));  // nobody else has it yet
        Index at = 0;
        Py_ssize_t k = 0;
        const bool done = shape.walk(arms.ptr(), [&] { at += 2; }, [&](PyObject* name, PyObject* value, PyObject* before) {
            if (!name || name == id.ptr() || same_text(name, id.ptr())) {
                if (!PyUnicode_CheckExact(value) || !same_value(value, before)) return false;
            } else if (is_missing(value) || is_missing(before)) {
                if (!is_missing(value) || !is_missing(before)) return false;
            } else {
                if (at + 3 > old.size()) return false;
                if (is_number(value)) {
                    double number;
                    if (!is_number(before) || !as_double(value, number)) return false;
                    std::memcpy(to + at + 1, &number, 8);
                } else if (value != before) {
                    if (is_number(before)) return false;
                    PyObject* row = row_of(name, value, texts.ptr());
                    if (!row) return false;
                    std::memcpy(to + at, PyBytes_AS_STRING(row), 24);
                }
                at += 3;
            }
            PyTuple_SET_ITEM(kept.ptr(), k++, Py_NewRef(value));
            return true;
        });
        if (!done || at != old.size()) return nb::none();
        PyObject_GC_UnTrack(kept.ptr());  // numbers and texts alone: no cycle goes through it
        return nb::make_tuple(kept, fresh);
    }, nb::sig("def revalued(arms: object, names: tuple[object, ...], values: tuple[object, ...], words: bytes, id: str, "
               "texts: dict[str, dict[str | bool, bytes]]) -> tuple[object, ...] | None"),
          "arms"_a, "names"_a, "values"_a, "words"_a, "id"_a, "texts"_a,
          R"(Arms beside those of which ``shape_of`` gave names and values, and ``flat_arms`` the words.

``values`` itself if nothing differs, to the type of each value and the order of the names; the values and words of these
arms if only values differ; None if anything else does, or a text is not known.

>>> shape, words = shape_of(({"id": "a", "n": 3},)), np.array([1, 1, 7, 0, 1], np.uint64).tobytes()
>>> revalued(({"id": "a", "n": 3},), *shape, words, "id", {}) is shape[1]
True
>>> revalued(({"id": "a", "n": 4.0},), *shape, words, "id", {})[0], revalued(({"n": 3},), *shape, words, "id", {})
(('a', 4.0), None))");

    m.def("flat_arms", [](nb::tuple arms, nb::str id, nb::dict hashes, nb::dict heads,
                          nb::dict texts) -> nb::object {
        std::vector<uint64_t> words;
        words.reserve(64 * arms.size());
        for (nb::handle arm : arms) {
            const bool described = PyDict_CheckExact(arm.ptr());
            PyObject* called = described ? found_in(arm.ptr(), id.ptr()) : arm.ptr();
            PyObject* hash = called && PyUnicode_CheckExact(called) ? found_in(hashes.ptr(), called) : nullptr;
            if (!has_size(hash, 8)) return nb::none();
            uint64_t word;
            std::memcpy(&word, PyBytes_AS_STRING(hash), 8);
            words.push_back(word);
            if (!described)
                words.push_back(0);
            else if (!add_tokens(arm.ptr(), id.ptr(), heads.ptr(), texts.ptr(), words))
                return nb::none();
        }
        return as_bytes(words);
    }, nb::sig("def flat_arms(arms: tuple[object, ...], id: str, hashes: dict[str, bytes], heads: dict[str, bytes], "
               "texts: dict[str, dict[str | bool, bytes]]) -> bytes | None"),
          "arms"_a, "id"_a, "hashes"_a, "heads"_a, "texts"_a,
          R"(The tokens of arms: per arm the hash of its id, and those of its other names as ``flat`` has them.

>>> len(flat_arms(("a", {"id": "b", "price": 3}), "id", {"a": b"1" * 8, "b": b"2" * 8}, {"price": b"3" * 8}, {}))
56)");
}
