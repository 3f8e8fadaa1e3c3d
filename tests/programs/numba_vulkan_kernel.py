"""Runs three kernels of numba-vulkan, a package that this project did not write, and checks what they computed."""

import numba_vulkan as nv
import numpy as np


@nv.jit
def saxpy(out, x, y, a):
    i = nv.global_id(0)
    if i < out.size:
        out[i] = a * x[i] + y[i]


@nv.jit
def histogram(counts, values):
    i = nv.global_id(0)
    if i < values.size:
        nv.atomic.add(counts, values[i], 1)


def main() -> None:
    count = 1000
    x = np.arange(count, dtype=np.float32)
    y = np.ones(count, dtype=np.float32)
    out = np.zeros(count, dtype=np.float32)
    saxpy.forall(count)(out, x, y, np.float32(2))
    np.testing.assert_array_equal(out, 2 * x + y)

    # Device arrays stay on the device between launches: the second launch reads what the first wrote.
    on_device = nv.to_device(x)
    saxpy.forall(count)(on_device, on_device, nv.to_device(y), np.float32(3))
    saxpy.forall(count)(on_device, on_device, nv.to_device(y), np.float32(1))
    np.testing.assert_array_equal(on_device.copy_to_host(), 3 * x + 2)

    values = (np.arange(count) % 7).astype(np.int32)
    counts = np.zeros(7, dtype=np.int32)
    histogram.forall(count)(counts, values)
    np.testing.assert_array_equal(counts, np.bincount(values, minlength=7))
    print("computed")


if __name__ == "__main__":
    main()
