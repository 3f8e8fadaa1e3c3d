// The ranges of addresses of all spaces of a store, each with its `Entry`, in a tree for each space.

#ifndef VKHARNESS_RANGE_PIECES_HPP
#define VKHARNESS_RANGE_PIECES_HPP

#include <atomic>
#include <utility>

#include "slots.hpp"

namespace vkharness {

class RangePieces {
  public:
    using Pieces = std::vector<RangePiece>;

    explicit RangePieces(Slots &slots) : slots_(slots) {}

    ~RangePieces() {
        for (auto &each : spaces_) release(each.second);
    }

    std::size_t size() const { return ranges_; }

    RangeTree *tree(Address space) const {
        KnownTree &known = known_trees_[AddressHash()(space) % KNOWN_TREES];
        if (known.tree && known.space == space) return known.tree;
        const auto found = spaces_.find(space);
        if (found == spaces_.end()) return nullptr;
        known = {space, &found->second};
        return known.tree;
    }

    RangeTree &made_tree(Address space) {
        return spaces_.try_emplace(space).first->second;
    }

    template <typename Function>
    void each_space(Function function) const {
        for (const auto &each : spaces_) function(each.first, each.second);
    }

    // Forgets the ranges of a space whose entries are such. Whether any is left.
    template <typename Function>
    bool forget(Address space, Function is_forgotten) {
        RangeTree *const held = tree(space);
        if (!held) return false;
        std::vector<Address> gone;
        for (auto at = held->first(); !at.end(); at = at.next()) {
            if (is_forgotten(at->value)) gone.push_back(at->begin);
        }
        for (const Address each : gone) {
            release(held->find(each)->value);
            held->erase(each);
        }
        ranges_ -= gone.size();
        return held->size() != 0;
    }

    void drop(Address space) {
        const auto found = spaces_.find(space);
        if (found == spaces_.end()) return;
        ranges_ -= found->second.size();
        release(found->second);
        known_trees_[AddressHash()(space) % KNOWN_TREES] = {};
        spaces_.erase(found);
        trees_are_ = next_number();
    }

    // Where a piece was that begins at an address of a space: it is looked for there first.
    struct Hint {
        std::uint64_t trees = 0, version = 0;  // of which store, and of which tree
        RangeTree *tree = nullptr;
        RangeTree::Place place = RangeTree::nowhere();
    };

    // The hint of a form. Without a lock of the interpreter several threads may use one: then it is none.
    static Hint *shared(Hint &hint) {
#ifdef Py_GIL_DISABLED
        static_cast<void>(hint);
        return nullptr;
#else
        return &hint;
#endif
    }

    // The piece that begins at an address, or the end; and the tree of the space, or nullptr.
    RangeTree::Place find(Address space, Address begin, Hint *hint, RangeTree *&tree) {
        const bool is_good = hint && hint->trees == trees_are_ && hint->version == hint->tree->version();
        if (is_good && hint->place.begins(begin)) {
            tree = hint->tree;
            return hint->place;
        }
        tree = this->tree(space);
        const auto found = tree ? tree->find(begin) : RangeTree::nowhere();
        if (hint && !found.end()) *hint = {trees_are_, tree->version(), tree, found};
        return found;
    }

    // The held parts of [begin, end), clipped to it, with entries that are the tree's own.
    void find(const RangeTree &tree, Address begin, Address end, Pieces &found) const {
        if (begin >= end) return;
        auto at = tree.before(begin);
        if (at.end()) at = tree.first();
        for (; !at.end() && at->begin < end; at = at.next()) {
            if (at->end <= begin) continue;
            found.push_back({std::max(at->begin, begin), std::min(at->end, end), at->value});
        }
    }

    // The first piece that ends behind an address.
    RangeTree::Place first_behind(Address space, Address begin, Hint *hint) {
        RangeTree *tree;
        const auto found = find(space, begin, hint, tree);
        return found.end() && tree ? first_behind(*tree, begin) : found;
    }
    static RangeTree::Place first_behind(const RangeTree &tree, Address begin) {
        const auto found = tree.at_or_after(begin);
        if (!found.end() && found->begin == begin) return found;
        const auto before = found.end() ? tree.last() : found.previous();
        return !before.end() && before->end > begin ? before : found;
    }

    // The piece that begins at an address, which is often one of the next two: rows of an image lie side by side.
    static RangeTree::Place follow(const RangeTree &tree, RangeTree::Place held, Address begin) {
        for (int tries = 0; tries < 2; ++tries) {
            held = held.next();
            if (held.end() || held->begin == begin) return held;
        }
        return tree.find(begin);
    }

    // Makes an entry, which becomes the store's, that of [begin, end).
    void put(Address space, Address begin, Address end, Entry entry, Hint *hint = nullptr) {
        if (begin >= end) return release(entry);
        RangeTree *tree;
        const auto held = find(space, begin, hint, tree);
        if (!held.end() && held->end == end) return release(std::exchange(held.value(), entry));
        replace(tree ? *tree : made_tree(space), begin, end, &entry);
    }

