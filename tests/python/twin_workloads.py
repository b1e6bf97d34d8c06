"""Ordinary uses of the standard library's Python code, a function each; a workload's result must not hold addresses."""

import abc
import argparse
import ast
import base64
import bisect
import calendar
import collections
import configparser
import contextlib
import copy
import csv
import dataclasses
import datetime
import difflib
import email
import enum
import fnmatch
import fractions
import functools
import heapq
import html.parser
import inspect
import io
import ipaddress
import itertools
import json
import logging
import operator
import pathlib
import pprint
import random
import re
import reprlib
import shlex
import statistics
import string
import textwrap
import tokenize
import types
import typing
import urllib.parse
import uuid
import weakref
import xml.etree.ElementTree as ElementTree


def w_difflib():
    a, b = "one two three four".split(), "one tree four five".split()
    matcher = difflib.SequenceMatcher(None, "private volatile", "private thread volatile")
    return (
        list(difflib.unified_diff(a, b)),
        list(difflib.ndiff(a, b)),
        difflib.get_close_matches("tree", a),
        matcher.ratio(),
        matcher.get_opcodes(),
    )


def w_argparse():
    parser = argparse.ArgumentParser(prog="tool", description="does things")
    parser.add_argument("--count", type=int, default=3, help="how many (%(default)s)")
    parser.add_argument("names", nargs="*")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("-v", action="store_true")
    group.add_argument("-q", action="count")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("run").add_argument("--fast", action="store_true")
    one = parser.parse_args(["--count", "7", "a", "run", "--fast"])
    with contextlib.redirect_stderr(io.StringIO()) as text:
        try:
            parser.parse_args(["--count", "x"])
        except SystemExit as error:
            return sorted(vars(one).items()), parser.format_help(), error.code, text.getvalue()


def w_configparser():
    parser = configparser.ConfigParser()
    parser.read_string("[DEFAULT]\nhome = /h\n[a]\nx = 1\npath = %(home)s/p\n[b]\nflag: yes\nlong = 1\n  2\n")
    parser["c"] = {"k": "v"}
    out = io.StringIO()
    parser.write(out)
    try:
        parser.get("a", "nothing")
    except configparser.NoOptionError as error:
        message = str(error)
    return out.getvalue(), parser["a"]["path"], parser.getboolean("b", "flag"), parser.sections(), message


def w_statistics():
    data = [1, 2, 3.5, 4, 4, 8]
    fits = statistics.linear_regression([1, 2, 3], [2, 4, 7])
    return (
        statistics.mean(data),
        statistics.median(data),
        statistics.stdev(data),
        statistics.mode(data),
        statistics.quantiles(data),
        statistics.fmean(data),
        statistics.harmonic_mean(data),
        tuple(fits),
        statistics.NormalDist(2, 3).cdf(1),
        statistics.mean([fractions.Fraction(1, 3), fractions.Fraction(2, 3)]),
    )


def w_ast_unparse():
    tree = ast.parse(inspect.getsource(textwrap) + inspect.getsource(heapq))
    counts = collections.Counter(type(node).__name__ for node in ast.walk(tree))
    return ast.unparse(tree), sorted(counts.items()), ast.literal_eval("{'a': [1, (2, -3.5)], 'b': {1}}")


def w_json():
    value = {"a": [1, 2.5, None, True, "x\n\u1234"], "b": {"c": []}}
    pure = json.JSONDecoder()
    pure.parse_string = json.decoder.py_scanstring
    pure.scan_once = json.scanner.py_make_scanner(pure)
    text = json.dumps(value, indent=2, sort_keys=True)
    try:
        pure.decode('{"a": [1, 2,, 3]}')
    except json.JSONDecodeError as error:
        return text, pure.decode(text) == value, str(error), json.encoder.py_encode_basestring_ascii("a\u1234")


def w_textwrap():
    text = "The quick brown fox jumps over the lazy dog, again and again. " * 4
    return (
        textwrap.fill(text, 30, initial_indent="* ", subsequent_indent="  "),
        textwrap.dedent("   a\n     b\n   c\n"),
        textwrap.shorten(text, 40),
        textwrap.indent("a\n\nb", "> "),
    )


def w_heapq():
    merged = list(heapq.merge([1, 4, 7], [2, 5, 8], iter([0, 9]), key=lambda x: x, reverse=False))
    return merged, list(heapq.merge([7, 4], [8, 5], reverse=True)), heapq.nlargest(2, [3, 1, 2], key=operator.neg)


class Point(collections.namedtuple("Point", "x y")):
    def norm(self):
        return abs(self.x) + abs(self.y)


def w_collections():
    counter = collections.Counter("abracadabra")
    counter.update({"z": 3})
    counter.subtract("ab")
    chain = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    user = collections.UserDict(a=1)
    user["k"] = [user.get("a"), "a" in user]
    names = collections.UserList([3, 1, 2])
    names.sort()
    point = Point(1, -2)
    return (
        counter.most_common(2),
        sorted((counter + counter).elements())[:5],
        dict(chain),
        chain.new_child({"c": 5})["c"],
        dict(user),
        list(names),
        point.norm(),
        point._replace(x=5),
        sorted(collections.UserString("hello").title()),
    )


