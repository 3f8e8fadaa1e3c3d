"""`Place.queue` of a queue of one of several physical devices: the queue and the device index in one number."""

from __future__ import annotations

OF_OTHER_DEVICE = 1 << 60
"""The id of a queue of another physical device than the first one has this bit, and its device index from bit 48 on."""
_INDEX_AT = 48


def queue_of_device(queue: int, device: int) -> int | None:
    """`Place.queue` of a physical device that is not the first one; None where the id of the queue is too large."""
    return OF_OTHER_DEVICE | device << _INDEX_AT | queue if 0 <= queue >> _INDEX_AT < 1 else None


def queue_and_device(queue: int) -> tuple[int, int]:
    """The queue of the program that `Place.queue` means, and the device index of the physical device.

    >>> queue_and_device(queue_of_device(7, 2)), queue_and_device(7)
    ((7, 2), (7, 0))
    """
    if queue >> _INDEX_AT < OF_OTHER_DEVICE >> _INDEX_AT or queue >= OF_OTHER_DEVICE << 1:
        return queue, 0
    return queue & (1 << _INDEX_AT) - 1, (queue ^ OF_OTHER_DEVICE) >> _INDEX_AT
