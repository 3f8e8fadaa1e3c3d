"""Synchronization tables: stages, accesses, legal pairs, order of stages, expansion, SYNC_<STAGE>_<ACCESS> names."""

from __future__ import annotations

from typing import Any

P_STAGE = "VK_PIPELINE_STAGE_2_"
P_ACCESS = "VK_ACCESS_2_"
META_STAGES = ("VERTEX_INPUT", "PRE_RASTERIZATION_SHADERS", "ALL_TRANSFER", "ALL_GRAPHICS", "ALL_COMMANDS")
META_ACCESSES = ("SHADER_READ", "SHADER_WRITE", "MEMORY_READ", "MEMORY_WRITE")
# In these stages a read through SHADER_READ has no finer access: shader stages it is not.
LITERAL_SHADER_READ = ("ACCELERATION_STRUCTURE_BUILD", "MICROMAP_BUILD_EXT")

# Operations that no registry stage covers. Their bits lie above the 63 that VkFlags64 enumerants can use.
PSEUDO_STAGES = {"PRESENT_ENGINE": 1 << 64, "LAYOUT_TRANSITION": 1 << 65, "OWNERSHIP_TRANSFER": 1 << 66}
PSEUDO_ACCESSES = (
    ("SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_ACQUIRE_READ_SYNCVAL", "PRESENT_ENGINE", 1 << 64, False),
    ("SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL", "PRESENT_ENGINE", 1 << 65, True),
    ("SYNC_IMAGE_LAYOUT_TRANSITION", "LAYOUT_TRANSITION", 1 << 66, True),
    ("SYNC_QUEUE_FAMILY_OWNERSHIP_TRANSFER", "OWNERSHIP_TRANSFER", 1 << 67, True),
)


def short(name: str) -> str:
    """The part of a stage or access name that SYNC_ names use: no prefix, no _BIT, no KHR suffix."""
    for prefix in (P_STAGE, P_ACCESS):
        name = name.removeprefix(prefix)
    return name.replace("_BIT", "").removesuffix("_KHR")


