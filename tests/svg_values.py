"""What a drawn chart says: the values of its lines, read off its own axes as a person would."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from xml.etree import ElementTree

Place = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """Ticks as (value, place), whether equal steps are equal ratios, in order."""

    ticks: list[Place]
    log: bool

    def value(self, place: float) -> float:
        """What stands at `place`."""
        (low, start), (high, end) = self.ticks[0], self.ticks[-1]
        share = (place - start) / (end - start)
        return low * (high / low) ** share if self.log else low + share * (high - low)


class Drawn:
    """One svg element of a page."""

    def __init__(self, text: str, log: tuple[bool, bool], percentiles: bool = False) -> None:
        self.svg = ElementTree.fromstring(text)
        self.title = self.svg.findtext("title") or ""
        rules = [line for line in self.svg.iter("line") if line.get("class") == "grid"]
        across = sorted(float(r.get("y1", "")) for r in rules if r.get("y1") == r.get("y2"))
        upright = sorted(float(r.get("x1", "")) for r in rules if r.get("x1") == r.get("x2"))
        self.x_labels = self._labels("xtick")
        self.y_labels = self._labels("ytick")
        xs = [(figure(text), _nearest(upright, float(e.get("x", "")))) for text, e in self.x_labels]
        if percentiles:
            xs = [(100 / (100 - p), place) for p, place in xs]
        ys = [(figure(text), _nearest(across, float(e.get("y", "")) - 4.5)) for text, e in self.y_labels]
        self.x, self.y = Axis(xs, log[0]), Axis(ys, log[1])

    def _labels(self, kind: str) -> list[tuple[str, ElementTree.Element]]:
        return [(e.text or "", e) for e in self.svg.iter("text") if e.get("class") == kind]

    def lines(self, kind: str = "main") -> dict[str, list[Place]]:
        """name -> the values of its points; of thin ones "name, repeat"."""
        found = {}
        for group in self.svg.iter("g"):
            if (name := group.get("data-line")) is None:
                continue
            for line in group.iter("polyline"):
                if line.get("class") == kind:
                    whole = f"{name}, {line.get('data-repeat')}" if kind == "thin" else name
                    places = [pair.split(",") for pair in (line.get("points") or "").split()]
                    found[whole] = [(self.x.value(float(x)), self.y.value(float(y))) for x, y in places]
        return found

    def levels(self) -> list[float]:
        """The values of the levels to compare with."""
        marks = [line for line in self.svg.iter("line") if line.get("class") == "mark"]
        return [self.y.value(float(line.get("y1", ""))) for line in marks]


def figure(text: str) -> float:
    """A tick's label as a number."""
    return float(text.replace(",", ""))


def charts(page: str, picture: str) -> list[str]:
    """The svg elements of the picture with this name, as text."""
    [body] = re.findall(rf'<section class="picture" id="s1-picture-{picture}">.*?</section>', page, re.DOTALL)
    return re.findall(r"<svg .*?</svg>", body, re.DOTALL)


def _nearest(places: list[float], place: float) -> float:
    found = min(places, key=lambda other: abs(other - place))
    assert math.isclose(found, place, abs_tol=30)
    return found
