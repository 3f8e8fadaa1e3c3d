"""Every operation of the matrix: the families register theirs when they are imported, in the order of the tables."""

from vkharness.suite.matrix import (  # noqa: F401
    drawing_operations,
    host_operations,
    shader_operations,
    stage_operations,
    transfer_operations,
)
from vkharness.suite.matrix.operation_table import OPERATIONS, MatrixOperation

__all__ = ["OPERATIONS", "MatrixOperation"]
