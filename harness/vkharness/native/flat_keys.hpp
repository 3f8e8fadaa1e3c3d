// Where the bytes of a call (key_form.hpp) have what its flat plan needs: found once for each form, by names.

#ifndef VKHARNESS_FLAT_KEYS_HPP
#define VKHARNESS_FLAT_KEYS_HPP

#include "flat_plans.hpp"
#include "key_form.hpp"

#include <string>

namespace vkharness {

// Where the arguments of a command say what its plan has.
struct FlatNames {
    PyObject *into;           // "commandBuffer"
    Ref info, regions, data;  // the struct with the rest, the list of regions, bytes; none where there is none
    std::vector<Ref> buffers, numbers;
    std::vector<std::uint8_t> apart;  // last bytes of numbers that mean something else than all others

    // Takes tuples of names and of last bytes. False where one is none.
    bool take(PyObject *of_buffers, PyObject *of_numbers, PyObject *last_bytes) {
        for (const auto &[from, into] : {std::pair(of_buffers, &buffers), std::pair(of_numbers, &numbers)}) {
            for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(from); ++at) {
                into->push_back(Ref::share(PyTuple_GET_ITEM(from, at)));
                if (!PyUnicode_Check(into->back().get())) return false;
            }
        }
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(last_bytes); ++at) {
            long long last;
            if (!near_number(PyTuple_GET_ITEM(last_bytes, at), last)) return false;
            apart.push_back(static_cast<std::uint8_t>(last));
        }
        return true;
    }
};

class FlatKey {
  public:
    // The numbers of a command with its data, and the ids of its buffers and its command buffer.
    struct Values {
        std::vector<std::uint64_t> numbers;
        std::uint64_t into = 0, buffers[FlatKind::MOST] = {};
    };

    FlatKey(PyObject *form, const FlatNames &names) : form_(Ref::share(form)), apart_(names.apart) {
        std::size_t at = 0;
        buffers_.resize(names.buffers.size(), NOWHERE);
        numbers_.resize(names.numbers.size());
        const std::vector<KeyForm::Field> &fields = KeyForm::of(form)->fields;
        const bool is_fixed = locate(*KeyForm::of(form), names, !names.info, at);
        if (is_fixed || (names.data && !fields.empty() && is(fields.back(), names.data.get()))) end_ = at;
        if (names.regions) name(*KeyForm::of(form), names, !names.info);
        is_whole_ = into_ != NOWHERE && (!names.regions || list_ != NOWHERE) && (!names.data || data_ != NOWHERE);
        for (const std::size_t each : buffers_) is_whole_ = is_whole_ && each != NOWHERE;
        for (const Number &each : numbers_) is_whole_ = is_whole_ && each.at != NOWHERE;
    }

    bool is_of(PyObject *form) const { return form_.get() == form; }

    // Reads bytes of its form. False where they say something else, or have no flat plan.
    bool read(const char *bytes, Values &values) const {
        if (!is_whole_) return false;
        for (const std::size_t each : flags_) {
            if (!bytes[each]) return false;
        }
        values.into = whole(bytes + into_);
        for (std::size_t at = 0; at < buffers_.size(); ++at) values.buffers[at] = whole(bytes + buffers_[at]);
        const std::uint64_t count = list_ == NOWHERE ? 1 : whole(bytes + list_);
        const char *from = list_ == NOWHERE ? bytes : bytes + list_ + KeyForm::NUMBER;
        for (std::uint64_t region = 0; region < count; ++region, from += stride_) {
            for (const Number &each : numbers_) {
                const std::uint64_t number = load_integer(each.code, reinterpret_cast<std::uintptr_t>(from + each.at));
                if (number >= static_cast<std::uint64_t>(FAR_ADDRESS)) return false;
                values.numbers.push_back(number);
            }
        }
        return data_ == NOWHERE || read_data(bytes, values.numbers);
    }

    // All bytes, with zeros in the place of the numbers, or which one of those that are apart it is; none where these are not always as many. Where there are data, the bytes
    // before these, with the numbers.
    std::string without_numbers(const char *bytes) const {
        if (end_ == NOWHERE) return {};
        std::string found(bytes, end_);
        if (data_ != NOWHERE) return found;
        for (const Number &each : numbers_) {
            const std::uint64_t number = load_integer(each.code, reinterpret_cast<std::uintptr_t>(bytes + each.at));
            const auto known = std::find(apart_.begin(), apart_.end(), static_cast<std::uint8_t>(number));
            std::memset(&found[each.at], 0, size_of_number(each.code));
            if (known != apart_.end()) found[each.at] = static_cast<char>(1 + (known - apart_.begin()));
        }
        return found;
    }