@dataclasses.dataclass(order=True)
class Item:
    name: str
    price: float = 1.0
    tags: list = dataclasses.field(default_factory=list, compare=False)
    total: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self):
        self.total = self.price * 2


def w_dataclasses():
    a, b = Item("a", 2.0, ["x"]), Item("b")
    changed = dataclasses.replace(a, price=5.0)
    made = dataclasses.make_dataclass("Made", [("x", int), ("y", int, 3)], frozen=True)(1)
    try:
        made.x = 2
    except dataclasses.FrozenInstanceError as error:
        frozen = str(error)
    return (
        repr(a),
        a < b,
        a == copy.deepcopy(a),
        dataclasses.asdict(changed),
        dataclasses.astuple(b),
        repr(made),
        frozen,
    )


def w_contextlib():
    done = []

    @contextlib.contextmanager
    def managed(name):
        done.append(f"in {name}")
        try:
            yield name
        except ValueError:
            done.append("swallowed")
        finally:
            done.append(f"out {name}")

    @managed("decorator")
    def decorated():
        return 5

    with contextlib.ExitStack() as stack:
        stack.enter_context(managed("one"))
        stack.callback(done.append, "callback")
        stack.push(contextlib.suppress(KeyError))
        raise KeyError("k")
    with managed("two"), contextlib.nullcontext(3) as three, contextlib.closing(io.StringIO()) as text:
        done.append((three, decorated()))
        raise ValueError("v")
    return done, text.closed


def w_functools():
    @functools.singledispatch
    def show(value):
        return "object"

    @show.register
    def _(value: int):
        return "int"

    @show.register(list)
    def _(value):
        return "list"

    @functools.total_ordering
    class Version:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return self.n == other.n

        def __lt__(self, other):
            return self.n < other.n

        @functools.cached_property
        def text(self):
            return f"v{self.n}"

        @functools.partialmethod
        def nothing(self):
            return None

    a, b = Version(1), Version(2)
    return show(1), show([]), show("x"), a <= b, a > b, a.text, a.text, functools.reduce(operator.add, [1, 2, 3])


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    LIME = 2

    @property
    def short(self):
        return self.name[0]


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


def w_enum():
    both = Access.READ | Access.WRITE
    try:
        Color(7)
    except ValueError as error:
        message = str(error)
    return [c.name for c in Color], Color.LIME.short, Color["RED"].value, str(both), Access.READ in both, message


def w_string():
    class Custom(string.Formatter):
        def get_value(self, key, args, kwargs):
            return super().get_value(key, args, kwargs) if isinstance(key, int) else f"<{key}>"

    template = string.Template("$who likes ${what}, $$5")
    return (
        template.substitute(who="a", what="b"),
        template.safe_substitute(who="a"),
        Custom().format("{0:>5} {name!r} {1[k]}", 3, {"k": 2}),
        string.capwords("a bc  d"),
    )


def w_shlex():
    lexer = shlex.shlex("a = 'b c' # comment\n(d|e)", posix=True, punctuation_chars=True)
    return shlex.split("ls -l 'a b' \"c d\" e\\ f"), shlex.quote("it's"), shlex.join(["a b", "c"]), list(lexer)


def w_fnmatch():
    names = ["a.py", "b.txt", "c.pyc", "d[1].py"]
    return fnmatch.filter(names, "*.py"), fnmatch.translate("a?[!b]*"), fnmatch.fnmatch("d[1].py", "d[[]1].*")


def w_urllib_parse():
    parts = urllib.parse.urlsplit("http://user:pw@host.example:80/p/a;x?q=1&r=a%20b#frag")
    return (
        parts,
        parts.hostname,
        parts.port,
        urllib.parse.parse_qs("a=1&a=2&b="),
        urllib.parse.urljoin("http://a/b/c", "../d"),
        urllib.parse.quote("a b/ü"),
        urllib.parse.unquote("%7Ea%FF"),
        urllib.parse.urlencode([("a", "1 2"), ("b", ["x", "y"])], doseq=True),
        urllib.parse.urlunsplit(parts._replace(fragment="")),
    )


def w_fractions():
    a, b = fractions.Fraction("3/7"), fractions.Fraction(-2, 5)
    return (
        a + b,
        a * b,
        a / b,
        a // b,
        a**2,
        float(a),
        a < b,
        fractions.Fraction(0.375).limit_denominator(4),
        round(a, 2),
    )


def w_pathlib():
    p = pathlib.PurePosixPath("/a/b/c.tar.gz")
    return (
        p.stem,
        p.suffixes,
        p.with_suffix(".x").name,
        str(p.parent / "d"),
        p.relative_to("/a").parts,
        p.match("*.gz"),
        pathlib.PureWindowsPath("c:/x/y").drive,
    )


