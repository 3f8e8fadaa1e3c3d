"""Two queues and no semaphore between them: whatever touches one range on both races."""

from harness.device.headless import Queue
from harness.device.rig import Buffer
from harness.device.rig_commands import Commands
from harness.scenario import Rig, race, scenario

COPY, FILL = "vkCmdCopyBuffer", "vkCmdFillBuffer"
WRITES_RACE = [race("WRITE_RACING_WRITE", FILL, FILL)]
READ_RACES = [race("READ_RACING_WRITE", COPY, FILL)]
WRITE_RACES_READ = [race("WRITE_RACING_READ", FILL, COPY)]


def _fill(rig: Rig, target: Buffer, value: int, queue: Queue | None = None) -> Commands:
    """A recorded fill."""
    with rig.commands(queue=queue) as commands:
        commands.fill(target, value)
    return commands


@scenario(without={"the semaphore": WRITES_RACE}, queues=["TRANSFER"], rule="SYNC_RULES 2.11, racing names")
def scenario_fills_on_two_queues(rig: Rig) -> None:
    """Two queues that write one buffer need a semaphore."""
    a, s = rig.buffer(), rig.semaphore()
    _, other = rig.queues
    rig.submit(_fill(rig, a, 0x11111111), signals=rig.operation("", s))
    rig.submit(_fill(rig, a, 0x22222222, other), waits=rig.operation("the semaphore", s))