    // Reads bytes of its form that have one region, also behind other lists: the numbers, in the region or beside it, and all bytes
    // with zeros in the place of these. Of a list of numbers it has all, behind the ids of as many buffers where the row names
    // these. False where they say something else.
    bool read_around(const char *bytes, Values &values, std::string &others) const {
        std::vector<std::pair<const char *, std::size_t>> places;
        const char *at = bytes;
        bool good = true, found = false;
        std::size_t read = 0;
        values.numbers.assign(members_.size(), 0);
        const auto read_number = [&](const KeyForm::Field &field, const char *place) {
            for (std::size_t each = 0; each < members_.size(); ++each) {
                const bool replaces = &field == members_[each].instead && *place;
                if (&field != members_[each].field && !replaces) continue;
                place += replaces;
                const std::uint64_t number = load_integer(field.code, reinterpret_cast<std::uintptr_t>(place));
                good = good && number < static_cast<std::uint64_t>(FAR_ADDRESS);
                values.numbers[each] = number;
                places.push_back({place, size_of_number(field.code)});
                read += !replaces;
            }
        };
        std::uint64_t ids = 0;
        const auto read_list = [&](const char *from, std::uint64_t count) {
            for (std::uint64_t each = 0; each < count; ++each, from += KeyForm::NUMBER) {
                values.numbers.push_back(whole(from));
                good = good && values.numbers.back() < static_cast<std::uint64_t>(FAR_ADDRESS);
                places.push_back({from, KeyForm::NUMBER});
            }
        };
        const auto in_rest = [&](const KeyForm::Field &field, const char *place) {
            read_number(field, place);
            if (&field == ids_field_) {
                const char *from = place;
                ids = KeyForm::elements(field, from);
                read_list(from, ids);
            }
            if (&field != list_field_) return;
            const char *from = place;
            const std::uint64_t count = KeyForm::elements(field, from);
            found = field.kind == 's' ? count == 1 : count > 0 && (!ids_field_ || ids == count);
            if (found && field.kind == 's') KeyForm::of(field.part.get())->walk(from, read_number);
            if (field.kind == 'n') read_list(from, count);
        };
        KeyForm::of(form_.get())->walk(at, [&](const KeyForm::Field &field, const char *place) {
            if (&field == into_field_) values.into = whole(place);
            if (&field == info_field_ && *place) {
                const char *inside = place + 1;
                KeyForm::of(field.part.get())->walk(inside, in_rest);
            }
            in_rest(field, place);
        });
        if (!good || !found || !into_field_ || read != members_.size()) return false;
        others.assign(bytes, at);
        for (const auto &[place, size] : places) std::memset(&others[static_cast<std::size_t>(place - bytes)], 0, size);
        return true;
    }

