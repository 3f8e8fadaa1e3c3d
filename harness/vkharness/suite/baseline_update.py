"""Writing the lists of known results after a run: `--vk-update-baseline`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from vkharness.findings import UserError
from vkharness.results.baseline import ALL, Baseline, list_path, read_baseline, read_list, updated_fails, updated_flakes
from vkharness.results.result_lines import RowResult
from vkharness.whole_file import write_whole


def update_baseline(folder: Path, rows: Sequence[RowResult], baselines: Mapping[str, Baseline]) -> list[Path]:
    """Writes the lists of failures and of flakes of each device; returns those that changed.

    `baselines` are the lists by device as the run had them. A list that would be empty is not made. Raises `UserError`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"baseline {folder}: cannot be made: {error.strerror}") from None
    written = []
    for device, baseline in baselines.items():
        own = [each for each in rows if each.row["device"] == device]
        shared = read_baseline(folder, ALL)
        shared.flakes = baseline.flakes
        for kind, updated in (("fails", updated_fails), ("flakes", updated_flakes)):
            path = list_path(folder, device, kind)
            before = read_list(path)
            after = updated(before, own, shared)
            if after != before:
                write_whole(path, after)
                written.append(path)
    return written
