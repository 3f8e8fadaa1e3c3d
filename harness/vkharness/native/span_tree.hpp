// A B+-tree of disjoint half-open spans in order, each with one value: what the native `SpanMap` keeps its spans in.
//
// Leaves hold up to 64 spans and are linked to their neighbours. The first leaf of a tree is small, and grows: most trees
// hold a few spans. An inner node holds up to 64 children and, for each, the
// least begin below it. A path from the root to a leaf is kept on the stack: nodes know no parents.
//
// A node that becomes full is cut in two: in halves, but where spans come in order the left node stays
// nearly full. A node with less than a quarter of its places taken is joined with a neighbour
// under the same parent where both fill three quarters at most. So of two neighbours at least one is a quarter full, a
// tree of n spans is O(log n) high, and a node that was just joined is not cut by the next insertion.
//
// The tree owns no reference and runs no Python: whoever calls it takes and gives the references of values.

#ifndef VKHARNESS_SPAN_TREE_HPP
#define VKHARNESS_SPAN_TREE_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace vkharness {

// Addresses are sums and products of 64-bit sizes that a file may claim, so 64 bits are too few.
using Address = __int128;

template <typename Value>
class SpanTree {
    static constexpr int PLACES = 64, QUARTER = PLACES / 4, JOINED = PLACES * 3 / 4;
    static constexpr int NEARLY_FULL = PLACES * 7 / 8;
    static constexpr int SMALL = 8, GROWTH = 4;  // places of the first leaf of a tree, and how many times as many it gets
    static constexpr int HIGHEST = 24;  // levels: a quarter of 64 children each is beyond any memory

  public:
    struct Held {
        Address begin, end;
        Value value;
    };

  private:
    struct Node {
        int count = 0;
        const bool leaf;
        explicit Node(bool is_leaf) : leaf(is_leaf) {}
    };
    struct Leaf : Node {
        Leaf *before = nullptr, *after = nullptr;
        const int room;  // less than `PLACES` where it is all of the tree
        Held held[1];    // so many, of which those behind `count` are not made

        static Leaf *make(int room) {
            return new (::operator new(sizeof(Leaf) + static_cast<std::size_t>(room - 1) * sizeof(Held))) Leaf(room);
        }
        static void unmake(Leaf *leaf) {
            leaf->~Leaf();
            ::operator delete(leaf);
        }

      private:
        explicit Leaf(int places) : Node(true), room(places) {}
    };
    struct Unmake {
        void operator()(Leaf *leaf) const { Leaf::unmake(leaf); }
    };
    struct Inner : Node {
        Address least[PLACES];  // least[0] may be greater than what lies below: nothing is searched left of it
        Node *child[PLACES];
        Inner() : Node(false) {}
    };
    struct Path {
        Inner *node[HIGHEST];
        int at[HIGHEST];
        int levels = 0;
        Leaf *leaf = nullptr;
    };

  public:
    // A span of the tree, or the end behind all. Good until the tree's spans come or go.
    class Place {
      public:
        bool end() const { return leaf_ == nullptr; }
        // Whether a span is there that begins at an address. Good for as long as the tree has this `version`.
        bool begins(Address begin) const { return at_ < leaf_->count && leaf_->held[at_].begin == begin; }
        // A span begins elsewhere only by `splice`: another leaf may be the one for it then.
        const Held &operator*() const { return leaf_->held[at_]; }
        const Held *operator->() const { return &leaf_->held[at_]; }
        Value &value() const { return leaf_->held[at_].value; }
        Place next() const { return at_ + 1 < leaf_->count ? Place(leaf_, at_ + 1) : first_of(leaf_->after); }
        // The one before; the end where there is none.
        Place previous() const {
            if (at_ > 0) return Place(leaf_, at_ - 1);
            Leaf *const before = leaf_->before;
            return before ? Place(before, before->count - 1) : Place(nullptr, 0);
        }

      private:
        friend class SpanTree;
        Place(Leaf *leaf, int at) : leaf_(leaf), at_(at) {}
        static Place first_of(Leaf *leaf) { return Place(leaf, 0); }
        Leaf *leaf_;
        int at_;
    };

    SpanTree() = default;
    SpanTree(const SpanTree &) = delete;
    SpanTree &operator=(const SpanTree &) = delete;
    ~SpanTree() { clear(); }

    std::size_t size() const { return size_; }

    // As long as it is the same, all leaves are there that were. No other tree has the same.
    std::uint64_t version() const { return version_; }

    void clear() {
        if (root_) destroy(root_);
        root_ = nullptr;
        first_ = last_ = nullptr;
        size_ = 0;
    }