def w_pprint():
    value = {"key": list(range(30)), "other": {"nested": ("text " * 10).split()}, "set": {3, 1, 2}}
    return pprint.pformat(value, width=40), pprint.pformat(value, compact=True, depth=1), reprlib.repr(list(range(50)))


def w_csv():
    out = io.StringIO()
    writer = csv.DictWriter(out, ["a", "b"])
    writer.writeheader()
    writer.writerows([{"a": 1, "b": "x,y"}, {"a": 2}])
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    return out.getvalue(), rows, csv.Sniffer().sniff("a;b;c\n1;2;3\n").delimiter


def w_email():
    message = email.message_from_string("From: A <a@b.c>\nSubject: =?utf-8?q?h=C3=A9?=\n\nbody\n")
    return message["From"], email.utils.parseaddr(message["from"]), message.as_string(), message.get_payload()


def w_html():
    class Parser(html.parser.HTMLParser):
        def __init__(self):
            super().__init__()
            self.seen = []

        def handle_starttag(self, tag, attrs):
            self.seen.append(("start", tag, attrs))

        def handle_endtag(self, tag):
            self.seen.append(("end", tag))

        def handle_data(self, data):
            self.seen.append(("data", data))

    parser = Parser()
    parser.feed("<p class='x'>a &amp; b<br/><!-- c --></p>")
    parser.close()
    return parser.seen, html.escape("<a & 'b'>"), html.unescape("&lt;&#65;&eacute;")


def w_ipaddress():
    net = ipaddress.ip_network("10.0.0.0/29")
    six = ipaddress.ip_address("2001:db8::1")
    return [str(h) for h in net.hosts()], six.exploded, ipaddress.ip_address("10.0.0.3") in net, net.num_addresses


def w_datetime():
    a, b = datetime.date(2024, 2, 28), datetime.timedelta(days=2, hours=3)
    text = calendar.TextCalendar().formatmonth(2024, 2)
    return str(a + b), calendar.monthrange(2024, 2), text, datetime.datetime(2024, 1, 1).isoformat()


def w_copy():
    shared = [1, 2]
    value = {"a": shared, "b": shared, "c": (shared, {3})}
    value["self"] = value
    deep = copy.deepcopy(value)
    return deep["a"] is deep["b"], deep["self"] is deep, deep["a"] is not shared, copy.copy(shared)


def w_re():
    pattern = re.compile(r"(?P<word>\w+)\s+(\d{2,3}|x)*(?=!)", re.I)
    return pattern.findall("ab 12! cd 345!"), re.sub(r"(a)(b)?", lambda m: m.group(1).upper(), "ab a"), re.escape("a.b")


def w_tokenize():
    source = io.StringIO("def f(x):\n    return x + 1  # note\n")
    return [(t.type, t.string) for t in tokenize.generate_tokens(source.readline)]


def w_inspect():
    def function(a, /, b: int = 2, *args, c, d=4, **kw) -> str:
        """Doc."""

    signature = inspect.signature(function)
    bound = signature.bind(1, c=3)
    bound.apply_defaults()
    return str(signature), dict(bound.arguments), inspect.getdoc(function), inspect.isclass(Item)


def w_logging():
    out = io.StringIO()
    logger = logging.Logger("twin")
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.warning("value %d of %s", 3, "x")
    logger.debug("also %r", [1])
    logger.setLevel(logging.ERROR)
    logger.info("not shown")
    return out.getvalue(), logging.getLevelName(30)


def w_random():
    generator = random.Random(5)
    items = list(range(10))
    generator.shuffle(items)
    return items, generator.sample(range(100), 5), generator.gauss(0, 1), generator.choices("abc", [1, 2, 3], k=4)


def w_xml():
    root = ElementTree.fromstring("<a x='1'><b>t</b><b/><c><b k='v'/></c></a>")
    ElementTree.indent(root)
    return [e.attrib for e in root.iterfind(".//b[@k]")], ElementTree.tostring(root, "unicode"), len(root.findall("b"))


def w_weakref():
    class Thing:
        pass

    thing, finalized = Thing(), []
    names = weakref.WeakValueDictionary(a=thing)
    members = weakref.WeakSet([thing])
    weakref.finalize(thing, finalized.append, 1)
    before = list(names), len(members)
    del thing
    return before, list(names), len(members), finalized


def w_abc_and_typing():
    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    class Square(Shape):
        def area(self):
            return 4

    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        pass

    return (
        isinstance(Square(), Shape),
        Square().area(),
        str(typing.Callable[[int], str]),
        Box[int].__args__,
        typing.get_args(dict[str, int]),
    )


def w_other():
    return (
        base64.b85encode(b"hello world"),
        base64.b32decode(base64.b32encode(b"x")),
        str(uuid.uuid5(uuid.NAMESPACE_DNS, "a.example")),
        bisect.bisect([1, 3, 5], 4),
        list(itertools.chain.from_iterable([[1], [2]])),
        types.SimpleNamespace(a=1),
    )


WORKLOADS = [value for name, value in list(globals().items()) if name.startswith("w_")]
