"""dlc.explain: what a compiled function did, as text and as one HTML page that needs nothing but itself."""

import html
import json
import linecache
import os
import time

from dlc import _C, compiler
from dlc.nn.module import Module

_STYLE = """
body{font:14px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}code,pre,td.n,td.c{font:13px/1.45 ui-monospace,monospace}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:1px 8px}
.facts td,.facts th{border-bottom:1px solid #ddd;padding:4px 8px}td.n{color:#888;text-align:right;width:3em}
td.c{white-space:pre-wrap}td.g{width:5em;color:#fff}.note{font-size:12px;color:#444}
tr.break td.c{background:#fde8e6}tr.guard td.c{background:#eef3fb}tr.op td.c{background:#eef8ee}
.tag{border-radius:3px;padding:0 5px;margin-right:3px;font-size:11px;color:#fff;display:inline-block}
.b{color:#a11}pre{background:#f6f6f6;padding:8px;overflow-x:auto}
"""
_COLOURS = ("#2b7a4b", "#3b62a8", "#8a5a00", "#7a3b8a", "#0b7285", "#8a3b3b")


class _Explained:
    """Calls a function compiled and tells what happened."""

    def __init__(self, function):
        inner = compiler._callable_of(function)
        if not isinstance(inner, _C._Compiled):
            inner = compiler.compile_function(function, quiet=True)
            function = inner
        self.call, self.compiled = function, compiler._callable_of(inner)

    def __call__(self, *args, **kwargs):
        start = time.perf_counter()
        self.call(*args, **kwargs)
        explanation = Explanation(self.compiled, time.perf_counter() - start)
        print(explanation)
        return explanation


def explain(f):
    """`dlc.explain(f)(*args)` calls f compiled and prints its graphs, breaks, fallbacks and guards; returns them too."""
    return _Explained(f)