    void assign(Address space, Address begin, Address end, Entry entry) {
        if (begin >= end) return release(entry);
        replace(made_tree(space), begin, end, &entry);
    }

    void erase(Address space, Address begin, Address end) {
        RangeTree *const held = tree(space);
        if (held && begin < end) replace(*held, begin, end, nullptr);
    }

    void release(Entry entry) {
        slots_.leave(entry.slot);
        entry.reads.release();
    }

    // One more of an entry.
    Entry copied(const Entry &entry) {
        Entry made = entry;
        made.reads = Reads::of(entry.reads.begin(), entry.reads.count);
        slots_.share(made.slot);
        return made;
    }

    // -- a tree is changed by these alone ---------------------------------------------------------------------------

    // Pieces in order, of which no two that touch are equal, that are to be put in the place of those that are held from an
    // address on: of `old` ones, of which the first may begin before that. `held` is the first one behind them.
    struct Rewriting {
        RangeTree &tree;
        const Address begin;
        const RangeTree::Place first;
        RangeTree::Place held = first;
        std::size_t old = 0;
        Few<RangePiece> made;

        Rewriting(RangeTree &of, Address from) : tree(of), begin(from), first(first_behind(of, from)) {}
    };

    // Makes an entry, or nothing, that of a range. The entry becomes the tree's.
    void replace(RangeTree &tree, Address begin, Address end, const Entry *entry) {
        Rewriting all(tree, begin);
        if (entry) add(all, begin, end, *entry);
        pass(all, end);
        finish(all, end);
    }

    // Adds a piece behind the others. The entry becomes its own.
    void add(Rewriting &all, Address begin, Address end, const Entry &entry) {
        if (all.made.size() && all.made.back().end == begin && all.made.back().value == entry) {
            all.made.back().end = end;
            release(entry);
        } else {
            all.made.emplace(begin, end, entry);
        }
    }

    // Leaves behind the pieces that end up to an address.
    static void pass(Rewriting &all, Address end) {
        for (; !all.held.end() && all.held->end <= end; all.held = all.held.next()) ++all.old;
    }

    // Puts what was made in its place. Of pieces that are cut what lies outside stays. Neighbours that touch what was made,
    // and are equal to it, are joined to it.
    void finish(Rewriting &all, Address end) {
        auto &made = all.made;
        const auto behind = all.held;
        if (!behind.end() && behind->begin < end) {
            add(all, end, behind->end, copied(behind->value));
            ++all.old;
        } else if (!behind.end() && made.size() && made.back().end == behind->begin && made.back().value == behind->value) {
            made.back().end = behind->end;
            ++all.old;
        }
        auto first = all.first;
        const bool is_cut = !first.end() && first->begin < all.begin;
        const auto left = is_cut ? first : first.end() ? all.tree.last() : first.previous();
        const bool touches = is_cut || (!left.end() && left->end == all.begin);
        if (touches && made.size() && made[0].begin == all.begin && made[0].value == left->value) {
            made[0].begin = left->begin;
            first = left;
            all.old += !is_cut;
        } else if (is_cut) {
            RangeTree::shorten(first, all.begin);
            first = first.next();
            --all.old;
        }
        auto gone = first;
        for (std::size_t each = 0; each < all.old; ++each, gone = gone.next()) release(gone->value);
        ranges_ -= all.tree.size();
        all.tree.splice(first, all.old, made.begin(), made.size());
        ranges_ += all.tree.size();
    }

    // Nothing, or what is broken.
    const char *broken() {
        std::size_t counted = 0;
        std::vector<std::uint32_t> pointers;
        for (const auto &each : spaces_) {
            if (const char *const what = each.second.broken()) return what;
            counted += each.second.size();
            for (auto at = each.second.first(); !at.end(); at = at.next()) {
                const SlotNumber slot = at->value.slot;
                if (!slots_.is_reached(slot)) return "a range points to a slot that changes do not reach";
                if (pointers.size() <= slot) pointers.resize(slot + 1);
                ++pointers[slot];
            }
        }
        return counted == ranges_ ? slots_.broken(pointers) : "the number of ranges is wrong";
    }

  private:
    void release(RangeTree &tree) {
        for (auto at = tree.first(); !at.end(); at = at.next()) release(at->value);
    }

    static std::uint64_t next_number() {
        static std::atomic<std::uint64_t> last{0};
        return ++last;
    }

    // Trees that were found lately, each in the place of its space.
    struct KnownTree {
        Address space = 0;
        RangeTree *tree = nullptr;
    };
    static constexpr std::size_t KNOWN_TREES = 256;

    Slots &slots_;
    mutable std::unordered_map<Address, RangeTree, AddressHash> spaces_;
    mutable KnownTree known_trees_[KNOWN_TREES];
    std::size_t ranges_ = 0;
    std::uint64_t trees_are_ = next_number();  // as long as it is the same, all trees are there that were
};

}  // namespace vkharness

#endif
