"""See what a hazard does: replay a trace in witness mode, then put the three pictures of each hazard side by side.

The replay runs the stream twice on a driver: in submission order, and with the outcome that the missing dependency
allows. A word of a buffer is a square of one colour. Two of the five hazards write the same bytes in either order, so
they have no pictures.

    $ vkharness run --trace two_submits.jsonl examples/two_submits.py  # exits 1
    $ python examples/show_corruption.py two_submits.jsonl pictures
    pictures/finding-1.png: 64 of 64 words differ, the first was 11111111 and is aeaeaeae
    pictures/finding-3.png: 64 of 64 words differ, the first was 11111111 and is aeaeaeae
    pictures/finding-5.png: 64 of 64 words differ, the first was 11111111 and is aeaeaeae
"""

import json
import subprocess
import sys
from pathlib import Path

from PIL import Image

trace, folder = sys.argv[1], Path(sys.argv[2])
replay = ["vkharness", "replay", trace, "--mode", "witness", "--device", "lavapipe", "--artifacts", str(folder)]
status = subprocess.run(replay, stdout=subprocess.DEVNULL, check=False).returncode
assert status == 1, "1 says that there are hazards; any other status is a failure of the replay"

for record in sorted(folder.glob("finding-*/record.json")):
    first = json.loads(record.read_text())["differences"][0]
    parts = [Image.open(record.with_name(name)) for name in first["pictures"]]
    row = Image.new("RGB", (sum(part.width for part in parts), max(part.height for part in parts)))
    for place, part in enumerate(parts):
        row.paste(part, (place * part.width, 0))
    picture = record.parent.with_suffix(".png")
    row.save(picture)
    print(
        f"{picture}: {first['count']} of {first['total']} words differ,"
        f" the first was {first['expected']} and is {first['observed']}"
    )
