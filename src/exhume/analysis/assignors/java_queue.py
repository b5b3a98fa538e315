"""Java's PriorityQueue: a binary heap that decides in its own way which of equal elements comes first.

Source: PriorityQueue of the Java platform.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Element = TypeVar("Element")


class JavaQueue(Generic[Element]):
    """A queue whose first element is one with the least rank."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[float, Element]] = []

    def __len__(self) -> int:
        """Return the number of elements."""
        return len(self._heap)

    def add(self, rank: float, element: Element) -> None:
        """Add an element."""
        heap = self._heap
        entry = (rank, element)
        heap.append(entry)
        place = len(heap) - 1
        while place:
            parent = (place - 1) >> 1
            above = heap[parent]
            if rank >= above[0]:
                break
            heap[place] = above
            place = parent
        heap[place] = entry

    def poll(self) -> Element:
        """Take the first element out; raises IndexError if there is none."""
        heap = self._heap
        last = heap.pop()
        if not heap:
            return last[1]
        first = heap[0][1]
        rank, size, place = last[0], len(heap), 0
        half = size >> 1
        while place < half:
            child = 2 * place + 1
            if child + 1 < size and heap[child][0] > heap[child + 1][0]:
                child += 1
            if rank <= heap[child][0]:
                break
            heap[place] = heap[child]
            place = child
        heap[place] = last
        return first
