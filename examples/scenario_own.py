"""A scenario of your own: a claim about synchronization that is tried on a driver, with the dependency and without.

The copy needs the barrier that the claim calls "fill before copy". So the whole stream must be clean, and the twin
without the barrier must show exactly the hazard that is declared. The table says what each judge found.

    $ pytest --vk-device lavapipe --vk-layer off --vk-table examples/scenario_own.py
    ...
    passed    whole                         lavapipe  clean             as expected  agrees  -      nothing to reorder  same 1/1
    passed    without fill before copy      lavapipe  READ_AFTER_WRITE  as expected  agrees  -      shown 1/1           -
    ...
    2 rows: 2 Pass; hazards shown in 1 row, other orders held in 0
    bytes computed without the driver: all in 2 rows, a part in 0, none in 0
    artifacts: artifacts
    ... 2 passed in ...
"""  # noqa: E501 (a table as it is printed)

from vkharness.suite import Rig, read_after_write, scenario


@scenario(without={"fill before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]})
def scenario_copy_reads_a_filled_buffer(rig: Rig) -> None:
    """A copy that reads what a fill wrote needs a memory dependency."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x11223344)
        commands.barrier("fill before copy", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.copy(a, b)
