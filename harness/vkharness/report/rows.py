"""A scenario's row in words: what each judge said, in full for reports and in short for the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vkharness.results.computed_counts import Share, share_of
from vkharness.verdicts import (
    BrokenPromise,
    BytesVerdict,
    LayerVerdict,
    ModelVerdict,
    NativeVerdict,
    OrdersVerdict,
    WitnessVerdict,
)

NONE = "-"
"""The word for a judge that was not asked, or had nothing to judge."""
NOT_ASKED = "not asked (the queues are logical: below the mirror, where the layer is, there is one)"


def model_text(verdict: ModelVerdict | None) -> str:
    """`agrees` or `disagrees`."""
    if verdict is None:
        return NONE
    return "disagrees" if verdict.disagreements else "agrees"


def layer_text(verdict: LayerVerdict) -> str:
    """`agrees`, with the number of differences that its version explains; `disagrees`; why it was not asked."""
    if not verdict.asked:
        return NOT_ASKED
    explained = f" ({verdict.by_version} by version)" if verdict.by_version else ""
    return "disagrees" if verdict.disagreements else f"agrees{explained}"


def witness_text(witness: WitnessVerdict | None, orders: OrdersVerdict | None) -> str:
    """Whether hazards were shown, or else whether a clean stream held in other orders, with the reason if not."""
    short = witness_in_short(witness, orders)
    if witness is not None and witness.unshown:
        return f"{short} ({'; '.join(f'{each.hazard}: {each.reason}' for each in witness.unshown)})"
    if orders is not None and orders.problem:
        return f"{short} ({orders.problem})"
    if orders is not None and orders.broken:
        return f"{short} ({'; '.join(f'{each.outcome}: {each.difference}' for each in orders.broken)})"
    return short


def witness_in_short(witness: WitnessVerdict | None, orders: OrdersVerdict | None) -> str:
    """`shown 2/2`, `part shown 1/2`, `benign 0/2`; `held 2/2`, `broken 1/2`, `nothing to reorder`, `not run`."""
    if witness is not None:
        word = "shown" if witness.is_complete else "part shown" if witness.shown else "benign"
        return f"{word} {witness.shown}/{witness.total}"
    if orders is None:
        return NONE
    if orders.problem:
        return "not run"
    if not orders.executed:
        return "nothing to reorder"
    if orders.broken:
        return f"broken {len(orders.broken)}/{orders.executed}"
    return f"held {orders.executed}/{orders.executed}"


def native_text(verdict: NativeVerdict | None) -> str:
    """`corrupt 3/10` or `same 10/10`; of several strategies those that are corrupt: `corrupt 3/10 (spin 3/5)`."""
    if verdict is None:
        return NONE
    if not verdict.corrupt:
        return f"same {verdict.times}/{verdict.times}"
    corrupt = [f"{each.strategy} {each.corrupt}/{each.times}" for each in verdict.strategies if each.corrupt]
    told = f" ({', '.join(corrupt)})" if len(verdict.strategies) > 1 else ""
    return f"corrupt {verdict.corrupt}/{verdict.times}{told}"


PROMISES = {
    BrokenPromise.COMPUTATION: "the driver computes wrongly: with each command in a submit of its own, and the host "
    "waiting between, the bytes are wrong",
    BrokenPromise.BARRIER: "barriers are broken: right with each command in a submit of its own, wrong in one command "
    "buffer with a full barrier between the commands",
    BrokenPromise.DEPENDENCY: "a dependency of this stream is broken: right with full barriers between the commands, "
    "wrong as recorded",
}
"""The fault of a driver that breaks a promise, a sentence each."""


SHARES = {Share.ALL: "all computed", Share.NONE: "not computed"}


def bytes_text(verdict: BytesVerdict | None) -> str:
    """`all computed`, `computed 128/256`, `not computed`; or which promise is broken, and where."""
    if verdict is None:
        return NONE
    if verdict.broken:
        return f"{PROMISES[verdict.broken]} ({verdict.difference})"
    share = share_of(verdict.known, verdict.total, verdict.unknown)
    return f"computed {verdict.known}/{verdict.total}" if share is Share.PART else SHARES[share]


def layers_in_short(verdicts: Mapping[str, LayerVerdict]) -> str:
    """One word, by version where they differ; a star for differences that a version explains."""
    words = {version: _word(verdict) for version, verdict in verdicts.items()}
    if len(set(words.values())) > 1:
        return ", ".join(f"{version} {word}" for version, word in words.items())
    star = "*" if any(each.by_version and not each.disagreements for each in verdicts.values()) else ""
    return next((word + star for word in words.values()), NONE)


def _word(verdict: LayerVerdict) -> str:
    return "not asked" if not verdict.asked else "disagrees" if verdict.disagreements else "agrees"


def expectation_text(missing: Sequence[str], unexpected: Sequence[str]) -> str:
    """How findings differ from the hazards that a scenario declares."""
    return "; ".join([*(f"missing {each}" for each in missing), *(f"unexpected {each}" for each in unexpected)])


def needless_text(judge: str, reason: str) -> str:
    """Says how to mend an entry of the expectation file that excuses nothing."""
    return f"expectation is not needed for {judge}: delete or limit it ({reason})"


UNKNOWN = "not known for this layer"
"""The words for a disagreement with a layer of whose version our account says nothing."""


def unknown_text(judge: str, said: str) -> str:
    """Says that a layer disagrees of whose version nothing is known."""
    return f"{judge}: {UNKNOWN}: {said}"


def unknown_layers(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """How many of these rows, as JSON, have a disagreement with a layer of which nothing is known, by its version."""
    said = (text.partition(f": {UNKNOWN}: ") for row in rows for text in row["excused"])
    return Counter(judge.removeprefix("layer ") for judge, found, _ in said if found)


def failure_text(row: Mapping[str, Any]) -> str:
    """Why a row, as JSON, does not pass: the judges that disagree, what was expected and what was found."""
    return "\n".join(
        [
            f"{row['scenario']} [{row['variant']}] on {row['device']}: {row['status']}",
            *(row["reasons"] or [row["problem"]]),
            "expected: " + ("; ".join(row["expected"]) or "clean"),
            *([f"witness: {row['witness']}"] if row["witness"] != NONE else []),
            *(f"finding: {each}" for each in row["messages"]),
            *(f"artifacts: {each}" for each in row["artifacts"]),
        ]
    )