class Explanation:
    """What dlc.explain found: `text`, `graphs` and `events` (lists of dicts), `guards` (text and place), counts, `seconds` of the call, and `html()`."""

    def __init__(self, compiled, seconds=0.0):
        self.seconds = seconds
        self.name = compiled.name
        self.text = compiled.explain()
        self.events = compiled.events()
        self.graphs = json.loads(compiled.explain_json())
        self.guards = list(compiled.guards()) if hasattr(compiled, "guards") else []
        self.graph_count = compiled.num_entries
        self.graph_break_count = sum(e["kind"] == "break" for e in self.events)
        self.break_reasons = [e for e in self.events if e["kind"] == "break"]
        self._code = _code_of(getattr(compiled, "_dlc_body", None) or compiled.__wrapped__)

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"<Explanation: {self.graph_count} graphs, {self.graph_break_count} breaks; print it, or see .text and .html()>"

    def html(self):
        """One page: the source with a mark on each line, then graphs, events and guards. It loads nothing else."""
        marks = _Marks(self)
        body = [f"<h1>{html.escape(self.name)}</h1>", _summary(self)]
        body += [_source(path, first, last, marks) for path, first, last in marks.regions(self._code)]
        body += [_graph(i, g) for i, g in enumerate(self.graphs)]
        body += [_events(self.events), _guards(self.guards)]
        body.append(f"<details><summary>All as text</summary><pre>{html.escape(self.text)}</pre></details>")
        return (
            "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>"
            f"{html.escape(self.name)} - dlc.explain</title><style>{_STYLE}</style></head>\n<body>\n"
            + "\n".join(filter(None, body))
            + "\n</body></html>\n"
        )

    def save_html(self, path):
        """Writes html() to a file and returns its path."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())
        return os.fspath(path)


def _code_of(function):
    """The code object that a callable runs, or None."""
    for _ in range(10):
        if function is None or hasattr(function, "__code__"):
            break
        owner = getattr(function, "__self__", None)
        if isinstance(owner, Module) and function.__name__ == "__call__":
            function = type(owner).forward
        else:
            function = getattr(function, "__func__", None) or getattr(function, "func", None)
    return getattr(function, "__code__", None)


def _place(loc):
    """("file", line) of "file:line"; None if it is not that."""
    path, _, line = loc.rpartition(":")
    return (path, int(line)) if path and line.isdigit() else None


class _Marks:
    """By file and line: the graphs with ops there, the breaks and other events, the guards."""

    def __init__(self, explanation):
        self.graphs, self.events, self.guards = {}, {}, {}
        for i, graph in enumerate(explanation.graphs):
            for line in graph["lines"]:
                self._add(self.graphs, line["loc"], (i, line["ops"]))
        for event in explanation.events:
            if event["kind"] not in ("compile", "recompile"):
                self._add(self.events, event["loc"], event)
        for guard in explanation.guards:
            self._add(self.guards, _guard_loc(guard), guard)

    @staticmethod
    def _add(table, loc, item):
        place = _place(loc)
        if place and item not in table.setdefault(place, []):
            table[place].append(item)

    def regions(self, code):
        """(file, first, last) of the pieces of source to show: the function, and whatever else has marks."""
        found = []
        if code is not None:
            last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
            for inner in code.co_consts:
                if hasattr(inner, "co_lines"):
                    last = max([last, *(line for _, _, line in inner.co_lines() if line)])
            found.append([code.co_filename, code.co_firstlineno, last])
        for path, line in sorted({*self.graphs, *self.events, *self.guards}):
            near = next((r for r in found if r[0] == path and r[1] - 6 <= line <= r[2] + 6), None)
            if near:
                near[1:] = min(near[1], line), max(near[2], line)
            else:
                found.append([path, max(1, line - 2), line + 2])
        return found


def _guard_loc(guard):
    return guard[1] if isinstance(guard, tuple) and len(guard) == 2 else ""


def _guard_text(guard):
    return guard[0] if isinstance(guard, tuple) else str(guard)


def _summary(explanation):
    breaks, graphs = explanation.graph_break_count, explanation.graphs
    seconds = sum(g["compile_seconds"] for g in graphs)
    memory = sum(g["arena_bytes"] for g in graphs)
    return (
        f"<p>{len(graphs)} graphs, {breaks} breaks, {len(explanation.guards)} guards; compiled in {seconds:.3f} s, "
        f"this call took {explanation.seconds * 1e3:.2f} ms with all that; "
        f"{memory:,} bytes of temporary memory.</p>"
    )


def _tag(i):
    return f'<span class=tag style="background:{_COLOURS[i % len(_COLOURS)]}">graph {i}</span>'


def _source(path, first, last, marks):
    rows = []
    for number in range(first, last + 1):
        text = linecache.getline(path, number)
        if not text:
            break
        here = (path, number)
        graphs, events, guards = (t.get(here, []) for t in (marks.graphs, marks.events, marks.guards))
        kind = "break" if events else "guard" if guards and not graphs else "op" if graphs else ""
        notes = [f"{_tag(i)} {html.escape(_counted(ops))}" for i, ops in graphs]
        notes += [f"<span class=b>{e['kind']}: {html.escape(e['text'])}</span>" for e in events]
        notes += [f"guard: {html.escape(_guard_text(g))}" for g in guards]
        note = f"<div class=note>{'<br>'.join(notes)}</div>" if notes else ""
        rows.append(
            f"<tr class='{kind}'><td class=n>{number}</td><td class=c>{html.escape(text.rstrip())}{note}</td></tr>"
        )
    return f"<h2>{html.escape(path)}</h2>\n<table>{''.join(rows)}</table>" if rows else ""


def _counted(ops):
    """ "mul, add x3": names in order of their first use."""
    counts = {}
    for op in ops:
        counts[op] = counts.get(op, 0) + 1
    return ", ".join(name if n == 1 else f"{name} x{n}" for name, n in counts.items())


def _graph(i, graph):
    facts = [
        ("ops", graph["ops"]),
        ("inputs, outputs", f"{graph['inputs']}, {graph['outputs']}"),
        ("runs", graph["hits"]),
        ("kernels", graph["kernels"]),
        ("library calls", graph["library_calls"]),
        ("other steps", graph["other_steps"]),
        ("compile time", f"{graph['compile_seconds'] * 1e3:.1f} ms, {graph['llvm_compilations']} kernels through LLVM"),
        ("temporary memory", f"{graph['arena_bytes']:,} bytes"),
    ]
    if not graph["compiled"]:
        facts.append(("not compiled", graph["failure"] or "runs in the interpreter"))
    facts += [("size that varies", s) for s in graph["sizes"]] + [("guard", g) for g in graph["guards"]]
    rows = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(str(v))}</td></tr>" for k, v in facts)
    plan = f"<details><summary>plan</summary><pre>{html.escape(graph['plan'])}</pre></details>" if graph["plan"] else ""
    return f"<h2>{_tag(i)}</h2><table class=facts>{rows}</table>{plan}"


def _events(events):
    counts = {}
    for e in events:
        key = (e["kind"], e["loc"], e["text"], e["action"])
        counts[key] = counts.get(key, 0) + 1
    rows = "".join(
        f"<tr><td>{kind}</td><td><code>{html.escape(loc)}</code></td><td>{html.escape(text)}"
        f"{f' ({n} times)' if n > 1 else ''}<div class=note>{html.escape(action)}</div></td></tr>"
        for (kind, loc, text, action), n in counts.items()
    )
    return f"<h2>Events</h2><table class=facts>{rows}</table>" if rows else ""


def _guards(guards):
    rows = "".join(
        f"<tr><td><code>{html.escape(_guard_loc(g))}</code></td><td>{html.escape(_guard_text(g))}</td></tr>"
        for g in guards
    )
    return f"<h2>Guards</h2><table class=facts>{rows}</table>" if rows else ""
