"""dlc.explain: as text, as data, and as a page that stands alone."""

import html.parser
import inspect
import re

import dlc
import pytest
from dlc import nn


class Page(html.parser.HTMLParser):
    """The rows of source by line number: class and text; and whatever the page would load."""

    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.rows, self.loads, self.open, self.title = {}, [], [], ""
        self.row = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.loads += [attrs[k] for k in ("src", "href", "data", "action") if k in attrs]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.row = [attrs.get("class", ""), ""]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "tr":
            number = re.match(r"\s*(\d+)\n?", self.row[1])
            if number:
                self.rows[int(number[1])] = tuple(self.row)

    def handle_data(self, data):
        if self.row is not None:
            self.row[1] += data
        if self.open[-1:] == ["title"]:
            self.title += data


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def branchy(x, y):
    a = x * 2 + 1
    b = (a @ y).relu()
    if b.sum() > -1:  # <- "breaks" & needs escaping
        c = b.exp() + 1
        return c * 3
    return b


def test_the_page_marks_lines(tmp_path, capsys):
    dlc.compiler.reset()
    explanation = dlc.explain(branchy)(dlc.rand(3, 4), dlc.rand(4, 2))
    path = explanation.save_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert path == str(tmp_path / "page.html") and text == explanation.html() and len(text) < 50_000
    page = Page(text)
    assert page.loads == [] and page.open == [] and "<script" not in text and "branchy" in page.title
    assert not re.search(r"@import|url\(|https?:", text)
    for part, kind, words in (
        ("a = x * 2", "op", "mul"),
        ("a @ y", "op", "relu"),
        ("b.sum()", "break", "Python needed the values"),
        ("b.exp()", "op", "exp"),
        ("return c * 3", "op", "mul"),
        ("return b", "", "return b"),
    ):
        got = page.rows[line_of(branchy, part)]
        assert got[0] == kind and words in got[1], got
    assert "&amp; needs escaping" in text and page.rows[line_of(branchy, "b.sum()")][1].count("graph") >= 1
    assert [len(g["lines"]) > 0 for g in explanation.graphs] == [True, True] and explanation.graph_break_count == 1
    assert "graph 0" in capsys.readouterr().out


def test_the_data_behind_the_page():
    f = dlc.compile(lambda x: (x.softmax(1) @ x.t()).sum(0))
    explain = dlc.explain(f)
    explain(dlc.rand(5, 40))
    e = explain(dlc.rand(6, 40))
    assert len(e.graphs) == 2 == e.graph_count and e.graph_break_count == 0
    for g in e.graphs:
        assert g["compiled"] and g["kernels"] + g["library_calls"] + g["other_steps"] >= 2 and g["hits"] == 1
        assert (
            g["compile_seconds"] > 0
            and g["arena_bytes"] > 0
            and sum(len(line["ops"]) for line in g["lines"]) == g["ops"]
        )
        assert all("test_explain.py:" in line["loc"] for line in g["lines"])
    assert any(g["sizes"] == ["s0 = 6"] for g in e.graphs)
    assert 0 < e.seconds < 60 and f"took {e.seconds * 1e3:.2f} ms" in e.html()
    assert "arena" in e.html() and "s0 = 6" in e.html() and repr(e).startswith("<Explanation: 2 graphs")


def test_guards_with_a_place_are_shown_at_their_line():
    e = dlc.explain(branchy)(dlc.rand(3, 4), dlc.rand(4, 2))
    line = line_of(branchy, "return b")
    e.guards = [("type(x) is <Tensor>", f"{__file__}:{line}")]
    assert "guard: type(x) is <Tensor>" in Page(e.html()).rows[line][1] and Page(e.html()).rows[line][0] == "guard"


@pytest.mark.parametrize("kind", ["module", "method", "partial", "generator", "exec"])
def test_everything_that_compiles_can_be_explained(kind):
    import functools

    class Net(nn.Module):
        def forward(self, x):
            return (x * 2 + 1).exp()

    def generate(x):
        yield (x * 2 + 1).exp()

    space = {}
    exec("def made(x): return (x * 2 + 1).exp()", space)
    f, call = {
        "module": (dlc.compile(Net()), None),
        "method": (dlc.compile(Net().forward), None),
        "partial": (functools.partial(lambda k, x: (x * k + 1).exp(), 2), None),
        "generator": (dlc.compile(generate), list),
        "exec": (space["made"], None),
    }[kind]
    if call:
        list(f(dlc.ones(3)))
        e = dlc.explain(f)(dlc.ones(3))
    else:
        e = dlc.explain(f)(dlc.ones(3))
    page = Page(e.html())
    assert len(e.graphs) == 1 and page.open == [] and (kind == "exec" or any(r[0] == "op" for r in page.rows.values()))


SCALE = 3


def test_guards_of_replays_are_shown_at_the_lines_that_needed_them():
    def f(t, options):
        y = t * SCALE + 1
        if options["double"]:
            y = y * 2
        return y.exp()

    explain = dlc.explain(f)
    options = {"double": True}
    explain(dlc.rand(4), options)
    e = explain(dlc.rand(4), options)
    rows = Page(e.html()).rows
    scale, double = rows[line_of(f, "SCALE")][1], rows[line_of(f, 'options["double"]')]
    assert "SCALE" in scale.split("guard:", 1)[1] and "mul" in scale
    assert double[0] == "guard" and "double" in double[1].split("guard:", 1)[1]
    assert all(isinstance(text, str) and isinstance(place, str) for text, place in e.guards) and len(e.guards) > 3