    static Place nowhere() { return Place(nullptr, 0); }
    Place first() const { return Place::first_of(first_); }
    Place last() const { return last_ ? Place(last_, last_->count - 1) : Place(nullptr, 0); }

    // The span that begins exactly there, or the end.
    Place find(Address begin) const {
        if (!root_) return Place(nullptr, 0);
        Leaf *const leaf = leaf_of(begin);
        const int at = lower(leaf, begin);
        return at < leaf->count && leaf->held[at].begin == begin ? Place(leaf, at) : Place(nullptr, 0);
    }

    // The first span that begins at `begin` or behind it.
    Place at_or_after(Address begin) const {
        if (!root_) return Place(nullptr, 0);
        Leaf *const leaf = leaf_of(begin);
        const int at = lower(leaf, begin);
        return at < leaf->count ? Place(leaf, at) : Place::first_of(leaf->after);
    }

    // The last span that begins before `begin`.
    Place before(Address begin) const {
        const Place after = at_or_after(begin);
        return after.end() ? last() : after.previous();
    }

    // Holds a span that overlaps none. Throws std::bad_alloc before anything has changed.
    void insert(const Held &held) {
        if (!root_) root_ = first_ = last_ = Leaf::make(SMALL);
        if (first_->count == first_->room) grow(first_->count + 1);
        Path path = path_to(held.begin);
        if (path.leaf->count == PLACES) {
            const bool is_last = path.leaf == last_ && last_->held[PLACES - 1].begin < held.begin;
            make_room(path, is_last ? NEARLY_FULL : PLACES / 2);
            path = path_to(held.begin);
        }
        Leaf *const leaf = path.leaf;
        const int at = lower(leaf, held.begin);
        std::move_backward(leaf->held + at, leaf->held + leaf->count, leaf->held + leaf->count + 1);
        leaf->held[at] = held;
        ++leaf->count;
        ++size_;
    }

    // Has a span end before it did. It stays where it is, since it is found by its begin.
    static void shorten(Place at, Address end) { at.leaf_->held[at.at_].end = end; }

    // Puts spans, in order, in the place of `old` ones from `at` on: the end stands behind all. They lie between the
    // neighbours of those. Where there is no memory, some of them are not held.
    void splice(Place at, std::size_t old, const Held *now, std::size_t count) {
        if (at.end() && last_) at = Place(last_, last_->count);
        if (!at.end() && fits(at, old, now, count)) {
            grow(at.leaf_->count - static_cast<int>(old) + static_cast<int>(count));
            if (root_->leaf) at.leaf_ = first_;
            Leaf *const leaf = at.leaf_;
            std::copy(now, now + std::min(old, count), leaf->held + at.at_);
            Held *const behind = leaf->held + at.at_ + old, *const end = leaf->held + leaf->count;
            if (count < old) std::move(behind, end, leaf->held + at.at_ + count);
            if (count > old) {
                std::move_backward(behind, end, end + (count - old));
                std::copy(now + old, now + count, behind);
            }
            leaf->count += static_cast<int>(count) - static_cast<int>(old);
            size_ += count - old;
            return;
        }
        const Address first = old ? at->begin : 0;
        for (; old; --old) {
            const Place each = at_or_after(first);
            erase(each->begin);
        }
        for (std::size_t each = 0; each < count; ++each) insert(now[each]);
    }

    // Forgets the span that begins exactly there, which is held.
    void erase(Address begin) {
        Path path = path_to(begin);
        Leaf *const leaf = path.leaf;
        const int at = lower(leaf, begin);
        std::move(leaf->held + at + 1, leaf->held + leaf->count, leaf->held + at);
        --leaf->count;
        --size_;
        join_up(path);
    }

    // Nothing, or what is broken: order, fill, links, least begins, height.
    const char *broken() const {
        if (!root_) return size_ == 0 && !first_ && !last_ ? nullptr : "an empty tree that counts spans";
        std::size_t counted = 0;
        const Leaf *before = nullptr;
        int height = -1;
        if (const char *what = broken(root_, 0, height, nullptr, nullptr, before, counted)) return what;
        if (before != last_ || last_->after) return "the last leaf is not the last";
        return counted == size_ ? nullptr : "the number of spans is wrong";
    }

  private:
    // Whether spans can take the place of `old` ones in a leaf, which stays as full as it has to be.
    bool fits(Place at, std::size_t old, const Held *now, std::size_t count) const {
        const Leaf *const leaf = at.leaf_;
        const std::size_t left = static_cast<std::size_t>(leaf->count) + count - old;
        if (at.at_ + old > static_cast<std::size_t>(leaf->count) || !left || left > PLACES) return false;
        if (left < QUARTER && count < old && leaf != root_) return false;
        if (!count || leaf == root_) return true;
        const bool is_between = now[0].begin >= leaf->held[0].begin && now[count - 1].begin <= leaf->held[leaf->count - 1].begin;
        return is_between || (leaf_of(now[0].begin) == leaf && leaf_of(now[count - 1].begin) == leaf);
    }