def names(rows: list[Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Canonical names and alias names of syncStage or syncAccess rows, each to its bits, in order of value."""
    ordered = sorted((row.flag for row in rows), key=lambda flag: flag.value)
    return (
        {flag.name: flag.value for flag in ordered},
        {alias: flag.value for flag in ordered for alias in sorted(flag.aliases)},
    )


def close(later: dict[int, int]) -> None:
    """Make the relation transitive. Raises SystemExit when a stage comes before itself."""
    for middle, after in later.items():
        for bit, mask in later.items():
            if mask & middle:
                later[bit] = mask | after
    if any(mask & bit for bit, mask in later.items()):
        raise SystemExit("gen_spec: the registry's pipelines order a stage before itself")


class Sync:
    """The synchronization part of the registry, resolved to masks."""

    def __init__(self, registry: Any) -> None:
        self.registry = registry
        self.stage_bits, self.stage_aliases = names(registry.syncStage)
        self.access_bits, self.access_aliases = names(registry.syncAccess)
        self.bit_of = {short(name): bit for name, bit in self.stage_bits.items()}
        meta = {self.bit_of[name] for name in META_STAGES}
        self.concrete = [bit for bit in self.stage_bits.values() if bit and bit not in meta]
        self.top, self.bottom, self.host = (self.bit_of[n] for n in ("TOP_OF_PIPE", "BOTTOM_OF_PIPE", "HOST"))
        self.equivalent = {
            row.flag.value: [flag.value for flag in row.equivalent.stages]
            for row in registry.syncStage
            if not row.equivalent.max and row.equivalent.stages
        }

    def expand(self, bit: int) -> int:
        """Concrete stages of one stage bit. ALL_COMMANDS holds TOP and BOTTOM, not HOST (no command runs there)."""
        if bit == self.bit_of["ALL_COMMANDS"]:
            return sum(self.concrete) & ~self.host
        parts = [part for part in self.equivalent.get(bit, []) if part != bit]
        mask = 0
        for part in parts:
            mask |= self.expand(part)
        return mask or bit

    def stage_expansion(self) -> dict[int, int]:
        """Meta stage bit to the mask of its concrete stages."""
        return {self.bit_of[name]: self.expand(self.bit_of[name]) for name in META_STAGES}

    def access_expansion(self) -> dict[int, int]:
        """SHADER_READ and SHADER_WRITE to the mask of what they stand for in shader stages, without themselves."""
        found = {}
        for row in self.registry.syncAccess:
            if not row.equivalent.max and row.equivalent.accesses:
                parts = {flag.value for flag in row.equivalent.accesses} - {row.flag.value}
                if parts:
                    found[row.flag.value] = sum(parts)
        return found

    def stage_queues(self) -> dict[int, int]:
        """Stage bit to the queue capabilities any of which supports it; every known one for stages of any queue."""
        flags = {flag.name: flag.value for flag in self.registry.bitmasks["VkQueueFlagBits"].flags}
        found = {}
        for row in sorted(self.registry.syncStage, key=lambda row: row.flag.value):
            if row.flag.value:
                queues = flags if row.support.max or not row.support.queues else row.support.queues
                found[row.flag.value] = sum(flags[name] for name in queues)
        return found

    def stage_accesses(self) -> dict[int, int]:
        """Concrete stage bit to the mask of concrete accesses legal there; the two meta accesses only where literal."""
        found = dict.fromkeys(self.concrete, 0)
        literal = {self.bit_of[name] for name in LITERAL_SHADER_READ}
        for row in self.registry.syncAccess:
            meta = short(row.flag.name) in META_ACCESSES
            if row.support.max or not row.support.stages:
                continue
            for stage in {flag.value for flag in row.support.stages}:
                if stage in found and (not meta or stage in literal):
                    found[stage] |= row.flag.value
        return found

    def sync_accesses(self) -> list[tuple[str, int, int, bool]]:
        """Every (stage, access) pair: stages in order of their bits, accesses by name; pseudo accesses last."""
        stage_name = {bit: name for name, bit in self.bit_of.items()}
        accesses = sorted((short(name), bit) for name, bit in self.access_bits.items() if bit)
        rows = []
        for stage, legal in sorted(self.stage_accesses().items()):
            for name, bit in accesses:
                if legal & bit:
                    rows.append((f"SYNC_{stage_name[stage]}_{name}", stage, bit, "WRITE" in name))
        rows.extend((name, PSEUDO_STAGES[stage], bit, write) for name, stage, bit, write in PSEUDO_ACCESSES)
        return rows

    def order(self) -> tuple[dict[int, int], dict[int, int]]:
        """(earlier, later): concrete stage bit to the mask of logically earlier, later stages, transitively.

        Each <syncpipeline> lists its stages in order; a stage with order="None" takes part only by `before`, `after`.
        A meta stage in a pipeline stands for its parts that have no pipeline of their own (TRANSFER: not AS copy).
        TOP_OF_PIPE is before and BOTTOM_OF_PIPE after every stage except HOST, which is in no order.
        """
        bits = {**self.stage_bits, **self.stage_aliases}
        alone = {bits[line.stages[0].value] for line in self.registry.syncPipeline if len(line.stages) == 1}
        later = dict.fromkeys(self.concrete, 0)

        def parts(name: str) -> int:
            return self.expand(bits[name]) & ~(sum(alone) if bits[name] not in later else 0)

        def edge(first: int, second: int) -> None:
            for bit in later:
                if bit & first:
                    later[bit] |= second & ~bit

        for line in self.registry.syncPipeline:
            seen = 0
            for stage in line.stages:
                mask = parts(stage.value)
                if stage.before:
                    edge(mask, parts(stage.before))
                if stage.after:
                    edge(parts(stage.after), mask)
                if stage.order != "None":
                    edge(seen, mask)
                    seen |= mask
        every = sum(self.concrete) & ~self.host
        edge(self.top, every)
        edge(every, self.bottom)
        close(later)
        return {bit: sum(other for other, mask in later.items() if mask & bit) for bit in later}, later
