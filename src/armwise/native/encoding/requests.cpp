// JSON as most requests have it, taken apart into tokens without a Python object between (``reading.hpp``).
//
// Of anything else than that these functions say None, and features/tokens.py reads it.
#include "modules.hpp"
#include "reading.hpp"

using namespace nb::literals;
using namespace armwise;

namespace {

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

void bind_journaled(nb::module_& m);  // journaled.cpp

void bind_requests(nb::module_& m) {
    m.doc() = "JSON as most requests have it, taken apart into tokens without a Python object between.";
    bind_journaled(m);

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
