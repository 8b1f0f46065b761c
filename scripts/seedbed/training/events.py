"""TensorBoard event files, written live while a run trains."""

import time
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter


class EventLog:
    """One event file in `folder`; tags are `SPLIT/METRIC`."""

    def __init__(self, folder: str | Path):
        self._writer = EventFileWriter(str(folder), flush_secs=10)

    def add(self, tag: str, value: float, step: int) -> None:
        """Add a scalar at an update."""
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self) -> None:
        """Make added scalars visible to a running TensorBoard."""
        self._writer.flush()

    def close(self) -> None:
        """Write the rest and close the file."""
        self._writer.close()
