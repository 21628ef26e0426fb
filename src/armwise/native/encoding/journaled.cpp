// A decision as the journal has it, read in one call where it is as most are (``serve/journal/events.py``).
//
// Of anything else these functions say None, and the general reader reads it, or says what is wrong with it.
#include "reading.hpp"

using namespace nb::literals;
using namespace armwise;

namespace {

// Standard base64, whole and with its padding; nothing else.
bool from_base64(Span text, std::string& found) {
    if (text.size() % 4) return false;
    found.clear();
    found.reserve(text.size() / 4 * 3);
    for (std::size_t i = 0; i < text.size(); i += 4) {
        uint32_t bits = 0;
        int padding = 0;
        for (int k = 0; k < 4; ++k) {
            const char c = text[i + std::size_t(k)];
            int six = 0;
            if (c >= 'A' && c <= 'Z') six = c - 'A';
            else if (c >= 'a' && c <= 'z') six = c - 'a' + 26;
            else if (c >= '0' && c <= '9') six = c - '0' + 52;
            else if (c == '+') six = 62;
            else if (c == '/') six = 63;
            else if (c == '=' && k > 1 && i + 4 == text.size()) ++padding;
            else return false;
            if (padding && c != '=') return false;
            bits = bits << 6 | uint32_t(six);
        }
        for (int k = 0; k < 3 - padding; ++k) found.push_back(char(bits >> (16 - 8 * k) & 255));
    }
    return true;
}

struct Journaled {
    Span context, arms, rule, learn, by, scaling;
    std::vector<double> p;
    Index arm = -1, version = -1, window = -1, n_keys = 0;  // the context's
    double fallback = 0.0;
    std::string scales;

    bool read(Text& text, Memory& memory) {
        static constexpr Span NAMES[] = {"context", "arms", "p", "arm", "version", "window", "default",
                                         "rule", "learn", "scaling", "by"};
        bool wrong = false;
        unsigned had = 0;
        text.space();
        if (!text.take('{')) return false;
        do {
            Span name;
            if (!text.key(name)) return false;
            const auto which = unsigned(std::find(std::begin(NAMES), std::end(NAMES), name) - std::begin(NAMES));
            if (which == std::size(NAMES) || had >> which & 1) return false;
            had |= 1u << which;
            const char* first = text.at();
            bool read = false;
            switch (which) {
            case 0:
                memory.context.clear();
                n_keys = text.n_keys;
                read = text.part('c', memory.context);
                n_keys = text.n_keys - n_keys;
                context = Span(first, std::size_t(text.at() - first));
                break;
            case 1:
                read = read_arms(text, memory);
                arms = Span(first, std::size_t(text.at() - first));
                break;
            case 2: read = numbers(text); break;
            case 3: read = whole(text, arm); break;
            case 4: read = whole(text, version); break;
            case 5: read = whole(text, window); break;
            case 6: read = text.number(fallback); break;
            case 7: read = text.string(rule) && !rule.empty(); break;
            case 8: read = text.string(learn) && !learn.empty(); break;
            case 9: read = text.plain(scaling) && from_base64(scaling, scales) && scales.size() % 24 == 0; break;
            default: read = text.string(by);
            }
            if (!read) return false;
        } while (text.another('}', wrong));
        return !wrong && text.done() && (had & 127) == 127 && p.size() == memory.names.size() && arm < Index(p.size());
    }

  private:
    // A whole number that is not negative.
    static bool whole(Text& text, Index& found) {
        const char* first = text.at();
        double number;
        if (!text.number(number) || text.at() - first > 15) return false;
        for (; first < text.at(); ++first)
            if (*first < '0' || *first > '9') return false;
        found = Index(number);
        return true;
    }

    bool numbers(Text& text) {
        bool wrong = false;
        if (!text.take('[')) return false;
        text.space();
        do {
            p.emplace_back();
            if (!text.number(p.back())) return false;
        } while (text.another(']', wrong));
        return !wrong;
    }
};

nb::object as_text(Span text) {
    nb::object found = nb::steal(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), nullptr));
    if (!found.is_valid()) throw nb::python_error();
    return found;
}

nb::bytes as_bytes(Span text) { return nb::bytes(text.data(), text.size()); }

// The words of one of the arms.
nb::bytes words_of(const std::vector<uint64_t>& arms, Index arm) {
    std::size_t at = 0;
    for (; arm; --arm) at += 2 + 3 * arms[at + 1];
    return nb::bytes(reinterpret_cast<const char*>(arms.data() + at), 8 * (2 + 3 * arms[at + 1]));
}

}  // namespace

void bind_journaled(nb::module_& m) {  // beside what reads requests, in one submodule
    m.def("read_journaled", [](nb::bytes body) -> nb::object {
        Memory& memory = memory_here();
        Text reader(Span(body.c_str(), body.size()), memory);
        Journaled found;
        if (!found.read(reader, memory)) return nb::none();
        nb::list p;
        for (const double each : found.p) p.append(each);
        return nb::make_tuple(
            nb::make_tuple(as_bytes(found.context), as_bytes(found.arms), p, found.arm, found.version, found.window,
                           found.fallback, as_text(found.rule), as_text(found.learn), as_text(found.scaling),
                           as_text(found.by)),
            armwise::as_bytes(memory.context), found.n_keys, armwise::as_bytes(memory.arms), words_of(memory.arms, found.arm),
            as_bytes(Span(found.scales)));
    }, nb::sig("def read_journaled(body: bytes) -> tuple[tuple[bytes, bytes, list[float], int, int, int, float, str, "
               "str, str, str], bytes, int, bytes, bytes, bytes] | None"),
          "body"_a,
          R"(A decision from its body. First what it says: context, arms, probabilities, arm, version, window, default, rule, how it
is learnt, scaling, who asked (the last four empty where they are not there). Then the tokens of the context and how many keys it has, the tokens of all
arms, of the arm that was drawn, and the scaling, packed.

None: this is not for here.

>>> said, counted, n_keys, words, drawn, scaling = read_journaled(
...     b'{"context":{"hour":9},"arms":["a","b"],"p":[0.5,0.5],"arm":1,"version":7,"window":1000,"default":0.0}')
>>> said
(b'{"hour":9}', b'["a","b"]', [0.5, 0.5], 1, 7, 1000, 0.0, '', '', '', '')
>>> len(counted), n_keys, len(words), words[16:] == drawn, scaling
(32, 1, 32, True, b'')
>>> read_journaled(b'{"value":1.0}') is None
True)");
}