    // Has the leaf that is all of the tree have so many places, if that is what one may have. Throws std::bad_alloc before
    // anything has changed.
    void grow(int places) {
        if (!root_->leaf || places <= first_->room || places > PLACES) return;
        int room = first_->room;
        while (room < places) room = std::min(room * GROWTH, PLACES);
        Leaf *const more = Leaf::make(room);
        more->count = first_->count;
        std::copy(first_->held, first_->held + first_->count, more->held);
        delete_node(first_);
        root_ = first_ = last_ = more;
    }

    static int lower(const Leaf *leaf, Address begin) {
        int low = 0, high = leaf->count;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (leaf->held[middle].begin < begin) low = middle + 1;
            else high = middle;
        }
        return low;
    }

    // The child below which an address lies.
    static int child_of(const Inner *node, Address begin) {
        int low = 1, high = node->count;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (node->least[middle] <= begin) low = middle + 1;
            else high = middle;
        }
        return low - 1;
    }

    Leaf *leaf_of(Address begin) const {
        Node *node = root_;
        while (!node->leaf) {
            Inner *const inner = static_cast<Inner *>(node);
            node = inner->child[child_of(inner, begin)];
        }
        return static_cast<Leaf *>(node);
    }

    Path path_to(Address begin) const {
        Path path;
        Node *node = root_;
        while (!node->leaf) {
            Inner *const inner = static_cast<Inner *>(node);
            const int at = child_of(inner, begin);
            path.node[path.levels] = inner;
            path.at[path.levels++] = at;
            node = inner->child[at];
        }
        path.leaf = static_cast<Leaf *>(node);
        return path;
    }

    // Cuts the full leaf of a path in two, and each full node above that gets one child more. So much stays in the left one.
    void make_room(const Path &path, int kept) {
        int full = path.levels;
        while (full > 0 && path.node[full - 1]->count == PLACES) --full;
        // All memory first, so that nothing has changed when there is none.
        std::unique_ptr<Leaf, Unmake> half(Leaf::make(PLACES));
        std::unique_ptr<Inner> halves[HIGHEST];
        for (int level = full; level < path.levels; ++level) halves[level] = std::make_unique<Inner>();
        std::unique_ptr<Inner> above = full == 0 ? std::make_unique<Inner>() : nullptr;

        Node *made = cut(path.leaf, half.release(), kept);
        Address least = static_cast<Leaf *>(made)->held[0].begin;
        for (int level = path.levels - 1; level >= full; --level) {
            Inner *const node = path.node[level];
            Inner *const more = halves[level].release();
            const Address middle = cut(node, more, kept);
            if (path.at[level] < node->count) put_child(node, path.at[level] + 1, least, made);
            else put_child(more, path.at[level] - node->count + 1, least, made);
            made = more;
            least = middle;
        }
        if (full > 0) {
            put_child(path.node[full - 1], path.at[full - 1] + 1, least, made);
            return;
        }
        above->least[0] = least;  // of the left child; never searched
        above->child[0] = root_;
        above->count = 1;
        put_child(above.get(), 1, least, made);
        root_ = above.release();
    }

    Leaf *cut(Leaf *leaf, Leaf *half, int kept) {
        half->count = PLACES - kept;
        leaf->count = kept;
        std::copy(leaf->held + leaf->count, leaf->held + PLACES, half->held);
        half->before = leaf;
        half->after = leaf->after;
        (leaf->after ? leaf->after->before : last_) = half;
        leaf->after = half;
        return half;
    }

    // The least begin of the new half.
    static Address cut(Inner *node, Inner *half, int kept) {
        half->count = PLACES - kept;
        node->count = kept;
        std::copy(node->least + node->count, node->least + PLACES, half->least);
        std::copy(node->child + node->count, node->child + PLACES, half->child);
        return half->least[0];
    }

    static void put_child(Inner *node, int at, Address least, Node *child) {
        std::move_backward(node->least + at, node->least + node->count, node->least + node->count + 1);
        std::move_backward(node->child + at, node->child + node->count, node->child + node->count + 1);
        node->least[at] = least;
        node->child[at] = child;
        ++node->count;
    }

    static void take_child(Inner *node, int at) {
        std::move(node->least + at + 1, node->least + node->count, node->least + at);
        std::move(node->child + at + 1, node->child + node->count, node->child + at);
        --node->count;
    }

    // Joins what has become small on a path with its neighbours, from the leaf up.
    void join_up(const Path &path) {
        Node *small = path.leaf;
        for (int level = path.levels - 1; level >= 0 && small->count < QUARTER; --level) {
            Inner *const above = path.node[level];
            int at = path.at[level];
            while (small->count < QUARTER) {
                if (at + 1 < above->count && above->child[at + 1]->count + small->count <= JOINED) join(above, at);
                else if (at > 0 && above->child[at - 1]->count + small->count <= JOINED) join(above, --at);
                else break;
                small = above->child[at];
            }
            if (small->count == 0) take_empty(above, at);
            small = above;
        }
        if (size_ == 0) clear();
        while (root_ && !root_->leaf && root_->count == 1) {
            Inner *const only = static_cast<Inner *>(root_);
            root_ = only->child[0];
            delete only;
        }
    }

    // Forgets a child with nothing in it, whose neighbours are too full to take another.
    void take_empty(Inner *above, int at) {
        if (above->child[at]->leaf) {
            Leaf *const leaf = static_cast<Leaf *>(above->child[at]);
            (leaf->before ? leaf->before->after : first_) = leaf->after;
            (leaf->after ? leaf->after->before : last_) = leaf->before;
        }
        delete_node(above->child[at]);
        take_child(above, at);
    }

    // Moves all of child `at + 1` to the end of child `at`.
    void join(Inner *above, int at) {
        Node *const left = above->child[at], *const right = above->child[at + 1];
        if (left->leaf) {
            Leaf *const to = static_cast<Leaf *>(left), *const from = static_cast<Leaf *>(right);
            std::copy(from->held, from->held + from->count, to->held + to->count);
            to->after = from->after;
            (from->after ? from->after->before : last_) = to;
            to->count += from->count;
        } else {
            Inner *const to = static_cast<Inner *>(left), *const from = static_cast<Inner *>(right);
            from->least[0] = above->least[at + 1];
            std::copy(from->least, from->least + from->count, to->least + to->count);
            std::copy(from->child, from->child + from->count, to->child + to->count);
            to->count += from->count;
        }
        delete_node(right);
        take_child(above, at + 1);
    }

    static std::uint64_t next_version() {
        static std::atomic<std::uint64_t> last{0};
        return ++last;
    }

    void delete_node(Node *node) {
        if (!node->leaf) return delete static_cast<Inner *>(node);
        version_ = next_version();
        Leaf::unmake(static_cast<Leaf *>(node));
    }

    void destroy(Node *node) {
        if (!node->leaf) {
            Inner *const inner = static_cast<Inner *>(node);
            for (int at = 0; at < inner->count; ++at) destroy(inner->child[at]);
        }
        delete_node(node);
    }

    const char *broken(const Node *node, int level, int &height, const Address *low, const Address *high,
                       const Leaf *&before, std::size_t &counted) const {
        if (node->count < 1 || node->count > PLACES) return "a node with no place taken, or too many";
        if (node->leaf) {
            const Leaf *const leaf = static_cast<const Leaf *>(node);
            if (leaf->count > leaf->room || (leaf->room < PLACES && leaf != root_)) return "a leaf with too few places";
            if (height < 0) height = level;
            if (height != level) return "leaves at different heights";
            if (leaf->before != before || (before ? before->after != leaf : first_ != leaf)) return "a broken link";
            for (int at = 0; at < leaf->count; ++at) {
                const Held &held = leaf->held[at];
                if (held.begin >= held.end) return "an empty span";
                if ((low && held.begin < *low) || (high && held.begin >= *high)) return "a span in the wrong leaf";
                const Held *const last = at ? &leaf->held[at - 1] : before ? &before->held[before->count - 1] : nullptr;
                if (last && last->end > held.begin) return "spans overlap";
            }
            before = leaf;
            counted += static_cast<std::size_t>(leaf->count);
            return nullptr;
        }
        const Inner *const inner = static_cast<const Inner *>(node);
        if (level == 0 && inner->count < 2) return "a root with one child";
        for (int at = 0; at < inner->count; ++at) {
            if (at && inner->child[at - 1]->count < QUARTER && inner->child[at]->count < QUARTER)
                return "two small neighbours";
            const char *const what = broken(inner->child[at], level + 1, height, at ? &inner->least[at] : low,
                                            at + 1 < inner->count ? &inner->least[at + 1] : high, before, counted);
            if (what) return what;
        }
        return nullptr;
    }

    Node *root_ = nullptr;
    std::uint64_t version_ = next_version();
    Leaf *first_ = nullptr, *last_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace vkharness

#endif
