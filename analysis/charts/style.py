"""The look of every figure, and its bytes: the same data gives the same file, on any day.

A mark may carry a tip, the exact value that a reader sees when pointing at it, and says which architectures and which
cell it is of, so that the page can hide it. A tip travels as the name of the mark's group in the SVG.

One colour, mark and line for an architecture everywhere. The colours are Okabe and Ito's, which colour-blind readers
can tell apart; marks and lines differ too, so that a figure printed in grey can be read.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

DECADE = 10
PUBLISHED = ", published 2017"
_PNG_DPI = 160
_BELOW_MAX = 4  # how far below the least value a logarithmic axis goes for the sake of an interval
_TEXTS_MAX = 8  # as many fit side by side under a figure
_TIP = "tip"
# matplotlib quotes a name that holds a quotation mark with apostrophes.
_TIPPED = re.compile(rf"""<g id=(["']){_TIP}\|([^"'|]*)\|([^"'|]*)\|([^"'|]*)\|([^"'|]*)\|([^<>]*?)\1>""")
# Up to which span of ratios which ticks: few enough to be read, and 1 always.
_RATIO_TICKS = (
    (1.6, (0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.6)),
    (8.0, (0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7)),
    (50.0, (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)),
    (math.inf, tuple(float(f"1e{exponent}") for exponent in range(-6, 7))),
)
_LABEL_GAP = 0.052  # of a panel's height, between two labels
# Set for the whole process, whose only figures these are.
mpl.rcParams.update({
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.hashsalt": "brokerlab",
    "svg.fonttype": "path",  # letters as outlines: the same in every viewer, fonts installed or not
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """The look of one architecture."""

    colour: str
    mark: str
    line: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure's file name without its ending, its caption, and its bytes; a wide one wants a line to itself."""

    name: str
    caption: str
    png: bytes
    svg: bytes
    wide: bool = False
    table: str = ""  # the table that holds its numbers
    only: tuple[str, ...] = ()  # what of a run it shows, as `--only` takes it


_KNOWN = {
    "zookeeper": Look("#D55E00", "o", "-"),
    "zookeeper-watch": Look("#E69F00", "^", "--"),
    "dsbs": Look("#0072B2", "s", "-"),
    "static": Look("#444444", "D", ":"),
    "kafka-zookeeper": Look("#CC79A7", "P", "--"),
    "kafka-kraft": Look("#009E73", "v", "-."),
}
# Taken in turn; no two lengths have a common factor, so sixty looks differ.
_SPARE_COLOURS = ("#56B4E9", "#7A5C00", "#882255", "#999933")
_SPARE_MARKS = ("X", "<", ">", "p", "h")
_SPARE_LINES = ("-.", ":", "--")


def looks(architectures: Sequence[str]) -> dict[str, Look]:
    """A look for each; architectures that are not known take the spare ones, in their order."""
    spare = (name for name in architectures if name not in _KNOWN)
    parts = zip(*map(cycle, (_SPARE_COLOURS, _SPARE_MARKS, _SPARE_LINES)), strict=True)
    given = {name: Look(*look) for name, look in zip(spare, parts, strict=False)}
    return {name: _KNOWN.get(name) or given[name] for name in architectures}


def canvas(
    width: float, height: float, columns: int = 1, rows: int = 1, **options: object
) -> tuple[Figure, list[Axes]]:
    """An empty figure in this project's style, sizes in inches, and its axes row by row."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **options)  # type: ignore[call-overload]
    return figure, [one for line in axes for one in line]


def drawn(
    name: str, caption: str, figure: Figure, *, wide: bool = False, table: str = "", only: Sequence[str] = ()
) -> Drawn:
    return Drawn(name, caption, *rendered(figure), wide=wide, table=table, only=tuple(only))


def tip(artist: Artist, text: str, names: Iterable[str] = (), cell: Sequence[object] = ()) -> None:
    """Let a mark say its value, its architectures and its cell (message size, batch size, mode)."""
    places = [str(part) for part in cell] or ["", "", ""]
    artist.set_gid("|".join([_TIP, " ".join(names), *places, text]))


def _with_tips(svg: bytes) -> bytes:
    """Groups named by `tip`, as what they are: marks with a title that a viewer shows."""
    return _TIPPED.sub(_mark, svg.decode()).encode()


def _mark(found: re.Match[str]) -> str:
    _, names, size, batch, mode, text = found.groups()
    data = {"data-arch": names, "data-size": size, "data-batch": batch, "data-mode": mode}
    written = "".join(f' {key}="{value}"' for key, value in data.items() if value)
    return f'<g class="mark"{written}><title>{text}</title>'


def rendered(figure: Figure) -> tuple[bytes, bytes]:
    """The figure as PNG and as SVG, without dates or versions in them."""
    png, svg = io.BytesIO(), io.BytesIO()
    # By the canvases themselves: `savefig` would draw everything once more before each, to arrange it. The arrangement
    # is the same for both and happens once, with the first.
    figure.set_dpi(_PNG_DPI)
    FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})  # type: ignore[no-untyped-call]
    figure.set_layout_engine("none")
    FigureCanvasSVG(figure).print_svg(  # type: ignore[no-untyped-call]
        svg, metadata={"Date": None, "Creator": None}
    )
    return png.getvalue(), _with_tips(svg.getvalue())


def number(value: float, _position: object = None) -> str:
    """A tick: 200,000 or 0.5."""
    return f"{value:,.0f}" if abs(value) >= 1 and value == round(value) else f"{value:g}"


def value_axis(axes: Axes, values: Sequence[float]) -> None:
    """Logarithmic where the values span a decade or more, from zero otherwise."""
    positive = [value for value in values if value > 0]
    if positive and max(positive) / min(positive) >= DECADE:
        axes.set_yscale("log")
        wide = max(positive) / min(positive) >= DECADE**3
        axes.yaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
        # An interval that reaches almost to zero would press everything else into the top of the figure.
        axes.set_ylim(bottom=max(axes.get_ylim()[0], min(positive) / _BELOW_MAX))
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(number))


def stepped_axis(axes: Axes, values: Sequence[int], texts: Sequence[str]) -> None:
    """A logarithmic x axis with a tick at each of these values and nowhere else."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(values)))
    axes.xaxis.set_minor_locator(NullLocator())
    crowded = len(texts) > _TEXTS_MAX
    axes.set_xticklabels(list(texts), rotation=45 if crowded else 0, ha="right" if crowded else "center")
    axes.set_xlim(min(values) / 1.35, max(values) * 1.35)


def beside(value: float, place: int, of: int, step: float = 1.035) -> float:
    """`value` moved a little on a logarithmic axis, so that the error bars of several series do not hide each other."""
    return float(value * step ** (place - (of - 1) / 2))


def labels_at_ends(axes: Axes, ends: Sequence[tuple[float, str, Look]]) -> None:
    """The names of lines beside their last points, moved apart where they would lie upon each other."""
    to_axes = axes.transData + axes.transAxes.inverted()
    wanted = sorted((float(to_axes.transform((axes.get_xlim()[1], y))[1]), name, look) for y, name, look in ends)
    for place, (_, name, look) in zip(apart([one[0] for one in wanted], _LABEL_GAP), wanted, strict=True):
        label = axes.text(1.015, place, name, color=look.colour, fontsize=8, va="center", transform=axes.transAxes)
        tip(label, name, [name.removesuffix(PUBLISHED)])


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Rising places moved so that neighbours are at least `gap` apart, around where they were and not above the top."""
    moved: list[float] = []
    for place in places:
        moved.append(place if not moved else max(place, moved[-1] + gap))
    shift = sum(moved) / len(moved) - sum(places) / len(places) if places else 0.0
    last = len(moved) - 1
    return [min(place - shift, 1 - gap * (last - number)) for number, place in enumerate(moved)]


def log_ratio_axis(axes: Axes, ends: Sequence[float]) -> None:
    """A logarithmic x axis of ratios with ticks that a reader knows."""
    axes.set_xscale("log")
    span = max(ends) / min(ends)
    axes.xaxis.set_major_locator(FixedLocator(next(ticks for most, ticks in _RATIO_TICKS if span < most)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(number))


def legend_above(figure: Figure, columns: int = 4) -> None:
    """One legend for all panels, each label once."""
    once: dict[str, Artist] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        once |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in once}
    labels = sorted(once, key=lambda label: PUBLISHED in label)  # measured first, each in the order of drawing
    figure.legend([once[label] for label in labels], labels, loc="outside upper left", ncols=columns, fontsize=8)
