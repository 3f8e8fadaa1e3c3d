// Reads of vertex buffers by draws, as words of flat plans: the native form of `vertex_reads` in
// harness/vkharness/commands/drawing/vertex.py.

#ifndef VKHARNESS_VERTEX_READS_HPP
#define VKHARNESS_VERTEX_READS_HPP

#include "flat_plans.hpp"

#include <algorithm>
#include <vector>

namespace vkharness {

struct VertexReads {
    struct Buffer {
        std::uint64_t resource, space, base, limit;
        bool is_there = false;
    };
    // A vertex buffer as bound: stride, and the first and last byte that is read of a vertex, or of an instance for which
    // `divisor` instances have one.
    struct Source {
        Buffer buffer;
        std::uint64_t stride, low, high, divisor;
        bool per_instance;
    };

    static bool read(PyObject *given, std::uint64_t *row, std::size_t count) {
        if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != static_cast<Py_ssize_t>(count)) return false;
        for (std::size_t at = 0; at < count; ++at) {
            long long number;
            if (!near_number(PyTuple_GET_ITEM(given, static_cast<Py_ssize_t>(at)), number)) return false;
            row[at] = static_cast<std::uint64_t>(number);
        }
        return true;
    }

    static bool read(PyObject *given, Buffer &buffer) {
        std::uint64_t row[4];
        if (!PyTuple_GET_SIZE(given)) return true;
        if (!read(given, row, 4)) return false;
        buffer = {row[0], row[1], row[2], row[3], true};
        return true;
    }

    static void add(const Buffer &buffer, std::uint64_t begin, std::uint64_t end, std::vector<std::uint64_t> &words) {
        words.insert(words.end(), {buffer.resource, buffer.space, begin, end - begin - 1});
    }

    // The words of the reads of vertices, or of instances, of each buffer one. False where Python must find them: where one would have
    // two ranges, for instance.
    static bool add(const std::vector<Source> &sources, const FlatSpan &drawn, bool of_instances, std::vector<std::uint64_t> &words) {
        const std::size_t mine = words.size();
        std::vector<const Buffer *> empty;
        for (const Source &each : sources) {
            if (each.per_instance != of_instances) continue;
            const std::uint64_t first = static_cast<std::uint64_t>(drawn.begin);
            std::uint64_t count = static_cast<std::uint64_t>(drawn.end - drawn.begin);
            if (of_instances) count = each.divisor ? (count + each.divisor - 1) / each.divisor : 1;
            const std::uint64_t low = each.stride * first + each.low, high = each.stride * (first + count - 1) + each.high;
            const Buffer &buffer = each.buffer;
            const std::uint64_t begin = std::min(buffer.base + low, buffer.limit), end = std::min(buffer.base + high, buffer.limit);
            if (begin >= end) {
                empty.push_back(&buffer);
                continue;
            }
            std::uint64_t *same = nullptr;
            for (std::size_t at = mine; at < words.size(); at += FlatReach::WORDS) {
                if (words[at + FlatReach::RESOURCE] == buffer.resource && words[at + FlatReach::SPACE] == buffer.space) same = &words[at];
            }
            if (!same) {  // the order of reads is that of all sources, of which some read nothing
                const auto is_here = [&](const Buffer *other) { return other->resource == buffer.resource && other->space == buffer.space; };
                if (std::any_of(empty.begin(), empty.end(), is_here)) return false;
                add(buffer, begin, end, words);
                continue;
            }
            const std::uint64_t known = same[FlatReach::BEGIN], last = known + same[FlatReach::EXTRA] + 1;
            if (begin > last || known > end) return false;
            same[FlatReach::BEGIN] = std::min(known, begin);
            same[FlatReach::EXTRA] = std::max(last, end) - std::min(known, begin) - 1;
        }
        return true;
    }
};

}  // namespace vkharness

#endif
