"""Godot 88548: at the lowest quality the barrier between the occlusion dispatch and the blur is left out."""

from short_names import *
from small_engine import Engine

e = Engine()
raw, blurred, out = e.image(16, 16), e.image(16, 16), e.buffer(1024, host=True)
make, blur = e.compute("image_store_2d.comp", [STORED], push=4), e.compute("image_copy_2d.comp", [STORED, STORED])
SHADER = "COMPUTE_SHADER/SHADER_STORAGE_WRITE"
commands = e.commands()
for image in (raw, blurred):
    e.transition(commands, image, "UNDEFINED", "GENERAL", "NONE", SHADER)
e.dispatch(commands, make, [raw.view()], 4, b"\1\2\3\4")
QUALITY = 0
if QUALITY > 0 or MENDED:
    e.barrier(commands, SHADER, "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE")
for step in range(2):
    source, target = (raw, blurred) if step % 2 == 0 else (blurred, raw)
    e.dispatch(commands, blur, [source.view(), target.view()])
    e.barrier(commands, SHADER, "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE")
e.transition(commands, raw, "GENERAL", "TRANSFER_SRC_OPTIMAL", SHADER, "COPY/TRANSFER_READ")
e.read_back(commands, raw, out)
e.submit(commands)
e.idle()