    // Puts the first bytes of data behind numbers, of which the last says how many these are. False where there are fewer.
    static bool add_data(std::vector<std::uint64_t> &numbers, const char *data, std::uint64_t size) {
        const std::uint64_t wanted = numbers.back();
        if (wanted > size) return false;
        const std::size_t before = numbers.size();
        numbers.resize(before + (wanted + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
        std::memcpy(numbers.data() + before, data, wanted);
        return true;
    }

  private:
    static constexpr std::size_t NOWHERE = static_cast<std::size_t>(-1);
    struct Number {
        std::size_t at = NOWHERE;
        char code = 'Q';
    };

    static std::uint64_t whole(const char *at) { return load<std::uint64_t>(reinterpret_cast<std::uintptr_t>(at)); }

    bool read_data(const char *bytes, std::vector<std::uint64_t> &numbers) const {
        return add_data(numbers, bytes + data_ + KeyForm::NUMBER, whole(bytes + data_));
    }

    // Notes where members lie, from a place on, as far as that does not depend on other bytes. `has_rest`: it is the struct
    // with buffers and numbers. False behind the first member of which nobody knows where it ends.
    bool locate(const KeyForm &form, const FlatNames &names, bool has_rest, std::size_t &at) {
        for (const KeyForm::Field &field : form.fields) {
            if (is(field, names.into)) into_ = id(field, at);
            if (!has_rest && names.info && is(field, names.info.get()) && field.form == '*' && field.kind == 's') {
                flags_.push_back(at++);
                return locate(*KeyForm::of(field.part.get()), names, true, at);
            }
            if (has_rest) note(field, names, at);
            if (!pass(field, at)) return false;
        }
        return true;
    }

    // Notes which members `read_around` looks at.
    void name(const KeyForm &form, const FlatNames &names, bool has_rest) {
        for (const KeyForm::Field &field : form.fields) {
            if (is(field, names.into) && field.form == 'v' && field.kind == 'h') into_field_ = &field;
            if (!has_rest && is(field, names.info.get()) && field.form == '*' && field.kind == 's') {
                info_field_ = &field;
                name(*KeyForm::of(field.part.get()), names, true);
            }
            if (has_rest) name_number(field, names);
            const auto named = [&](const Ref &each) { return is(field, each.get()); };
            const bool are_ids = has_rest && field.form == '+' && field.kind == 'h';
            if (are_ids && std::any_of(names.buffers.begin(), names.buffers.end(), named)) ids_field_ = &field;
            if (!has_rest || !is(field, names.regions.get()) || field.form != '+') continue;
            if (field.kind == 's' || (field.kind == 'n' && field.code == 'Q')) list_field_ = &field;
            if (field.kind != 's') continue;
            for (const KeyForm::Field &member : KeyForm::of(field.part.get())->fields) name_number(member, names);
        }
    }

    void name_number(const KeyForm::Field &field, const FlatNames &names) {
        members_.resize(names.numbers.size());
        for (std::size_t each = 0; each < members_.size() && field.kind == 'n' && std::strchr("QIi", field.code); ++each) {
            if (field.form == 'v' && is(field, names.numbers[each].get())) members_[each].field = &field;
            if (field.form == '*' && is_pointer_to(field, names.numbers[each].get())) members_[each].instead = &field;
        }
    }

    // Whether a member has the name of a number as that of a pointer: "pVertexOffset".
    static bool is_pointer_to(const KeyForm::Field &field, PyObject *number) {
        const Py_ssize_t size = PyUnicode_GET_LENGTH(number);
        PyObject *const name = field.name.get();
        if (!size || PyUnicode_GET_LENGTH(name) != size + 1 || PyUnicode_READ_CHAR(name, 0) != 'p') return false;
        if (PyUnicode_READ_CHAR(name, 1) != Py_UNICODE_TOUPPER(PyUnicode_READ_CHAR(number, 0))) return false;
        Py_ssize_t at = 1;
        while (at < size && PyUnicode_READ_CHAR(name, at + 1) == PyUnicode_READ_CHAR(number, at)) ++at;
        return at == size;
    }

    void note(const KeyForm::Field &field, const FlatNames &names, std::size_t at) {
        for (std::size_t each = 0; each < buffers_.size(); ++each) {
            if (is(field, names.buffers[each].get())) buffers_[each] = id(field, at);
        }
        if (names.regions && is(field, names.regions.get()) && field.form == '+' && field.kind == 's') {
            flags_.push_back(at);
            list_ = at + 1;
            stride_ = 0;
            bool is_fixed = true;
            for (const KeyForm::Field &member : KeyForm::of(field.part.get())->fields) {
                note_number(member, names, stride_);
                is_fixed = is_fixed && pass(member, stride_);
            }
            if (!is_fixed) list_ = NOWHERE;
        } else if (names.data && is(field, names.data.get()) && field.form == '+' && field.kind == 'B') {
            flags_.push_back(at);
            data_ = at + 1;
        } else if (!names.regions) {
            note_number(field, names, at);
        }
    }

    void note_number(const KeyForm::Field &field, const FlatNames &names, std::size_t at) {
        for (std::size_t each = 0; each < numbers_.size(); ++each) {
            const bool is_number = field.form == 'v' && field.kind == 'n' && std::strchr("QIi", field.code);
            if (is_number && is(field, names.numbers[each].get())) numbers_[each] = {at, field.code};
        }
    }

    static std::size_t id(const KeyForm::Field &field, std::size_t at) {
        return field.form == 'v' && field.kind == 'h' ? at : NOWHERE;
    }

    // Goes behind a member. False where its bytes are not always as many.
    static bool pass(const KeyForm::Field &field, std::size_t &at) {
        if (field.form != 'v') return false;
        switch (field.kind) {
            case 'n': at += field.size; return true;
            case 'b':
            case 'h': at += KeyForm::NUMBER; return true;
            case 's': {
                const std::vector<KeyForm::Field> &parts = KeyForm::of(field.part.get())->fields;
                return std::all_of(parts.begin(), parts.end(), [&](const KeyForm::Field &part) { return pass(part, at); });
            }
            default: return field.kind == 'c' || field.kind == '0';
        }
    }

    static bool is(const KeyForm::Field &field, PyObject *name) { return PyUnicode_Compare(field.name.get(), name) == 0; }

    Ref form_;
    const KeyForm::Field *into_field_ = nullptr, *info_field_ = nullptr, *list_field_ = nullptr, *ids_field_ = nullptr;  // of the form
    struct Member {
        const KeyForm::Field *field = nullptr, *instead = nullptr;  // instead: a pointer to the number that counts if there is one
    };
    std::vector<Member> members_;               // the numbers for `read_around`
    std::vector<std::size_t> flags_, buffers_;  // flags: bytes that say that a pointer leads somewhere
    std::vector<std::uint8_t> apart_;
    std::vector<Number> numbers_;  // in a region, or in all bytes where there is no list
    std::size_t into_ = NOWHERE, list_ = NOWHERE, data_ = NOWHERE, end_ = NOWHERE, stride_ = 0;
    bool is_whole_ = false;
};

}  // namespace vkharness

#endif
