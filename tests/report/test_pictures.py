"""Pictures and records: what differs can be seen in them, and they appear whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image as Picture

from vkharness.replay.contents.observe import Outputs, Surface, compare
from vkharness.report.pictures import (
    BACKGROUND,
    MARK,
    WRONG,
    captioned,
    surface_name,
    surface_text,
    triple,
    write_pictures,
    wrong_texels,
)
from vkharness.report.texels import to_pixels

Bytes = npt.NDArray[np.uint8]
RGBA8, BGRA8, R32F, D32, S8 = (
    "VK_FORMAT_R8G8B8A8_UNORM",
    "VK_FORMAT_B8G8R8A8_UNORM",
    "VK_FORMAT_R32_SFLOAT",
    "VK_FORMAT_D32_SFLOAT",
    "VK_FORMAT_S8_UINT",
)


def image(data: Bytes, format_name: str = RGBA8, aspect: int = 1, samples: int = 1) -> Surface:
    return Surface(9, (aspect, 0, 0), data, format_name, samples)


def pair() -> tuple[Surface, Surface]:
    before = np.full((1, 4, 8, 4), 200, np.uint8)
    after = before.copy()
    after[0, 1, 3] = (1, 2, 3, 255)
    return image(before), image(after)


def colours(picture: Picture.Image) -> set[tuple[int, ...]]:
    return {tuple(int(value) for value in pixel) for pixel in np.asarray(picture).reshape(-1, 3)}


def test_one_wrong_texel_is_enlarged_framed_and_red() -> None:
    expected, observed, difference = triple(*pair())
    assert expected.size == observed.size == difference.size == (384, 192)
    assert colours(expected) == {(200, 200, 200)}
    assert colours(observed) == {(200, 200, 200), (1, 2, 3), MARK}
    assert colours(difference) == {(66, 66, 66), WRONG, MARK}
    middle = (3 * 48 + 24, 1 * 48 + 24)
    assert observed.getpixel(middle) == (1, 2, 3)
    assert difference.getpixel(middle) == WRONG


def test_a_wrong_texel_of_a_large_image_keeps_its_pixel_inside_the_frame() -> None:
    before = np.zeros((1, 400, 400, 4), np.uint8)
    after = before.copy()
    after[0, 100, 300] = 255
    _, observed, _ = triple(image(before), image(after))
    assert observed.getpixel((300, 100)) == (255, 255, 255)
    assert observed.getpixel((301, 100)) == (0, 0, 0)
    assert MARK in colours(observed.crop((285, 85, 316, 116)))


def test_slices_stand_apart() -> None:
    before = np.full((4, 6, 6, 4), 10, np.uint8)
    after = before.copy()
    after[2, 5, 5] = 99
    expected, observed, _ = triple(image(before), image(after))
    assert colours(expected) == {(10, 10, 10), BACKGROUND}
    assert observed.getpixel((5 * 32 + 16, 196 + 5 * 32 + 16)) == (99, 99, 99)


def test_a_huge_image_is_drawn_around_the_first_difference() -> None:
    before = np.zeros((1, 1, 5000, 4), np.uint8)
    after = before.copy()
    after[0, 0, 4999] = 255
    _, observed, _ = triple(image(before), image(after))
    assert observed.width == 2048
    assert (255, 255, 255) in colours(observed)


def test_buffers_are_grids_of_words_and_zero_is_black() -> None:
    data = np.arange(16 * 4, dtype=np.uint8)
    data[:4] = 0
    pixels = to_pixels(Surface(7, None, data))
    assert pixels.shape == (1, 4, 4, 3)
    assert pixels[0, 0, 0].tolist() == [0, 0, 0]
    assert len({tuple(pixel) for pixel in pixels.reshape(-1, 3).tolist()}) == 16
    wrong = wrong_texels(Surface(7, None, data), Surface(7, None, np.zeros(64, np.uint8)))
    assert wrong.sum() == 15 and not wrong[0, 0, 0]


def test_channels_stand_where_the_format_says() -> None:
    data = np.array([10, 20, 30, 40], np.uint8).reshape(1, 1, 1, 4)
    assert to_pixels(image(data, RGBA8)).ravel().tolist() == [10, 20, 30]
    assert to_pixels(image(data, BGRA8)).ravel().tolist() == [30, 20, 10]


@pytest.mark.parametrize(("format_name", "aspect"), [(R32F, 1), (D32, 2)])
def test_floats_are_grey_over_the_range_of_both(format_name: str, aspect: int) -> None:
    values = np.array([0.0, 0.5, 1.0, 2.0], np.float32).view(np.uint8).reshape(1, 1, 4, 4)
    surface = image(values, format_name, aspect)
    assert to_pixels(surface, surface)[0, 0, :, 0].tolist() == [0, 64, 128, 255]


def test_values_that_are_no_numbers_do_not_disturb() -> None:
    values = np.array([np.nan, np.inf, 1.0], np.float32).view(np.uint8).reshape(1, 1, 3, 4)
    surface = image(values, R32F)
    assert to_pixels(surface, surface)[0, 0, :, 0].tolist() == [0, 255, 255]


def test_stencil_is_grey() -> None:
    surface = image(np.array([0, 0x80, 0xFF], np.uint8).reshape(1, 1, 3, 1), S8, 4)
    assert to_pixels(surface, surface)[0, 0, :, 1].tolist() == [0, 128, 255]


def test_samples_are_drawn_as_fetched() -> None:
    texel = np.array([1.0, 0.0, 0.5, 1.0], np.float32).view(np.uint8)
    surface = image(np.tile(texel, (4, 2, 2, 1)), samples=4)
    pixels = to_pixels(surface, surface)
    assert pixels.shape == (4, 2, 2, 3)
    assert pixels[3, 1, 1].tolist() == [255, 0, 128]


def test_names_say_aspect_mip_and_layer() -> None:
    data = np.zeros((1, 1, 1, 4), np.uint8)
    assert surface_name(Surface(9, (2, 3, 1), data)) == "image-9-depth-mip3-layer1"
    assert surface_name(Surface(4, None, data.ravel())) == "buffer-4"


def test_files_and_record(tmp_path: Path) -> None:
    before, after = pair()
    key = (9, (1, 0, 0))
    expected, observed = Outputs({key: before}), Outputs({key: after})
    differences = compare(expected, observed)
    paths = write_pictures(
        tmp_path / "a" / "b", expected, observed, differences, {"device": "none", "caption": "what happened"}
    )
    names = [path.name for path in paths]
    assert names == [
        "image-9-color-mip0-layer0-expected.png",
        "image-9-color-mip0-layer0-observed.png",
        "image-9-color-mip0-layer0-difference.png",
        "values.npz",
        "record.json",
    ]
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == sorted(names)
    record = json.loads(paths[-1].read_text())
    assert record["device"] == "none"
    with Picture.open(paths[1]) as picture:
        assert picture.info["Description"] == "observed: what happened"
        assert picture.height > triple(before, after)[1].height, "the caption stands in the picture, too"
    assert record["differences"][0]["first"] == [3, 1, 0]
    assert record["differences"][0]["pictures"] == names[:3]


def test_the_caption_stands_below_the_picture_and_leaves_it_alone() -> None:
    _, observed, _ = triple(*pair())
    lines = [f"observed: {surface_text(pair()[0])}", "READ_AFTER_WRITE on VkImage 9 " + "after " * 40]
    made = captioned(observed, lines)
    assert made.crop((0, 0, *observed.size)).tobytes() == observed.tobytes()
    strip = made.crop((0, observed.height, made.width, made.height))
    assert made.width == observed.width and len(colours(strip)) > 1
    longer = captioned(observed, [*lines, "and one more line"])
    assert longer.height > made.height, "what does not fit into the width goes on below"


def test_a_surface_is_named_with_its_size_and_format() -> None:
    assert surface_text(pair()[0]) == "image-9-color-mip0-layer0, 8 x 4, VK_FORMAT_R8G8B8A8_UNORM"
    samples = image(np.zeros((4, 2, 3, 16), np.uint8), samples=4)
    assert surface_text(samples) == "image-9-color-mip0-layer0, 3 x 2, 4 samples, VK_FORMAT_R8G8B8A8_UNORM"
    assert surface_text(Surface(7, None, np.zeros(64, np.uint8))) == "buffer-7, 64 bytes"


def test_a_picture_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = pair()
    key = (9, (1, 0, 0))
    expected, observed = Outputs({key: before}), Outputs({key: after})
    differences = compare(expected, observed)
    paths = write_pictures(tmp_path, expected, observed, differences, {})
    good = paths[0].read_bytes()

    def fail(self: object, path: Path, **_: object) -> None:
        Path(path).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Picture.Image, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        write_pictures(tmp_path, expected, observed, differences, {})
    assert paths[0].read_bytes() == good
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
